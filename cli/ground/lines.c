/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <string.h>

#define KEPT 65536 /* bytes of memory that stay allocated for the next line */

bool lines_take(struct lines *l, struct str *bytes, size_t most)
{
    const char *end = memchr(bytes->at, '\n', bytes->len);
    const size_t len = end ? (size_t)(end - bytes->at) : bytes->len, whole = len + (end != NULL);

    l->too_long = l->too_long || l->line.len + len > most;
    if (!l->too_long)
        buf_add(&l->line, bytes->at, len);
    bytes->at += whole;
    bytes->len -= whole;
    return end;
}

void lines_next(struct lines *l)
{
    l->too_long = false;
    buf_shrink(&l->line, KEPT);
}

void lines_release(struct lines *l)
{
    buf_release(&l->line);
}
