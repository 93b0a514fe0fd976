/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls one function on a node and waits for its result, without a companion. doctor and completion use it.
 *
 * Each call is one message to `rex`. While rpc_call() waits, it steps the loop, which serves everything else in the
 * loop. Never call it from a handler of the loop.
 */
#ifndef ETRACE_RPC_H
#define ETRACE_RPC_H

#include "../ground/buf.h"
#include "../ground/loop.h"
#include "dist.h"

struct rpc {
    struct dist dist;
    struct loop *loop; /* the loop to step while a call waits; NULL: serve nothing else */
    uint32_t calls;
};

void rpc_open(struct rpc *r, const struct node_conn *conn, struct loop *loop); /* takes ownership of the stream */
void rpc_close(struct rpc *r);

/*
 * Calls a function. `args` is an encoded list without the version byte 131. *ret_result is the result, which may be
 * {badrpc, _}. It points into the memory of `keep`, whose earlier content rpc_call() clears.
 */
bool rpc_call(struct rpc *r, const char *module, const char *function, struct str args, int timeout_ms,
              struct buf *keep, struct etf *ret_result, struct err *e);

#endif
