/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the info terms of the VM: the property lists of garbage collections, and the tuples of sequential traces. */
#ifndef ETRACE_INFO_H
#define ETRACE_INFO_H

#include "event.h"

/* Returns the value of a key in a property list; NULL: none. */
const uint8_t *info_value(const struct event *e, const uint8_t *list, const char *key);
/* Finds the integer value of a key in a property list. Returns false if there is none. */
bool info_number(const struct event *e, const uint8_t *list, const char *key, int64_t *ret);

/* Reads the number of words that a garbage collection reclaimed. Returns false if the number is unknown. */
bool info_reclaimed(const struct event *e, int64_t *ret);

/* The tuple {What, {Prev, Cur}, From, To, Message} of a sequential trace. */
struct seq_info {
    struct raw what;
    int64_t prev, cur;
    const uint8_t *from, *to, *msg;
    bool receives, prints;
};

bool seq_info_read(const struct event *e, const uint8_t *at, struct seq_info *ret);

#endif
