/* SPDX-License-Identifier: Apache-2.0 */
#include "exprs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ground/command_line.h"
#include "../ground/mem.h"
#include "../lang/where_steps.h"
#include "../pipeline/regex.h"
#include "together.h"

/*
 * Weights that estimate how much heap a request takes in the process of the companion that receives it: for each
 * expression, selected function and name. The node kills this process if its heap exceeds a bound. WEIGHT_MOST leaves a
 * third of the heap free.
 */
enum {
    WEIGHT_EXPRESSION = 32,
    WEIGHT_FUNCTION = 8,
    WEIGHT_NAME = 2,
    WEIGHT_MOST = 4096 * (WEIGHT_EXPRESSION + WEIGHT_FUNCTION)
};

void exprs_init(struct exprs *p)
{
    *p = (struct exprs){0};
    arena_init(&p->arena);
}

enum lang_found exprs_later(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                            struct arena *a, struct lang_lookup *ret)
{
    (void)modules;
    (void)nmodules;
    (void)name;
    (void)a;
    (void)ret;
    *(bool *)data = true;
    return LANG_LATER;
}

void exprs_release(struct exprs *p)
{
    arena_release(&p->arena);
    free(p->specs);
    free(p->wheres);
    *p = (struct exprs){0};
}

/* ---- reading ---- */

static bool read_let(struct exprs *p, const char *text, struct lang_let *ret, struct err *e)
{
    const char *equals = strchr(text, '=');

    if (!equals || equals == text)
        return err_set(e, ERR_USAGE, "--let takes NAME=TERM, not '%s'", text);
    ret->name = (struct str){text, (size_t)(equals - text)};
    if (lang_term((struct str){equals + 1, strlen(equals + 1)}, SPEC_ERLANG, &p->arena, &ret->value, e))
        return true;
    struct err named;
    err_set(&named, e->status, "--let %.*s: %s", (int)ret->name.len, ret->name.at, e->text);
    memcpy(e->text, named.text, sizeof(e->text));
    return false;
}

static bool read_records(struct exprs *p, const struct what_opts *what, struct lang_options *opt, struct err *e)
{
    const struct texts *files = &what->records;
    struct lang_record *all = NULL;
    size_t count = 0;
    struct buf b = {0};
    bool ok = true;

    p->headers = arena_alloc(&p->arena, (files->count + 1) * sizeof(*p->headers));
    for (size_t i = 0; ok && i < files->count; i++) {
        const struct lang_record *found;
        size_t n;

        ok = exprs_read_header(what, files->items[i], &b, e);
        char *text = arena_strndup(&p->arena, b.data, b.len);
        ok = ok && lang_read_hrl((struct str){text, b.len}, &p->arena, &found, &n, e);
        if (!ok || !n)
            continue;
        p->headers[p->nheaders++] = (struct str){text, b.len};
        struct lang_record *more = arena_alloc(&p->arena, (count + n) * sizeof(*more));
        if (count)
            memcpy(more, all, count * sizeof(*more));
        memcpy(more + count, found, n * sizeof(*more));
        all = more;
        count += n;
    }
    buf_release(&b);
    opt->records = all;
    opt->nrecords = count;
    return ok;
}

/* Puts the file and the line before the text of an error in a file. */
static bool add_location(const char *file, struct err *e)
{
    struct err plain = *e;

    if (!file)
        return false;
    file = exprs_file_name(file);
    if (plain.row)
        err_set(e, plain.status, "%s:%zu: %s", file, plain.row, plain.text);
    else
        err_set(e, plain.status, "%s: %s", file, plain.text);
    memcpy(plain.text, e->text, sizeof(plain.text));
    *e = plain;
    return false;
}

static bool exprs_shows(const struct spec *s, struct err *e)
{
    if (!s->counters)
        return true;
    err_set(e, ERR_USAGE, "count, time and memory are counters, which only etrace top shows");
    struct command_line command = {0};
    char probe[200];
    snprintf(probe, sizeof(probe), "%.*s", (int)MIN(s->text.len, sizeof(probe)), s->text.at);
    command_line_begin(&command, "top", NULL, NULL);
    command_line_word(&command, probe);
    err_hint(e, "%s", command_line_text(&command));
    command_line_release(&command);
    return false;
}

static bool exprs_add(struct exprs *p, const struct lang_options *opt, struct str text, const char *file, struct err *e)
{
    struct spec_list list;

    if (!lang_compile(opt, text, &p->arena, &list, e))
        return add_location(file, e);
    for (size_t i = 0; i < list.count && !p->may_count; i++)
        if (!exprs_shows(list.items[i], e))
            return add_location(file, e);
    p->specs = mem_grow(p->specs, &p->cap, p->count + list.count, sizeof(*p->specs));
    for (size_t i = 0; i < list.count; i++)
        p->specs[p->count++] = list.items[i];
    return true;
}

/* Rejects a request that would exceed the heap of the tracer on the node. */
static bool not_too_many(const struct exprs *p, const struct what_opts *what, struct err *e)
{
    size_t weight = (what->procs.count + what->ports.count) * WEIGHT_NAME, functions = 0;

    for (size_t i = 0; i < p->count; i++) {
        functions += p->specs[i]->nselectors;
        weight += WEIGHT_EXPRESSION + p->specs[i]->nselectors * WEIGHT_FUNCTION + p->specs[i]->natoms * WEIGHT_NAME;
    }
    if (weight <= WEIGHT_MOST)
        return true;
    err_set(e, ERR_USAGE, "%zu expressions that name %zu functions are too many for one trace", p->count, functions);
    err_hint(e, "up to 4096 that name one each; 'a:f/1 | b:g/2' is one expression that names two, and 'a:_' selects a "
                "whole module");
    return false;
}

static bool read_wheres(struct exprs *p, const struct lang_options *opt, const struct texts *wheres, struct err *e)
{
    p->wheres = mem_zalloc((wheres->count + 1) * sizeof(*p->wheres));
    for (; p->nwheres < wheres->count; p->nwheres++) {
        const char *text = wheres->items[p->nwheres];
        if (!lang_where(opt, (struct str){text, strlen(text)}, &p->arena, &p->wheres[p->nwheres], e))
            return false;
        p->needs |= where_uses(p->wheres[p->nwheres]) & (PROPERTY_NEEDS_RETURN | PROPERTY_NEEDS_CALLER);
    }
    return true;
}

const struct spec *exprs_deciding_root(const struct exprs *p)
{
    size_t i = 0;

    while (i < p->count && !p->specs[i]->nkeeps)
        i++;
    return i < p->count ? p->specs[i] : NULL;
}

bool exprs_root_steps(const struct spec *root, struct buf *ret_filter)
{
    return where_steps_of_ends(root->keeps, root->nkeeps, ret_filter);
}

static bool root_decides(const struct spec *s, struct err *e)
{
    struct buf steps = {0};
    const bool ok = exprs_root_steps(s, &steps);

    buf_release(&steps);
    if (ok)
        return true;
    err_set(e, ERR_USAGE, "the node cannot evaluate the filter of the root '%.*s'", (int)MIN(s->text.len, 200),
            s->text.at);
    err_hint(e, "it tests dur, class and ret, as in dur > 1s, %s",
             s->surface == SPEC_ELIXIR ? "class == :error or ret = {:error, _}" : "class == error or ret = {error, _}");
    return false;
}

unsigned exprs_flags_by_roots(const struct spec *s)
{
    return s->inside.len || s->root ? s->flags & ~(unsigned)SPEC_F_ARITY : 0;
}

/*
 * Checks the expressions that use roots. All of them must have the same roots. No other expression may trace calls, or
 * need a trace flag that roots set and clear, because a process has only one set of trace flags. Options must not
 * choose what processes inherit.
 */
static bool insides_fit(const struct exprs *p, const struct what_opts *what, struct err *e)
{
    const struct spec *inside = NULL, *outside = NULL;
    unsigned by_roots = 0, roots = 0;

    for (size_t i = 0; i < p->count; i++) {
        by_roots |= exprs_flags_by_roots(p->specs[i]);
        roots += p->specs[i]->root;
    }
    for (size_t i = 0; i < p->count; i++) {
        const struct spec *s = p->specs[i];
        if (s->inside.len && inside && !str_same(s->inside, inside->inside)) {
            err_set(e, ERR_USAGE, "the probes of a trace have the same roots, not '%.*s' and '%.*s'",
                    (int)MIN(inside->inside.len, 200), inside->inside.at, (int)MIN(s->inside.len, 200), s->inside.at);
            err_hint(e, "write the same root in the same way, or trace one of them with another etrace");
            return false;
        }
        if (s->inside.len)
            inside = s;
        else if (!s->root && (s->kind == SPEC_CALL || s->flags & by_roots))
            outside = s;
    }
    if (inside && outside) {
        err_set(e, ERR_USAGE, "'%.*s' is not inside of a root, but '%.*s' is", (int)MIN(outside->text.len, 200),
                outside->text.at, (int)MIN(inside->text.len, 200), inside->text.at);
        err_hint(e, "trace it with another etrace");
        return false;
    }
    if (roots > ETW_MAX_ROOTS) {
        err_set(e, ERR_USAGE, "%u roots are too many for one trace", roots);
        err_hint(e, "up to 64, counted for each expression that is inside of them; a root may have a guard, as in "
                    "shop:take(N) when N < 9");
        return false;
    }
    if (exprs_deciding_root(p) && !root_decides(exprs_deciding_root(p), e))
        return false;
    return TOGETHER(e, KNOWN(SAMPLE, what->sample), KNOWN(EXPRESSIONS, p->count), KNOWN(INSIDE, inside),
                    KNOWN(INHERIT, what->follow || what->inherit || what->silent));
}

static bool read_by(struct exprs *p, const struct lang_options *opt, struct err *e)
{
    if (!p->by_text)
        return true;
    if (!lang_by(opt, (struct str){p->by_text, strlen(p->by_text)}, &p->arena, &p->by, e))
        return false;
    p->needs |= p->by->uses & (PROPERTY_NEEDS_RETURN | PROPERTY_NEEDS_CALLER);
    return true;
}

static bool keys_fit(const struct exprs *p, const struct what_opts *what, struct err *e)
{
    if (what->keys > ETW_BY_ROWS_MOST) {
        err_set(e, ERR_USAGE, "--keys takes a number up to %d", ETW_BY_ROWS_MOST);
        err_hint(e, "for more keys, record with -o and count with etrace replay --by");
        return false;
    }
    return TOGETHER(e, KNOWN(KEYS, what->keys), KNOWN(EXPRESSIONS, p->count), KNOWN(COUNTS, exprs_counts(p)));
}

/* Checks that either every expression counts by keys, or none of them. Roots may do without keys. */
static bool counts_fit(const struct exprs *p, struct err *e)
{
    const struct spec *counts = NULL, *shows = NULL;

    for (size_t i = 0; i < p->count; i++) {
        if (p->specs[i]->by)
            counts = p->specs[i];
        else if (!p->specs[i]->root)
            shows = p->specs[i];
    }
    if (!counts || !shows || p->by)
        return true;
    err_set(e, ERR_USAGE, "'%.*s' counts by nothing, but another expression does", (int)MIN(shows->text.len, 200),
            shows->text.at);
    err_hint(e, "add 'by', or trace it with another etrace");
    return false;
}

bool exprs_compile(struct exprs *p, const struct what_opts *what, const struct texts *texts, const struct texts *wheres,
                   int otp, struct err *e)
{
    struct lang_options opt = {.otp = otp,
                               .unsafe = what->unsafe,
                               .dumps = p->dumps,
                               .most_keys = (uint32_t)what->keys,
                               .find_record = p->find_record,
                               .find_data = p->find_data};
    struct lang_let *lets;

    lets = arena_alloc(&p->arena, (what->lets.count + 1) * sizeof(*lets));
    for (size_t i = 0; i < what->lets.count; i++)
        if (!read_let(p, what->lets.items[i], &lets[i], e))
            return false;
    opt.lets = lets;
    opt.nlets = what->lets.count;
    if (!read_records(p, what, &opt, e))
        return false;
    if (!read_wheres(p, &opt, wheres, e) || !read_by(p, &opt, e))
        return false;
    opt.needs = what->needs | p->needs;
    for (size_t i = 0, words = texts->count - texts->nfiles; i < texts->count; i++) {
        const char *text = texts->items[i], *file = i < words ? NULL : what->files.items[i - words];
        size_t before = p->count;
        if (text && !exprs_add(p, &opt, (struct str){text, strlen(text)}, file, e))
            return false;
        opt.number += text ? p->count - before : 1;
    }
    return insides_fit(p, what, e) && counts_fit(p, e) && keys_fit(p, what, e) && not_too_many(p, what, e);
}

static bool require_regex(struct str text, struct err *e)
{
    struct regex *r = regex_new(text, e);

    regex_free(r);
    return r != NULL;
}

static bool require_where(const struct where *w, struct err *e)
{
    bool ok = w->type != WHERE_REGEX || require_regex(w->regex, e);

    for (size_t i = 0; ok && i < w->count; i++)
        ok = require_where(w->items[i], e);
    return ok && (!w->tail || require_where(w->tail, e));
}

bool exprs_regexes(const struct exprs *p, struct err *e)
{
    bool ok = true;

    for (size_t i = 0; ok && i < p->count; i++) {
        const struct spec *s = p->specs[i];
        for (size_t k = 0; ok && k < s->nselectors; k++)
            ok = (s->selectors[k].module.how != SEL_REGEX || require_regex(s->selectors[k].module.text, e)) &&
                 (s->selectors[k].function.how != SEL_REGEX || require_regex(s->selectors[k].function.text, e));
        for (size_t k = 0; ok && k < s->nwhere; k++)
            ok = require_where(s->where[k], e);
    }
    return ok;
}

/* Returns true if an earlier alternative of the same expression has the same warning. */
static bool is_repeated(const struct exprs *p, size_t i, struct str text)
{
    for (; i && p->specs[i]->alternative; i--)
        for (size_t k = 0; k < p->specs[i - 1]->nwarnings; k++)
            if (str_same(p->specs[i - 1]->warnings[k].text, text))
                return true;
    return false;
}

void exprs_warn(const struct exprs *p, struct ctx *ctx)
{
    for (size_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < p->specs[i]->nwarnings; k++)
            if (!is_repeated(p, i, p->specs[i]->warnings[k].text))
                ctx_warn(ctx, "warning: %.*s", (int)p->specs[i]->warnings[k].text.len,
                         p->specs[i]->warnings[k].text.at);
}
