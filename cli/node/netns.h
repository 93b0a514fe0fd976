/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enters the network namespace of another process, because a container has addresses and ports of its own.
 */
#ifndef ETRACE_NETNS_H
#define ETRACE_NETNS_H

#include "../ground/err.h"

/*
 * Moves the calling thread, and its new sockets, into the namespace of process `ospid` until netns_leave(*ret_back).
 * *ret_back is -1 if that process is in our namespace, or if its namespace is not visible; then nothing changes. false:
 * it is in another namespace, which this user may not enter.
 */
bool netns_enter(long ospid, int *ret_back, struct err *e);
void netns_leave(int back);
bool netns_is_ours(long ospid); /* also true if its namespace is not visible */

#endif
