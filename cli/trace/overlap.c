/* SPDX-License-Identifier: Apache-2.0 */
#include "overlap.h"

#include <string.h>

#include "../ground/glob.h"
#include "../pipeline/regex.h"

#define PROBES_MOST 1000 /* limit for the number of probes, because each is compared with all others */
#define REGIONS_MOST 100

/* Functions or events that several probes select. */
struct region {
    struct str text;
    bool may;  /* only the node knows whether the probes really overlap */
    bool *has; /* has[i]: probe i selects the functions or events */
};

struct overlap {
    struct arena *a;
    const struct spec *const *specs;
    size_t count;
    struct region regions[REGIONS_MOST];
    size_t nregions;
    bool more;
};

/*
 * How certain it is that two patterns match common names: certain, possible or impossible. The values ascend, so
 * combine_meets() takes the largest value of all parts of a selector.
 */
enum meet { MEET, MAY_MEET, APART };

static enum meet combine_meets(enum meet x, enum meet y)
{
    return MAX(x, y);
}

/* ---- names ---- */

static enum meet regex_meets(struct str pattern, struct str name)
{
    struct err ignored;
    struct regex *r = regex_new(pattern, &ignored);
    enum regex_found found = r ? regex_search(r, name) : REGEX_GAVE_UP;

    regex_free(r);
    return found == REGEX_YES ? MEET : found == REGEX_NO ? APART : MAY_MEET;
}

static enum meet meet_of_name(const struct sel_name *pattern, struct str name)
{
    switch (pattern->how) {
    case SEL_ANY:
        return MEET;
    case SEL_ATOM:
        return str_same(pattern->text, name) ? MEET : APART;
    case SEL_GLOB:
        return glob_matches(pattern->text, name, true, 0) ? MEET : APART;
    case SEL_REGEX:
        return regex_meets(pattern->text, name);
    case SEL_APP:
    case SEL_BEHAVIOUR:
        break;
    }
    return MAY_MEET;
}

static void overlap_put_name(const struct sel_name *n, struct buf *b)
{
    static const char *const open[] = {
        [SEL_ANY] = "_", [SEL_GLOB] = "", [SEL_REGEX] = "~/", [SEL_APP] = "app(", [SEL_BEHAVIOUR] = "behaviour(",
    };
    static const char *const close[] = {
        [SEL_ANY] = "", [SEL_GLOB] = "", [SEL_REGEX] = "/", [SEL_APP] = ")", [SEL_BEHAVIOUR] = ")",
    };

    if (n->how == SEL_ATOM) {
        lang_print_term(&(const struct term){.type = TERM_ATOM, .text = n->text}, b);
        return;
    }
    buf_puts(b, open[n->how]);
    if (n->how != SEL_ANY)
        buf_str(b, n->text);
    buf_puts(b, close[n->how]);
}

/*
 * Returns the narrower one of two patterns: an atom, or the pattern beside a `_`, or either of two equal patterns.
 * NULL: neither is known to be narrower.
 */
static const struct sel_name *narrower_pattern(const struct sel_name *x, const struct sel_name *y)
{
    if (x->how == SEL_ATOM || y->how == SEL_ANY || (x->how == y->how && str_same(x->text, y->text)))
        return x;
    return y->how == SEL_ATOM || x->how == SEL_ANY ? y : NULL;
}

static enum meet names_meet(const struct sel_name *x, const struct sel_name *y)
{
    const struct sel_name *both = narrower_pattern(x, y);

    if (!both)
        return MAY_MEET;
    return both->how == SEL_ATOM ? meet_of_name(both == x ? y : x, both->text) : MEET;
}

static void put_names(const struct sel_name *x, const struct sel_name *y, struct buf *b)
{
    const struct sel_name *both = narrower_pattern(x, y);

    overlap_put_name(both ? both : x, b);
    if (both)
        return;
    buf_puts(b, " & ");
    overlap_put_name(y, b);
}

/* Returns APART if the exclusions of the selector leave nothing of `module`, and MAY_MEET if only the node knows. */
static enum meet meet_after_exclusions(const struct selector *sel, const struct sel_name *module)
{
    enum meet is = MEET;

    for (size_t i = 0; i < sel->nwithout; i++) {
        const struct sel_name *without = &sel->without[i];
        enum meet out = module->how == SEL_ATOM ? meet_of_name(without, module->text) : MAY_MEET;
        if (out == MEET || (without->how == module->how && str_same(without->text, module->text)))
            return APART;
        is = out == MAY_MEET ? MAY_MEET : is;
    }
    return is;
}

/*
 * Reports whether two selectors select common functions. Unless the result is APART, sets the text to a selector of
 * these functions.
 */
static enum meet selectors_meet(const struct selector *x, const struct selector *y, struct buf *text)
{
    const int lo = MAX(x->arity_lo, y->arity_lo), hi = MIN(x->arity_hi, y->arity_hi);
    enum meet meet = lo > hi ? APART : names_meet(&x->module, &y->module);

    if (meet != APART)
        meet = combine_meets(meet, names_meet(&x->function, &y->function));
    if (meet != APART)
        meet = combine_meets(meet, meet_after_exclusions(x, &y->module));
    if (meet != APART)
        meet = combine_meets(meet, meet_after_exclusions(y, &x->module));
    if (meet == APART)
        return APART;
    buf_clear(text);
    put_names(&x->module, &y->module, text);
    buf_char(text, ':');
    put_names(&x->function, &y->function, text);
    if (lo == 0 && hi == SPEC_ARITY_MAX)
        buf_puts(text, "/_");
    else if (lo == hi)
        buf_printf(text, "/%d", lo);
    else if (hi == SPEC_ARITY_MAX)
        buf_printf(text, "/%d.._", lo);
    else
        buf_printf(text, "/%d..%d", lo, hi);
    return meet;
}

/* ---- patterns ---- */

static bool is_open(term_t t)
{
    const struct str s = t->text;

    if (t->type != TERM_ATOM)
        return false;
    return str_is(s, "_") || (s.len > 1 && s.at[0] == '$' && s.at[1] >= '0' && s.at[1] <= '9');
}

/* Returns true if no term matches both patterns. */
static bool patterns_apart(term_t x, term_t y)
{
    if (is_open(x) || is_open(y) || (x->type == TERM_MAP && y->type == TERM_MAP))
        return false;
    if (x->type != y->type)
        return true;
    if (x->type != TERM_TUPLE && x->type != TERM_LIST)
        return !term_equal(x, y);
    for (size_t i = 0; i < MIN(x->count, y->count); i++)
        if (patterns_apart(x->items[i], y->items[i]))
            return true;
    return (x->count < y->count && !x->tail) || (y->count < x->count && !y->tail);
}

/* Returns true if no event can match the heads of both probes. Ignores guards. */
static bool heads_apart(const struct spec *x, const struct spec *y)
{
    if (!x->match_spec || x->match_spec->type != TERM_LIST || !y->match_spec || y->match_spec->type != TERM_LIST)
        return false;
    for (size_t i = 0; i < x->match_spec->count; i++)
        for (size_t k = 0; k < y->match_spec->count; k++)
            if (!patterns_apart(x->match_spec->items[i]->items[0], y->match_spec->items[k]->items[0]))
                return false;
    return true;
}

/* ---- regions ---- */

static void overlap_add(struct overlap *o, struct str text, bool may, size_t x, size_t y)
{
    struct region *r = o->regions, *end = r + o->nregions;

    while (r < end && !str_same(r->text, text))
        r++;
    if (r == end && o->nregions == REGIONS_MOST) {
        o->more = true;
        return;
    }
    if (r == end) {
        o->nregions++;
        *r = (struct region){.text = {arena_strndup(o->a, text.at, text.len), text.len}};
        r->has = arena_alloc(o->a, o->count);
        memset(r->has, 0, o->count);
    }
    r->may |= may;
    r->has[x] = r->has[y] = true;
}

static void compare_calls(struct overlap *o, size_t x, size_t y)
{
    const struct spec *sx = o->specs[x], *sy = o->specs[y];
    struct buf text = {0};

    for (size_t i = 0; i < sx->nselectors; i++)
        for (size_t k = 0; k < sy->nselectors; k++) {
            enum meet is = selectors_meet(&sx->selectors[i], &sy->selectors[k], &text);
            if (is != APART)
                overlap_add(o, buf_view(&text), is == MAY_MEET, x, y);
        }
    buf_release(&text);
}

static void compare_events(struct overlap *o, size_t x, size_t y)
{
    const uint64_t both = o->specs[x]->events & o->specs[y]->events;
    struct buf text = {0};

    for (int i = 0; i < SPEC_EVENTS; i++)
        if (both & SPEC_EVENT_BIT(i))
            buf_printf(&text, "%s@%s", text.len ? " " : "", spec_event_name((enum spec_event)i));
    if (text.len)
        overlap_add(o, buf_view(&text), false, x, y);
    buf_release(&text);
}

static void overlap_compare(struct overlap *o, size_t x, size_t y)
{
    const enum spec_kind kind = o->specs[x]->kind;

    if (kind != o->specs[y]->kind || heads_apart(o->specs[x], o->specs[y]))
        return;
    switch (kind) {
    case SPEC_CALL:
        compare_calls(o, x, y);
        break;
    case SPEC_SEND:
    case SPEC_RECV:
        overlap_add(o, kind == SPEC_SEND ? STR("send") : STR("recv"), false, x, y);
        break;
    case SPEC_EVENT:
        compare_events(o, x, y);
        break;
    }
}

/* ---- text ---- */

typedef bool probe_test(const struct spec *s);

/*
 * Appends the numbers of those probes of a region that wanted() accepts: "probe 1", "probes 1 and 2". Returns how many
 * they are.
 */
static size_t put_probes(const struct overlap *o, const struct region *r, probe_test *wanted, struct buf *b)
{
    size_t count = 0, left = 0;

    for (size_t i = 0; i < o->count; i++)
        count += r->has[i] && wanted(o->specs[i]);
    if (count)
        buf_puts(b, count > 1 ? "probes " : "probe ");
    for (size_t i = 0; i < o->count; i++) {
        if (!r->has[i] || !wanted(o->specs[i]))
            continue;
        buf_printf(b, "%zu", i + 1);
        if (++left < count)
            buf_puts(b, left + 1 == count ? " and " : ", ");
    }
    return count;
}

static bool any_probe(const struct spec *s UNUSED)
{
    return true;
}

static bool has_where(const struct spec *s)
{
    return s->nwhere > 0;
}

static bool is_global(const struct spec *s)
{
    return s->kind == SPEC_CALL && s->scope == SPEC_GLOBAL;
}

static bool is_local(const struct spec *s)
{
    return s->kind == SPEC_CALL && s->scope == SPEC_LOCAL;
}

static bool has_drop(const struct spec *s)
{
    for (size_t i = 0; i < s->nclauses; i++)
        if (s->clauses[i].actions & ACT_DROP)
            return true;
    return false;
}

static void put_word(struct buf *b, const char *word)
{
    buf_puts(b, b->len ? ", " : "");
    buf_puts(b, word);
}

/* Appends the actions of the probes of a region, except those of clauses with `drop`, which show nothing. */
static void put_actions(const struct overlap *o, const struct region *r, struct buf *b)
{
    static const struct {
        unsigned actions, has, counters;
        const char *word;
    } words[] = {
        {ACT_RETURN, 0, 0, "return"},
        {ACT_RETURN_TRACE, 0, 0, "return_trace"},
        {ACT_RETURN_TO, 0, 0, "return_to"},
        {0, 1u << PACK_CALLER, 0, "caller"},
        {0, 1u << PACK_STACK, 0, "stack"},
        {0, 1u << PACK_DUMP, 0, "dump"},
        {0, 1u << PACK_USER, 0, "msg"},
        {ACT_SILENT, 0, 0, "silent"},
        {ACT_FLAGS, 0, 0, "enable, disable or trace"},
        {ACT_TOKEN, 0, 0, "set_seq_token"},
        {ACT_UNSAFE, 0, 0, "display or set_tcw"},
        {0, 0, SPEC_COUNT, "count"},
        {0, 0, SPEC_TIME, "time"},
        {0, 0, SPEC_MEMORY, "memory"},
    };
    unsigned actions = 0, has = 0, counted = 0;
    struct buf all = {0};

    for (size_t i = 0; i < o->count; i++) {
        const struct spec *s = o->specs[i];
        counted |= r->has[i] ? s->counters : 0;
        for (size_t k = 0; r->has[i] && k < s->nclauses; k++) {
            if (s->clauses[k].actions & ACT_DROP)
                continue;
            actions |= s->clauses[k].actions;
            has |= s->clauses[k].has;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (words[i].actions & actions || words[i].has & has || words[i].counters & counted)
            put_word(&all, words[i].word);
    if (all.len)
        buf_puts(b, ": ");
    buf_str(b, buf_view(&all));
    buf_release(&all);
}

/* Appends a line about those probes of a region that wanted() accepts; nothing if there are none. */
static void put_note(const struct overlap *o, const struct region *r, probe_test *wanted, const char *one,
                     const char *several, struct buf *b)
{
    struct buf probes = {0};
    size_t count = put_probes(o, r, wanted, &probes);

    if (count) {
        buf_puts(b, "    ");
        buf_str(b, buf_view(&probes));
        buf_printf(b, " %s\n", count > 1 ? several : one);
    }
    buf_release(&probes);
}

static void put_region(const struct overlap *o, const struct region *r, bool held, struct buf *b)
{
    struct buf local = {0};

    buf_puts(b, "  ");
    buf_str(b, r->text);
    buf_puts(b, "  ");
    put_probes(o, r, any_probe, b);
    put_actions(o, r, b);
    buf_char(b, '\n');
    if (r->may)
        buf_puts(b, "    only the node knows whether these probes have functions in common\n");
    put_note(o, r, has_drop, "has a drop: the events that it matches are not shown",
             "have a drop: the events that one of them matches are not shown", b);
    if (put_probes(o, r, is_local, &local))
        put_note(o, r, is_global, "sees local calls, too", "see local calls, too", b);
    if (held)
        put_note(o, r, has_where, "has a where: the node checks dur, class, size and ret; etrace checks the rest",
                 "have the same where: the node checks dur, class, size and ret; etrace checks the rest", b);
    else
        put_note(o, r, has_where, "has a where: etrace checks it, for this probe only",
                 "have a where: etrace checks each, for its own probe only", b);
    buf_release(&local);
}

void overlap_explain(struct exprs *exprs, struct buf *b)
{
    struct overlap o = {.a = &exprs->arena, .specs = exprs->specs, .count = exprs->count};
    struct buf filter = {0};

    if (o.count > PROBES_MOST)
        return;
    for (size_t y = 1; y < o.count; y++)
        for (size_t x = 0; x < y; x++)
            overlap_compare(&o, x, y);
    if (o.nregions) {
        bool held = exprs_hold(exprs, NULL, 0, &filter);
        buf_puts(b, "Several probes select these; an event is shown once, with the actions of all that match it:\n");
        for (size_t i = 0; i < o.nregions; i++)
            put_region(&o, &o.regions[i], held, b);
        if (o.more)
            buf_puts(b, "  and others\n");
    }
    buf_release(&filter);
}
