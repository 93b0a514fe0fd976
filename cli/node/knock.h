/*
 * Trying to connect to a node without waiting for it: node_connect() in a thread of its own.
 */
#ifndef ETRACE_KNOCK_H
#define ETRACE_KNOCK_H

#include "connect.h"

struct knock;

struct knock *knock_start(const struct node_target *target); /* copied; NULL: no thread can be started now */
int knock_fd(const struct knock *k);                         /* readable once it is over */
/* Once, when it is over: true: ret_conn is the caller's; false: only ret_conn->found means something. */
bool knock_answer(struct knock *k, struct node_conn *ret_conn, struct err *e);
void knock_free(struct knock *k); /* at any time; what is still at work is left behind, and closes what it gets */

#endif
