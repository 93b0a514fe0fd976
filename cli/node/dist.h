/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speaks the distribution protocol after the handshake. Does not use libei, because lengths and terms from a node may
 * be wrong or malicious.
 *
 * A frame is a length of four bytes and that many bytes. A frame of length 0 is a tick, which dist_read() answers. A
 * frame longer than DIST_FRAME_MAX fails before memory is allocated for it. Messages that we did not ask for are
 * strays. A hundred strays, and one more each second, are ignored; any more fail the connection. A thousand ticks
 * without a message also fail it.
 *
 * Nothing here waits. Bytes that the system does not accept at once stay in `waiting`. While dist_wants_write() is
 * true, the caller calls dist_flush() whenever the descriptor is writable. The connection fails if the system accepts
 * nothing for DIST_SEND_MS.
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
    struct node_pid self, linked; /* linked.node is empty before dist_link() */
    char *data;                   /* bytes that were read but not handled: a part of a frame */
    size_t len, cap;
    unsigned strays, ticks; /* unexpected messages that count now; ticks since the last message */
    int64_t strayed;        /* when `strays` was last lowered */
    uint64_t sent;          /* upper bound of all bytes sent so far, including those in `waiting` */
    struct buf waiting;     /* bytes that the system has not accepted yet */
    int64_t stuck;          /* when the system last accepted a byte, or `waiting` began to fill */
    struct buf out;         /* the frame that is being built */
};

/*
 * dist_read() calls `message` for each message to us, and `down` when the linked process has ended. If one of them
 * returns false, dist_read() stops and fails.
 */
struct dist_handler {
    void *data;
    bool (*message)(void *data, struct etf message, struct err *e);
    bool (*down)(void *data, struct etf reason, struct err *e);
};

/* Takes ownership of the stream; dist_release() closes it. */
void dist_init(struct dist *d, const struct node_conn *conn);
void dist_release(struct dist *d);

bool dist_wants_write(const struct dist *d);
/*
 * Sends bytes of `waiting`. Returns false if the connection is lost, or if the system has accepted nothing for
 * DIST_SEND_MS.
 */
bool dist_flush(struct dist *d, struct err *e);
size_t dist_under_way(const struct dist *d); /* our bytes that the node's system has not acknowledged yet */

/*
 * Reads without waiting and handles every complete frame. Returns false if the node closed the connection, a frame is
 * malformed, or a handler returned false.
 */
bool dist_read(struct dist *d, const struct dist_handler *h, struct err *e);

/* Counts a stray. Handlers call it for unexpected messages. Returns false if there were too many strays. */
bool dist_stray(struct dist *d, struct err *e);

/* Sends `message`, one term with the version byte 131. */
bool dist_send(struct dist *d, const struct node_pid *to, struct str message, struct err *e);
/* Links us to the process; call it once for each connection. */
bool dist_link(struct dist *d, const struct node_pid *to, struct err *e);
bool dist_send_named(struct dist *d, const char *name, struct str message, struct err *e);

#endif
