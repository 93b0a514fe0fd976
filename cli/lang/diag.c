/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes diagnostics: the quoted line, the span in it, and the nearest known word. It does not print them; colours and
 * the program's name are added elsewhere.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../ground/utf8.h"
#include "comp.h"

/*
 * Copies the line that contains `from`, or only the part around the span if the line is too long. Unprintable
 * characters become '?'.
 */
static void quote_line(struct err *e, struct str text, size_t from, size_t len)
{
    const size_t room = sizeof(e->line) - 5;
    size_t begin = from, end = from;

    while (begin > 0 && text.at[begin - 1] != '\n')
        begin--;
    e->row = 1;
    for (size_t i = 0; i < begin; i++)
        e->row += text.at[i] == '\n';
    while (end < text.len && text.at[end] != '\n')
        end++;
    if (end - begin > room && from - begin > room / 2) {
        begin = from - room / 2;
        while (begin < from && ((unsigned char)text.at[begin] & 0xc0) == 0x80)
            begin++;
    }

    const char *at = text.at + begin, *stop = text.at + end, *first = text.at + from;
    const char *last = text.at + MIN(from + len, end);
    size_t n = 0;
    bool started = false, ended = false;

    while (at < stop) {
        const char *here = at;
        uint32_t cp = utf8_next(&at, stop);
        if (!started && at > first) {
            e->from = n;
            started = true;
        }
        if (!ended && here >= last) {
            e->len = n - e->from;
            ended = true;
        }
        size_t bytes = cp != UTF8_BAD && utf8_shows(cp) ? (size_t)(at - here) : 1;
        if (n + bytes > room)
            break;
        if (cp == UTF8_BAD || !utf8_shows(cp))
            e->line[n] = cp == '\t' ? ' ' : '?';
        else
            memcpy(e->line + n, here, bytes);
        n += bytes;
    }
    if (!started)
        e->from = n;
    if (!ended)
        e->len = n - e->from;
    if (!e->len)
        e->len = 1;
    e->line[n] = 0;
}

bool diag(struct comp *c, size_t from, size_t len, const char *fmt, ...)
{
    char text[sizeof(c->err->text)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    err_set(c->err, ERR_USAGE, "%s", text);
    from = MIN(from, c->text.len);
    c->failed_at = from;
    c->cut = false;
    /* An error at the end of the text is shown behind the last line that is not blank. */
    if (from == c->text.len && from > 0 && c->text.at[from - 1] == '\n')
        while (from > 0 && strchr(" \t\r\n", c->text.at[from - 1]))
            from--;
    quote_line(c->err, c->text, from, MIN(len, c->text.len - from));
    return false;
}

bool diag_note(struct comp *c, const char *fmt, ...)
{
    struct err safe;
    char text[sizeof(c->err->note)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    err_set(&safe, ERR_USAGE, "%s", text);
    memcpy(c->err->note, safe.text, sizeof(c->err->note));
    c->err->note[sizeof(c->err->note) - 1] = 0;
    return false;
}

bool diag_cut(struct comp *c)
{
    c->cut = true;
    return false;
}

void warn(struct comp *c, size_t from, size_t len, bool never, const char *fmt, ...)
{
    struct spec_warning *w = arena_alloc(c->arena, sizeof(*w));
    char text[400];
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    w->text.len = MIN((size_t)MAX(n, 0), sizeof(text) - 1);
    w->text.at = arena_strndup(c->arena, text, w->text.len);
    w->from = from;
    w->len = len;
    w->never = never;
    ptrs_add(&c->warnings, c->arena, w);
}

void guess_init(struct guess *g, struct str word)
{
    *g = (struct guess){.near = near_start(word.at, word.len)};
}

void guess_offer(struct guess *g, struct str name)
{
    char copy[65]; /* near.h needs a NUL at the end, and does not compare longer names */

    if (name.len >= sizeof(copy))
        return;
    memcpy(copy, name.at, name.len);
    copy[name.len] = 0;
    near_try(&g->near, copy);
    if (g->near.best)
        g->best = name;
    g->near.best = NULL;
}

bool diag_guess(struct comp *c, const struct guess *g)
{
    if (g->best.len && g->near.distance && g->near.distance < g->near.word.len)
        diag_note(c, "did you mean '" STR_FMT "'?", STR_ARG(g->best));
    return false;
}

void ptrs_add(struct ptrs *p, struct arena *a, void *item)
{
    if (p->count == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 8;
        void **items = arena_alloc(a, cap * sizeof(*items));
        if (p->count)
            memcpy(items, p->items, p->count * sizeof(*items));
        p->items = items;
        p->cap = cap;
    }
    p->items[p->count++] = item;
}
