/* SPDX-License-Identifier: Apache-2.0 */
#include "request_message.h"

#define STATEM_ARITY 11 /* arity of the functions around a callback of gen_statem */

/* Returns the last reference of a tag: Ref, [alias|Ref] or [[alias|Ref1]|Ref2]. Returns NULL for another term. */
static const uint8_t *tag_ref(const uint8_t *at, bool *ret_alias)
{
    if (*at == ETW_T_TEXT)
        return at[1] == ETW_TEXT_REF ? at : NULL;
    if (*at != ETW_T_LIST)
        return NULL;
    *ret_alias = true;
    for (at++; *at != ETW_T_TAIL; at = wire_skip(at))
        if (*at == ETW_T_END || *at == ETW_T_CUT)
            return NULL;
    return at[1] == ETW_T_TEXT && at[2] == ETW_TEXT_REF ? at + 1 : NULL;
}

static bool read_from(const uint8_t *at, struct request_from *ret)
{
    const uint8_t *first;
    uint32_t arity;

    *ret = (struct request_from){0};
    if (!at || wire_tuple(at, &arity, &first) != 2 || arity != 2)
        return false;
    ret->pid = first;
    ret->ref = tag_ref(wire_skip(first), &ret->alias);
    return ret->ref;
}

/* Reads {Owner, Ref, ReplyTo, Callers, {M,F,A}}, which Elixir's Task.async() sends to the process of the task. */
static void read_task(const uint8_t *first, struct request_message *m)
{
    const uint8_t *ref = wire_skip(first), *callers = wire_skip(wire_skip(ref)), *mfa = wire_skip(callers), *element;
    uint32_t arity;

    m->from = (struct request_from){.pid = first, .ref = tag_ref(ref, &m->from.alias), .alias = true};
    if ((*first == ETW_T_PID || *first == ETW_T_TEXT) && m->from.ref && *callers == ETW_T_LIST &&
        wire_tuple(mfa, &arity, &element) == 3 && arity == 3 && wire_is_atom_tag(*element)) {
        m->kind = MESSAGE_TASK;
        m->request = mfa;
    }
}

struct request_message request_message_read(const struct term_env *env, const uint8_t *at)
{
    struct request_message m = {0};
    const uint8_t *first;
    uint32_t arity;
    int64_t known = wire_tuple(at, &arity, &first);

    if (known < 0) {
        m.kind = wire_is_atom(env, at, "timeout") ? MESSAGE_TIMEOUT : MESSAGE_OTHER;
    } else if (arity == 3 && known >= 2 && wire_is_atom(env, first, "$gen_call")) {
        const uint8_t *from = wire_skip(first);
        if (read_from(from, &m.from))
            m.kind = MESSAGE_REQUEST;
        m.request = known == 3 ? wire_skip(from) : NULL;
    } else if (arity == 2 && known && (m.from.ref = tag_ref(first, &m.from.alias))) {
        m.kind = MESSAGE_REPLY;
    } else if (arity == 5 && known >= 2 && wire_is_atom(env, first, "DOWN")) {
        m.from.ref = tag_ref(wire_skip(first), &m.from.alias);
        m.kind = m.from.ref ? MESSAGE_DOWN : MESSAGE_OTHER;
    } else if (arity == 5 && known == 5) {
        read_task(first, &m);
    }
    return m;
}

struct str request_ref(const uint8_t *ref)
{
    struct str text = {(const char *)ref + 4, wire_u16(ref + 2)};
    const char *dot = memchr(text.at, '.', text.len);

    return dot ? (struct str){dot + 1, (size_t)(text.at + text.len - dot) - 1} : text;
}

/* ---- callbacks ---- */

static const struct {
    const char *inner, *outer; /* the function of the callback module, and the function of gen_server that calls it */
    enum request_work work;
} gen_server_callbacks[] = {
    {"handle_call", "try_handle_call", WORK_CALL},
    {"handle_cast", "try_handle_cast", WORK_CAST},
    {"handle_info", "try_handle_info", WORK_INFO},
    {"handle_continue", "try_handle_continue", WORK_CONTINUE},
};

/* Returns the argument with the index n, from 0, of a call; NULL: not captured. */
static const uint8_t *request_argument(const struct event *e, unsigned n)
{
    const uint8_t *at = e->terms.at;

    if (n >= e->nterms || e->flags & ETW_F_ARITY)
        return NULL;
    while (n--)
        at = wire_skip(at);
    return at;
}

/* Returns the element with the number n, from 1, of a tuple; NULL: not captured, or no tuple. */
static const uint8_t *request_element(const uint8_t *at, unsigned n)
{
    uint32_t arity;
    const uint8_t *each;
    int64_t known = at ? wire_tuple(at, &arity, &each) : -1;

    if (known < (int64_t)n)
        return NULL;
    while (--n)
        each = wire_skip(each);
    return each;
}

/* Reads the values that the probe of `etrace requests` collects: [From or anything, Module, Message]. */
static bool read_collected(const struct event *e, const uint8_t *ret[static 3])
{
    const uint8_t *at = e->user;

    if (!at || *at != ETW_T_LIST || !wire_list(&at))
        return false;
    for (unsigned i = 0; i < 3; i++)
        ret[i] = wire_list_next(&at);
    return ret[0];
}

/*
 * Reads a callback from the arguments of a function of gen_server: try_handle_call(Cache, Message, From, State) in
 * older releases of OTP, try_handle_call(Data, State, Message, From) in newer ones. Cache and Data contain the callback
 * module. The functions for other callbacks have no From. For the views of requests, the node encodes the arguments in
 * the older order.
 */
static void read_gen_server(const struct event *e, struct request_callback *c)
{
    const uint8_t *data = request_argument(e, 0), *parts[3], *second = request_element(data, 2);
    bool old = second && wire_is_atom_tag(*second);

    if (read_collected(e, parts)) {
        c->module = parts[1];
        c->message = parts[2];
        if (c->work == WORK_CALL)
            read_from(parts[0], &c->from);
        return;
    }
    c->module = old ? second : request_element(data, 5);
    c->message = request_argument(e, old ? 1 : 2);
    if (c->work == WORK_CALL)
        read_from(request_argument(e, old ? 2 : 3), &c->from);
}

/*
 * Reads gen_server2:handle_msg(Message, State). For the views of requests, the node encodes the callback module in
 * place of the state (nif/requests.c).
 */
static bool read_gen_server2(const struct event *e, struct request_callback *c)
{
    const uint8_t *message = request_argument(e, 0), *data = request_argument(e, 1), *parts[3], *first;
    struct request_message m;

    if (e->arity == 3) /* gen_server2 calls this function when a callback has ended without a reply */
        return raw_is(e->fun->name, "handle_common_reply");
    if (e->arity != 2 || !raw_is(e->fun->name, "handle_msg"))
        return false;
    c->work = WORK_INFO;
    if (read_collected(e, parts)) {
        c->module = parts[1];
        c->message = parts[2];
        c->work = read_from(parts[0], &c->from)             ? WORK_CALL
                  : wire_is_atom(&e->env, parts[0], "cast") ? WORK_CAST
                                                            : WORK_INFO;
        return true;
    }
    c->module = data && wire_is_atom_tag(*data) ? data : request_element(data, 5);
    c->message = message;
    if (!message)
        return true;
    m = request_message_read(&e->env, message);
    first = request_element(message, 1);
    if (m.kind == MESSAGE_REQUEST) {
        c->work = WORK_CALL;
        c->from = m.from;
        c->message = m.request;
    } else if (first && wire_is_atom(&e->env, first, "$gen_cast")) {
        c->work = WORK_CAST;
        c->message = request_element(message, 2);
    }
    return true;
}

static void read_type(const struct term_env *env, const uint8_t *type, struct request_callback *c)
{
    const uint8_t *call = request_element(type, 1);

    c->statem = true;
    c->work = WORK_EVENT;
    if (type && wire_is_atom(env, type, "cast"))
        c->work = WORK_CAST;
    else if (type && wire_is_atom(env, type, "info"))
        c->work = WORK_INFO;
    else if (call && wire_is_atom(env, call, "call") && read_from(request_element(type, 2), &c->from))
        c->work = WORK_CALL;
    else
        c->message = type;
}

static bool read_gen_statem(const struct event *e, struct request_callback *c)
{
    const uint8_t *event = request_argument(e, STATEM_ARITY - 1), *parts[3];

    if (e->arity != STATEM_ARITY)
        return false;
    if (raw_is(e->fun->name, "loop_state_callback_result")) {
        *c = (struct request_callback){.statem = true};
        return true;
    }
    if (!raw_is(e->fun->name, "loop_state_callback"))
        return false;
    if (read_collected(e, parts)) {
        c->module = parts[1];
        c->message = parts[2];
        read_type(&e->env, parts[0], c);
    } else {
        const uint8_t *first = request_argument(e, 0);
        /* for the views of requests, the node encodes the module as the first argument (nif/requests.c) */
        c->module = first && wire_is_atom_tag(*first) ? first : NULL;
        c->message = request_element(event, 2);
        read_type(&e->env, request_element(event, 1), c);
    }
    return true;
}

/*
 * Reads the call of a state function or of handle_event/4. Returns true for a state function only if its first argument
 * is {call, From}, because other functions may look the same.
 */
static bool read_state(const struct event *e, struct request_callback *c)
{
    bool any = e->arity == 4 && raw_is(e->fun->name, "handle_event");
    const uint8_t *type = request_argument(e, 0);

    if ((!any && e->arity != 3) || !type)
        return false;
    c->message = request_argument(e, 1);
    c->inner = c->of_function = true;
    read_type(&e->env, type, c);
    return any || c->work == WORK_CALL;
}

bool request_callback_read(const struct event *e, struct request_callback *c)
{
    *c = (struct request_callback){0};
    if (!e->fun || e->arity < 2)
        return false;
    if (e->arity == STATEM_ARITY)
        return raw_is(e->fun->module, "gen_statem") && read_gen_statem(e, c);
    if (raw_is(e->fun->module, "gen_server2"))
        return read_gen_server2(e, c);
    bool outer = raw_is(e->fun->module, "gen_server");
    /* Only gen_server:handle_common_reply has so many arguments. It runs after a callback without a reply. */
    if (e->arity > 4)
        return outer && raw_is(e->fun->name, "handle_common_reply");
    for (size_t i = 0; i < ARRAY_LEN(gen_server_callbacks); i++) {
        enum request_work work = gen_server_callbacks[i].work;
        unsigned arity = (outer ? 3u : 2u) + (work == WORK_CALL);
        const char *name = outer ? gen_server_callbacks[i].outer : gen_server_callbacks[i].inner;
        if (e->arity != arity || !raw_is(e->fun->name, name))
            continue;
        c->work = work;
        if (outer) {
            read_gen_server(e, c);
            return true;
        }
        c->inner = c->of_function = true;
        c->message = request_argument(e, 0);
        return work != WORK_CALL || read_from(request_argument(e, 1), &c->from);
    }
    return !outer && read_state(e, c);
}

bool request_replies(const struct event *e)
{
    const uint8_t *value = e->terms.at, *first;

    if (e->kind != ETW_RETURN_FROM || value == e->terms.end)
        return false;
    first = request_element(value, 1);
    if (first && wire_is_atom(&e->env, first, "ok"))
        first = request_element(request_element(value, 2), 1);
    return first && wire_is_atom(&e->env, first, "reply");
}
