/*
 * The distribution protocol behind the handshake: framing of our own, so that no length and no term of a node is trusted.
 *
 * A frame is four bytes of length and so much; length 0 is a tick and is answered. What we take is bounded by
 * DIST_FRAME_MAX, before any memory is taken for it. Control messages that we did not ask for are ignored, a hundred of
 * them; then the node is at fault. dist_read() never waits; dist_send() waits DIST_SEND_MS at most.
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
    struct node_pid self;
    char *data; /* what was read and is not yet taken */
    size_t len, cap;
    unsigned strays;
    bool writing; /* it waits for room: nothing may be sent now */
    struct buf out;
};

/* Called for each message to us, and when the process that we are linked to has ended. Return false, with err, to stop the reading. */
struct dist_handler {
    void *data;
    bool (*message)(void *data, struct etf message, struct err *e);
    bool (*down)(void *data, struct etf reason, struct err *e);
};

/* Takes the stream over. */
void dist_init(struct dist *d, const struct node_conn *conn);
void dist_release(struct dist *d);

/* Reads what is there and handles every frame that is whole. false with err: closed, broken, or a handler said so. */
bool dist_read(struct dist *d, const struct dist_handler *h, struct err *e);

/* `message` has its 131. */
bool dist_send(struct dist *d, const struct node_pid *to, struct str message, struct err *e);
bool dist_link(struct dist *d, const struct node_pid *to, struct err *e); /* to one process, once */
bool dist_send_named(struct dist *d, const char *name, struct str message, struct err *e);

#endif
