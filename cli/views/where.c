#include "where.h"

#include <stdlib.h>

#include "../erlang/wire_order.h"
#include "../ground/mem.h"
#include "../lang/functions.h"
#include "calls.h"
#include "line.h"
#include "line_info.h"
#include "regex.h"

/* What was made of a node of an expression, kept by the node's address. */
struct prepared {
    const struct where *node;
    struct buf constant;
    struct regex *regex;
};

struct wheres {
    struct prepared *prepared;
    size_t n, cap;
    struct arena arena; /* of one evaluation */
    enum terms_style style;
    uint64_t errors;
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

static struct prepared *prepare(struct wheres *w, const struct where *node)
{
    struct err ignored;

    for (size_t i = 0; i < w->n; i++)
        if (w->prepared[i].node == node)
            return &w->prepared[i];
    w->prepared = mem_grow(w->prepared, &w->cap, w->n + 1, sizeof(*w->prepared));
    struct prepared *p = &w->prepared[w->n++];
    *p = (struct prepared){.node = node};
    if (node->type == WHERE_REGEX)
        p->regex = regex_new(node->regex, &ignored); /* wheres_prepare() tells */
    else
        term_to_wire(&p->constant, node->constant);
    return p;
}

bool wheres_prepare(struct wheres *w, const struct where *expr, struct err *e)
{
    if (expr->type == WHERE_REGEX && !prepare(w, expr)->regex)
        return regex_free(regex_new(expr->regex, e)), false;
    for (size_t i = 0; i < expr->count; i++)
        if (!wheres_prepare(w, expr->items[i], e))
            return false;
    return !expr->tail || wheres_prepare(w, expr->tail, e);
}

/* ---- values ---- */

static const struct term_env no_names;

struct value value_bytes(struct arena *a, const struct buf *encoded)
{
    return (struct value){.at = (const uint8_t *)arena_strndup(a, encoded->data, encoded->len), .env = &no_names};
}

struct value value_int(struct arena *a, int64_t v)
{
    uint8_t *p = arena_alloc(a, 9);

    p[0] = ETW_T_INT64;
    memcpy(p + 1, &v, sizeof(v));
    return (struct value){.at = p, .env = &no_names};
}

struct value value_float(struct arena *a, double v)
{
    uint8_t *p = arena_alloc(a, 9);

    p[0] = ETW_T_FLOAT;
    memcpy(p + 1, &v, sizeof(v));
    return (struct value){.at = p, .env = &no_names};
}

struct value value_atom(struct arena *a, struct str raw)
{
    uint8_t *p = arena_alloc(a, 3 + raw.len);
    uint16_t len = (uint16_t)raw.len;

    p[0] = ETW_T_ATOMTEXT;
    memcpy(p + 1, &len, sizeof(len));
    if (raw.len)
        memcpy(p + 3, raw.at, raw.len);
    return (struct value){.at = p, .env = &no_names};
}

struct value value_bool(bool v)
{
    static const uint8_t yes[] = {ETW_T_ATOMTEXT, 4, 0, 't', 'r', 'u', 'e'}, no[] = {ETW_T_ATOMTEXT, 5, 0, 'f', 'a', 'l', 's', 'e'};

    return (struct value){.at = v ? yes : no, .env = &no_names};
}

struct value value_bin(struct arena *a, struct str bytes)
{
    uint8_t *p = arena_alloc(a, 13 + bytes.len);
    uint64_t size = bytes.len;
    uint32_t captured = (uint32_t)bytes.len;

    p[0] = ETW_T_BIN;
    memcpy(p + 1, &size, sizeof(size));
    memcpy(p + 9, &captured, sizeof(captured));
    if (bytes.len)
        memcpy(p + 13, bytes.at, bytes.len);
    return (struct value){.at = p, .env = &no_names};
}

bool value_is_bool(struct value v, bool *ret)
{
    if (v.state != VALUE_TERM)
        return false;
    *ret = wire_is_atom(v.env, v.at, "true");
    return *ret || wire_is_atom(v.env, v.at, "false");
}

static struct value term_of(const struct event *e, const uint8_t *at)
{
    if (!at || *at == ETW_T_CUT || *at == ETW_T_ELIDED || *at == ETW_T_REDACTED)
        return VALUE_FAIL;
    return (struct value){.at = at, .env = &e->env};
}

static struct value pid_value(struct arena *a, uint64_t id)
{
    uint8_t *p = arena_alloc(a, 9);

    p[0] = id & ETW_TRACEE_PORT ? ETW_T_PORT : ETW_T_PID;
    id &= ~ETW_TRACEE_PORT;
    memcpy(p + 1, &id, sizeof(id));
    return (struct value){.at = p, .env = &no_names};
}

/* ---- properties of an event ---- */

static struct value mfa(struct wheres *w, const struct event *e)
{
    struct buf b = {0};
    struct value v;

    if (!e->fun)
        return VALUE_FAIL;
    buf_char(&b, (char)(ETW_T_TUPLE0 + 3));
    v = value_atom(&w->arena, e->fun->module);
    buf_add(&b, v.at, 3 + e->fun->module.len);
    v = value_atom(&w->arena, e->fun->name);
    buf_add(&b, v.at, 3 + e->fun->name.len);
    v = value_int(&w->arena, e->arity);
    buf_add(&b, v.at, 9);
    v = value_bytes(&w->arena, &b);
    buf_release(&b);
    return v;
}

/* {M,F,A} of {M,F,A} or {M,F,A,{File,Line}} */
static struct value caller(struct wheres *w, const struct event *e)
{
    uint32_t arity;
    const uint8_t *first;
    struct buf b = {0};

    if (!e || !e->caller)
        return VALUE_FAIL;
    if (wire_tuple(e->caller, &arity, &first) != 4)
        return term_of(e, e->caller);
    buf_char(&b, (char)(ETW_T_TUPLE0 + 3));
    wire_copy(&b, &e->env, (struct wire){first, wire_skip(wire_skip(wire_skip(first)))}, 4096);
    struct value v = value_bytes(&w->arena, &b);
    buf_release(&b);
    return v;
}

static struct value argument(struct wheres *w, const struct event *e, int index)
{
    if (event_is_result(e))
        e = e->call ? e->call->event : NULL;
    if (!e)
        return VALUE_FAIL;
    const uint8_t *at = e->terms.at;
    if (!index) {
        struct buf b = {0};
        buf_char(&b, (char)ETW_T_LIST);
        wire_copy(&b, &e->env, e->terms, ETW_MAX_BATCH);
        buf_char(&b, (char)ETW_T_END);
        struct value v = value_bytes(&w->arena, &b);
        buf_release(&b);
        return v;
    }
    if (index > e->nterms)
        return VALUE_FAIL;
    while (--index)
        at = wire_skip(at);
    return term_of(e, at);
}

static struct value when_it_returns(const struct event *e)
{
    return (struct value){.state = e->kind == ETW_CALL && e->expects_return ? VALUE_LATER : VALUE_FAILED};
}

static struct value class_or_reason(struct wheres *w, const struct event *e, bool reason)
{
    struct str class;
    const uint8_t *at;

    if (reason && (e->kind == ETW_EXIT || e->kind == ETW_CLOSED))
        return term_of(e, e->terms.at);
    if (e->kind != ETW_EXCEPTION_FROM || !line_exception(e, &class, &at))
        return when_it_returns(e);
    return reason ? term_of(e, at) : value_atom(&w->arena, class);
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

static struct value property(struct wheres *w, const struct where *x, const struct event *e)
{
    bool send = e->kind == ETW_SEND || e->kind == ETW_SEND_NOPROC;
    int64_t words;

    switch ((enum where_name)x->name) {
    case WN_DUR: return e->dur_ns >= 0 ? value_int(&w->arena, e->dur_ns) : when_it_returns(e);
    case WN_RET: return e->kind == ETW_RETURN_FROM ? term_of(e, e->terms.at) : when_it_returns(e);
    case WN_CLASS: return class_or_reason(w, e, false);
    case WN_REASON: return class_or_reason(w, e, true);
    case WN_RECLAIMED: return info_reclaimed(e, &words) ? value_int(&w->arena, words) : VALUE_FAIL;
    case WN_SIZE: return value_int(&w->arena, e->bytes);
    case WN_PID: return pid_value(&w->arena, e->who->id);
    case WN_NAME: return e->who->name_len ? value_atom(&w->arena, (struct str){e->who->name, e->who->name_len}) : VALUE_FAIL;
    case WN_NODE: return value_atom(&w->arena, e->node->name);
    case WN_MFA: return mfa(w, e);
    case WN_ARG: return argument(w, e, x->index);
    case WN_MSG: return send ? term_of(e, wire_skip(e->terms.at)) : e->kind == ETW_RECEIVE ? term_of(e, e->terms.at) : VALUE_FAIL;
    case WN_FROM: return send ? pid_value(&w->arena, e->who->id) : e->kind == ETW_RECEIVE ? term_of(e, e->sender) : VALUE_FAIL;
    case WN_TO: return send ? term_of(e, e->terms.at) : e->kind == ETW_RECEIVE ? pid_value(&w->arena, e->who->id) : VALUE_FAIL;
    case WN_CALLER: return caller(w, event_is_result(e) ? (e->call ? e->call->event : NULL) : e);
    case WN_TEXT: return line_text(w, e);
    default: return VALUE_FAIL;
    }
}

/* ---- patterns: heads of match specifications ---- */

static bool matches(struct wheres *w, term_t pattern, struct value v, struct value *bound)
{
    uint32_t arity;
    const uint8_t *at, *el;

    if (pattern->type == TERM_ATOM && pattern->text.len == 1 && pattern->text.at[0] == '_')
        return true;
    if (pattern->type == TERM_ATOM && pattern->text.len > 1 && pattern->text.at[0] == '$') {
        int n = atoi(pattern->text.at + 1);
        if (n < 0 || n > 99)
            return false;
        if (bound[n].at)
            return wire_compare(bound[n].env, bound[n].at, v.env, v.at, true) == WIRE_EQUAL;
        bound[n] = v;
        return true;
    }
    switch (pattern->type) {
    case TERM_TUPLE:
        if (wire_tuple(v.at, &arity, &at) != (int64_t)pattern->count || arity != pattern->count)
            return false;
        for (size_t i = 0; i < pattern->count; i++, at = wire_skip(at))
            if (!matches(w, pattern->items[i], (struct value){.at = at, .env = v.env}, bound))
                return false;
        return true;
    case TERM_LIST: {
        struct value all = v;
        if (*v.at == ETW_T_STRING) { /* elements need a place of their own */
            struct buf b = {0};
            buf_char(&b, (char)ETW_T_LIST);
            for (size_t i = 0; i < wire_u16(v.at + 1); i++)
                buf_add(&b, (const uint8_t[]){ETW_T_INT16, v.at[3 + i], 0}, 3);
            buf_char(&b, (char)ETW_T_END);
            all = value_bytes(&w->arena, &b);
            buf_release(&b);
        }
        at = all.at;
        if (!wire_list(&at))
            return false;
        for (size_t i = 0; i < pattern->count; i++)
            if (!(el = wire_list_next(&at)) || !matches(w, pattern->items[i], (struct value){.at = el, .env = all.env}, bound))
                return false;
        if (!pattern->tail)
            return *at == ETW_T_END;
        if (pattern->tail->type == TERM_ATOM && pattern->tail->text.len == 1 && pattern->tail->text.at[0] == '_')
            return true;
        return *at == ETW_T_TAIL && matches(w, pattern->tail, (struct value){.at = at + 1, .env = all.env}, bound);
    }
    case TERM_MAP:
        if (*v.at != ETW_T_MAP)
            return false;
        for (size_t i = 0; i + 1 < pattern->count; i += 2) {
            struct buf key = {0};
            bool unknown;
            term_to_wire(&key, pattern->items[i]);
            el = wire_map_find(v.env, v.at, &no_names, (const uint8_t *)key.data, &unknown);
            buf_release(&key);
            if (!el || !matches(w, pattern->items[i + 1], (struct value){.at = el, .env = v.env}, bound))
                return false;
        }
        return true;
    default: {
        struct buf b = {0};
        term_to_wire(&b, pattern);
        bool equal = wire_compare(&no_names, (const uint8_t *)b.data, v.env, v.at, true) == WIRE_EQUAL;
        buf_release(&b);
        return equal;
    }
    }
}

/* ---- expressions ---- */

static struct value eval(struct wheres *w, const struct where *x, const struct event *e);

static struct value logic(struct wheres *w, const struct where *x, const struct event *e)
{
    bool conjunction = x->name == FN_ANDALSO || x->name == FN_AND, later = false, b;

    for (size_t i = 0; i < x->count; i++) {
        struct value v = eval(w, x->items[i], e);
        if (v.state == VALUE_LATER)
            later = true;
        else if (!value_is_bool(v, &b))
            return later && !conjunction ? (struct value){.state = VALUE_LATER} : VALUE_FAIL;
        else if (b != conjunction)
            return v;
    }
    return later ? (struct value){.state = VALUE_LATER} : value_bool(conjunction);
}

static struct value search(struct wheres *w, const struct where *x, const struct event *e)
{
    struct value v = eval(w, x->items[0], e);
    struct prepared *p = prepare(w, x);
    struct buf printed = {0};
    struct str text;
    uint64_t size;

    if (v.state != VALUE_TERM)
        return v;
    if (!p->regex)
        return VALUE_FAIL;
    if (!wire_atom(v.env, v.at, &text) && !wire_bin(v.at, &text, &size)) {
        if (*v.at == ETW_T_STRING) {
            for (size_t i = 0; i < wire_u16(v.at + 1); i++)
                buf_utf8(&printed, v.at[3 + i]);
        } else {
            erlang_print(&printed, v.env, v.at);
        }
        text = buf_view(&printed);
    }
    enum regex_found found = regex_search(p->regex, text);
    buf_release(&printed);
    w->errors += found == REGEX_GAVE_UP;
    return value_bool(found == REGEX_GAVE_UP || (found == REGEX_YES) != x->negated);
}

static struct value container(struct wheres *w, const struct where *x, const struct event *e)
{
    struct buf b = {0};
    struct value v = VALUE_FAIL;
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
        v = eval(w, item, e);
        if (v.state != VALUE_TERM) {
            buf_release(&b);
            return v;
        }
        if (i == x->count)
            buf_char(&b, (char)ETW_T_TAIL);
        wire_copy(&b, v.env, (struct wire){v.at, wire_skip(v.at)}, ETW_MAX_BATCH);
    }
    if (x->type == WHERE_LIST && !x->tail)
        buf_char(&b, (char)ETW_T_END);
    v = value_bytes(&w->arena, &b);
    buf_release(&b);
    return v;
}

static struct value apply(struct wheres *w, const struct where *x, const struct event *e)
{
    struct value args[8], later = {.state = VALUE_TERM};
    bool b;

    if (x->name == FN_ANDALSO || x->name == FN_ORELSE || x->name == FN_AND || x->name == FN_OR)
        return logic(w, x, e);
    if (x->count > ARRAY_LEN(args))
        return VALUE_FAIL;
    for (size_t i = 0; i < x->count; i++) {
        args[i] = eval(w, x->items[i], e);
        if (args[i].state == VALUE_FAILED)
            return args[i];
        if (args[i].state == VALUE_LATER)
            later = args[i];
    }
    if (later.state == VALUE_LATER)
        return later;
    if (x->name == FN_NOT)
        return value_is_bool(args[0], &b) ? value_bool(!b) : VALUE_FAIL;
    return where_apply(&w->arena, x->name, args, x->count, e);
}

static struct value eval(struct wheres *w, const struct where *x, const struct event *e)
{
    switch (x->type) {
    case WHERE_CONST:
        return (struct value){.at = (const uint8_t *)prepare(w, x)->constant.data, .env = &no_names};
    case WHERE_NAME:
        return property(w, x, e);
    case WHERE_CALL:
        return apply(w, x, e);
    case WHERE_REGEX:
        return search(w, x, e);
    case WHERE_MATCH: {
        struct value bound[100] = {0}, v = eval(w, x->items[0], e);
        return v.state == VALUE_TERM ? value_bool(matches(w, x->constant, v, bound)) : v;
    }
    default:
        return container(w, x, e);
    }
}

enum filter_verdict where_holds(struct wheres *w, const struct where *expr, const struct event *e)
{
    bool b;

    arena_clear(&w->arena);
    struct value v = eval(w, expr, e);
    if (v.state == VALUE_LATER)
        return FILTER_LATER;
    return value_is_bool(v, &b) && b ? FILTER_PASS : FILTER_FAIL;
}
