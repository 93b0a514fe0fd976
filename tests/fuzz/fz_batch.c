/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes batches from a malicious node, from decoding to text and JSON. The input is a sequence of batches, each after
 * a u32 with its length. feed() repairs their heads. The output must be lines of valid UTF-8 that cannot control a
 * terminal.
 *
 * Only 16 bits of a length count. In the first one the lowest bits of the first byte select options, and the third
 * byte selects a view; 0 selects all views. A single view runs several times as fast as all.
 */
#include <stdlib.h>

#include "feed.h"
#include "lang/lang.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEYS                                                                                                           \
    "args[1], args, ret, caller, tag(msg), name, pid, type: "                                                          \
    "count, sum(args[1]), min(ret), max(args[2]), avg(size), hist(args[1]), quantiles(dur)"

/* Keys and aggregates for every kind of event, compiled once. */
static const struct spec_by *keys(void)
{
    static const struct spec_by *by;
    static struct arena a;
    struct err e;

    if (!by) {
        arena_init(&a);
        must(lang_by(&(struct lang_options){0}, STR(KEYS), &a, &by, &e));
    }
    return by;
}

/* Each view has its default look, and these have another one in addition. */
static const struct {
    const char *view;
    struct look look;
} looks[] = {
    {"text", {.time = TIME_UTC, .nodes = true}},
    {"text", {.terms = TERMS_ELIXIR, .nodes = true}},
    {"text", {.format = "{node} {name} {who} {m} {f} {call} {value} {class} {reason} {to} {from} {text}"}},
    {"json", {.terms = TERMS_JSON}},
    {"flame", {.file = "x.html"}},
    {"flame", {.file = "x.svg"}},
    {"sequence", {.file = "x.html"}},
    {"requests", {.width = 60}},
    {"requestlog", {.terms = TERMS_ELIXIR}},
    {"died", {.width = 60}},
    {"table", {.width = 60}},
    {"tablejson", {.terms = TERMS_JSON}},
    {"tablecsv", {.terms = TERMS_ELIXIR, .nodes = true}},
};

#define MAX_VIEWS 64

static void add_view(const struct sink_type *type, struct look look, struct view *ret)
{
    *ret = (struct view){.type = type, .look = look, .write = must_be_output, .output = (void *)type};
}

static size_t list_views(struct view ret[MAX_VIEWS])
{
    size_t n = 0;

    for (size_t i = 0; sink_types[i] && n < MAX_VIEWS; i++)
        add_view(sink_types[i], (struct look){0}, &ret[n++]);
    for (size_t i = 0; i < ARRAY_LEN(looks) && n < MAX_VIEWS; i++)
        add_view(sink_by_name(looks[i].view), looks[i].look, &ret[n++]);
    must(n < MAX_VIEWS);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct view views[MAX_VIEWS];
    const size_t nviews = list_views(views), alone = size > 2 ? data[2] : 0;
    const size_t first = alone ? (alone - 1) % nviews : 0;
    const struct grep grep = {"a|b", false};
    struct err e;
    const struct sel_name any = {.how = SEL_ANY};
    const struct selector everything = {.module = any, .function = any, .arity_hi = SPEC_ARITY_MAX};
    const struct spec_clause returns = {.actions = ACT_RETURN, .has = ~0u};
    const struct spec spec = {.kind = SPEC_CALL,
                              .selectors = &everything,
                              .nselectors = 1,
                              .clauses = &returns,
                              .nclauses = 1,
                              .pack = {PACK_CALLER, PACK_STACK, PACK_USER},
                              .npack = size && data[0] & 2 ? 3 : 0};
    const struct spec *const specs[] = {&spec};
    struct pipeline *p = pipeline_new(&(struct pipeline_options){.views = views + first,
                                                                 .nviews = alone ? 1 : nviews,
                                                                 .greps = &grep,
                                                                 .ngreps = size && data[0] & 1,
                                                                 .max_calls = 16,
                                                                 .by = keys(),
                                                                 .specs = specs,
                                                                 .nspecs = size && data[0] & 4},
                                      &e);

    feed(p, data, size);
    pipeline_end(p);
    pipeline_free(p);
    return 0;
}
