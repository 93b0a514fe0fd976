/* SPDX-License-Identifier: Apache-2.0 */
#include "exit_reason.h"

#include "../erlang/wire_order.h"
#include "../ground/table.h"

struct exit_reason exit_reason_of(const struct term_env *env, const uint8_t *at)
{
    struct exit_reason r = {
        .normal_atom = wire_is_atom(env, at, "normal"),
        .kill = wire_is_atom(env, at, "kill"),
        .killed = wire_is_atom(env, at, "killed"),
        .elsewhere = wire_is_atom(env, at, "noproc") || wire_is_atom(env, at, "noconnection"),
    };
    struct buf bytes = {0};

    wire_normal(&bytes, env, at);
    r.hash = hash_text(HASH_BEGIN, buf_view(&bytes));
    r.len = (uint8_t)MIN(bytes.len, sizeof(r.head));
    memcpy(r.head, bytes.data, r.len);
    buf_release(&bytes);
    return r;
}

bool exit_reason_same(const struct exit_reason *a, const struct exit_reason *b)
{
    return a->hash == b->hash && a->len == b->len && !memcmp(a->head, b->head, a->len);
}

bool exit_reason_by_signal(const struct exit_reason *sent, const struct exit_reason *died)
{
    return sent->kill ? died->killed : exit_reason_same(sent, died);
}

/* Returns the first element of a pair. NULL: the term is no pair, or its second element was cut. */
static const uint8_t *first_of_pair(const uint8_t *at)
{
    uint32_t arity;
    const uint8_t *first;

    return wire_tuple(at, &arity, &first) == 2 && arity == 2 ? first : NULL;
}

/*
 * Returns true for {Ref, return | throw | exit | error, …}. A process of erpc ends with such a reason, however the call
 * ended.
 */
static bool is_answer(const struct term_env *env, const uint8_t *at)
{
    static const char *const kinds[] = {"return", "throw", "exit", "error"};
    uint32_t arity;
    const uint8_t *first;

    if (wire_tuple(at, &arity, &first) < 2 || wire_class(first) != WIRE_REF)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (wire_is_atom(env, wire_skip(first), kinds[i]))
            return true;
    return false;
}

bool exit_reason_is_normal(const struct term_env *env, const uint8_t *at)
{
    uint32_t arity;
    const uint8_t *first;

    if (wire_is_atom(env, at, "normal") || wire_is_atom(env, at, "shutdown"))
        return true;
    if (wire_tuple(at, &arity, &first) >= 1 && arity == 2 && wire_is_atom(env, first, "shutdown"))
        return true;
    return is_answer(env, at);
}

bool exit_reason_error(const struct term_env *env, const uint8_t *at, const uint8_t **ret_what,
                       const uint8_t **ret_frames)
{
    const uint8_t *what = first_of_pair(at), *list, *frame, *module;
    uint32_t arity;
    struct raw name;

    if (!what)
        return false;
    *ret_what = what;
    *ret_frames = list = wire_skip(what);
    return *list == ETW_T_LIST && wire_list(&list) && (frame = wire_list_next(&list)) &&
           wire_tuple(frame, &arity, &module) >= 2 && arity == 4 && wire_atom(env, module, &name) &&
           wire_atom(env, wire_skip(module), &name);
}

bool exit_reason_call(const struct term_env *env, const uint8_t *at, const uint8_t **ret_what)
{
    const uint8_t *what = first_of_pair(at), *module;
    uint32_t arity;
    struct raw name;

    *ret_what = what;
    return what && wire_tuple(wire_skip(what), &arity, &module) >= 2 && arity == 3 && wire_atom(env, module, &name) &&
           wire_atom(env, wire_skip(module), &name);
}
