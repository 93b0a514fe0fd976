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
/* Call it once, when the attempt is over. true: the caller owns *ret_conn; false: only ret_conn->found is set. */
bool knock_answer(struct knock *k, struct node_conn *ret_conn, struct err *e);
/* May be called at any time; a running thread goes on by itself and closes its connection. */
void knock_free(struct knock *k);

#endif
