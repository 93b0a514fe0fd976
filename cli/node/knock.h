/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects to a node in the background: runs node_connect() on a thread of its own. Only that thread waits.
 */
#ifndef ETRACE_KNOCK_H
#define ETRACE_KNOCK_H

#include "connect.h"

struct knock;

/* Copies the target; returns NULL if no thread can start. */
struct knock *knock_start(const struct node_target *target);
int knock_fd(const struct knock *k); /* becomes readable when the attempt is over */
/*
 * Takes the result. Call it once, when the attempt is over. Returns true if the caller now owns *ret_conn. On failure
 * only ret_conn->found is set.
 */
bool knock_answer(struct knock *k, struct node_conn *ret_conn, struct err *e);
/*
 * Frees the attempt; may be called at any time. If the thread still runs, it ends by itself and closes its connection.
 */
void knock_free(struct knock *k);

#endif
