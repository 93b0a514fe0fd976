/*
 * The network of another process: that of a container is not ours, and the same port there is another one here.
 */
#ifndef ETRACE_NETNS_H
#define ETRACE_NETNS_H

#include "../ground/err.h"

/*
 * From here on the calling thread's new sockets are in the network of that process, until netns_leave(). *ret_back is for
 * that; -1: it is ours, or cannot be told. false with err: it is another one, and may not be entered.
 */
bool netns_enter(long ospid, int *ret_back, struct err *e);
void netns_leave(int back);

#endif
