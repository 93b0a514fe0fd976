/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins snapshots of the flight recorder, tells when one is complete, and remembers the notice about it until a batch
 * has it (tracer_ring.hrl). Between two snapshots the rings overwrite (lanes_overwrite()).
 *
 * The owner's calls use these functions, and the end of the node uses snapshot_end().
 */
#ifndef ETRACE_SNAPSHOT_H
#define ETRACE_SNAPSHOT_H

#include "leftover.h"

/* The rings hold every event after the tick `from`, which was `us` microseconds ago. */
struct snapshot_reach {
    uint64_t from, us;
};

void snapshot_open(void);

/*
 * Sets the age of the oldest event that the last snapshot shows; 0: any age. at_end: the recorder has no condition, so
 * the end of the trace or of the node makes that snapshot.
 */
void snapshot_show(bool at_end, unsigned most_ms);

/*
 * Begins a snapshot; the owner then queues its notice. The snapshot is complete after_ms later, or if after_ms is 0, at
 * the end of the trace.
 */
struct snapshot_reach snapshot_begin(unsigned most_ms, unsigned after_ms);

/* Returns true if every event of the snapshot is sent. watermark: every event up to this tick is sent. */
bool snapshot_is_complete(uint64_t watermark);

/* Notes that a batch has the notice. */
void snapshot_told(void);

/*
 * Begins the last snapshot if the rings still overwrite: at the end of a recorder without a condition, or because the
 * condition held a moment ago. Otherwise no snapshot has the last events, and the client counts them. Returns the
 * notice that no batch has yet.
 */
enum leftover_notice snapshot_end(struct snapshot_reach *ret);

#endif
