/* SPDX-License-Identifier: Apache-2.0 */
#include "mspec.h"
#include "compile_where.h"

#include <string.h>

#include "../../nif/etrace_wire.h"
#include "../ground/units.h"
#include "guard.h"
#include "lex.h"
#include "meant.h"

#define KIND(kind) (UINT64_C(1) << ETW_##kind)

enum { CALLS = 1, SENDS = 2, RECEIVES = 4, TOKENS = 8, EVENTS = 16 };

struct maker {
    struct check *k;
    struct arena *a;
    const struct ast_probe *probe; /* NULL: the filter stands alone */
    unsigned needs;
    bool rows; /* the condition is about the rows of a table, so `count` and the like are aggregates */
    bool by;   /* the expression is a key, or the value of an aggregate, of `by` */
};

static struct where *make_where(struct maker *m, enum where_type type, const struct ast *at)
{
    struct where *w = arena_alloc(m->a, sizeof(*w));

    w->type = type;
    w->from = m->probe ? ast_place(m->probe, at->from) : at->from;
    w->len = at->len;
    return w;
}

static struct where *compile_node(struct maker *m, struct ast *n);

/* Returns the kinds of events of a probe as bits: CALLS, SENDS, … Without a probe (NULL) all bits are set. */
static unsigned kinds_of_events(const struct ast_probe *p)
{
    static const unsigned shapes[] =
        {[SHAPE_CALL] = CALLS, [SHAPE_SEND] = SENDS, [SHAPE_RECV] = RECEIVES, [SHAPE_EVENT] = EVENTS};

    return !p ? ~0u : p->shape == SHAPE_EVENT && str_is(p->event, "seq_trace") ? TOKENS : shapes[p->shape];
}

/* Returns the kinds of events that have the property, as the bits of kinds_of_events(). */
static unsigned reported_with(const struct property_row *row)
{
    static const struct {
        uint64_t kinds;
        unsigned bit;
    } by[] = {
        {KIND(CALL) | KIND(RETURN_FROM) | KIND(EXCEPTION_FROM) | KIND(RETURN_TO), CALLS},
        {KIND(SEND) | KIND(SEND_NOPROC), SENDS},
        {KIND(RECEIVE), RECEIVES},
        {KIND(SEQ_TRACE), TOKENS},
    };
    uint64_t rest = row->events;
    unsigned bits = 0;

    for (size_t i = 0; i < ARRAY_LEN(by); i++) {
        bits |= row->events & by[i].kinds ? by[i].bit : 0;
        rest &= ~by[i].kinds;
    }
    return rest ? bits | EVENTS : bits;
}

static bool is_word_of(const struct maker *m, enum property id)
{
    return property_rows[id].uses & (PROPERTY_WHERE | (m->by ? (unsigned)PROPERTY_BY : 0));
}

/* Returns the word that introduces the expression. */
static const char *clause_word(const struct maker *m)
{
    return m->by ? "by" : "where";
}

static bool is_offered(const struct maker *m, enum property id)
{
    return is_word_of(m, id) && reported_with(&property_rows[id]) & kinds_of_events(m->probe);
}

static struct where *make_constant(struct maker *m, term_t value, const struct ast *at)
{
    struct where *w = make_where(m, WHERE_CONST, at);

    w->constant = value;
    w->kind = term_types(value) == TY_BOOL ? WT_BOOL : value->type == TERM_INT ? WT_INT : WT_ANY;
    w->early = true;
    return w;
}

static struct where *make_name(struct maker *m, enum property id, int index, const struct ast *at)
{
    struct where *w = make_where(m, WHERE_NAME, at);

    w->property = id;
    w->index = index;
    w->kind = property_rows[id].type;
    w->early = property_rows[id].uses & PROPERTY_NODE;
    return w;
}

static struct where *make_call(struct maker *m, enum fn fn, const struct ast *at, size_t count,
                               const struct where **items)
{
    struct where *w = make_where(m, WHERE_CALL, at);

    w->fn = fn;
    w->count = count;
    w->items = arena_alloc(m->a, count * sizeof(*items) + 1);
    if (count)
        memcpy(w->items, items, count * sizeof(*items));
    w->kind = fn_row(fn)->result == TY_BOOL ? WT_BOOL : fn_row(fn)->result == TY_INT ? WT_INT : WT_ANY;
    w->early = (fn >= FN_AND && fn <= FN_XOR) || (fn >= FN_ADD && fn <= FN_REM) || (fn >= FN_GT && fn <= FN_NE);
    for (size_t i = 0; i < count; i++)
        w->early &= items[i]->early;
    return w;
}

#define CALL(m, fn, at, ...)                                                                                           \
    make_call(m, fn, at, sizeof((const struct where *[]){__VA_ARGS__}) / sizeof(struct where *),                       \
              (const struct where *[]){__VA_ARGS__})

/* ---- names ---- */

static struct where *compile_word(struct maker *m, enum property id, int index, const struct ast *at)
{
    static const char *const kinds[] = {"a call", "a send", "a receive", "an event"};

    if (!is_offered(m, id)) {
        diag(m->k->c, at->from, at->len, "%s has no '%s'", kinds[m->probe->shape], property_rows[id].name);
        return NULL;
    }
    if (m->probe && m->probe->shape == SHAPE_CALL)
        m->needs |= property_rows[id].uses & (PROPERTY_NEEDS_RETURN | PROPERTY_NEEDS_CALLER);
    return make_name(m, id, index, at);
}

static bool find_word(const struct maker *m, struct str text, enum property *ret)
{
    for (int i = 0; i < PROPERTIES; i++) {
        if (is_word_of(m, (enum property)i) && str_is(text, property_rows[i].name)) {
            *ret = (enum property)i;
            return true;
        }
    }
    return false;
}

/* Reads the N of argN, the name of args[N] in other tracers. Returns false if the text is anything else. */
static bool is_numbered_arg(struct str text, struct str *ret)
{
    size_t i = 3;

    if (text.len <= i || memcmp(text.at, "arg", i) || text.at[i] == '0')
        return false;
    *ret = (struct str){text.at + i, text.len - i};
    while (i < text.len && lex_is_digit(text.at[i]))
        i++;
    return i == text.len;
}

static void guess_word(struct maker *m, struct str text)
{
    struct str number;
    enum property id;
    struct guess g;

    if (is_numbered_arg(text, &number)) {
        diag_note(m->k->c, "did you mean 'args[" STR_FMT "]'?", STR_ARG(number));
        return;
    }
    const char *means = meant(m->k->c, MEANT_PROPERTY, text);
    if (means && find_word(m, str_of(means), &id) && is_offered(m, id)) {
        meant_note(m->k->c, MEANT_PROPERTY, text, NULL);
        return;
    }
    guess_init(&g, text);
    for (int i = 0; i < PROPERTIES; i++)
        if (is_offered(m, (enum property)i))
            guess_offer(&g, str_of(property_rows[i].name));
    diag_guess(m->k->c, &g);
}

#define MAX_TAILS 100 /* limit for nested calls of tl */

/*
 * Returns an expression for the value of the variable `var` in the pattern `n`. `here` is the expression for the value
 * that `n` matches. Returns NULL if `n` does not contain the variable.
 */
static struct where *find_in(struct maker *m, const struct ast *n, struct str var, struct where *here,
                             const struct ast *at)
{
    struct where *found;

    if (!here)
        return NULL;
    if (n->type == A_VAR)
        return str_same(n->text, var) ? here : NULL;
    if (n->type == A_BIN || n->type == A_OP || n->type == A_PIN || n->type == A_LIT)
        return NULL;
    struct where *rest = here;
    for (size_t i = 0; i < n->count; i++) {
        struct where *part = here;
        if (n->type == A_TUPLE)
            part = CALL(m, FN_ELEMENT, at, make_constant(m, term_int(m->a, (int64_t)i + 1), at), here);
        else if (n->type == A_LIST)
            part = CALL(m, FN_HD, at, rest);
        else if (n->type == A_MAP && i % 2 == 0)
            continue;
        else if (n->type == A_MAP && n->items[i - 1]->known)
            part = CALL(m, FN_MAP_GET, at, make_constant(m, n->items[i - 1]->known, at), here);
        if ((found = find_in(m, n->items[i], var, part, at)))
            return found;
        if (n->type == A_LIST && i >= MAX_TAILS)
            return NULL;
        if (n->type == A_LIST)
            rest = CALL(m, FN_TL, at, rest);
    }
    return n->tail ? find_in(m, n->tail, var, rest, at) : NULL;
}

static struct where *compile_argument(struct maker *m, size_t i, size_t count, const struct ast *at)
{
    if (m->probe->shape == SHAPE_SEND)
        return make_name(m, count == 2 && i == 0 ? PROPERTY_to : PROPERTY_msg, 0, at);
    if (m->probe->shape == SHAPE_RECV)
        return i + 1 == count   ? make_name(m, PROPERTY_msg, 0, at)
               : i + 2 == count ? make_name(m, PROPERTY_from, 0, at)
                                : NULL;
    return make_name(m, PROPERTY_args, (int)i + 1, at);
}

static bool is_in_head(const struct ast_probe *p, struct str var)
{
    for (size_t c = 0; p && c < p->nclauses; c++)
        for (size_t i = 0; i < p->clauses[c].nhead; i++)
            if (ast_mentions(p->clauses[c].head[i], var))
                return true;
    return false;
}

static struct where *compile_variable(struct maker *m, const struct ast *n)
{
    const struct ast_probe *p = m->probe;
    enum property id;

    if (m->k->c->surface == SPEC_ELIXIR && !is_in_head(p, n->text) && find_word(m, n->text, &id))
        return compile_word(m, id, 0, n);
    for (size_t c = 0; p && c < p->nclauses; c++) {
        const struct ast_clause *cl = &p->clauses[c];
        for (size_t i = 0; i < cl->nhead; i++) {
            struct where *found = find_in(m, cl->head[i], n->text, compile_argument(m, i, cl->nhead, n), n);
            if (found && p->nclauses > 1) {
                diag(m->k->c, n->from, n->len, "the clauses may bind " STR_FMT " differently", STR_ARG(n->text));
                diag_note(m->k->c, "write args[%zu]", i + 1);
                return NULL;
            }
            if (found)
                return found;
        }
    }
    if (is_in_head(p, n->text)) {
        diag(m->k->c, n->from, n->len, STR_FMT " cannot be used after '%s'", STR_ARG(n->text), clause_word(m));
        diag_note(m->k->c, m->by ? "collect it with msg(T), and write message" : "test it after 'when'");
        return NULL;
    }
    if (p && check_lacks(m->k, n))
        return NULL;
    diag(m->k->c, n->from, n->len,
         m->k->c->surface == SPEC_ELIXIR ? "unknown name " STR_FMT : "unbound variable " STR_FMT, STR_ARG(n->text));
    if (m->k->c->surface == SPEC_ELIXIR)
        diag_note(m->k->c, p ? "bind it in the argument list; an atom is :" STR_FMT : "an atom is :" STR_FMT,
                  STR_ARG(n->text));
    else if (p)
        diag_note(m->k->c, "bind it in the argument list");
    guess_word(m, n->text);
    return NULL;
}

static struct where *index_of(struct maker *m, const struct ast *n)
{
    const struct ast *of = n->items[0], *i = n->items[1];
    struct str text = of->type == A_LIT && of->value->type == TERM_ATOM ? of->value->text : of->text;

    if (!str_is(text, "args")) {
        diag(m->k->c, of->from, of->len, "only args has elements");
        diag_note(m->k->c, "args[N]");
        return NULL;
    }
    if (i->type != A_LIT || i->value->type != TERM_INT || i->value->integer < 1 || i->value->integer > SPEC_ARITY_MAX) {
        diag(m->k->c, i->from, i->len, "N in args[N] must be 1 or more");
        return NULL;
    }
    if (m->probe && m->probe->shape == SHAPE_CALL && m->probe->nclauses == 1 && m->probe->clauses[0].has_head &&
        !m->probe->clauses[0].prefix && !m->probe->fun && (size_t)i->value->integer > m->probe->clauses[0].nhead) {
        diag(m->k->c, i->from, i->len, "there is no argument %lld", (long long)i->value->integer);
        return NULL;
    }
    return compile_word(m, PROPERTY_args, (int)i->value->integer, n);
}

/* ---- units ---- */

bool where_unit(struct str word)
{
    return unit_find(word, false);
}

static struct where *compile_unit(struct maker *m, const struct ast *n)
{
    double v = n->value->type == TERM_INT     ? (double)n->value->integer
               : n->value->type == TERM_FLOAT ? n->value->real
                                              : -1;

    const struct unit *unit = unit_find(n->text, false);

    if (!unit) {
        diag(m->k->c, n->from, n->len, "unknown unit '" STR_FMT "'", STR_ARG(n->text));
        diag_note(m->k->c, "ns us ms s m h, B kB MB GB");
        return NULL;
    }
    if (v < 0 || v * unit->factor > 9e18)
        return diag(m->k->c, n->from, n->len, "this number is too large"), NULL;
    struct where *w = make_constant(m, term_int(m->a, (int64_t)(v * unit->factor + 0.5)), n);
    w->kind = unit->kind == UNIT_DURATION ? WT_DURATION : WT_SIZE;
    return w;
}

/* ---- aggregates of rows: count > 10, max(dur) > 1s ---- */

/* Returns true if the node is an aggregate of a row: the word count, or a call such as max(dur). */
static bool is_aggregate(const struct ast *n)
{
    static const char *const calls[] = {"sum", "min", "max", "avg", "p50", "p90", "p99"};

    if (n->type == A_VAR || (n->type == A_LIT && n->value->type == TERM_ATOM && !n->quoted))
        return str_is(n->type == A_VAR ? n->text : n->value->text, "count");
    for (size_t i = 0; n->type == A_CALL && !n->module.len && n->count == 1 && i < ARRAY_LEN(calls); i++)
        if (str_is(n->text, calls[i]))
            return true;
    return false;
}

/*
 * Returns false if the tree reads a property of an event outside of aggregates. Sets *ret_has if it finds an aggregate.
 */
static bool only_aggregates(const struct maker *m, const struct ast *n, bool *ret_has)
{
    enum property id;
    bool only = true;

    if (is_aggregate(n))
        return *ret_has = true;
    if ((n->type == A_LIT && n->value->type == TERM_ATOM && !n->quoted && find_word(m, n->value->text, &id)) ||
        (n->type == A_VAR && find_word(m, n->text, &id)) || n->type == A_INDEX)
        return false;
    for (size_t i = 0; i < n->count; i++)
        only = only && (!n->items[i] || only_aggregates(m, n->items[i], ret_has));
    return only && (!n->tail || only_aggregates(m, n->tail, ret_has));
}

/*
 * Makes an aggregate. Its expression is kept as text, because the variables of the probe are unknown here. A table
 * compares this text with the aggregates after `by`.
 */
static struct where *compile_row_aggregate(struct maker *m, const struct ast *n)
{
    struct where *w = make_where(m, WHERE_AGGREGATE, n);
    enum property id;

    w->kind = WT_INT;
    w->name = STR("count");
    if (n->type != A_CALL)
        return w;
    const struct ast *of = n->items[0];
    const struct str text = {m->k->c->text.at + of->from, of->len};
    w->name.at = arena_printf(m->a, STR_FMT "(" STR_FMT ")", STR_ARG(n->text), STR_ARG(text));
    w->name.len = strlen(w->name.at);
    w->kind = find_word(m, text, &id) ? property_rows[id].type : WT_ANY;
    return w;
}

/* ---- operators ---- */

static bool is_comparison(int fn)
{
    return fn >= FN_GT && fn <= FN_NE;
}

static bool is_word(const struct ast *n)
{
    return n->type == A_LIT && n->value->type == TERM_ATOM && !n->quoted;
}

/* Rejects an unquoted atom, which is probably a misspelled property. */
static bool check_word(struct maker *m, const struct where *w, const struct ast *at)
{
    if (w->type != WHERE_CONST || !is_word(at))
        return true;
    diag(m->k->c, at->from, at->len, "'" STR_FMT "' is not a property of an event", STR_ARG(at->value->text));
    guess_word(m, at->value->text);
    return false;
}

/* Rejects the unquoted atoms of a call whose value is the same for every event. */
static bool check_words(struct maker *m, const struct where *const *args, const struct ast *n)
{
    for (size_t i = 0; i < n->count; i++)
        if (args[i]->type != WHERE_CONST)
            return true;
    for (size_t i = 0; i < n->count; i++)
        if (!check_word(m, args[i], n->items[i]))
            return false;
    return true;
}

/* Returns the TY_ bits of the types that a property has; 0: any type. */
static unsigned types_of(const struct where *w)
{
    if (w->type != WHERE_NAME || w->index)
        return 0;
    switch ((int)w->property) {
    case PROPERTY_class:
    case PROPERTY_name:
    case PROPERTY_node:
    case PROPERTY_type:
        return TY_ATOM;
    case PROPERTY_pid:
        return TY_PID | TY_PORT;
    default:
        return w->kind == WT_FUNCTION ? TY_TUPLE | TY_ATOM : w->kind == WT_INT ? TY_INT | TY_FLOAT : 0;
    }
}

/* Rejects the comparison of a property with a constant of a type that it never has, such as class == "error". */
static bool check_constant(struct maker *m, const struct where *side, const struct where *other, const struct ast *of)
{
    const bool elixir = m->k->c->surface == SPEC_ELIXIR;
    const unsigned wants = types_of(side);

    if (!wants || other->type != WHERE_CONST || term_types(other->constant) & wants)
        return true;
    const char *name = property_rows[side->property].name;
    const struct str written = {m->k->c->text.at + of->from, of->len};
    const bool text = written.len > 2 && written.at[0] == '"';
    const char *type = wants == TY_ATOM   ? "an atom"
                       : wants & TY_PID   ? "a process or a port"
                       : wants & TY_TUPLE ? "a function"
                                          : "a number";
    diag(m->k->c, of->from, of->len, "'%s' is %s", name, type);
    if (wants == TY_ATOM && text && elixir)
        return diag_note(m->k->c, "write :" STR_FMT, STR_ARG(written));
    if (wants == TY_ATOM && text)
        return diag_note(m->k->c, "write '" STR_FMT "'", (int)written.len - 2, written.at + 1);
    if (wants & TY_PID && (text || term_types(other->constant) == TY_ATOM))
        return diag_note(m->k->c, "write %s; a registered name is 'name'", elixir ? "#PID<0.84.0>" : "<0.84.0>");
    if (wants & TY_TUPLE)
        return diag_note(m->k->c, "as in %s == %s, or %s =~ \"lists:map\"", name,
                         elixir ? "{:lists, :map, 2}" : "{lists, map, 2}", name);
    return false;
}

static bool check_class(struct maker *m, const struct where *side, const struct ast *of)
{
    static const char *const classes[] = {"error", "exit", "throw"};
    struct guess g;

    if (side->type != WHERE_CONST || side->constant->type != TERM_ATOM)
        return true;
    guess_init(&g, side->constant->text);
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        if (term_is_atom(side->constant, classes[i]))
            return true;
        guess_offer(&g, str_of(classes[i]));
    }
    diag(m->k->c, of->from, of->len, "unknown class '" STR_FMT "'", STR_ARG(side->constant->text));
    diag_note(m->k->c, "error, exit or throw");
    return diag_guess(m->k->c, &g);
}

/* Rejects a bare number beside a duration. */
static bool check_duration(struct maker *m, const struct where *side, const struct where *other, const struct ast *of)
{
    if (side->kind != WT_DURATION || other->kind == WT_DURATION || other->type != WHERE_CONST)
        return true;
    diag(m->k->c, of->from, of->len, "a duration needs a unit");
    if (other->kind == WT_INT)
        return diag_note(m->k->c, "write %lldms", (long long)other->constant->integer);
    return diag_note(m->k->c, "ns us ms s m h");
}

/*
 * Rejects the comparison of a side with another one whose unit or type does not fit: of a duration with a bare number,
 * or of a size with a duration.
 */
static bool check_fits(struct maker *m, const struct where *side, const struct where *other, const struct ast *at,
                       const struct ast *of)
{
    const bool measured = other->kind == WT_DURATION || other->kind == WT_SIZE;

    if (((measured || other->type == WHERE_CONST) && !check_word(m, side, at)) || !check_duration(m, side, other, of))
        return false;
    if (side->kind == WT_SIZE && other->type == WHERE_CONST && other->kind != WT_SIZE && other->kind != WT_INT) {
        diag(m->k->c, of->from, of->len, "a size is a number of bytes");
        return diag_note(m->k->c, "B kB MB GB");
    }
    if (side->kind == WT_SIZE && other->kind == WT_DURATION) {
        const size_t from = MIN(at->from, of->from), end = MAX(at->from + at->len, of->from + of->len);
        return diag(m->k->c, from, end - from, "a size cannot be compared with a duration");
    }
    if (side->kind == WT_INT && side->type != WHERE_CONST && other->kind == WT_DURATION)
        return diag(m->k->c, of->from, of->len, "'%.*s' is a number without a unit", (int)at->len,
                    m->k->c->text.at + at->from);
    return check_constant(m, side, other, of) &&
           (side->type != WHERE_NAME || side->property != PROPERTY_class || check_class(m, other, of));
}

static bool check_compare(struct maker *m, struct where *const sides[2], const struct ast *n)
{
    for (size_t i = 0; i < 2; i++)
        if (!check_fits(m, sides[i], sides[1 - i], n->items[i], n->items[1 - i]))
            return false;
    if (sides[0]->type == WHERE_CONST && sides[1]->type == WHERE_CONST)
        return diag(m->k->c, n->from, n->len, "this compares two constants");
    return true;
}

static struct where *compile_like(struct maker *m, const struct ast *n)
{
    struct where *of = compile_node(m, n->items[0]), *w;
    const struct ast *pattern = n->items[1];

    if (!of || !check_word(m, of, n->items[0]))
        return NULL;
    if (pattern->type != A_REGEX) {
        diag(m->k->c, pattern->from, pattern->len, "expected a regular expression");
        diag_note(m->k->c, "\"pcre\" or ~/pcre/");
        return NULL;
    }
    w = make_where(m, WHERE_REGEX, n);
    w->kind = WT_BOOL;
    w->regex = pattern->text;
    w->negated = n->op == OP_UNLIKE;
    w->items = arena_alloc(m->a, sizeof(*w->items));
    w->items[0] = of;
    w->count = 1;
    return w;
}

/* ---- patterns: ret = {error, _} ---- */

/* Returns true if the operand of '=' is a value of the event. The other operand is then the pattern. */
static bool is_value(const struct maker *m, const struct ast *n)
{
    enum property id;

    if (n->type == A_CALL || n->type == A_INDEX || n->type == A_DOT || n->type == A_RECFIELD)
        return true;
    if (n->type == A_VAR && is_in_head(m->probe, n->text))
        return true;
    if (m->k->c->surface == SPEC_ELIXIR)
        return n->type == A_VAR && find_word(m, n->text, &id);
    return is_word(n) && find_word(m, n->value->text, &id);
}

/* Rejects a variable of the argument list in a pattern: it would be a new variable there, which matches anything. */
static bool require_unbound(struct maker *m, const struct ast *n)
{
    if (n->type == A_VAR && is_in_head(m->probe, n->text)) {
        diag(m->k->c, n->from, n->len, STR_FMT " is bound by the argument list", STR_ARG(n->text));
        return diag_note(m->k->c, "compare with it, as in %s == " STR_FMT,
                         m->k->c->surface == SPEC_ELIXIR ? "elem(ret, 1)" : "element(2, ret)", STR_ARG(n->text));
    }
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i] && !require_unbound(m, n->items[i]))
            return false;
    return !n->tail || require_unbound(m, n->tail);
}

/* Makes a test that the value is a native record with this name, or with any name. */
static struct where *compile_native(struct maker *m, const struct ast *n, const struct where *value)
{
    if (n->text.len)
        return CALL(m, FN_IS_RECORD, n, value, make_constant(m, term_atom_n(m->a, n->module), n),
                    make_constant(m, term_atom_n(m->a, n->text), n));
    return CALL(m, FN_ANDALSO, n, CALL(m, FN_GT, n, value, make_constant(m, term_tuple(m->a, 0, NULL), n)),
                CALL(m, FN_LT, n, value, make_constant(m, term_map(m->a, 0, NULL), n)),
                CALL(m, FN_NOT, n, CALL(m, FN_IS_TUPLE, n, value)));
}

/* Returns the largest N of the variables '$N' in a pattern; -1: it has none. */
static int highest_variable(term_t pattern)
{
    int highest = MAX(spec_variable(pattern), pattern->tail ? highest_variable(pattern->tail) : -1);

    for (size_t i = 0; i < pattern->count; i++)
        highest = MAX(highest, highest_variable(pattern->items[i]));
    return highest;
}

static struct where *compile_match(struct maker *m, const struct ast *n)
{
    const bool first = is_value(m, n->items[0]);
    struct ast *pattern = n->items[first ? 1 : 0];
    struct where *value = compile_node(m, n->items[first ? 0 : 1]), *list, *w;
    struct mclause head = {.k = m->k, .a = m->a};
    struct ast_clause cl = {.has_head = true,
                            .head = &pattern,
                            .nhead = 1,
                            .head_from = pattern->from,
                            .head_len = pattern->len};

    if (pattern->type == A_LIT || pattern->type == A_UNIT) {
        diag(m->k->c, n->from, n->len, "'=' does not compare");
        diag_note(m->k->c, "write == or =:=");
        return NULL;
    }
    check_atoms(m->k, &pattern, 1, NULL, NULL);
    if (!value || !require_unbound(m, pattern) || !(pattern = check_pattern(m->k, pattern)))
        return NULL;
    m->k->place = PLACE_ANY_GUARD;
    if (pattern->type == A_NATIVE)
        return compile_native(m, pattern, value);
    if (!mspec_head(&head, &cl, 0))
        return NULL;
    if (highest_variable(head.head) >= WHERE_VARIABLES) {
        diag(m->k->c, pattern->from, pattern->len, "a pattern of a filter has at most %d variables",
             WHERE_VARIABLES - 1);
        return NULL;
    }
    if (head.guards.count) {
        diag(m->k->c, pattern->from, pattern->len, "a pattern of a filter can only contain literals and variables");
        diag_note(m->k->c, "compare the rest, as in hd(ret) > 1");
        return NULL;
    }
    list = make_where(m, WHERE_LIST, n);
    list->items = arena_alloc(m->a, sizeof(*list->items));
    list->items[0] = value;
    list->count = 1;
    w = make_where(m, WHERE_MATCH, n);
    w->kind = WT_BOOL;
    w->constant = head.head;
    w->early = value->early;
    w->items = arena_alloc(m->a, sizeof(*w->items));
    w->items[0] = list;
    w->count = 1;
    return w;
}

/* Returns true if all elements of the list are written out: [a, b], ~w(a b)a. */
static bool is_list(const struct ast *of)
{
    return of->type == A_LIT ? of->value->type == TERM_LIST && !of->value->tail : of->type == A_LIST && !of->tail;
}

static size_t list_length(const struct ast *of)
{
    return of->type == A_LIT ? of->value->count : of->count;
}

/* Expands x in [a, b] and x in 1..9 to comparisons. */
static struct where *compile_in(struct maker *m, const struct ast *n)
{
    const struct ast *of = n->items[1];
    struct where *value = compile_node(m, n->items[0]), *result = NULL;

    if (!value || !check_word(m, value, n->items[0]))
        return NULL;
    if (of->type == A_OP && of->op == OP_RANGE) {
        struct where *low = compile_node(m, of->items[0]), *high = low ? compile_node(m, of->items[1]) : NULL;
        const struct where *first = low;
        int64_t step;
        if (!high || !check_fits(m, value, low, n->items[0], of->items[0]) ||
            !check_fits(m, value, high, n->items[0], of->items[1]) || !check_step(m->k, of, &step))
            return NULL;
        if (step ? step < 0
                 : low->type == WHERE_CONST && high->type == WHERE_CONST && low->constant->type == TERM_INT &&
                       high->constant->type == TERM_INT && low->constant->integer > high->constant->integer) {
            struct where *swap = low;
            low = high;
            high = swap;
        }
        const struct where *above = CALL(m, FN_GE, n, value, low), *below = CALL(m, FN_LE, n, value, high);
        if (step == 0 || step == 1 || step == -1) {
            result = CALL(m, FN_ANDALSO, n, CALL(m, FN_IS_INTEGER, n, value), above, below);
        } else {
            const struct where *rest =
                CALL(m, FN_REM, n, CALL(m, FN_SUB, n, value, first), make_constant(m, term_int(m->a, step), of));
            result = CALL(m, FN_ANDALSO, n, CALL(m, FN_IS_INTEGER, n, value), above, below,
                          CALL(m, FN_EQ_EXACT, n, rest, make_constant(m, term_int(m->a, 0), of)));
        }
    } else if (is_list(of) && !list_length(of)) {
        warn(m->k->c, n->from, n->len, false, "the list is empty, so this is %s true",
             n->op == OP_NOT_IN ? "always" : "never");
        result = make_constant(m, term_bool(m->a, false), n);
    } else if (is_list(of)) {
        const size_t count = list_length(of);
        const struct where **tests = arena_alloc(m->a, count * sizeof(*tests));
        for (size_t i = 0; i < count; i++) {
            struct where *item =
                of->type == A_LIST ? compile_node(m, of->items[i]) : make_constant(m, of->value->items[i], of);
            if (!item || !check_fits(m, value, item, n->items[0], of->type == A_LIST ? of->items[i] : of))
                return NULL;
            tests[i] = CALL(m, FN_EQ_EXACT, n, value, item);
        }
        result = count == 1 ? (struct where *)(uintptr_t)tests[0] : make_call(m, FN_ORELSE, n, count, tests);
    } else {
        diag(m->k->c, of->from, of->len, "'in' needs an explicit list or range");
        return NULL;
    }
    return n->op == OP_NOT_IN ? CALL(m, FN_NOT, n, result) : result;
}

static bool check_is_test(struct maker *m, const struct where *w, const struct ast *at)
{
    if (w->kind == WT_BOOL || (w->kind == WT_ANY && w->type != WHERE_CONST && w->type != WHERE_TUPLE &&
                               w->type != WHERE_LIST && w->type != WHERE_MAP))
        return true;
    diag(m->k->c, at->from, at->len, "expected a test");
    return diag_note(m->k->c, "such as dur > 5ms");
}

static struct where *compile_operator(struct maker *m, const struct ast *n)
{
    struct where **args = arena_alloc(m->a, n->count * sizeof(*args));

    if (n->op == OP_LIKE || n->op == OP_UNLIKE)
        return compile_like(m, n);
    if (n->op == OP_IN || n->op == OP_NOT_IN)
        return compile_in(m, n);
    if (n->op >= FN_COUNT) {
        struct ast *value = check_expr(m->k, (struct ast *)(uintptr_t)n);
        if (value && value->known)
            return make_constant(m, value->known, n);
        if (value)
            diag(m->k->c, n->from, n->len, "this is not allowed after '%s'", clause_word(m));
        return NULL;
    }
    for (size_t i = 0; i < n->count; i++)
        if (!(args[i] = compile_node(m, n->items[i])))
            return NULL;
    if (n->count == 1 && args[0]->type == WHERE_CONST && (n->op == FN_MINUS || n->op == FN_PLUS)) {
        bool fails;
        term_t value = term_types(args[0]->constant) & (TY_INT | TY_FLOAT)
                           ? fold(m->a, (enum fn)n->op, &args[0]->constant, 1, &fails)
                           : NULL;
        if (value) {
            enum where_kind kind = args[0]->kind;
            args[0] = make_constant(m, value, n);
            args[0]->kind = kind;
            return args[0];
        }
    }
    if (is_comparison(n->op) && !check_compare(m, args, n))
        return NULL;
    for (size_t i = 0; i < n->count && fn_row((enum fn)n->op)->result != TY_BOOL; i++)
        if (!check_word(m, args[i], n->items[i]))
            return NULL;
    if (n->op >= FN_AND && n->op <= FN_XOR)
        for (size_t i = 0; i < n->count; i++)
            if (!check_is_test(m, args[i], n->items[i]))
                return NULL;
    if (n->op == FN_ADD || n->op == FN_SUB)
        for (size_t i = 0; i < 2; i++)
            if (!check_duration(m, args[i], args[1 - i], n->items[1 - i]))
                return NULL;
    struct where *w = make_call(m, n->op, n, n->count, (const struct where **)(void *)args);
    if (!is_comparison(n->op) && w->kind != WT_BOOL && n->count == 2)
        for (size_t i = 0; i < 2; i++)
            if (args[i]->kind == WT_DURATION || args[i]->kind == WT_SIZE)
                w->kind = args[i]->kind;
    return w;
}

/* Notes that an aggregate stands among the keys of `by`. Returns false if no aggregate has the name. */
static bool note_aggregate(struct maker *m, struct str name)
{
    enum by_kind kind;

    if (!m->by || !by_kind_find(name, &kind))
        return false;
    diag_note(m->k->c, "aggregates follow the keys and a colon, as in by mfa: %s%s", by_kind_names[kind],
              kind == BY_COUNT ? "" : "(dur)");
    return true;
}

static struct where *compile_function(struct maker *m, struct ast *n)
{
    enum fn fn = n->module.len && !str_is(n->module, "erlang") ? FN_NONE : fn_find(n->text, n->count);
    const struct where **args = arena_alloc(m->a, n->count * sizeof(*args) + 1);
    bool elem = m->k->c->surface == SPEC_ELIXIR && str_is(n->text, "elem") && n->count == 2;
    bool is_nil = m->k->c->surface == SPEC_ELIXIR && str_is(n->text, "is_nil") && n->count == 1;
    bool flipped = m->k->c->surface == SPEC_ELIXIR && !n->module.len && fn == FN_IS_MAP_KEY;
    bool any_native = m->k->c->surface == SPEC_ERLANG && str_is(n->text, "is_record") && n->count == 1;

    if (!elem && !is_nil && !any_native && !guard_has(fn)) {
        struct guess g;
        guess_init(&g, n->text);
        for (int i = 0; i < FN_COUNT; i++)
            if (guard_has((enum fn)i) && fn_row((enum fn)i)->name[0] >= 'a')
                guess_offer(&g, str_of(fn_row((enum fn)i)->name));
        if (m->k->c->surface == SPEC_ELIXIR) {
            guess_offer(&g, STR("elem"));
            guess_offer(&g, STR("is_nil"));
        }
        diag(m->k->c, n->from, n->len, STR_FMT "/%zu is not available after '%s'", STR_ARG(n->text), n->count,
             clause_word(m));
        if (str_is(n->text, "tag") && n->count == 1 && str_is(str_of(clause_word(m)), LEX_BY))
            diag_note(m->k->c, "tag(X) is a whole key, as in by X, tag(X)");
        else if (!n->module.len && !note_aggregate(m, n->text))
            meant_note(m->k->c, MEANT_FUNCTION, n->text, &g);
        return NULL;
    }
    for (size_t i = 0; i < n->count; i++)
        if (!(args[i] = compile_node(m, n->items[i])))
            return NULL;
    if (!check_words(m, args, n))
        return NULL;
    bool named = fn == FN_IS_RECORD && args[2]->type == WHERE_CONST && args[2]->constant->type == TERM_ATOM;
    if ((named || any_native) && !check_native(m->k, n))
        return NULL;
    if (any_native)
        return compile_native(m, &(const struct ast){.from = n->from, .len = n->len}, args[0]);
    if (is_nil)
        return CALL(m, FN_EQ_EXACT, n, args[0], make_constant(m, term_atom(m->a, "nil"), n));
    if (elem && args[1]->type == WHERE_CONST && args[1]->constant->type == TERM_INT)
        return CALL(m, FN_ELEMENT, n, make_constant(m, term_int(m->a, args[1]->constant->integer + 1), n), args[0]);
    if (elem)
        return CALL(m, FN_ELEMENT, n, CALL(m, FN_ADD, n, args[1], make_constant(m, term_int(m->a, 1), n)), args[0]);
    if (flipped)
        return CALL(m, FN_IS_MAP_KEY, n, args[1], args[0]);
    return make_call(m, (int)fn, n, n->count, args);
}

/* ---- containers ---- */

static struct where *compile_container(struct maker *m, struct ast *n)
{
    static const enum where_type types[] = {[A_TUPLE] = WHERE_TUPLE, [A_LIST] = WHERE_LIST, [A_MAP] = WHERE_MAP};
    struct where *w = make_where(m, types[n->type], n);
    term_t *items = arena_alloc(m->a, n->count * sizeof(*items) + 1);
    bool known = true;

    check_assigns(m->k->c, n);
    w->count = n->count;
    w->items = arena_alloc(m->a, n->count * sizeof(*w->items) + 1);
    for (size_t i = 0; i < n->count; i++) {
        if (!(w->items[i] = compile_node(m, n->items[i])))
            return NULL;
        known &= w->items[i]->type == WHERE_CONST;
        items[i] = w->items[i]->constant;
    }
    if (n->tail) {
        if (!(w->tail = compile_node(m, n->tail)))
            return NULL;
        known &= w->tail->type == WHERE_CONST;
    }
    return known ? make_constant(m, ast_term(m->a, n, items, n->tail ? w->tail->constant : NULL), n) : w;
}

static struct where *compile_node(struct maker *m, struct ast *n)
{
    enum property id;

    if (m->rows && is_aggregate(n))
        return compile_row_aggregate(m, n);
    switch (n->type) {
    case A_LIT:
        if (is_word(n) && m->k->c->surface == SPEC_ERLANG && find_word(m, n->value->text, &id))
            return compile_word(m, id, 0, n);
        return make_constant(m, n->value, n);
    case A_VAR:
        return compile_variable(m, n);
    case A_INDEX:
        return index_of(m, n);
    case A_UNIT:
        return compile_unit(m, n);
    case A_OP:
        return compile_operator(m, n);
    case A_CALL:
        if (!str_is(n->text, "pid") || n->count != 3)
            return compile_function(m, n);
        break;
    case A_TUPLE:
    case A_LIST:
    case A_MAP:
        return compile_container(m, n);
    case A_DOT: {
        struct where *of = compile_node(m, n->items[0]);
        if (of && of->type == WHERE_CONST && of->constant->type == TERM_ATOM && !is_word(n->items[0])) {
            diag(m->k->c, n->from, n->len, "a module is not a map");
            diag_note(m->k->c, "a function is a tuple, as in caller == {" STR_FMT ", :" STR_FMT ", 2}",
                      (int)n->items[0]->len, m->k->c->text.at + n->items[0]->from, STR_ARG(n->text));
            return NULL;
        }
        return of && check_word(m, of, n->items[0])
                   ? CALL(m, FN_MAP_GET, n, make_constant(m, term_atom_n(m->a, n->text), n), of)
                   : NULL;
    }
    case A_RECORD: {
        bool later;
        struct ast *tuple = check_record_tuple(m->k, n, false, &later);
        return tuple ? compile_container(m, tuple) : NULL;
    }
    case A_RECFIELD: {
        struct ast *index = check_record_index(m->k, n);
        struct where *of = index && n->items[0] ? compile_node(m, n->items[0]) : NULL;
        if (!index || !n->items[0])
            return index ? make_constant(m, index->value, n) : NULL;
        return of && check_word(m, of, n->items[0]) ? CALL(m, FN_ELEMENT, n, make_constant(m, index->value, n), of)
                                                    : NULL;
    }
    case A_MATCH:
        return compile_match(m, n);
    case A_ANY:
        diag(m->k->c, n->from, n->len, "'_' has no value");
        diag_note(m->k->c, "write = to match a pattern, as in ret = %s",
                  m->k->c->surface == SPEC_ELIXIR ? "{:error, _}" : "{error, _}");
        return NULL;
    case A_REGEX:
        diag(m->k->c, n->from, n->len, "expected a regular expression after =~");
        return NULL;
    case A_PIN:
    case A_NATIVE:
    case A_BIN:
    case A_SEG:
        break;
    }
    struct ast *value = check_expr(m->k, n);
    if (value && value->known)
        return make_constant(m, value->known, n);
    if (value)
        diag(m->k->c, n->from, n->len, "this is not allowed after '%s'", clause_word(m));
    return NULL;
}

static bool add_condition(struct maker *m, struct ast *n, struct ptrs *ret)
{
    if (n->type == A_OP && (n->op == FN_ANDALSO || n->op == FN_AND)) {
        for (size_t i = 0; i < n->count; i++)
            if (!add_condition(m, n->items[i], ret))
                return false;
        return true;
    }
    m->k->met_unknown = false;
    struct where *w = compile_node(m, n);
    if (!w || !check_is_test(m, w, n))
        return false;
    w->unknown = m->k->met_unknown;
    w->text = (struct str){arena_strndup(m->a, m->k->c->text.at + n->from, n->len), n->len};
    ptrs_add(ret, m->a, w);
    return true;
}

bool where_compile(struct check *k, struct ast *n, const struct ast_probe *probe, struct ptrs *ret, unsigned *ret_needs)
{
    struct maker m = {.k = k, .a = k->c->arena, .probe = probe};
    bool has = false;

    k->place = PLACE_ANY_GUARD;
    m.rows = !probe && only_aggregates(&m, n, &has) && has;
    if (!add_condition(&m, n, ret))
        return false;
    *ret_needs |= m.needs;
    return true;
}

const struct where *where_value(struct check *k, struct ast *n, const struct ast_probe *probe, unsigned *ret_needs)
{
    struct maker m = {.k = k, .a = k->c->arena, .probe = probe, .by = true};

    k->place = PLACE_ANY_GUARD;
    struct where *w = compile_node(&m, n);
    if (w && w->type == WHERE_CONST) {
        if (is_word(n) || n->type == A_VAR) {
            const struct str word = is_word(n) ? n->value->text : n->text;
            diag(k->c, n->from, n->len, "'" STR_FMT "' is not a property of an event", STR_ARG(word));
            if (!note_aggregate(&m, word))
                guess_word(&m, word);
        } else {
            diag(k->c, n->from, n->len, "this is the same for every event");
        }
        return NULL;
    }
    *ret_needs |= m.needs;
    return w;
}
