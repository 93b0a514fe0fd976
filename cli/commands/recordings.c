/* SPDX-License-Identifier: Apache-2.0 */
#include "recordings.h"

#include <stdlib.h>
#include <string.h>

#include "../events/recfile.h"
#include "../events/recmerge.h"
#include "../ground/mem.h"
#include "moment.h"

/* ---- the files ---- */

bool recordings_open(struct recordings *r, const struct texts *paths, struct err *e)
{
    size_t n = 0;

    if (paths->count > EVENT_NODES) /* each has a node of its own */
        return recmerge_too_many(e);
    r->files = mem_zalloc(paths->count * sizeof(struct source *));
    while (n < paths->count && (r->files[n] = recfile_open(paths->items[n], e)))
        n++;
    r->nfiles = n;
    if (n == paths->count)
        r->source = n == 1 ? r->files[0] : recmerge_new(r->files, n);
    else
        while (r->nfiles)
            source_close(r->files[--r->nfiles]);
    return r->source;
}

void recordings_close(struct recordings *r)
{
    source_close(r->source);
    free(r->files);
    *r = (struct recordings){0};
}

/* Sets *ret to the time of the first event of all recordings. Returns false if a recording has no checkpoint. */
static bool recordings_first(const struct recordings *r, int64_t *ret)
{
    int64_t key, ns, least = INT64_MAX;

    for (size_t i = 0; i < r->nfiles; i++) {
        if (!recfile_first(r->files[i], &key, &ns))
            return false;
        if (key < least || !i)
            least = key, *ret = ns;
    }
    return true;
}

static bool moment_is_fixed(const struct moment *m)
{
    return m->kind == MOMENT_NONE || m->kind == MOMENT_AT;
}

bool recordings_begin(const struct recordings *r, struct window *w, int64_t *ret_newest)
{
    int64_t first = 0;

    if (w->from.kind == MOMENT_NONE ||
        (!(moment_is_fixed(&w->from) && moment_is_fixed(&w->to)) && !recordings_first(r, &first)))
        return false;
    window_begin(w, first);
    *ret_newest = w->first_ns == INT64_MIN ? INT64_MIN : MIN(w->first_ns - 1, w->last_ns);
    return w->first_ns != INT64_MIN;
}

/* ---- the options ---- */

#define ROW(...) OPT_ROW(struct part_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW(0, "from", "TIME", OPT_TEXT, from, "show events from this time on: 18:26:50, 2026-01-31T18:26:50Z, +2s, -5s"),
    ROW(0, "to", "TIME", OPT_TEXT, to, "show events up to this time; +2s is after the first event, -5s before the end"),
    ROW(0, "let", "NAME=TERM", OPT_TEXTS, lets, "bind ^NAME in --where"),
    ROW(0, "hrl", "FILE", OPT_TEXTS, records, "record definitions for #name{...} in --where"),
};
const struct opt_group part_group = {"Which part", rows, ARRAY_LEN(rows)};

/* Sets *ret to the end of the recording that ends last. Returns false, with an error, if a file cannot be read. */
static bool last_end(const struct texts *paths, int64_t *ret, struct err *e)
{
    int64_t end;

    *ret = INT64_MIN;
    for (size_t i = 0; i < paths->count; i++) {
        if (!recfile_end(paths->items[i], &end, e))
            return false;
        *ret = MAX(*ret, end);
    }
    return true;
}

static bool read_moment(const char *option, const char *text, const struct texts *paths, bool utc, struct moment *ret,
                        struct err *e)
{
    int64_t end;

    if (!moment_read(text, utc, ret)) {
        err_set(e, ERR_USAGE, "--%s does not take '%s'", option, text);
        err_hint(e, "18:26:50, 2026-01-31T18:26:50Z, +2s (after the first event) or -5s (before the end)");
        return false;
    }
    if (ret->kind != MOMENT_BEFORE_END)
        return true;
    if (!last_end(paths, &end, e))
        return false;
    *ret = (struct moment){MOMENT_AT, end < INT64_MIN + ret->ns ? INT64_MIN : end - ret->ns};
    return true;
}

bool recordings_window(const struct part_opts *o, const struct texts *paths, bool utc, struct window *ret,
                       struct err *e)
{
    *ret = (struct window){.utc = utc};
    if (!read_moment("from", o->from, paths, utc, &ret->from, e) || !read_moment("to", o->to, paths, utc, &ret->to, e))
        return false;
    if (ret->from.kind != MOMENT_NONE && ret->from.kind == ret->to.kind && ret->from.ns > ret->to.ns)
        return err_set(e, ERR_USAGE, "--from %s is after --to %s", o->from, o->to);
    return true;
}

enum lang_found recordings_find_record(void *data, const struct sel_name *modules UNUSED, size_t nmodules UNUSED,
                                       struct str name, struct arena *a, struct lang_lookup *ret)
{
    struct str rest = *(const struct str *)data, text;
    struct raw key, value;
    const struct lang_record *records;
    struct err ignored;
    size_t n;

    while (recfile_spec_next(&rest, &key, &value)) {
        text = (struct str){arena_strndup(a, raw_view(value).at, value.len), value.len};
        if (!raw_is(key, "hrl") || !lang_read_hrl(text, a, &records, &n, &ignored))
            continue;
        for (size_t i = 0; i < n; i++)
            if (str_same(records[i].name, name)) {
                ret->record = records[i];
                return LANG_FOUND;
            }
    }
    return LANG_ABSENT;
}
