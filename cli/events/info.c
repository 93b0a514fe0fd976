/* SPDX-License-Identifier: Apache-2.0 */
#include "info.h"

const uint8_t *info_value(const struct event *e, const uint8_t *list, const char *key)
{
    const uint8_t *el, *first;
    uint32_t arity;

    if (*list != ETW_T_LIST || !wire_list(&list))
        return NULL;
    while ((el = wire_list_next(&list)))
        if (wire_tuple(el, &arity, &first) == 2 && wire_is_atom(&e->env, first, key))
            return wire_skip(first);
    return NULL;
}

bool info_number(const struct event *e, const uint8_t *list, const char *key, int64_t *ret)
{
    const uint8_t *value = info_value(e, list, key);

    return value && wire_int(value, ret);
}

bool info_reclaimed(const struct event *e, int64_t *ret)
{
    return (e->kind == ETW_GC_MINOR_END || e->kind == ETW_GC_MAJOR_END) && info_number(e, e->terms.at, "wordsize", ret);
}

bool seq_info_read(const struct event *e, const uint8_t *at, struct seq_info *ret)
{
    const uint8_t *serial, *first;
    uint32_t arity;

    if (wire_tuple(at, &arity, &at) != 5 || arity != 5 || !wire_atom(&e->env, at, &ret->what))
        return false;
    ret->receives = wire_is_atom(&e->env, at, "receive");
    ret->prints = wire_is_atom(&e->env, at, "print");
    serial = wire_skip(at);
    ret->from = wire_skip(serial);
    ret->to = wire_skip(ret->from);
    ret->msg = wire_skip(ret->to);
    return wire_tuple(serial, &arity, &first) == 2 && arity == 2 && wire_int(first, &ret->prev) &&
           wire_int(wire_skip(first), &ret->cur);
}
