/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the batches that the client does not have yet, when the node ends. `erl -eval 'f(), halt().'` can end within
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

/*
 * The notice of the flight recorder (tracer_ring.hrl) that comes first. LEFTOVER_NONE: an earlier batch has it, or the
 * rings do not overwrite.
 */
enum leftover_notice { LEFTOVER_NONE, LEFTOVER_SNAPSHOT, LEFTOVER_NO_SNAPSHOT };

struct leftover {
    struct batch_state *batches;
    struct batch_clock (*clock)(void);
    bool (*told)(void);          /* returns true if the last round of figures is complete */
    uint64_t offered;            /* `seen` of the owner's last section */
    enum leftover_notice notice; /* its details are {from, us} */
    uint64_t from, us;
    bool figures; /* the node counts figures */
    bool waits;   /* the figures end with a notice about the calls that have not returned */
    bool exact;   /* everything is in the rings and figures, so the last batch may be marked */
};

/*
 * Sets the path of the client's socket; 0 bytes mean none. Returns false if the path is too long. The owner calls it.
 */
bool leftover_to(const uint8_t *path, size_t bytes);

/*
 * Keeps a copy of a batch until the client has it. The credit of the client bounds the number of copies. Does nothing
 * without a path. The owner calls it.
 */
void leftover_keep(uint64_t seq, const uint8_t *bytes, size_t length);
void leftover_forget(uint64_t seq); /* forgets this batch and all earlier ones */

/*
 * Sends the kept batches, and all events that are still in the rings, to the client's socket. Meanwhile no other thread
 * may call a function of this file or of drain.h.
 */
void leftover_send(const struct leftover *l);

#endif
