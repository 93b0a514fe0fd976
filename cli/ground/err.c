/* SPDX-License-Identifier: Apache-2.0 */
#include "err.h"

#include <stdarg.h>
#include <stdio.h>

#include "utf8.h"

/* Escapes the text for a terminal, because it may contain bytes from a node or a file. */
bool err_set(struct err *e, enum err_status status, const char *fmt, ...)
{
    va_list args;

    *e = (struct err){.status = status};
    va_start(args, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, args);
    va_end(args);
    utf8_make_safe(e->text);
    return false;
}

void err_hint(struct err *e, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(e->hint, sizeof(e->hint), fmt, args);
    va_end(args);
    utf8_make_safe(e->hint);
}
