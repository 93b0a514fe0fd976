/* SPDX-License-Identifier: Apache-2.0 */
#include "requests.h"

#include "etrace_wire.h"
#include "frame.h"
#include "spell.h"

#define STATEM_ARITY 11 /* the arity of gen_statem:loop_state_callback */
#define SHORT_BYTES 64
#define SHAPE_BYTES 512   /* all items of a shape (a request without its data) begin within this number of bytes */
#define SHAPE_DEPTH 3     /* nested tuples of a shape; the client prints no more */
#define SHAPE_ELEMENTS 10 /* elements of a tuple in a shape */

static ERL_NIF_TERM atom_gen_call, atom_alias, atom_down, atom_timeout, atom_call, atom_struct;
static ERL_NIF_TERM atom_gen_cast, atom_gen_server2, atom_handle_msg;
static ERL_NIF_TERM atom_gen_server, atom_gen_statem, atom_state_callback;
static ERL_NIF_TERM callbacks[4]; /* try_handle_call and similar names; only try_handle_call has the argument From */
static bool shapes, hashes, sent;

void requests_load(ErlNifEnv *env)
{
    static const char *const names[] = {"try_handle_call", "try_handle_cast", "try_handle_info", "try_handle_continue"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        callbacks[i] = enif_make_atom(env, names[i]);
    atom_gen_call = enif_make_atom(env, "$gen_call");
    atom_alias = enif_make_atom(env, "alias");
    atom_down = enif_make_atom(env, "DOWN");
    atom_timeout = enif_make_atom(env, "timeout");
    atom_call = enif_make_atom(env, "call");
    atom_struct = enif_make_atom(env, "__struct__");
    atom_gen_cast = enif_make_atom(env, "$gen_cast");
    atom_gen_server2 = enif_make_atom(env, "gen_server2");
    atom_handle_msg = enif_make_atom(env, "handle_msg");
    atom_gen_server = enif_make_atom(env, "gen_server");
    atom_gen_statem = enif_make_atom(env, "gen_statem");
    atom_state_callback = enif_make_atom(env, "loop_state_callback");
}

void requests_set(uint32_t flags)
{
    shapes = flags & ETW_REQUESTS_SHAPES;
    hashes = flags & ETW_REQUESTS_HASHES;
    sent = flags & ETW_REQUESTS_SENT;
}

bool requests_are_sent(void)
{
    return sent;
}

uint64_t requests_key(ERL_NIF_TERM ref)
{
    uint64_t hash = enif_hash(ERL_NIF_INTERNAL_HASH, ref, 0);
    return hash ? hash : 1;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* Reads Ref, [alias | Ref] or [[alias | Ref1] | Ref]. */
static bool read_tag(ErlNifEnv *env, ERL_NIF_TERM tag, struct requests_read *ret)
{
    ERL_NIF_TERM head, tail, inner, ref;
    if (!enif_get_list_cell(env, tag, &head, &tail)) {
        ret->ref = tag;
        return enif_is_ref(env, tag);
    }
    if (head != atom_alias && !(enif_get_list_cell(env, head, &inner, &ref) && inner == atom_alias))
        return false;
    ret->ref = tail;
    ret->alias = true;
    return enif_is_ref(env, tail);
}

static bool read_from(ErlNifEnv *env, ERL_NIF_TERM from, struct requests_read *ret)
{
    const ERL_NIF_TERM *parts;
    int n;
    if (!enif_get_tuple(env, from, &n, &parts) || n != 2)
        return false;
    ret->pid = parts[0];
    return read_tag(env, parts[1], ret);
}

struct requests_read requests_read(ErlNifEnv *env, ERL_NIF_TERM message)
{
    struct requests_read r = {.message = REQUESTS_OTHER};
    int n;
    if (!enif_get_tuple(env, message, &n, &r.elements)) {
        r.message = message == atom_timeout ? REQUESTS_TIMEOUT : REQUESTS_OTHER;
    } else if (n == 2) {
        if (read_tag(env, r.elements[0], &r))
            r.message = REQUESTS_REPLY;
    } else if (n == 3) {
        if (r.elements[0] == atom_gen_call && read_from(env, r.elements[1], &r))
            r.message = REQUESTS_CALL;
    } else if (n == 5 && enif_is_ref(env, r.elements[1])) {
        r.ref = r.elements[1];
        if (r.elements[0] == atom_down)
            r.message = REQUESTS_DOWN;
        else if (enif_is_pid(env, r.elements[0]))
            r.message = REQUESTS_TASK;
    }
    return r;
}

/* ---- terms ------------------------------------------------------------------------------------------------------- */

static uint8_t *put_tuple(uint8_t *at, unsigned arity)
{
    return put8(at, ETW_T_TUPLE0 + arity);
}

static uint8_t *put_elided(uint8_t *at, unsigned many)
{
    while (many--)
        at = put8(at, ETW_T_ELIDED);
    return at;
}

/* Encodes an atom or a pid. */
static uint8_t *put_short(struct encoder *e, uint8_t *at, ERL_NIF_TERM t)
{
    return encode_term(e, at, SHORT_BYTES, t);
}

/*
 * Encodes a reference. If `hashes` is set, writes a hash of it in the form of a reference, which takes a tenth of the
 * time of the real text. The client can then pair only events of one node, because another node writes the same
 * reference differently.
 */
static uint8_t *put_ref(struct encoder *e, uint8_t *at, ERL_NIF_TERM ref)
{
    static const char digits[] = "0123456789abcdef";
    static const char before[] = "#Ref<0.";
    if (!hashes)
        return spell_term(e, at, at + ENCODE_OVERRUN, ETW_TEXT_REF, ref);
    uint64_t hash = enif_hash(ERL_NIF_INTERNAL_HASH, ref, 0);
    at = put16(put8(put8(at, ETW_T_TEXT), ETW_TEXT_REF), sizeof before - 1 + 16 + 1);
    __builtin_memcpy(at, before, sizeof before - 1);
    at += sizeof before - 1;
    for (unsigned i = 0; i < 16; i++, hash <<= 4)
        at = put8(at, (uint8_t)digits[hash >> 60]);
    return put8(at, '>');
}

static uint8_t *put_tag(struct encoder *e, uint8_t *at, const struct requests_read *r)
{
    if (r->alias)
        at = put8(put_short(e, put8(at, ETW_T_LIST), atom_alias), ETW_T_TAIL);
    return put_ref(e, at, r->ref);
}

static uint8_t *put_from(struct encoder *e, uint8_t *at, const struct requests_read *r)
{
    return put_tag(e, put_short(e, put_tuple(at, 2), r->pid), r);
}

static uint8_t *put_shape(struct encoder *e, uint8_t *at, const uint8_t *end, ERL_NIF_TERM t, unsigned depth,
                          bool is_tag)
{
    const ERL_NIF_TERM *elements;
    ERL_NIF_TERM module;
    int n;
    if (at >= end)
        return put8(at, ETW_T_ELIDED);
    if (is_tag && enif_is_atom(e->env, t))
        return put_short(e, at, t);
    if (imm_known && imm_is_value(t))
        return put8(at, ETW_T_ELIDED);
    if (depth < SHAPE_DEPTH && enif_get_tuple(e->env, t, &n, &elements)) {
        at = n < 32 ? put_tuple(at, (unsigned)n) : put32(put8(at, ETW_T_TUPLE), (unsigned)n);
        for (int i = 0; i < n && i < SHAPE_ELEMENTS; i++)
            at = put_shape(e, at, end, elements[i], depth + 1, i == 0);
        return n > SHAPE_ELEMENTS ? put8(at, ETW_T_CUT) : at;
    }
    if (!enif_get_map_value(e->env, t, atom_struct, &module) || !enif_is_atom(e->env, module))
        return put8(at, ETW_T_ELIDED);
    return put_short(e, put_short(e, put32(put8(at, ETW_T_MAP), 1), atom_struct), module);
}

static uint8_t *put_request(struct encoder *e, uint8_t *at, ERL_NIF_TERM request)
{
    uint32_t bytes = e->limits.bytes;
    if (!shapes)
        return encode_term(e, at, bytes, request);
    return put_shape(e, at, at + (bytes < SHAPE_BYTES ? bytes : SHAPE_BYTES), request, 0, true);
}

/*
 * Puts the message of a task, {Owner, Ref, ReplyTo, Callers, {M, F, A}}. The client recognises this message by the
 * types of its elements, so Callers becomes an empty list.
 */
static uint8_t *put_task(struct encoder *e, uint8_t *at, const struct requests_read *r)
{
    at = put_elided(put_ref(e, put_short(e, put_tuple(at, 5), r->elements[0]), r->ref), 1);
    return encode_term(e, put8(put8(at, ETW_T_LIST), ETW_T_END), e->limits.bytes, r->elements[4]);
}

uint8_t *requests_put(struct encoder *e, uint8_t *at, const struct requests_read *r)
{
    switch (r->message) {
    case REQUESTS_CALL:
        return put_request(e, put_from(e, put_short(e, put_tuple(at, 3), atom_gen_call), r), r->elements[2]);
    case REQUESTS_TASK:
        return put_task(e, at, r);
    case REQUESTS_REPLY:
        return put_elided(put_tag(e, put_tuple(at, 2), r), 1);
    case REQUESTS_DOWN:
        return put_elided(put_ref(e, put_short(e, put_tuple(at, 5), atom_down), r->ref), 3);
    case REQUESTS_TIMEOUT:
        return put_short(e, at, atom_timeout);
    case REQUESTS_OTHER:
        break;
    }
    return put8(at, ETW_T_ELIDED);
}

/* ---- callbacks --------------------------------------------------------------------------------------------------- */

/*
 * Puts the arguments of a function that calls a callback of gen_server. Up to OTP 28 they are (Cache, Message, From,
 * State), and the second element of Cache is the module. In later releases they are (Data, State, Message, From), and
 * the fifth element of Data is the module. Only handle_call has From.
 */
static uint8_t *put_callback(struct encoder *e, uint8_t *at, const ERL_NIF_TERM *args, bool is_call)
{
    const ERL_NIF_TERM *data;
    struct requests_read from = {.message = REQUESTS_CALL};
    int n;
    if (!enif_get_tuple(e->env, args[0], &n, &data) || n < 2)
        return put_elided(at, is_call ? 4 : 3);
    bool old = enif_is_atom(e->env, data[1]);
    ERL_NIF_TERM module = old ? data[1] : n >= 5 ? data[4] : 0;
    at = put_elided(put_tuple(at, 2), 1);
    at = enif_is_atom(e->env, module) ? put_short(e, at, module) : put8(at, ETW_T_ELIDED);
    at = put_request(e, at, args[old ? 1 : 2]);
    if (is_call)
        at = read_from(e->env, args[old ? 2 : 3], &from) ? put_from(e, at, &from) : put8(at, ETW_T_ELIDED);
    return put8(at, ETW_T_ELIDED);
}

/* Puts the arguments of gen_server2:handle_msg(Message, State), with the module in place of the state. */
static uint8_t *put_handle_msg(struct encoder *e, uint8_t *at, const ERL_NIF_TERM *args)
{
    const ERL_NIF_TERM *state;
    struct requests_read r = requests_read(e->env, args[0]);
    int n;
    if (r.message == REQUESTS_CALL)
        at = requests_put(e, at, &r);
    else if (enif_get_tuple(e->env, args[0], &n, &r.elements) && n == 2 && r.elements[0] == atom_gen_cast)
        at = put_request(e, put_short(e, put_tuple(at, 2), atom_gen_cast), r.elements[1]);
    else
        at = put_request(e, at, args[0]);
    bool known = enif_get_tuple(e->env, args[1], &n, &state) && n >= 5 && enif_is_atom(e->env, state[4]);
    return known ? put_short(e, at, state[4]) : put8(at, ETW_T_ELIDED);
}

/*
 * Returns the module of a state machine: the first element of the list that is the fifth element of its parameters.
 * Returns 0 if there is none.
 */
static ERL_NIF_TERM module_of(ErlNifEnv *env, ERL_NIF_TERM parameters)
{
    const ERL_NIF_TERM *parts;
    ERL_NIF_TERM module, others;
    int n;
    return enif_get_tuple(env, parameters, &n, &parts) && n >= 5 &&
                   enif_get_list_cell(env, parts[4], &module, &others) && enif_is_atom(env, module)
               ? module
               : 0;
}

/* Puts {call, From}, or the type of another event. */
static uint8_t *put_type(struct encoder *e, uint8_t *at, ERL_NIF_TERM type)
{
    const ERL_NIF_TERM *parts;
    struct requests_read from = {.message = REQUESTS_CALL};
    int n;
    if (enif_get_tuple(e->env, type, &n, &parts) && n == 2 && parts[0] == atom_call &&
        read_from(e->env, parts[1], &from))
        return put_from(e, put_short(e, put_tuple(at, 2), atom_call), &from);
    return put_shape(e, at, at + SHORT_BYTES, type, 0, true);
}

/* Puts the module, nine arguments that no view reads, and {Type, Message}. */
static uint8_t *put_state_callback(struct encoder *e, uint8_t *at, const ERL_NIF_TERM *args)
{
    const ERL_NIF_TERM *event;
    int n;
    ERL_NIF_TERM module = module_of(e->env, args[0]);
    at = put_elided(module ? put_short(e, at, module) : put8(at, ETW_T_ELIDED), STATEM_ARITY - 2);
    if (!enif_get_tuple(e->env, args[STATEM_ARITY - 1], &n, &event) || n != 2)
        return put8(at, ETW_T_ELIDED);
    return put_request(e, put_type(e, put_tuple(at, 2), event[0]), event[1]);
}

uint8_t *requests_put_call(struct encoder *e, uint8_t *at, struct encode_function f, const ERL_NIF_TERM *args)
{
    if (f.module == atom_gen_server)
        for (unsigned i = 0; i < sizeof callbacks / sizeof *callbacks; i++)
            if (f.name == callbacks[i] && f.arity == (i ? 3 : 4))
                return put_callback(e, encode_function_fields(e, at, f.module, f.name, f.arity), args, i == 0);
    if (f.module == atom_gen_server2 && f.name == atom_handle_msg && f.arity == 2)
        return put_handle_msg(e, encode_function_fields(e, at, f.module, f.name, f.arity), args);
    if (f.module == atom_gen_statem && f.name == atom_state_callback && f.arity == STATEM_ARITY)
        return put_state_callback(e, encode_function_fields(e, at, f.module, f.name, f.arity), args);
    f.arity |= ENCODE_BARE;
    return encode_call(e, at, f, args);
}

/* ---- the request of a callback ----------------------------------------------------------------------------------- */

/* Reads From of gen_server:try_handle_call/4, in the forms that put_callback() describes. */
static bool read_gen_server(ErlNifEnv *env, const ERL_NIF_TERM *args, struct requests_read *ret)
{
    const ERL_NIF_TERM *data;
    int n;
    return enif_get_tuple(env, args[0], &n, &data) && n >= 2 &&
           read_from(env, args[enif_is_atom(env, data[1]) ? 2 : 3], ret);
}

static bool read_gen_statem(ErlNifEnv *env, const ERL_NIF_TERM *args, struct requests_read *ret)
{
    const ERL_NIF_TERM *event, *type;
    int n;
    return enif_get_tuple(env, args[STATEM_ARITY - 1], &n, &event) && n == 2 &&
           enif_get_tuple(env, event[0], &n, &type) && n == 2 && type[0] == atom_call && read_from(env, type[1], ret);
}

static bool get_args(ErlNifEnv *env, ERL_NIF_TERM list, ERL_NIF_TERM *ret, unsigned many)
{
    while (many && enif_get_list_cell(env, list, ret++, &list))
        many--;
    return !many;
}

ERL_NIF_TERM requests_of_call(ErlNifEnv *env, ERL_NIF_TERM call)
{
    struct requests_read from = {.message = REQUESTS_OTHER};
    const ERL_NIF_TERM *mfa;
    ERL_NIF_TERM args[STATEM_ARITY];
    unsigned arity;
    int n;
    bool found = false;
    if (!enif_get_tuple(env, call, &n, &mfa) || n != 3 || !enif_get_list_length(env, mfa[2], &arity) ||
        arity > STATEM_ARITY || !get_args(env, mfa[2], args, arity))
        return 0;
    if (mfa[0] == atom_gen_server && mfa[1] == callbacks[0] && arity == 4) {
        found = read_gen_server(env, args, &from);
    } else if (mfa[0] == atom_gen_server2 && mfa[1] == atom_handle_msg && arity == 2) {
        from = requests_read(env, args[0]);
        found = from.message == REQUESTS_CALL;
    } else if (mfa[0] == atom_gen_statem && mfa[1] == atom_state_callback && arity == STATEM_ARITY) {
        found = read_gen_statem(env, args, &from);
    }
    return found ? from.ref : 0;
}
