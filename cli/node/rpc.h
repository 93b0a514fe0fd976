/*
 * One function of a node called and its result: for what needs no companion (what doctor compares, what completion
 * offers). It begins as a session does, with one message to `rex`. The answer is waited for in a loop, which serves whatever else is
 * in it: never in a handler.
 */
#ifndef ETRACE_RPC_H
#define ETRACE_RPC_H

#include "../ground/buf.h"
#include "../ground/loop.h"
#include "dist.h"

struct rpc {
    struct dist dist;
    struct loop *loop; /* NULL: nothing else is to be served */
    uint32_t calls;
};

void rpc_open(struct rpc *r, const struct node_conn *conn, struct loop *loop); /* takes the descriptor over */
void rpc_close(struct rpc *r);

/*
 * `args` is a list, encoded without its 131. *ret_result is the whole result ({badrpc, _} is one, too), in memory of `keep`,
 * which is cleared first.
 */
bool rpc_call(struct rpc *r, const char *module, const char *function, struct str args, int timeout_ms, struct buf *keep,
              struct etf *ret_result, struct err *e);

#endif
