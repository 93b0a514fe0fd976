/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints specs: as text for people, as Erlang terms (one a line), or as JSON. It does not know colours and widths.
 * Programs compare and load the Erlang form, so its shape must not change:
 * {call|send|recv|event, {Module, Function, Arity}, MatchSpecification | Events, Flags}.
 */
#include <stdio.h>
#include <string.h>

#include "../erlang/term_json.h"
#include "by_node.h"
#include "compile.h"
#include "match_program.h"

static const char *const kinds[] = {"call", "send", "recv", "event"};
static const char *const scopes[] = {"local", "global", "meta"};
static const char *const packs[] = {"clause", "node", "sender", "caller", "stack", "dump", "user"};

struct bit_name {
    unsigned bit;
    const char *name;
};

static const struct bit_name flags[] = {
    {SPEC_F_CALL, "call"},           {SPEC_F_ARITY, "arity"},
    {SPEC_F_RETURN_TO, "return_to"}, {SPEC_F_SEND, "send"},
    {SPEC_F_RECEIVE, "receive"},     {SPEC_F_PROCS, "procs"},
    {SPEC_F_PORTS, "ports"},         {SPEC_F_RUNNING, "running"},
    {SPEC_F_EXITING, "exiting"},     {SPEC_F_GC, "garbage_collection"},
    {SPEC_F_SYSTEM, "system"},       {SPEC_F_SEQ_TRACE, "seq_trace"},
};

static const struct bit_name counters[] = {{SPEC_COUNT, "call_count"},
                                           {SPEC_TIME, "call_time"},
                                           {SPEC_MEMORY, "call_memory"}};

static const struct bit_name actions[] = {
    {ACT_RETURN, "return"},       {ACT_RETURN_TRACE, "return_trace"},
    {ACT_DROP, "drop"},           {ACT_ARITY, "arity"},
    {ACT_RETURN_TO, "return_to"}, {ACT_PROJECT, "args"},
    {ACT_SILENT, "silent"},       {ACT_FLAGS, "flags"},
    {ACT_TOKEN, "token"},         {ACT_UNSAFE, "unsafe"},
};

/* The names of the bits that are set in a set of flags, for the printers of all formats. */
struct names {
    const char *items[SPEC_EVENTS];
    size_t count;
};

#define NAMES_OF(bits, table) add_names((struct names){.count = 0}, bits, table, ARRAY_LEN(table))

static struct names add_names(struct names n, unsigned bits, const struct bit_name *table, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bits & table[i].bit)
            n.items[n.count++] = table[i].name;
    return n;
}

static struct names names_of_events(const struct spec *s)
{
    struct names n = {.count = 0};

    for (int i = 0; i < SPEC_EVENTS; i++)
        if (s->events & SPEC_EVENT_BIT(i))
            n.items[n.count++] = spec_event_name((enum spec_event)i);
    return n;
}

/* ---- Erlang ---- */

static term_t name_term(struct arena *a, const struct sel_name *n)
{
    static const char *const tags[] =
        {[SEL_GLOB] = "glob", [SEL_REGEX] = "regex", [SEL_APP] = "app", [SEL_BEHAVIOUR] = "behaviour"};

    if (n->how == SEL_ANY)
        return term_atom(a, "_");
    if (n->how == SEL_ATOM)
        return term_atom_n(a, n->text);
    bool text = n->how == SEL_GLOB || n->how == SEL_REGEX;
    return TUPLE(a, term_atom(a, tags[n->how]), text ? term_bin(a, n->text.at, n->text.len) : term_atom_n(a, n->text));
}

/* Returns the module of a selector, or {'-', Module, [Module]} if the selector excludes modules. */
static term_t module_term(struct arena *a, const struct selector *s)
{
    term_t of = name_term(a, &s->module);
    term_t *names = arena_alloc(a, s->nwithout * sizeof(*names) + 1);

    for (size_t i = 0; i < s->nwithout; i++)
        names[i] = name_term(a, &s->without[i]);
    return s->nwithout ? TUPLE(a, term_atom(a, "-"), of, term_list(a, s->nwithout, names, NULL)) : of;
}

/*
 * Changes a match specification so that it accepts only calls with `arity` arguments. It is for the selector
 * {M,'_','_'}, because the VM has no {M,'_',Arity}. Returns false for a head that is neither `_` nor a list.
 */
static bool widen_heads(struct arena *a, term_t ms, size_t arity, term_t *ret)
{
    term_t *any = arena_alloc(a, arity * sizeof(*any) + 1);
    for (size_t i = 0; i < arity; i++)
        any[i] = term_atom(a, "_");
    term_t head = term_list(a, arity, any, NULL), none = term_list(a, 0, NULL, NULL);

    if (ms->type != TERM_LIST) {
        *ret = LIST(a, TUPLE(a, head, none, none));
        return true;
    }
    term_t *clauses = arena_alloc(a, ms->count * sizeof(*clauses) + 1);
    for (size_t i = 0; i < ms->count; i++) {
        term_t cl = ms->items[i];
        clauses[i] = cl;
        if (cl->items[0]->type == TERM_LIST)
            continue;
        if (!term_is_atom(cl->items[0], "_"))
            return false;
        clauses[i] = TUPLE(a, head, cl->items[1], cl->items[2]);
    }
    *ret = term_list(a, ms->count, clauses, NULL);
    return true;
}

static void erl_term(const struct spec *s, term_t mfa, term_t ms, term_t options, struct buf *b)
{
    buf_printf(b, "{%s,", kinds[s->kind]);
    lang_print_term(mfa, b);
    buf_char(b, ',');
    if (s->kind == SPEC_EVENT)
        lang_print_term(ms, b);
    else
        print_match_spec(ms, b);
    buf_char(b, ',');
    lang_print_term(options, b);
    buf_puts(b, "}.\n");
}

static term_t erl_names(struct arena *a, struct names n)
{
    term_t items[SPEC_EVENTS];

    for (size_t i = 0; i < n.count; i++)
        items[i] = term_atom(a, n.items[i]);
    return term_list(a, n.count, items, NULL);
}

static term_t erl_flags(struct arena *a, const struct spec *s)
{
    const struct names scope = {.items = {scopes[s->scope]}, .count = s->kind == SPEC_CALL};

    return erl_names(a, add_names(scope, s->counters, counters, ARRAY_LEN(counters)));
}

static void erl_event(struct arena *a, const struct spec *s, term_t mfa, struct buf *b)
{
    term_t events = erl_names(a, names_of_events(s));

    if (s->nparams) { /* only a system event has parameters, and it is the only event of its spec */
        const term_t low = term_int(a, s->params[0]);
        events = LIST(a, TUPLE(a, events->items[0], s->nparams == 1 ? low : TUPLE(a, low, term_int(a, s->params[1]))));
    }
    erl_term(s, mfa, events, erl_names(a, NAMES_OF(s->flags, flags)), b);
}

#define MOST_ARITIES 16 /* a larger range of arities is printed as a range */

static void erl_selector(struct arena *a, const struct spec *s, const struct selector *sel, struct buf *b)
{
    term_t m = module_term(a, sel), f = name_term(a, &sel->function), options = erl_flags(a, s), ms;
    int lo = sel->arity_lo, hi = sel->arity_hi;

    if (selector_any_arity(sel) || (s->prefix && hi - lo >= MOST_ARITIES)) {
        erl_term(s, TUPLE(a, m, f, term_atom(a, "_")), s->match_spec, options, b);
        return;
    }
    if (hi - lo >= MOST_ARITIES) {
        erl_term(s, TUPLE(a, m, f, TUPLE(a, term_int(a, lo), term_int(a, hi))), s->match_spec, options, b);
        return;
    }
    for (int n = lo; n <= hi; n++) {
        term_t own = spec_match_spec_for(s, n, a);
        bool any = sel->function.how == SEL_ANY && widen_heads(a, own, (size_t)n, &ms);
        erl_term(s, TUPLE(a, m, f, any ? term_atom(a, "_") : term_int(a, n)), any ? ms : own, options, b);
    }
}

static void explain_erl(const struct spec *s, struct buf *b)
{
    struct arena a;

    arena_init(&a);
    term_t any = term_atom(&a, "_"), mfa = TUPLE(&a, any, any, any);
    if (s->kind == SPEC_EVENT)
        erl_event(&a, s, mfa, b);
    else if (s->kind != SPEC_CALL)
        erl_term(s, mfa, s->match_spec, erl_flags(&a, s), b);
    for (size_t i = 0; i < s->nselectors; i++)
        erl_selector(&a, s, &s->selectors[i], b);
    arena_release(&a);
}

/* ---- where ---- */

static void put_duration(int64_t ns, struct buf *b)
{
    static const struct {
        int64_t size;
        const char *unit;
    } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};

    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (ns % units[i].size == 0) {
            buf_printf(b, "%lld%s", (long long)(ns / units[i].size), units[i].unit);
            return;
        }
    }
}

static void print_items(const struct where *w, struct buf *b)
{
    for (size_t i = 0; i < w->count; i++) {
        if (i)
            buf_puts(b, w->type == WHERE_MAP && i % 2 ? " => " : ", ");
        lang_print_where(w->items[i], b);
    }
}

void lang_print_where(const struct where *w, struct buf *b)
{
    const char *name;

    switch (w->type) {
    case WHERE_CONST:
        if (w->kind == WT_DURATION)
            put_duration(w->constant->integer, b);
        else
            lang_print_term(w->constant, b);
        break;
    case WHERE_NAME:
        buf_puts(b, property_rows[w->property].name);
        if (w->index)
            buf_printf(b, "[%d]", w->index);
        break;
    case WHERE_CALL:
        name = fn_row(w->fn)->name;
        if (w->count >= 2 && (name[0] < 'a' || name[0] > 'z' || (w->fn >= FN_AND && w->fn <= FN_XOR) ||
                              (w->fn >= FN_ADD && w->fn <= FN_BNOT))) {
            for (size_t i = 0; i < w->count; i++) {
                buf_printf(b, i ? " %s " : "(", name);
                lang_print_where(w->items[i], b);
            }
            buf_char(b, ')');
            break;
        }
        buf_printf(b, "%s(", name);
        print_items(w, b);
        buf_char(b, ')');
        break;
    case WHERE_REGEX:
        lang_print_where(w->items[0], b);
        buf_puts(b, w->negated ? " !~ \"" : " =~ \"");
        for (size_t i = 0; i < w->regex.len; i++)
            buf_printf(b, w->regex.at[i] == '"' ? "\\%c" : "%c", w->regex.at[i]);
        buf_char(b, '"');
        break;
    case WHERE_AGGREGATE:
        buf_str(b, w->name);
        break;
    case WHERE_MATCH: { /* a list with one element is printed without its brackets */
        const bool one = w->items[0]->type == WHERE_LIST && w->items[0]->count == 1 && w->constant->count == 1;
        lang_print_where(one ? w->items[0]->items[0] : w->items[0], b);
        buf_puts(b, " matches ");
        lang_print_term(one ? w->constant->items[0] : w->constant, b);
        break;
    }
    case WHERE_TUPLE:
    case WHERE_LIST:
    case WHERE_MAP:
        buf_puts(b, w->type == WHERE_TUPLE ? "{" : w->type == WHERE_MAP ? "#{" : "[");
        print_items(w, b);
        if (w->tail) {
            buf_puts(b, " | ");
            lang_print_where(w->tail, b);
        }
        buf_puts(b, w->type == WHERE_LIST ? "]" : "}");
        break;
    }
}

/* ---- text ---- */

void lang_print_selector(const struct selector *sel, struct buf *b)
{
    struct arena a;

    arena_init(&a);
    lang_print_term(name_term(&a, &sel->module), b);
    buf_char(b, ':');
    lang_print_term(name_term(&a, &sel->function), b);
    if (selector_any_arity(sel))
        buf_puts(b, "/_");
    else if (sel->arity_lo == sel->arity_hi)
        buf_printf(b, "/%d", sel->arity_lo);
    else if (sel->arity_hi == SPEC_ARITY_MAX)
        buf_printf(b, "/%d.._", sel->arity_lo);
    else
        buf_printf(b, "/%d..%d", sel->arity_lo, sel->arity_hi);
    for (size_t i = 0; i < sel->nwithout; i++) {
        buf_puts(b, i ? ", " : " - ");
        lang_print_term(name_term(&a, &sel->without[i]), b);
    }
    arena_release(&a);
}

static void put_label(struct buf *b, const char *name)
{
    buf_printf(b, "  %-12s", name);
}

static void text_names(const char *label, struct names n, struct buf *b)
{
    if (n.count)
        put_label(b, label);
    for (size_t i = 0; i < n.count; i++)
        buf_printf(b, " %s%s", n.items[i], i + 1 == n.count ? "\n" : "");
}

static void text_events(const struct spec *s, struct buf *b)
{
    struct names n = names_of_events(s);
    char params[2][24];

    for (size_t i = 0; i < s->nparams; i++) {
        snprintf(params[i], sizeof(params[i]), "%lld", (long long)s->params[i]);
        n.items[n.count++] = params[i];
    }
    text_names("events", n, b);
}

static void text_brings(const struct spec *s, struct buf *b)
{
    unsigned all = 0;

    for (size_t i = 0; i < s->nclauses; i++)
        all |= s->clauses[i].actions;
    if (all & (ACT_RETURN | ACT_RETURN_TRACE)) {
        put_label(b, "results");
        buf_puts(b, all & ACT_RETURN ? " with exceptions\n" : " without exceptions\n");
    }
    if (!s->npack)
        return;
    put_label(b, "message");
    for (size_t i = 0; i < s->npack; i++)
        buf_printf(b, "%s%s", i ? ", " : " {", packs[s->pack[i]]);
    buf_puts(b, "}\n");
}

/* Prints the program that a node with the NIF runs instead of the match specification. Both accept the same calls. */
static void text_program(const struct spec *s, struct buf *b)
{
    struct arena a;

    arena_init(&a);
    const term_t program = spec_program(s, &a);
    if (program)
        program_print(program, "  program      ", "               ", b);
    arena_release(&a);
}

static void text_by(const struct spec *s, struct buf *b)
{
    const struct spec_by *by = s->by;
    struct by_node node;
    const char *why;

    for (size_t i = 0; i < by->nkeys; i++) {
        put_label(b, i ? "" : "by");
        buf_puts(b, by->keys[i].tag ? " the tag of " : " ");
        lang_print_where(by->keys[i].value, b);
        buf_char(b, '\n');
    }
    for (size_t i = 0; i < by->naggregates; i++) {
        put_label(b, i ? "" : "counted");
        buf_printf(b, " %s", by_kind_names[by->aggregates[i].kind]);
        if (by->aggregates[i].value) {
            buf_puts(b, " of ");
            lang_print_where(by->aggregates[i].value, b);
        }
        if (!i && by_node_of(s, &node, &why))
            buf_printf(b, ", by the node: %u keys at most, then (other)", by->most);
        else if (!i)
            buf_printf(b, ", by the client: %s", why);
        buf_char(b, '\n');
    }
}

static void explain_text(const struct spec *s, struct buf *b)
{
    buf_str(b, s->text);
    buf_char(b, '\n');
    put_label(b, "kind");
    buf_printf(b, " %s%s%s%s\n", kinds[s->kind], s->kind == SPEC_CALL ? ", " : "",
               s->kind == SPEC_CALL ? scopes[s->scope] : "", s->root ? ", root" : "");
    if (s->inside.len) {
        put_label(b, "inside");
        buf_printf(b, " " STR_FMT "\n", STR_ARG(s->inside));
    }
    for (size_t i = 0; i < s->nselectors; i++) {
        put_label(b, i ? "" : "functions");
        buf_char(b, ' ');
        lang_print_selector(&s->selectors[i], b);
        buf_char(b, '\n');
    }
    if (s->kind == SPEC_EVENT)
        text_events(s, b);
    if (s->match_spec) {
        put_label(b, "match spec");
        buf_char(b, ' ');
        print_match_spec(s->match_spec, b);
        buf_char(b, '\n');
    }
    text_program(s, b);
    text_brings(s, b);
    text_names("counters", NAMES_OF(s->counters, counters), b);
    text_names("flags", NAMES_OF(s->flags, flags), b);
    for (size_t i = 0; i < s->nwhere + s->nkeeps; i++) {
        put_label(b, i ? "" : "where");
        buf_char(b, ' ');
        lang_print_where(i < s->nwhere ? s->where[i] : s->keeps[i], b);
        buf_char(b, '\n');
    }
    if (s->by)
        text_by(s, b);
    if (s->needs_otp) {
        put_label(b, "needs");
        buf_printf(b, " OTP %d\n", s->needs_otp);
    }
    if (s->prefix) {
        put_label(b, "arities");
        buf_puts(b, " one pattern on OTP 29; before, one for each function\n");
    }
}

/* ---- JSON ---- */

static void json_member(struct buf *b, const char *key, struct str value)
{
    json_put_string(b, key, raw_of(value));
}

static void json_match_spec(struct buf *b, const char *key, term_t t)
{
    struct buf text = {0};

    print_match_spec(t, &text);
    json_member(b, key, buf_view(&text));
    buf_release(&text);
}

static void json_name(struct buf *b, const char *key, const struct sel_name *n)
{
    static const char *const hows[] = {"any", "atom", "glob", "regex", "app", "behaviour"};
    char is[16];

    snprintf(is, sizeof(is), "%s_is", key);
    json_member(b, key, n->how == SEL_ANY ? STR("_") : n->text);
    json_member(b, is, str_of(hows[n->how]));
}

static void json_selector(struct buf *b, const struct selector *sel)
{
    json_begin_object(b);
    json_name(b, "module", &sel->module);
    json_name(b, "function", &sel->function);
    if (sel->nwithout) {
        json_put_array(b, "without");
        for (size_t i = 0; i < sel->nwithout; i++) {
            json_begin_object(b);
            json_name(b, "module", &sel->without[i]);
            json_end_object(b);
        }
        json_end_array(b);
    }
    json_put_array(b, "arity");
    json_int(b, sel->arity_lo), json_int(b, sel->arity_hi);
    json_end_array(b);
    json_end_object(b);
}

static void json_names(struct buf *b, const char *key, struct names n)
{
    json_put_array(b, key);
    for (size_t i = 0; i < n.count; i++)
        json_text(b, n.items[i]);
    json_end_array(b);
}

static void json_clauses(struct buf *b, const struct spec *s)
{
    json_put_array(b, "clauses");
    for (size_t i = 0; i < s->nclauses; i++) {
        json_begin_object(b);
        json_names(b, "actions", NAMES_OF(s->clauses[i].actions, actions));
        if (s->clauses[i].actions & ACT_PROJECT) {
            json_put_array(b, "args");
            for (unsigned n = 1; n <= SPEC_ARITY_MAX; n++)
                if (s->clauses[i].args[(n - 1) / 64] >> ((n - 1) % 64) & 1)
                    json_uint(b, n);
            json_end_array(b);
        }
        json_end_object(b);
    }
    json_end_array(b);
}

static void json_where(struct buf *b, const struct spec *s)
{
    json_put_array(b, "where");
    for (size_t i = 0; i < s->nwhere; i++) {
        struct buf text = {0};
        lang_print_where(s->where[i], &text);
        json_begin_object(b);
        json_member(b, "test", buf_view(&text));
        json_put_bool(b, "on_node", s->where[i]->early);
        json_end_object(b);
        buf_release(&text);
    }
    json_end_array(b);
}

static void json_by(struct buf *b, const struct spec *s)
{
    const struct spec_by *by = s->by;
    struct by_node node;
    const char *why;

    json_put_object(b, "by");
    json_put_array(b, "keys");
    for (size_t i = 0; i < by->nkeys; i++)
        json_string(b, raw_of(by->keys[i].text));
    json_end_array(b);
    json_put_array(b, "aggregates");
    for (size_t i = 0; i < by->naggregates; i++)
        json_string(b, raw_of(by->aggregates[i].text));
    json_end_array(b);
    const bool on_node = by_node_of(s, &node, &why);
    json_put_bool(b, "on_node", on_node);
    if (on_node)
        json_put_uint(b, "most_keys", by->most);
    else
        json_put_string(b, "reason", raw_text(why));
    json_end_object(b);
}

/* Prints whether the spec has a program, which the NIF can run instead of the match specification. */
static void json_program(struct buf *b, const struct spec *s)
{
    struct arena a;

    arena_init(&a);
    json_put_bool(b, "program", spec_program(s, &a));
    arena_release(&a);
}

static void explain_json(const struct spec *s, struct buf *b)
{
    struct buf out = {0};

    json_begin_object(&out);
    json_put_int(&out, "v", 1);
    json_member(&out, "kind", str_of(kinds[s->kind]));
    json_member(&out, "text", s->text);
    json_member(&out, "surface", str_of(s->surface == SPEC_ELIXIR ? "elixir" : "erlang"));
    if (s->kind == SPEC_CALL) {
        json_member(&out, "scope", str_of(scopes[s->scope]));
        if (s->inside.len)
            json_member(&out, "inside", s->inside);
        if (s->root)
            json_member(&out, "is", str_of("root"));
        json_put_array(&out, "selectors");
        for (size_t i = 0; i < s->nselectors; i++)
            json_selector(&out, &s->selectors[i]);
        json_end_array(&out);
        json_names(&out, "counters", NAMES_OF(s->counters, counters));
    }
    if (s->kind == SPEC_EVENT) {
        json_names(&out, "events", names_of_events(s));
        json_put_array(&out, "params");
        for (size_t i = 0; i < s->nparams; i++)
            json_int(&out, s->params[i]);
        json_end_array(&out);
    }
    if (s->match_spec)
        json_match_spec(&out, "match_spec", s->match_spec);
    json_program(&out, s);
    json_clauses(&out, s);
    json_put_array(&out, "message");
    for (size_t i = 0; i < s->npack; i++)
        json_text(&out, packs[s->pack[i]]);
    json_end_array(&out);
    json_names(&out, "flags", NAMES_OF(s->flags, flags));
    json_where(&out, s);
    if (s->by)
        json_by(&out, s);
    json_put_array(&out, "atoms");
    for (size_t i = 0; i < s->natoms; i++)
        json_string(&out, raw_of(s->atoms[i]));
    json_end_array(&out);
    json_put_int(&out, "needs_otp", s->needs_otp);
    json_put_array(&out, "warnings");
    for (size_t i = 0; i < s->nwarnings; i++)
        json_string(&out, raw_of(s->warnings[i].text));
    json_end_array(&out);
    json_end_record(&out);
    buf_str(b, buf_view(&out));
    buf_release(&out);
}

void lang_explain(const struct spec *s, enum lang_format format, struct buf *b)
{
    static void (*const formats[])(const struct spec *, struct buf *) = {explain_text, explain_erl, explain_json};

    formats[format](s, b);
}
