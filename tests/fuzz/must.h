/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the output, shared by the fuzz targets that print. */
#ifndef ETRACE_FUZZ_MUST_H
#define ETRACE_FUZZ_MUST_H

#include <stdlib.h>
#include <string.h>

#include "ground/buf.h"
#include "ground/err.h"
#include "ground/utf8.h"
#include "views/sink.h"

static inline void must(bool ok)
{
    if (!ok)
        abort();
}

static inline void must_be_shown(const char *text, size_t len)
{
    const char *end = text + len;

    while (text < end) {
        uint32_t cp = utf8_next(&text, end);
        must(cp == '\n' || (cp != UTF8_BAD && utf8_shows(cp)));
    }
}

#ifdef __clang__
#define UNEXPLORED __attribute__((no_sanitize("coverage")))
#else
#define UNEXPLORED
#endif

/*
 * Checks that the output of a view is whole lines of visible text. `tabs`: the view separates columns with tabs. The
 * fuzzer does not explore this code.
 */
UNEXPLORED static inline bool must_be_lines(struct buf *bytes, bool tabs)
{
    const char *at = bytes->data, *end = at + bytes->len;

    while (at < end) {
        if (*at >= ' ' && *at <= '~') {
            at++;
            continue;
        }
        uint32_t c = utf8_next(&at, end);
        must(c == '\n' || (tabs && c == '\t') || (c != UTF8_BAD && utf8_shows(c)));
    }
    must(!bytes->len || bytes->data[bytes->len - 1] == '\n');
    bytes->len = 0;
    return true;
}

/*
 * Writes the output of a view of the type: visible text, but recordings and pprof are binary. Views named tsv separate
 * columns with tabs.
 */
static inline bool must_be_output(void *type, struct buf *bytes)
{
    const struct sink_type *view = type;

    if (view->flags & SINK_RAW || !strcmp(view->name, "pprof"))
        bytes->len = 0;
    return must_be_lines(bytes, strstr(view->name, "tsv"));
}

static inline void must_say(const struct err *e)
{
    must(e->status && e->text[0]);
    must_be_shown(e->text, strlen(e->text));
    must_be_shown(e->hint, strlen(e->hint));
}

static inline void hear(void *data UNUSED, struct str lines)
{
    must_be_shown(lines.at, lines.len);
}

#endif
