/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects to a node in the background: runs node_connect() on a thread of its own. Only that thread waits.
 */
#ifndef ETRACE_KNOCK_H
#define ETRACE_KNOCK_H

#include "connect.h"

struct knock;

struct knock *knock_start(const struct node_target *target); /* copies the target; NULL: cannot start a thread */
int knock_fd(const struct knock *k);                         /* becomes readable when the attempt is over */
/*
 * Takes the result; called once, when the attempt is over. Returns true if the caller now owns *ret_conn. Otherwise
 * only ret_conn->found is set.
 */
bool knock_answer(struct knock *k, struct node_conn *ret_conn, struct err *e);
/* Frees the attempt, at any time. A running thread goes on by itself and closes its connection. */
void knock_free(struct knock *k);

#endif
