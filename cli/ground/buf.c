/* SPDX-License-Identifier: Apache-2.0 */
#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "mem.h"
#include "utf8.h"

void buf_release(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

void buf_grow(struct buf *b, size_t more)
{
    b->data = mem_grow(b->data, &b->cap, b->len + more, 1);
}

void buf_shrink(struct buf *b, size_t kept)
{
    buf_clear(b);
    if (b->cap > kept)
        buf_release(b);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args, again;

    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n > 0) {
        vsnprintf(buf_room(b, (size_t)n + 1), (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void buf_utf8(struct buf *b, uint32_t codepoint)
{
    b->len += utf8_put(buf_room(b, 4), codepoint);
}

const char *buf_cstr(struct buf *b)
{
    *buf_room(b, 1) = 0;
    return b->data;
}
