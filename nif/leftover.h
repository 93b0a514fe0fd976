/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the batches that the client does not have yet when the node ends. `erl -eval 'f(), halt().'` can end within a
 * millisecond. A node that halts no longer runs processes, so the owner cannot send anything.
 *
 * The client is on the same host and listens on a socket. The VM calls leftover_send() when it halts. The owner calls
 * it when the connection to the client has ended, because init:stop/0 closes the distribution before the node halts. A
 * batch may get lost with the connection, so all batches that the client has not acknowledged are sent again. The last
 * batch is marked as the last. If the VM is killed, crashes or halts without flushing, nothing is sent. A client that
 * reads slowly or not at all delays the end of the node by at most ten seconds.
 */
#ifndef ETRACE_LEFTOVER_H
#define ETRACE_LEFTOVER_H

#include "batch.h"

/*
 * The notice of the flight recorder (tracer_ring.hrl) to send first. LEFTOVER_NONE: an earlier batch has the notice, or
 * the rings do not overwrite.
 */
enum leftover_notice { LEFTOVER_NONE, LEFTOVER_SNAPSHOT, LEFTOVER_NO_SNAPSHOT };

struct leftover {
    struct batch_state *batches;
    struct batch_clock (*clock)(void);
    bool (*told)(void);          /* returns true if the last round of figures is complete */
    uint64_t offered;            /* the field `seen` of the owner's last section */
    enum leftover_notice notice; /* a notice to send, with the details {from, us} */
    uint64_t from, us;
    bool figures; /* the node counts figures */
    bool waits;   /* the figures end with a notice about the calls that have not returned */
    bool exact;   /* all events are in rings and figures, so the last batch may be marked as the last */
};

/*
 * Sets the path of the client's socket. Without bytes, there is no socket. Returns false if the path is too long. The
 * owner calls it.
 */
bool leftover_to(const uint8_t *path, size_t bytes);

/*
 * Keeps a copy of a batch until leftover_forget(). The credit of the client bounds the number of copies. Does nothing
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
