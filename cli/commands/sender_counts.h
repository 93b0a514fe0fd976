/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the messages to a process by sender, for the traces of `etrace why` and `etrace check --for`. */
#ifndef ETRACE_SENDER_COUNTS_H
#define ETRACE_SENDER_COUNTS_H

#include "look.h"

#define SENDERS_MOST 100
/* The expression of these traces. `timeout` is not a message: it stands for the timeout of a receive. */
#define SENDERS_PROBE "recv(M) when M =/= timeout"

struct sender_count {
    struct look_process process; /* its pid is empty if the sender is no process of the node: then `name` says what */
    /* count: messages of this sender, and up to `error` messages of senders whose place it has taken */
    uint64_t count, error;
};

struct sender_counts {
    struct sender_count items[SENDERS_MOST];
    size_t n;
    bool lossy; /* there were more senders than items */
};

/*
 * Counts a message. If there is no room for a new sender, the new one takes the place and the count of the sender with
 * the fewest messages (the algorithm Space-Saving). So a sender without an item has sent at most 1/SENDERS_MOST of the
 * messages.
 */
void sender_counts_add(struct sender_counts *s, const struct look_process *sender);
void sender_counts_sort(struct sender_counts *s);                                    /* the most frequent first */
void sender_counts_name(struct sender_counts *s, const struct look_process *sender); /* completes a sender's names */

#endif
