/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the -record definitions of a header file: names, fields and default values, nothing else. It skips types by
 * counting brackets and does not expand macros. It leaves out a record whose fields come from a macro; a default value
 * with a macro is unknown.
 *
 * It reads characters instead of tokens, because the lexer rejects macros and types. It gives only default values to
 * the lexer.
 */
#include <string.h>

#include "../ground/utf8.h"
#include "comp.h"
#include "lex.h"

struct hrl {
    struct comp *c;
    size_t at;
};

static char hrl_peek(const struct hrl *h)
{
    return h->at < h->c->text.len ? h->c->text.at[h->at] : 0;
}

/* Skips a string, a quoted atom or a character. Returns false if there is none at the position. */
static bool skip_quoted(struct hrl *h)
{
    char quote = hrl_peek(h);

    if (quote == '$') {
        h->at++;
        if (hrl_peek(h) == '\\')
            h->at++;
        h->at = MIN(h->at + 1, h->c->text.len);
        return true;
    }
    if (quote != '"' && quote != '\'')
        return false;
    for (h->at++; h->at < h->c->text.len && hrl_peek(h) != quote; h->at++)
        if (hrl_peek(h) == '\\')
            h->at++;
    h->at = MIN(h->at + 1, h->c->text.len);
    return true;
}

static void skip_space(struct hrl *h)
{
    for (;; h->at++) {
        char ch = hrl_peek(h);
        if (ch == '%')
            while (h->at < h->c->text.len && hrl_peek(h) != '\n')
                h->at++;
        else if (!ch || !strchr(" \t\r\n\f", ch))
            return;
        if (h->at >= h->c->text.len)
            return;
    }
}

static bool hrl_take(struct hrl *h, const char *mark)
{
    size_t len = strlen(mark);

    skip_space(h);
    if (h->c->text.len - h->at < len || memcmp(h->c->text.at + h->at, mark, len))
        return false;
    h->at += len;
    return true;
}

static bool hrl_name(struct hrl *h, struct str *ret)
{
    skip_space(h);
    if (hrl_peek(h) == '\'') {
        term_t atom;
        if (!lex_quoted_atom(h->c, &h->at, &atom))
            return false;
        *ret = atom->text;
        return true;
    }
    size_t len = lex_word(h->c->text, h->at, false);
    *ret = (struct str){h->c->text.at + h->at, len};
    h->at += len;
    return len > 0;
}

/* Returns true if the next two characters are both `ch`. */
static bool at_double(const struct hrl *h, char ch)
{
    return hrl_peek(h) == ch && h->at + 1 < h->c->text.len && h->c->text.at[h->at + 1] == ch;
}

/* Skips a default value or a type. Stops at the ',' or '}' after the field; with `stop_at_type` also at the '::'. */
static bool skip_value(struct hrl *h, bool stop_at_type)
{
    size_t depth = 0;

    while (h->at < h->c->text.len) {
        skip_space(h);
        char ch = hrl_peek(h);
        if (!depth && (ch == ',' || ch == '}' || (stop_at_type && at_double(h, ':'))))
            return true;
        if (skip_quoted(h))
            continue;
        bool binary = at_double(h, '<') || at_double(h, '>');
        if (ch && (strchr("([{", ch) || at_double(h, '<')))
            depth++;
        else if (ch && (strchr(")]}", ch) || at_double(h, '>')) && depth-- == 0)
            return false;
        h->at += binary ? 2 : 1;
    }
    return false;
}

/*
 * Reads `= Value :: Type`; both parts are optional. Sets *ret to the value, to `undefined` if there is none, or to NULL
 * if the value is not a literal.
 */
static bool field_value(struct hrl *h, term_t *ret)
{
    struct err ignored;

    *ret = term_atom(h->c->arena, "undefined");
    if (hrl_take(h, "=")) {
        skip_space(h);
        size_t from = h->at;
        if (!skip_value(h, true))
            return false;
        if (!erlang_term((struct str){h->c->text.at + from, h->at - from}, h->c->arena, ret, &ignored))
            *ret = NULL;
    }
    return skip_value(h, false);
}

/*
 * Reads #mod:name{}, which record_lookup.c writes for a native record of the node. Headers of users do not contain it.
 */
static bool hrl_native(struct hrl *h, struct lang_record *ret)
{
    return hrl_name(h, &ret->native) && hrl_take(h, ":") && hrl_name(h, &ret->name) && hrl_take(h, "{") &&
           hrl_take(h, "}");
}

static bool hrl_record(struct hrl *h, struct lang_record *ret)
{
    struct ptrs fields = {0}, values = {0};
    struct str *list;

    if (hrl_take(h, "#"))
        return hrl_native(h, ret);
    if (!hrl_take(h, "(") || !hrl_name(h, &ret->name) || !hrl_take(h, ",") || !hrl_take(h, "{"))
        return false;
    while (!hrl_take(h, "}")) {
        struct str *field = arena_alloc(h->c->arena, sizeof(*field));
        term_t value;
        if (!hrl_name(h, field) || !field_value(h, &value))
            return false;
        ptrs_add(&fields, h->c->arena, field);
        ptrs_add(&values, h->c->arena, (void *)(uintptr_t)value);
        hrl_take(h, ",");
    }
    list = arena_alloc(h->c->arena, fields.count * sizeof(*list) + 1);
    for (size_t i = 0; i < fields.count; i++)
        list[i] = *(struct str *)fields.items[i];
    ret->fields = list;
    ret->defaults = (const term_t *)(void *)values.items;
    ret->nfields = fields.count;
    return true;
}

/* Skips the rest of the line, or of the form if another form follows on the same line. */
static void skip_form(struct hrl *h)
{
    while (hrl_peek(h) && hrl_peek(h) != '\n' && hrl_peek(h) != '%') {
        const bool stop = hrl_peek(h) == '.';
        if (!skip_quoted(h))
            h->at++;
        if (stop && lex_is_blank(hrl_peek(h)))
            return;
    }
}

bool lang_read_hrl(struct str text, struct arena *a, const struct lang_record **ret_records, size_t *ret_count,
                   struct err *e)
{
    struct lang_options none = {0};
    struct comp c = {.opt = &none, .arena = a, .text = text, .err = e, .surface = SPEC_ERLANG};
    struct hrl h = {.c = &c};
    struct ptrs found = {0};

    if (!utf8_valid(text.at, text.len))
        return err_set(e, ERR_USAGE, "the header file is not valid UTF-8");
    while (h.at < text.len) {
        skip_space(&h);
        if (hrl_take(&h, "-") && hrl_take(&h, "record")) {
            struct lang_record *r = arena_alloc(a, sizeof(*r));
            size_t behind = h.at;
            if (hrl_record(&h, r))
                ptrs_add(&found, a, r);
            else
                h.at = behind;
        }
        skip_form(&h);
        h.at += h.at < text.len && !hrl_peek(&h); /* skip a NUL, which skip_form() takes for the end of the text */
    }
    struct lang_record *records = arena_alloc(a, found.count * sizeof(*records) + 1);
    for (size_t i = 0; i < found.count; i++)
        records[i] = *(struct lang_record *)found.items[i];
    *ret_records = records;
    *ret_count = found.count;
    *e = (struct err){0};
    return true;
}
