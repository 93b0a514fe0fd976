/* SPDX-License-Identifier: Apache-2.0 */
#include "where.h"

#include <stdlib.h>

#include "../erlang/wire_order.h"
#include "../fold/property.h"
#include "../ground/mem.h"
#include "../lang/guard.h"
#include "../views/line.h"
#include "regex.h"

/* The compiled data of a node of an expression's syntax tree, found by the address of the node. */
struct prepared {
    const struct where *node;
    struct buf constant;
    struct regex *regex;
};

struct wheres {
    struct prepared *prepared;
    size_t n, cap;
    struct arena arena; /* memory of the current evaluation */
    enum terms_style style;
    uint64_t errors;
    const struct groups *table; /* table and row that a condition on rows is evaluated for */
    const struct group *row;
};

struct wheres *wheres_new(enum terms_style style)
{
    struct wheres *w = mem_zalloc(sizeof(*w));

    w->style = style;
    arena_init(&w->arena);
    return w;
}

void wheres_free(struct wheres *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n; i++) {
        buf_release(&w->prepared[i].constant);
        regex_free(w->prepared[i].regex);
    }
    free(w->prepared);
    arena_release(&w->arena);
    free(w);
}

uint64_t wheres_errors(const struct wheres *w)
{
    return w->errors;
}

static struct prepared *prepare_node(struct wheres *w, const struct where *node)
{
    struct err ignored;

    for (size_t i = 0; i < w->n; i++)
        if (w->prepared[i].node == node)
            return &w->prepared[i];
    w->prepared = mem_grow(w->prepared, &w->cap, w->n + 1, sizeof(*w->prepared));
    struct prepared *p = &w->prepared[w->n++];
    *p = (struct prepared){.node = node};
    if (node->type == WHERE_REGEX)
        p->regex = regex_new(node->regex, &ignored); /* wheres_prepare() reports the error of a malformed pattern */
    else
        term_to_wire(&p->constant, node->constant);
    return p;
}

bool wheres_prepare(struct wheres *w, const struct where *expr, struct err *e)
{
    if (expr->type == WHERE_REGEX && !prepare_node(w, expr)->regex)
        return regex_free(regex_new(expr->regex, e)), false;
    for (size_t i = 0; i < expr->count; i++)
        if (!wheres_prepare(w, expr->items[i], e))
            return false;
    return !expr->tail || wheres_prepare(w, expr->tail, e);
}

/* ---- values ---- */

static const struct term_env no_names;

static struct value term_of(const struct event *e, const uint8_t *at)
{
    if (!at)
        return VALUE_FAIL;
    if (*at == ETW_T_CUT || *at == ETW_T_ELIDED || *at == ETW_T_REDACTED)
        return VALUE_DONT_KNOW;
    return (struct value){.at = at, .env = &e->env};
}

/* ---- properties of an event ---- */

static struct value mfa_value(struct wheres *w, struct raw module, struct raw function, int64_t arity)
{
    struct buf b = {0};

    buf_char(&b, (char)(ETW_T_TUPLE0 + 3));
    struct value v = value_atom(&w->arena, module);
    buf_add(&b, v.at, 3 + module.len);
    v = value_atom(&w->arena, function);
    buf_add(&b, v.at, 3 + function.len);
    v = value_int(&w->arena, arity);
    buf_add(&b, v.at, 9);
    return value_take(&w->arena, &b);
}

static struct value function_value(struct wheres *w, const struct event *e, const uint8_t *at)
{
    struct mfa m;
    bool cut;

    if (!at)
        return mfa_value(w, e->fun->module, e->fun->name, e->arity);
    return mfa_read(e, at, &m, NULL) ? mfa_value(w, m.module, m.function, mfa_arity(&m, &cut)) : VALUE_FAIL;
}

/* Returns {M,F,A} of a place, which is {M,F,A} or {M,F,A,{File,Line}}. */
static struct value place_value(struct wheres *w, const struct event *e, const uint8_t *at)
{
    uint32_t arity;
    const uint8_t *first;
    struct buf b = {0};

    if (wire_tuple(at, &arity, &first) != 4)
        return term_of(e, at);
    buf_char(&b, (char)(ETW_T_TUPLE0 + 3));
    wire_copy(&b, &e->env, (struct wire){first, wire_skip(wire_skip(wire_skip(first)))}, 4096);
    return value_take(&w->arena, &b);
}

static struct value arguments_value(struct wheres *w, const struct event *e)
{
    struct buf b = {0};

    if (e->kind == ETW_CALL && e->nterms < e->arity)
        return VALUE_DONT_KNOW; /* the arguments were not captured */
    buf_char(&b, (char)ETW_T_LIST);
    wire_copy(&b, &e->env, e->terms, ETW_MAX_BATCH);
    buf_char(&b, (char)ETW_T_END);
    return value_take(&w->arena, &b);
}

static struct value line_text(struct wheres *w, const struct event *e)
{
    static const struct paint plain = {false};
    struct buf line = {0};

    line_body(&line, e, w->style, &plain);
    struct value v = value_bin(&w->arena, buf_view(&line));
    buf_release(&line);
    return v;
}

static struct value property_value(struct wheres *w, const struct where *x, const struct event *e)
{
    struct typed_value v = property_get(e, x->property);

    /* The VM knows only where the message came from. The head of a probe sees `undefined`, too. */
    if (x->property == PROPERTY_from && v.type == PROPERTY_IS_ABSENT && e->kind == ETW_RECEIVE && e->sender_node)
        return value_atom(&w->arena, raw_text("undefined"));
    if (x->index)
        v = property_argument(e, v, (unsigned)x->index);
    const struct event *of = typed_of(v, e);
    switch ((enum property_type)v.type) {
    case PROPERTY_IS_LATER:
        return (struct value){.state = VALUE_LATER};
    case PROPERTY_IS_UNKNOWN:
        return VALUE_DONT_KNOW;
    case PROPERTY_IS_TERM:
    case PROPERTY_IS_STACK:
    case PROPERTY_IS_CHARS:
        return term_of(of, v.at);
    case PROPERTY_IS_TERMS:
        return arguments_value(w, of);
    case PROPERTY_IS_INT:
    case PROPERTY_IS_DURATION:
    case PROPERTY_IS_MICROS:
        return value_int(&w->arena, v.number);
    case PROPERTY_IS_TEXT:
        return value_atom(&w->arena, raw_of(safe_view(typed_text(v))));
    case PROPERTY_IS_NAME:
    case PROPERTY_IS_ATOM:
        return value_atom(&w->arena, typed_name(v));
    case PROPERTY_IS_TRACEE:
    case PROPERTY_IS_PID:
        return value_pid(&w->arena, e->who->id);
    case PROPERTY_IS_FUNCTION:
        return function_value(w, of, v.at);
    case PROPERTY_IS_PLACE:
        return place_value(w, of, v.at);
    case PROPERTY_IS_LINE:
        return line_text(w, e);
    case PROPERTY_IS_ABSENT:
    case PROPERTY_IS_TIME:
    case PROPERTY_IS_TIMESTAMP:
    case PROPERTY_IS_WHO:
    case PROPERTY_IS_CALL:
        break;
    }
    return VALUE_FAIL;
}

/* ---- patterns, as in the heads of match specifications ---- */

enum match { MATCH_NO, MATCH_UNKNOWN, MATCH_YES };

/* Returns the match of two parts of a pattern, which must both match. */
static enum match match_both(enum match a, enum match b)
{
    return MIN(a, b);
}

static enum match match_equal(enum wire_order o)
{
    return o == WIRE_EQUAL ? MATCH_YES : o == WIRE_UNKNOWN ? MATCH_UNKNOWN : MATCH_NO;
}

static enum match match_pattern(struct wheres *w, term_t pattern, struct value v, struct value *bound);

/* Matches a tuple. If elements were cut and the others match, returns MATCH_UNKNOWN. */
static enum match match_tuple(struct wheres *w, term_t pattern, struct value v, struct value *bound)
{
    uint32_t arity;
    const uint8_t *at;
    int64_t n = wire_tuple(v.at, &arity, &at);
    enum match all = MATCH_YES;

    if (n < 0 || arity != pattern->count)
        return MATCH_NO;
    for (int64_t i = 0; i < n; i++, at = wire_skip(at))
        all = match_both(all, match_pattern(w, pattern->items[i], (struct value){.at = at, .env = v.env}, bound));
    return n < (int64_t)arity ? match_both(all, MATCH_UNKNOWN) : all;
}

/* Converts a string to a list, so that each element has an address. */
static struct value spread_string(struct wheres *w, struct value v)
{
    struct buf b = {0};

    if (*v.at != ETW_T_STRING)
        return v;
    buf_char(&b, (char)ETW_T_LIST);
    for (size_t i = 0; i < wire_u16(v.at + 1); i++) {
        const uint8_t element[] = {ETW_T_INT16, v.at[3 + i], 0};
        buf_add(&b, element, sizeof(element));
    }
    buf_char(&b, (char)ETW_T_END);
    return value_take(&w->arena, &b);
}

/* Returns the rest of a list, from the element at `at`. */
static struct value rest_of(struct wheres *w, struct value list, const uint8_t *at)
{
    static const uint8_t nil = ETW_T_NIL;
    struct buf b = {0};

    if (*at == ETW_T_TAIL || *at == ETW_T_CUT || *at == ETW_T_END)
        return (struct value){.at = *at == ETW_T_TAIL ? at + 1 : *at == ETW_T_END ? &nil : at, .env = list.env};
    buf_char(&b, (char)ETW_T_LIST);
    wire_copy(&b, list.env, (struct wire){at, wire_skip(list.at)}, ETW_MAX_BATCH);
    return value_take(&w->arena, &b);
}

static enum match match_list(struct wheres *w, term_t pattern, struct value v, struct value *bound)
{
    struct value list = spread_string(w, v);
    const uint8_t *at = list.at, *el;
    enum match all = MATCH_YES;

    if (!wire_list(&at))
        return MATCH_NO;
    for (size_t i = 0; i < pattern->count; i++) {
        if (!(el = wire_list_next(&at)))
            return *at == ETW_T_CUT ? match_both(all, MATCH_UNKNOWN) : MATCH_NO;
        all = match_both(all, match_pattern(w, pattern->items[i], (struct value){.at = el, .env = list.env}, bound));
    }
    struct value rest = rest_of(w, list, at);
    if (pattern->tail)
        return match_both(all, match_pattern(w, pattern->tail, rest, bound));
    if (wire_class(rest.at) == WIRE_NOTHING)
        return match_both(all, MATCH_UNKNOWN);
    return wire_class(rest.at) == WIRE_NIL ? all : MATCH_NO;
}

static enum match match_map(struct wheres *w, term_t pattern, struct value v, struct value *bound)
{
    enum match all = MATCH_YES;

    if (*v.at != ETW_T_MAP)
        return MATCH_NO;
    for (size_t i = 0; i + 1 < pattern->count; i += 2) {
        struct buf key = {0};
        bool unknown;
        term_to_wire(&key, pattern->items[i]);
        const uint8_t *value = wire_map_find(v.env, v.at, &no_names, (const uint8_t *)key.data, &unknown);
        buf_release(&key);
        if (!value && !unknown)
            return MATCH_NO;
        all = match_both(all, value ? match_pattern(w, pattern->items[i + 1], (struct value){.at = value, .env = v.env},
                                                    bound)
                                    : MATCH_UNKNOWN);
    }
    return all;
}

static enum match match_pattern(struct wheres *w, term_t pattern, struct value v, struct value *bound)
{
    if (pattern->type == TERM_ATOM && pattern->text.len == 1 && pattern->text.at[0] == '_')
        return MATCH_YES;
    const int n = spec_variable(pattern);
    if (n >= WHERE_VARIABLES)
        return MATCH_NO;
    if (n >= 0) {
        if (bound[n].at)
            return match_equal(wire_compare(bound[n].env, bound[n].at, v.env, v.at, true));
        bound[n] = v;
        return MATCH_YES;
    }
    if (wire_class(v.at) == WIRE_NOTHING)
        return MATCH_UNKNOWN;
    switch (pattern->type) {
    case TERM_TUPLE:
        return match_tuple(w, pattern, v, bound);
    case TERM_LIST:
        return match_list(w, pattern, v, bound);
    case TERM_MAP:
        return match_map(w, pattern, v, bound);
    case TERM_ATOM:
    case TERM_INT:
    case TERM_BIG:
    case TERM_FLOAT:
    case TERM_BIN:
    case TERM_PID:
    case TERM_PORT:
    case TERM_REF:
    case TERM_EXPORT:
        break;
    }
    struct buf b = {0};
    term_to_wire(&b, pattern);
    enum wire_order o = wire_compare(&no_names, (const uint8_t *)b.data, v.env, v.at, true);
    buf_release(&b);
    return match_equal(o);
}

/* ---- expressions ---- */

static struct value eval_test(struct wheres *w, const struct where *x, const struct event *e);

/*
 * Evaluates an operand of another expression. Clears `never`, because the other expression, such as `not`, can be true
 * even if the operand cannot.
 */
static struct value eval_value(struct wheres *w, const struct where *x, const struct event *e)
{
    struct value v = eval_test(w, x, e);

    v.never = false;
    return v;
}

/* Evaluates the operands of `and`, `or` and the like in order, up to the first one that decides the value. */
static struct value eval_logic(struct wheres *w, const struct where *x, const struct event *e)
{
    struct guard_logic l = guard_logic_begin(x->fn);

    for (size_t i = 0; i < x->count && !guard_logic_add(&l, eval_test(w, x->items[i], e)); i++)
        ;
    return guard_logic_end(&l);
}

/* Returns true if the term was captured completely. */
static bool is_whole(const uint8_t *at)
{
    struct raw bytes;
    uint64_t size;

    for (const uint8_t *end = wire_skip(at); at < end; at = wire_token(at))
        if (*at == ETW_T_CUT || *at == ETW_T_ELIDED || *at == ETW_T_REDACTED ||
            (*at == ETW_T_TEXT && at[1] == ETW_TEXT_OTHER) || (wire_bin(at, &bytes, &size) && bytes.len < size))
            return false;
    return true;
}

/* Writes {M, F, A} as m:f/a, for a search with a regular expression. */
static void put_function_name(struct buf *to, struct value v)
{
    uint32_t arity;
    const uint8_t *module, *name;
    struct raw text;
    int64_t n;

    if (wire_tuple(v.at, &arity, &module) != 3 || !wire_atom(v.env, module, &text)) {
        erlang_print(to, v.env, v.at); /* the atom undefined */
        return;
    }
    buf_str(to, raw_view(text));
    buf_char(to, ':');
    name = wire_skip(module);
    if (wire_atom(v.env, name, &text))
        buf_str(to, raw_view(text));
    if (wire_int(wire_skip(name), &n))
        buf_printf(to, "/%lld", (long long)n);
}

static struct value eval_search(struct wheres *w, const struct where *x, const struct event *e)
{
    struct value v = eval_value(w, x->items[0], e);
    struct prepared *p = prepare_node(w, x);
    struct buf printed = {0};
    struct raw text;
    uint64_t size;

    if (v.state != VALUE_TERM)
        return v;
    if (!p->regex)
        return VALUE_FAIL;
    if (!wire_atom(v.env, v.at, &text) && !wire_bin(v.at, &text, &size)) {
        if (x->items[0]->kind == WT_FUNCTION) {
            put_function_name(&printed, v);
        } else if (*v.at == ETW_T_STRING) {
            for (size_t i = 0; i < wire_u16(v.at + 1); i++)
                buf_utf8(&printed, v.at[3 + i]);
        } else {
            erlang_print(&printed, v.env, v.at);
        }
        text = raw_of(buf_view(&printed));
    }
    const bool whole = is_whole(v.at);
    enum regex_found found =
        whole ? regex_search(p->regex, raw_view(text)) : regex_search_beginning(p->regex, raw_view(text));
    buf_release(&printed);
    w->errors += found == REGEX_GAVE_UP;
    if (found == REGEX_NO && !whole)
        return VALUE_DONT_KNOW;
    return value_bool(found == REGEX_GAVE_UP || (found == REGEX_YES) != x->negated);
}

/* Ends an encoded list with a tail. If the tail is a list, adds its elements, because no encoded tail is a list. */
static void put_tail(struct wheres *w, struct buf *b, struct value tail)
{
    const struct value list = spread_string(w, tail);
    const uint8_t *at = list.at;

    if (*at == ETW_T_NIL) {
        buf_char(b, (char)ETW_T_END);
        return;
    }
    if (!wire_list(&at))
        buf_char(b, (char)ETW_T_TAIL);
    wire_copy(b, list.env, (struct wire){at, wire_skip(list.at)}, ETW_MAX_BATCH);
}

static struct value eval_container(struct wheres *w, const struct where *x, const struct event *e)
{
    struct buf b = {0};
    struct value open = {.state = VALUE_TERM};
    uint32_t n = (uint32_t)(x->type == WHERE_MAP ? x->count / 2 : x->count);

    if (x->type == WHERE_LIST) {
        buf_char(&b, (char)ETW_T_LIST);
    } else {
        buf_char(&b, (char)(x->type == WHERE_TUPLE ? ETW_T_TUPLE : ETW_T_MAP));
        buf_add(&b, &n, sizeof(n));
    }
    for (size_t i = 0; i <= x->count; i++) {
        const struct where *item = i < x->count ? x->items[i] : x->tail;
        if (!item)
            break;
        struct value v = eval_value(w, item, e);
        if (v.state == VALUE_FAILED) {
            buf_release(&b);
            return v;
        }
        if (value_is_undecided(v)) {
            open = open.state == VALUE_LATER ? open : v;
            continue;
        }
        if (i == x->count)
            put_tail(w, &b, v);
        else
            wire_copy(&b, v.env, (struct wire){v.at, wire_skip(v.at)}, ETW_MAX_BATCH);
    }
    if (x->type == WHERE_LIST && !x->tail)
        buf_char(&b, (char)ETW_T_END);
    if (open.state == VALUE_TERM)
        return value_take(&w->arena, &b);
    buf_release(&b);
    return open;
}

static struct value eval_call(struct wheres *w, const struct where *x, const struct event *e)
{
    struct value args[8];

    if (x->fn == FN_ANDALSO || x->fn == FN_ORELSE || x->fn == FN_AND || x->fn == FN_OR)
        return eval_logic(w, x, e);
    if (x->count > ARRAY_LEN(args))
        return VALUE_FAIL;
    for (size_t i = 0; i < x->count; i++) {
        args[i] = eval_value(w, x->items[i], e);
        if (args[i].state == VALUE_FAILED)
            return args[i];
    }
    return guard_apply(&w->arena, x->fn, args, x->count, raw_of(safe_view(e->node->name)));
}

static struct value aggregate_value(struct wheres *w, const struct where *x)
{
    struct group_number n;

    if (!w->table || !groups_find(w->table, w->row, x->name, &n))
        return VALUE_FAIL;
    return n.real ? value_float(&w->arena, n.d) : value_int(&w->arena, n.i);
}

static struct value eval_test(struct wheres *w, const struct where *x, const struct event *e)
{
    switch (x->type) {
    case WHERE_CONST:
        return (struct value){.at = (const uint8_t *)prepare_node(w, x)->constant.data, .env = &no_names};
    case WHERE_NAME:
        return property_value(w, x, e);
    case WHERE_CALL:
        return eval_call(w, x, e);
    case WHERE_REGEX:
        return eval_search(w, x, e);
    case WHERE_AGGREGATE:
        return aggregate_value(w, x);
    case WHERE_MATCH: {
        struct value bound[WHERE_VARIABLES] = {0}, v = eval_value(w, x->items[0], e);
        if (v.state != VALUE_TERM)
            return v;
        enum match m = match_pattern(w, x->constant, v, bound);
        return m == MATCH_UNKNOWN ? VALUE_DONT_KNOW : value_bool(m == MATCH_YES);
    }
    case WHERE_TUPLE:
    case WHERE_LIST:
    case WHERE_MAP:
        break;
    }
    return eval_container(w, x, e);
}

struct value where_value_of(struct wheres *w, const struct where *expr, const struct event *e)
{
    arena_clear(&w->arena);
    return eval_value(w, expr, e);
}

enum filter_verdict where_holds(struct wheres *w, const struct where *expr, const struct event *e)
{
    bool b;

    arena_clear(&w->arena);
    struct value v = eval_test(w, expr, e);
    if (value_is_undecided(v) && !v.never)
        return v.state == VALUE_LATER ? FILTER_LATER : FILTER_UNKNOWN;
    return value_is_bool(v, &b) && b ? FILTER_PASS : FILTER_FAIL;
}

bool where_holds_for(struct wheres *w, const struct where *expr, const struct groups *table, const struct group *row)
{
    static const struct event_node nowhere;
    static const struct event nothing = {.node = &nowhere};

    w->table = table;
    w->row = row;
    return where_holds(w, expr, &nothing) == FILTER_PASS;
}
