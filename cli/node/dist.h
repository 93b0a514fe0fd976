/*
 * The distribution protocol behind the handshake: framing of our own, so that no length and no term of a node is trusted.
 *
 * A frame is four bytes of length and so much; length 0 is a tick and is answered. What we take is bounded by
 * DIST_FRAME_MAX, before any memory is taken for it. Messages that we did not ask for are strays: a hundred of them, and
 * one more each second, are ignored; then the node is at fault. So is a node that sends a thousand ticks and nothing else.
 * Nothing here waits: what the system does not take at once stays here until dist_flush(), which is due when the descriptor can be
 * written to, for as long as dist_wants_write(). A node that takes nothing for DIST_SEND_MS is at fault.
 */
#ifndef ETRACE_DIST_H
#define ETRACE_DIST_H

#include "../../nif/etrace_wire.h"
#include "../erlang/etf.h"
#include "../ground/buf.h"
#include "connect.h"

#define DIST_FRAME_MAX (ETW_MAX_BATCH + 4096)
#define DIST_SEND_MS 2000

struct dist {
    struct stream stream;
    struct node_pid self, linked;
    char *data; /* what was read and is not yet taken */
    size_t len, cap;
    unsigned strays, ticks; /* ticks since the last message */
    int64_t strayed;        /* when the number of strays was last lowered */
    uint64_t sent;          /* bytes for the wire, at most */
    struct buf waiting;     /* what the system has not taken yet */
    int64_t stuck;          /* since when it takes nothing of that */
    struct buf out;
};

/* Called for each message to us, and when the process of dist_link() has ended. Return false, with err, to stop the reading. */
struct dist_handler {
    void *data;
    bool (*message)(void *data, struct etf message, struct err *e);
    bool (*down)(void *data, struct etf reason, struct err *e);
};

/* Takes the stream over. */
void dist_init(struct dist *d, const struct node_conn *conn);
void dist_release(struct dist *d);

bool dist_wants_write(const struct dist *d);
bool dist_flush(struct dist *d, struct err *e); /* false: the connection is lost, or has been full for too long */
size_t dist_under_way(const struct dist *d);    /* bytes that the node's system does not have yet */

/* Reads what is there and handles every frame that is whole. false with err: closed, broken, or a handler said so. */
bool dist_read(struct dist *d, const struct dist_handler *h, struct err *e);

/* For handlers: counts a message that nobody asked for. false with err: there were too many. */
bool dist_stray(struct dist *d, struct err *e);

/* `message` has its 131. */
bool dist_send(struct dist *d, const struct node_pid *to, struct str message, struct err *e);
bool dist_link(struct dist *d, const struct node_pid *to, struct err *e); /* to one process, once */
bool dist_send_named(struct dist *d, const char *name, struct str message, struct err *e);

#endif
