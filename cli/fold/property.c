/* SPDX-License-Identifier: Apache-2.0 */
#include "property.h"

#include "../erlang/wire_order.h"
#include "../events/info.h"
#include "../events/mfa.h"

typedef struct typed_value value;

static value value_of(enum property_type type)
{
    return (value){.type = (uint8_t)type};
}

static value value_absent(void)
{
    return value_of(PROPERTY_IS_ABSENT);
}

/* Returns an unknown value. `instead` is NULL, or the incomplete term that was captured in place of the value. */
static value value_unknown(const uint8_t *instead)
{
    return (value){.type = PROPERTY_IS_UNKNOWN, .at = instead};
}

/* Returns a value of this type that is the term at `at`. Returns an absent value if `at` is NULL. */
static value value_at(enum property_type type, const uint8_t *at)
{
    return at ? (value){.type = (uint8_t)type, .at = at} : value_absent();
}

static value value_term(const uint8_t *at)
{
    return value_at(PROPERTY_IS_TERM, at);
}

static value value_number(enum property_type type, int64_t n)
{
    return (value){.type = (uint8_t)type, .number = n};
}

static value value_text(struct safe text)
{
    return (value){
        .type = text.len ? PROPERTY_IS_TEXT : PROPERTY_IS_ABSENT,
        .len = (uint32_t)text.len,
        .text = text.at,
    };
}

static value value_name(enum property_type type, struct raw name)
{
    return (value){.type = (uint8_t)type, .len = (uint32_t)name.len, .name = name.at};
}

/* ---- when, where and what ---- */

static value property_time(const struct event *e)
{
    (void)e;
    return value_of(PROPERTY_IS_TIME);
}

static value property_ts(const struct event *e)
{
    (void)e;
    return value_of(PROPERTY_IS_TIMESTAMP);
}

static value property_mono_ns(const struct event *e)
{
    return value_number(PROPERTY_IS_INT, e->mono_ns);
}

static value property_node(const struct event *e)
{
    return (value){.type = PROPERTY_IS_TEXT, .len = (uint32_t)e->node->name.len, .text = e->node->name.at};
}

static value property_pid(const struct event *e)
{
    (void)e;
    return value_of(PROPERTY_IS_TRACEE);
}

static value property_name(const struct event *e)
{
    return value_text(tracee_safe_name(e->who));
}

static value property_who(const struct event *e)
{
    (void)e;
    return value_of(PROPERTY_IS_WHO);
}

static value property_type(const struct event *e)
{
    const char *type = event_kinds[e->kind].json;

    return (value){.type = PROPERTY_IS_TEXT, .len = (uint32_t)strlen(type), .text = type};
}

static value property_depth(const struct event *e)
{
    return value_number(PROPERTY_IS_INT, e->depth);
}

static value property_size(const struct event *e)
{
    return value_number(PROPERTY_IS_INT, e->bytes);
}

static value property_text(const struct event *e)
{
    (void)e;
    return value_of(PROPERTY_IS_LINE);
}

/* Returns an absent value, because only losses have counts: one for each reason, which fields_put_loss() prints. */
static value property_count(const struct event *e)
{
    (void)e;
    return value_absent();
}

/* ---- functions ---- */

/* Returns the term of the event that names a function; NULL if there is none. */
static const uint8_t *function_term(const struct event *e)
{
    const struct event_kind *kind = &event_kinds[e->kind];
    const uint8_t *at = kind->terms[0].type == EVENT_MFA   ? e->terms.at
                        : kind->terms[1].type == EVENT_MFA ? wire_skip(e->terms.at)
                                                           : NULL;

    return at && *at ? at : NULL; /* the integer 0 means that the process runs no Erlang function */
}

static bool function_read(const struct event *e, struct mfa *ret)
{
    const uint8_t *at = function_term(e);

    return at && mfa_read(e, at, ret, NULL);
}

static value property_m(const struct event *e)
{
    struct mfa m;

    if (e->fun)
        return value_name(PROPERTY_IS_NAME, e->fun->module);
    return function_read(e, &m) ? value_name(PROPERTY_IS_NAME, m.module) : value_absent();
}

static value property_f(const struct event *e)
{
    struct mfa m;

    if (e->fun)
        return value_name(PROPERTY_IS_NAME, e->fun->name);
    return function_read(e, &m) ? value_name(PROPERTY_IS_NAME, m.function) : value_absent();
}

static value property_a(const struct event *e)
{
    struct mfa m;
    bool cut;

    if (e->fun)
        return value_number(PROPERTY_IS_INT, e->arity);
    if (!function_read(e, &m))
        return value_absent();
    int64_t arity = mfa_arity(&m, &cut);
    return cut ? value_unknown(NULL) : value_number(PROPERTY_IS_INT, arity);
}

static value property_mfa(const struct event *e)
{
    struct mfa m;
    bool cut;

    if (e->fun)
        return value_of(PROPERTY_IS_FUNCTION);
    const uint8_t *at = function_term(e);
    if (!function_read(e, &m))
        return value_term(at);
    mfa_arity(&m, &cut);
    return cut ? value_unknown(at) : value_at(PROPERTY_IS_FUNCTION, at);
}

/* ---- calls and results ---- */

/*
 * Returns the call of a result; returns any other event itself. Returns NULL if the call was lost or not kept, or if it
 * is uncertain which call belongs to the result.
 */
static const struct event *call_of(const struct event *e)
{
    if (!event_is_result(e))
        return e;
    return e->call && e->call->complete ? e->call->event : NULL;
}

/* Notes in the value whether it was read from the call of a result, and not from the event itself. */
static value mark_from_call(const struct event *e, value v)
{
    v.of_call = call_of(e) && call_of(e) != e;
    return v;
}

static value property_call(const struct event *e)
{
    const struct event *c = call_of(e);

    return mark_from_call(e, value_of(c ? PROPERTY_IS_CALL : PROPERTY_IS_UNKNOWN));
}

static value property_args(const struct event *e)
{
    const struct event *c = call_of(e);

    return mark_from_call(e, value_of(c ? PROPERTY_IS_TERMS : PROPERTY_IS_UNKNOWN));
}

value property_argument(const struct event *e, value args, unsigned n)
{
    if (args.type != PROPERTY_IS_TERMS)
        return args;
    const struct event *c = typed_of(args, e);
    if (n > c->nterms) /* the arguments were not captured */
        args.type = c->kind == ETW_CALL && n <= c->arity ? PROPERTY_IS_UNKNOWN : PROPERTY_IS_ABSENT;
    else
        args.type = PROPERTY_IS_TERM;
    args.at = args.type == PROPERTY_IS_TERM ? c->terms.at : NULL;
    while (args.at && --n)
        args.at = wire_skip(args.at);
    return args;
}

static value property_ret(const struct event *e)
{
    return value_term(e->terms.at);
}

static value property_value(const struct event *e)
{
    return property_ret(e);
}

/* Reads an exception, {Class, Reason}. Sets *reason to NULL if the reason was cut. Returns false for another term. */
static bool exception_read(const struct event *e, struct safe *class, const uint8_t **reason)
{
    static const struct safe classes[] = {SAFE("error"), SAFE("exit"), SAFE("throw")};
    const uint8_t *at;
    uint32_t arity;
    int64_t n = wire_tuple(e->terms.at, &arity, &at);

    for (size_t i = 0; n >= 1 && arity == 2 && i < ARRAY_LEN(classes); i++) {
        if (wire_is_atom(&e->env, at, classes[i].at)) {
            *class = classes[i];
            *reason = n == 2 ? wire_skip(at) : NULL;
            return true;
        }
    }
    return false;
}

static value property_class(const struct event *e)
{
    const uint8_t *reason;
    struct safe class;

    return exception_read(e, &class, &reason) ? value_text(class) : value_unknown(NULL);
}

static value property_reason(const struct event *e)
{
    const uint8_t *reason = e->terms.at;
    struct safe class;

    if (e->kind == ETW_EXCEPTION_FROM && (!exception_read(e, &class, &reason) || !reason))
        return value_unknown(e->terms.at);
    return value_term(reason);
}

static value value_duration(enum property_type type, const struct event *e)
{
    return e->dur_ns >= 0 ? value_number(type, e->dur_ns) : value_absent();
}

static value property_dur(const struct event *e)
{
    return value_duration(PROPERTY_IS_DURATION, e);
}

static value property_dur_us(const struct event *e)
{
    return value_duration(PROPERTY_IS_MICROS, e);
}

static value property_dur_ns(const struct event *e)
{
    return value_duration(PROPERTY_IS_INT, e);
}

static value property_caller(const struct event *e)
{
    const struct event *c = call_of(e);

    return mark_from_call(e, c ? value_at(PROPERTY_IS_PLACE, c->caller) : value_unknown(NULL));
}

static value property_stack(const struct event *e)
{
    const struct event *c = call_of(e);

    return mark_from_call(e, c ? value_at(PROPERTY_IS_STACK, c->stack) : value_unknown(NULL));
}

static value property_dump(const struct event *e)
{
    const struct event *c = call_of(e);

    return mark_from_call(e, c ? value_at(PROPERTY_IS_CHARS, c->dump) : value_unknown(NULL));
}

static value property_message(const struct event *e)
{
    const struct event *c = call_of(e);

    return mark_from_call(e, c ? value_at(PROPERTY_IS_TERM, c->user) : value_unknown(NULL));
}

static value property_reclaimed(const struct event *e)
{
    int64_t words;

    return info_reclaimed(e, &words) ? value_number(PROPERTY_IS_INT, words) : value_absent();
}

/* ---- messages ---- */

/* Returns the part of a sequential trace event that part() selects. */
static value value_of_token(const struct event *e, const uint8_t *(*part)(const struct seq_info *))
{
    struct seq_info s;

    return seq_info_read(e, wire_skip(e->terms.at), &s) ? value_term(part(&s)) : value_absent();
}

static const uint8_t *token_to(const struct seq_info *s)
{
    return s->prints ? NULL : s->to;
}

static const uint8_t *token_from(const struct seq_info *s)
{
    return s->from;
}

static const uint8_t *token_msg(const struct seq_info *s)
{
    return s->msg;
}

static value property_to(const struct event *e)
{
    if (e->kind == ETW_SEQ_TRACE)
        return value_of_token(e, token_to);
    return e->kind == ETW_RECEIVE ? value_of(PROPERTY_IS_PID) : value_term(e->terms.at);
}

static value property_from(const struct event *e)
{
    if (e->kind == ETW_SEQ_TRACE)
        return value_of_token(e, token_from);
    return e->kind == ETW_RECEIVE ? value_term(e->sender) : value_of(PROPERTY_IS_PID);
}

/* Returns the node of the sender. If the event has a sender but no node of it, the sender is on the event's node. */
static value property_from_node(const struct event *e)
{
    if (e->sender_node || !e->sender || !e->node->name.len)
        return value_term(e->sender_node);
    return value_name(PROPERTY_IS_ATOM, raw_of(safe_view(e->node->name)));
}

static value property_msg(const struct event *e)
{
    if (e->kind == ETW_SEQ_TRACE)
        return value_of_token(e, token_msg);
    return value_term(e->kind == ETW_RECEIVE ? e->terms.at : wire_skip(e->terms.at));
}

property_getter *const property_getters[PROPERTIES] = {
#define PROPERTY(name, type, uses, events, json, doc) property_##name,
#include "../lang/properties.def"
};
