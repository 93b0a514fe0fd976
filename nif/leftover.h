/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the node ends, sends the client the batches that it does not have yet. `erl -eval 'f(), halt().'` can end within
 * a millisecond, and a node that halts runs no process any more, so the owner cannot send anything.
 *
 * The client is on the same host and listens on a socket. The VM calls leftover_send() when it halts; the owner calls
 * it when the connection has ended, because init:stop/0 closes the distribution before it halts. A batch on its way may
 * be lost with the connection, so batches that the client has not acknowledged are sent again. The last one is marked.
 * If the VM is killed, crashes or halts without flushing, the client gets nothing. A client that does not read, or
 * reads slowly, delays the end of the node by ten seconds at most.
 */
#ifndef ETRACE_LEFTOVER_H
#define ETRACE_LEFTOVER_H

#include "batch.h"

/* Which notice of the flight recorder (tracer_ring.hrl) comes first.
 * NONE: an earlier batch has it, or the rings do not overwrite. */
enum leftover_notice { LEFTOVER_NONE, LEFTOVER_SNAPSHOT, LEFTOVER_NO_SNAPSHOT };

struct leftover {
    struct batch_state *batches;
    struct batch_clock (*clock)(void);
    bool (*told)(void);          /* whether the last round of the figures is complete */
    uint64_t offered;            /* `seen` of the owner's last section */
    enum leftover_notice notice; /* with {from, us} */
    uint64_t from, us;
    bool figures, rows; /* which figures the node counts: by function, by key */
    bool waits;         /* they end with the calls that have not returned */
    bool exact;         /* everything is in the rings and figures, so the last batch may be marked */
};

/* Owner: the path of the client's socket; 0 bytes: none. False: it is too long. */
bool leftover_to(const uint8_t *path, size_t bytes);

/*
 * Owner: keeps a copy of a batch until the client has it; the credit of the client bounds how many there are. Does
 * nothing without a path.
 */
void leftover_keep(uint64_t seq, const uint8_t *bytes, size_t length);
void leftover_forget(uint64_t seq); /* and all earlier batches */

/* No other thread calls a function of this file or uses the drain meanwhile. */
void leftover_send(const struct leftover *l);

#endif
