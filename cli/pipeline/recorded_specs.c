/* SPDX-License-Identifier: Apache-2.0 */
#include "recorded_specs.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/term_print.h"
#include "../events/recfile.h"
#include "../ground/mem.h"

struct reading {
    struct recorded_specs *r;
    struct lang_let *lets;
    struct lang_record *records;
    struct safe label; /* label of the next expression */
    size_t number;     /* number of the first spec of the next expression */
    unsigned needs;    /* the bits PROPERTY_NEEDS_RETURN and _CALLER that filters needed in the recorded trace */
    size_t nlets, lets_cap, nrecords, records_cap, specs_cap;
};

static void read_let(struct reading *rd, struct str text)
{
    const char *equals = memchr(text.at, '=', text.len);
    struct err ignored;
    struct lang_let let;

    if (!equals)
        return;
    size_t name = (size_t)(equals - text.at);
    let.name = (struct str){arena_strndup(&rd->r->arena, text.at, name), name};
    if (!lang_term((struct str){equals + 1, text.len - name - 1}, SPEC_ERLANG, &rd->r->arena, &let.value, &ignored))
        return;
    rd->lets = mem_grow(rd->lets, &rd->lets_cap, rd->nlets + 1, sizeof(*rd->lets));
    rd->lets[rd->nlets++] = let;
}

static void recorded_specs_read_header(struct reading *rd, struct str text)
{
    const struct lang_record *records;
    struct err ignored;
    size_t n;

    if (!lang_read_hrl(text, &rd->r->arena, &records, &n, &ignored) || !n)
        return;
    rd->records = mem_grow(rd->records, &rd->records_cap, rd->nrecords + n, sizeof(*rd->records));
    memcpy(rd->records + rd->nrecords, records, n * sizeof(*records));
    rd->nrecords += n;
}

static void read_expr(struct reading *rd, struct str text, bool root)
{
    struct lang_options o = {.unsafe = true,
                             .root = root,
                             .label = rd->label,
                             .number = rd->number,
                             .lets = rd->lets,
                             .nlets = rd->nlets,
                             .records = rd->records,
                             .nrecords = rd->nrecords,
                             .needs = rd->needs};
    struct spec_list list;
    struct err ignored;

    rd->label = SAFE("");
    if (!lang_compile(&o, text, &rd->r->arena, &list, &ignored))
        return;
    rd->r->specs = mem_grow(rd->r->specs, &rd->specs_cap, rd->r->nspecs + list.count, sizeof(*rd->r->specs));
    rd->number += list.count;
    for (size_t i = 0; i < list.count; i++)
        rd->r->specs[rd->r->nspecs++] = list.items[i];
}

static void read_label(struct reading *rd, struct raw text)
{
    struct buf kept = {0};
    struct safe label = safe_keep(&kept, text);

    label.at = arena_strndup(&rd->r->arena, label.at, label.len);
    rd->label = label;
    buf_release(&kept);
}

static size_t read_number(struct recorded_specs *r, struct raw text)
{
    return (size_t)strtoul(arena_strndup(&r->arena, raw_view(text).at, text.len), NULL, 10);
}

/* Returns true if a node may hold calls, or the events inside of a root, back until a result decides about them. */
static bool may_hold_back(const struct spec *s)
{
    unsigned uses = 0;

    for (size_t i = 0; i < s->nwhere; i++)
        uses |= where_uses(s->where[i]);
    return uses & PROPERTY_NEEDS_RETURN || s->nkeeps;
}

struct recorded_specs *recorded_specs_new(struct str bytes, struct recorded_specs *before)
{
    struct recorded_specs *r = mem_zalloc(sizeof(*r));
    struct reading rd = {.r = r};
    struct str rest;
    struct raw key, text;

    r->before = before;
    arena_init(&r->arena);
    bytes.at = arena_strndup(&r->arena, bytes.at, bytes.len); /* the compiled specs point into this text */
    r->text = bytes;
    for (rest = bytes; recfile_spec_next(&rest, &key, &text);) {
        if (raw_is(key, "let"))
            read_let(&rd, raw_view(text));
        else if (raw_is(key, "hrl"))
            recorded_specs_read_header(&rd, raw_view(text));
        else if (raw_is(key, "needs"))
            rd.needs = (unsigned)read_number(r, text);
    }
    for (rest = bytes; recfile_spec_next(&rest, &key, &text);) {
        if (raw_is(key, "label"))
            read_label(&rd, text);
        else if (raw_is(key, "number"))
            rd.number = read_number(r, text);
        else if (raw_is(key, "expr"))
            read_expr(&rd, raw_view(text), false);
        else if (raw_is(key, "root"))
            read_expr(&rd, raw_view(text), true);
    }
    r->held_back = rd.needs & PROPERTY_NEEDS_RETURN;
    for (size_t i = 0; i < r->nspecs; i++)
        r->held_back |= may_hold_back(r->specs[i]);
    free(rd.lets);
    free(rd.records);
    return r;
}

void recorded_specs_free(struct recorded_specs *r)
{
    while (r) {
        struct recorded_specs *before = r->before;
        arena_release(&r->arena);
        free(r->specs);
        free(r);
        r = before;
    }
}
