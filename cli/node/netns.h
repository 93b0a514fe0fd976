/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enters the network namespace of another process, because a container has addresses and ports of its own.
 */
#ifndef ETRACE_NETNS_H
#define ETRACE_NETNS_H

#include "../ground/err.h"

/*
 * Moves the calling thread, and its new sockets, into the namespace of process `ospid` until netns_leave(*ret_back). If
 * that process is in our namespace, or its namespace is not visible, changes nothing and sets *ret_back to -1. Returns
 * false if the process is in another namespace that this user may not enter.
 */
bool netns_enter(long ospid, int *ret_back, struct err *e);
void netns_leave(int back);
/* Returns true if the process is in our network namespace, or if its namespace is not visible. */
bool netns_is_ours(long ospid);

#endif
