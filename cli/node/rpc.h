/*
 * One function of a node called and its result: for what needs no companion (what doctor compares, what completion
 * offers). Blocks, up to a deadline. It begins as a session does, with one message to `rex`.
 */
#ifndef ETRACE_RPC_H
#define ETRACE_RPC_H

#include "../ground/buf.h"
#include "dist.h"

struct rpc {
    struct dist dist;
    uint32_t calls;
};

void rpc_open(struct rpc *r, const struct node_conn *conn); /* takes the descriptor over */
void rpc_close(struct rpc *r);

/*
 * `args` is a list, encoded without its 131. *ret_result is the whole result ({badrpc, _} is one, too), in memory of `keep`,
 * which is cleared first.
 */
bool rpc_call(struct rpc *r, const char *module, const char *function, struct str args, int timeout_ms, struct buf *keep,
              struct etf *ret_result, struct err *e);

#endif
