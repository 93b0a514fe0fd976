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

static bool check(void *output, struct buf *bytes)
{
    return must_be_lines(bytes, output);
}

static bool drop(void *output, struct buf *bytes)
{
    (void)output;
    bytes->len = 0;
    return true;
}

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool tabs;
    const struct view views[] = {
        {.type = sink_by_name("text"), .look = {.time = TIME_UTC, .nodes = true}, .write = check},
        {.type = sink_by_name("json"), .write = check},
        {.type = sink_by_name("json"), .look = {.terms = TERMS_JSON}, .write = check},
        {.type = sink_by_name("tree"), .write = check},
        {.type = sink_by_name("summary"), .write = check},
        {.type = sink_by_name("hist"), .write = check},
        {.type = sink_by_name("folded"), .write = check},
        {.type = sink_by_name("csv"), .write = check},
        {.type = sink_by_name("flame"), .write = check},
        {.type = sink_by_name("speedscope"), .write = check},
        {.type = sink_by_name("perfetto"), .write = check},
        {.type = sink_by_name("callgrind"), .write = check},
        {.type = sink_by_name("sequence"), .write = check},
        {.type = sink_by_name("sequence"), .look = {.file = "x.html"}, .write = check},
        {.type = sink_by_name("requests"), .look = {.width = 60}, .write = check},
        {.type = sink_by_name("requestlog"), .look = {.terms = TERMS_ELIXIR}, .write = check},
        {.type = sink_by_name("requestjson"), .write = check},
        {.type = sink_by_name("requestcsv"), .write = check},
        {.type = sink_by_name("died"), .look = {.width = 60}, .write = check},
        {.type = sink_by_name("diedjson"), .write = check},
        {.type = sink_by_name("record"), .write = drop},
        {.type = sink_by_name("text"), .look = {.terms = TERMS_ELIXIR, .nodes = true}, .write = check},
        {.type = sink_by_name("text"),
         .look = {.format = "{node} {name} {who} {m} {f} {call} {value} {class} {reason} {to} {from} {text}"},
         .write = check},
        {.type = sink_by_name("tsv"), .write = check, .output = &tabs},
        {.type = sink_by_name("flame"), .look = {.file = "x.html"}, .write = check},
        {.type = sink_by_name("flame"), .look = {.file = "x.svg"}, .write = check},
        {.type = sink_by_name("pprof"), .write = drop},
        {.type = sink_by_name("table"), .look = {.width = 60}, .write = check},
        {.type = sink_by_name("tablejson"), .write = check},
        {.type = sink_by_name("tablejson"), .look = {.terms = TERMS_JSON}, .write = check},
        {.type = sink_by_name("tablecsv"), .look = {.terms = TERMS_ELIXIR, .nodes = true}, .write = check},
        {.type = sink_by_name("tabletsv"), .write = check, .output = &tabs},
    };
    const size_t nviews = sizeof(views) / sizeof(views[0]), alone = size > 2 ? data[2] : 0;
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
