/* SPDX-License-Identifier: Apache-2.0 */
/* Plans how the node counts events by the keys of a probe (nif/by.h), if the node can do so. */
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
    enum spec_kind kind; /* the kind of all counted events */
    /* For each key, its index in the clause `by`. The keys whose values come with a result are the last ones. */
    size_t key_of[SPEC_KEYS_MAX];
    size_t value_of[SPEC_AGGREGATES_MAX]; /* for each aggregate except `count`, its index in `values` */
};

/*
 * Plans how the node counts by the clause `by` of the spec. If the client must count instead, returns false and sets
 * *ret_why to the reason, a clause of a sentence.
 */
bool by_node_of(const struct spec *s, struct by_node *ret, const char **ret_why);

#endif
