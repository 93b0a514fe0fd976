/* SPDX-License-Identifier: Apache-2.0 */
#include "term_layout.h"

#include "../ground/utf8.h"

#define INDENT 2
#define LEVELS 64 /* limit for the depth of broken containers; deeper ones stay on one line, which is wrapped */
#define LEAST 10  /* least width that the indent leaves for the text */

struct layout {
    struct buf *to;
    const char *at, *end;
    unsigned width, column, indent;
    unsigned levels; /* number of open containers that are broken into lines */
};

static void layout_break(struct layout *l)
{
    buf_char(l->to, '\n');
    for (l->column = 0; l->column < l->indent; l->column++)
        buf_char(l->to, ' ');
}

/* Copies the text up to `until`, wrapped at the width. */
static void layout_copy(struct layout *l, const char *until)
{
    while (l->at < until) {
        const char *next = l->at;
        utf8_next(&next, l->end);
        const unsigned columns = (unsigned)utf8_width(l->at, (size_t)(next - l->at));
        if (l->column + columns > l->width && l->column > l->indent)
            layout_break(l);
        buf_add(l->to, l->at, (size_t)(next - l->at));
        l->column += columns;
        l->at = next;
    }
}

/* Returns true if the word after the blank at l->at does not fit on the line. */
static bool layout_must_wrap(const struct layout *l)
{
    const char *p = l->at + 1;

    while (p < l->end && !strchr(" ,([{", *p) && (size_t)(p - l->at) <= 4 * (size_t)l->width)
        p++;
    const size_t word = utf8_width(l->at, (size_t)(p - l->at));
    return l->column > l->indent && l->column + word > l->width && word + l->indent <= l->width;
}

/* Returns the byte after a quoted text or a bit string that begins at `at`, or `at` if none begins there. */
static const char *layout_quoted(const char *at, const char *end)
{
    const char *p = at;

    if (*p == '"' || *p == '\'') {
        for (p++; p < end && *p != *at; p++)
            p += *p == '\\' && p + 1 < end;
        return p < end ? p + 1 : end;
    }
    if (end - at < 2 || at[0] != '<' || at[1] != '<')
        return at;
    for (p = at + 2; p < end; p++) {
        if (*p == '>' && p + 1 < end && p[1] == '>')
            return p + 2;
        const char *after = *p == '"' ? layout_quoted(p, end) : p;
        p = after == p ? p : after - 1;
    }
    return end;
}

static bool layout_opens(char c)
{
    return c == '(' || c == '[' || c == '{';
}

static bool layout_closes(char c)
{
    return c == ')' || c == ']' || c == '}';
}

/* Returns true if the brace at `at` opens a map, a record or a struct: #{, %{, #name{ or %Name{. */
static bool layout_is_map(const char *begin, const char *at)
{
    if (*at != '{')
        return false;
    while (at > begin && at[-1] != '#' && at[-1] != '%' && !strchr(" ,([{=>", at[-1]))
        at--;
    return at > begin && (at[-1] == '#' || at[-1] == '%');
}

/*
 * Returns the byte after the container that begins at `at` if it fits into `room` columns and no map in it has several
 * fields. NULL: it must be broken.
 */
static const char *layout_flat(const char *begin, const char *at, const char *end, size_t room)
{
    uint64_t maps = 0; /* bit N: the container at depth N is a map */
    unsigned depth = 0;

    for (const char *p = at; p < end && (size_t)(p - at) <= 4 * room;) {
        const char *after = layout_quoted(p, end);
        if (after != p) {
            p = after;
            continue;
        }
        if (layout_opens(*p)) {
            if (++depth == LEVELS)
                return NULL;
            maps = (maps & ~(UINT64_C(1) << depth)) | (uint64_t)layout_is_map(begin, p) << depth;
        } else if (*p == ',' && maps >> depth & 1) {
            return NULL;
        } else if (layout_closes(*p) && !--depth) {
            return utf8_width(at, (size_t)(p + 1 - at)) <= room ? p + 1 : NULL;
        }
        p++;
    }
    return NULL;
}

static void layout_open(struct layout *l, const char *begin)
{
    const size_t room = l->width > l->column ? l->width - l->column : 0;
    const char *flat = layout_flat(begin, l->at, l->end, room);

    if (flat) {
        layout_copy(l, flat);
        return;
    }
    layout_copy(l, l->at + 1);
    l->levels++;
    if (l->indent + INDENT + LEAST <= l->width)
        l->indent += INDENT;
    if (l->at < l->end && !layout_closes(*l->at))
        layout_break(l);
}

static void layout_close(struct layout *l)
{
    if (l->levels) {
        l->levels--;
        l->indent = MIN(l->indent, l->levels * INDENT);
        if (!layout_opens(l->at[-1]))
            layout_break(l);
    }
    layout_copy(l, l->at + 1);
}

void term_layout(struct buf *to, struct str text, unsigned width)
{
    struct layout l = {.to = to, .at = text.at, .end = text.at + text.len, .width = MAX(width, (unsigned)LEAST)};

    while (l.at < l.end) {
        const char *after = layout_quoted(l.at, l.end);
        if (after != l.at) {
            layout_copy(&l, after);
        } else if (layout_opens(*l.at)) {
            layout_open(&l, text.at);
        } else if (layout_closes(*l.at)) {
            layout_close(&l);
        } else if (*l.at == ',' && l.levels) {
            layout_copy(&l, l.at + 1);
            l.at += l.at < l.end && *l.at == ' ';
            layout_break(&l);
        } else if (*l.at == ' ' && layout_must_wrap(&l)) {
            l.at++;
            layout_break(&l);
        } else {
            const char *next = l.at;
            utf8_next(&next, l.end);
            layout_copy(&l, next);
        }
    }
    buf_char(to, '\n');
}
