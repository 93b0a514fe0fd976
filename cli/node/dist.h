/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speaks the distribution protocol after the handshake. It does not use libei, because no length and no term of a node
 * is trusted.
 *
 * A frame is a length of four bytes and that many bytes. Length 0 is a tick, which is answered. A frame that is longer
 * than DIST_FRAME_MAX fails before memory is allocated for it. Messages that we did not ask for are strays: up to a
 * hundred, and one more each second, are ignored; any more fail the connection. A thousand ticks without a message fail
 * it, too.
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
    unsigned strays, ticks; /* ticks: since the last message */
    int64_t strayed;        /* when `strays` was last lowered */
    uint64_t sent;          /* upper bound of the bytes written to the wire, with those in `waiting` */
    struct buf waiting;     /* bytes that the system has not accepted yet */
    int64_t stuck;          /* when the system last accepted a byte of `waiting` */
    struct buf out;         /* the frame that is being built */
};

/*
 * `message` is called for each message to us, `down` when the linked process has ended. A handler that returns false
 * stops reading.
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
/* Returns false if the connection is lost, or was full for DIST_SEND_MS. */
bool dist_flush(struct dist *d, struct err *e);
size_t dist_under_way(const struct dist *d); /* bytes that the node's system has not acknowledged yet */

/*
 * Reads without waiting and handles every complete frame. Returns false if the node closed the connection, a frame is
 * malformed, or a handler returned false.
 */
bool dist_read(struct dist *d, const struct dist_handler *h, struct err *e);

/* Counts a stray; handlers call it. Returns false if there were too many. */
bool dist_stray(struct dist *d, struct err *e);

/* Sends `message`, one term with the version byte 131. */
bool dist_send(struct dist *d, const struct node_pid *to, struct str message, struct err *e);
bool dist_link(struct dist *d, const struct node_pid *to, struct err *e); /* call it once for each connection */
bool dist_send_named(struct dist *d, const char *name, struct str message, struct err *e);

#endif
