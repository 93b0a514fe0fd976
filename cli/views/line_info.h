/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short text for the info terms of the VM: the property lists of collections, heaps and time slices, and the tuples of
 * sequential traces. Prints any other term unchanged.
 */
#ifndef ETRACE_LINE_INFO_H
#define ETRACE_LINE_INFO_H

#include "line.h"

/* The words that this collection reclaimed. False: unknown. */
bool info_reclaimed(const struct event *e, int64_t *ret);

/* Formats the info of a collection or a system event. */
void info_line(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at);

/* {What, {Prev, Cur}, From, To, Message} */
struct seq_info {
    struct raw what;
    int64_t prev, cur;
    const uint8_t *from, *to, *msg;
    bool receives, prints;
};

bool seq_info_read(const struct event *e, const uint8_t *at, struct seq_info *ret);

#endif
