#include "err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

/* Whatever a node or a file put into a message cannot steer the terminal. */
static void make_safe(char *text)
{
    const char *at = text, *end = text + strlen(text);
    char *to = text;

    while (at < end) {
        const char *from = at;
        uint32_t cp = utf8_next(&at, end);
        if (cp != UTF8_BAD && utf8_shows(cp)) {
            memmove(to, from, (size_t)(at - from));
            to += at - from;
        } else {
            *to++ = '?';
        }
    }
    *to = 0;
}

bool err_set(struct err *e, enum err_status status, const char *fmt, ...)
{
    va_list args;

    *e = (struct err){.status = status};
    va_start(args, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, args);
    va_end(args);
    make_safe(e->text);
    return false;
}

void err_hint(struct err *e, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(e->hint, sizeof(e->hint), fmt, args);
    va_end(args);
    make_safe(e->hint);
}
