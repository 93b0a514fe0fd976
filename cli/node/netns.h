/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enters the network namespace of another process, because a container has addresses and ports of its own.
 */
#ifndef ETRACE_NETNS_H
#define ETRACE_NETNS_H

#include "../ground/err.h"

/*
 * Moves the calling thread, and the sockets that it makes, into the network namespace of process `ospid` until
 * netns_leave(*ret_back). Changes nothing and sets *ret_back to -1 if the process is in our namespace, or if /proc
 * hides the namespace of the process. Returns false if the process is in another namespace that this user may not
 * enter.
 */
bool netns_enter(long ospid, int *ret_back, struct err *e);
void netns_leave(int back);
/* Returns true if the process is in our network namespace, or if /proc hides its namespace. */
bool netns_is_ours(long ospid);

#endif
