/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether the node can count by the keys of a probe (nif/by.h), and what it then needs to know. */
#ifndef ETRACE_BY_NODE_H
#define ETRACE_BY_NODE_H

#include "../../nif/etrace_wire.h"
#include "spec.h"

struct by_node_part {
    uint32_t what; /* enum etw_by */
    int place;     /* enum etw_by_place, or the number of an argument */
    uint32_t deep;
    int path[ETW_BY_DEEP];
};

struct by_node {
    struct by_node_part keys[SPEC_KEYS_MAX], values[ETW_BY_VALUES];
    size_t nkeys, nvalues;
    enum spec_kind kind;          /* the kind of all counted events */
    size_t key_of[SPEC_KEYS_MAX]; /* index of the key in the clause `by`; keys that come with a result are last */
    size_t value_of[SPEC_AGGREGATES_MAX]; /* index in `values` for each aggregate; unused for `count` */
};

/*
 * Plans how the node counts by the clause `by` of the spec. Returns false if the client must count; *ret_why is then a
 * clause with the reason.
 */
bool by_node_of(const struct spec *s, struct by_node *ret, const char **ret_why);

#endif
