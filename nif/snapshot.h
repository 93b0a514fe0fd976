/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins snapshots of the flight recorder, tells when a snapshot is complete, and remembers the notice about a snapshot
 * until a batch has the notice (tracer_ring.hrl). Between two snapshots the rings overwrite (lanes_overwrite()).
 *
 * The owner calls these functions. When the node ends, drain_leftover() calls snapshot_end().
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
 * Sets how old events may be in the last snapshot; 0: any age. at_end: the recorder has no condition, so the only
 * snapshot begins at the end of the trace or of the node.
 */
void snapshot_show(bool at_end, unsigned most_ms);

/*
 * Begins a snapshot. The owner then queues the notice about it. The snapshot is complete after_ms milliseconds later.
 * If after_ms is 0, it is complete at the end of the trace.
 */
struct snapshot_reach snapshot_begin(unsigned most_ms, unsigned after_ms);

/* Returns true if every event of the snapshot is sent. watermark: every event up to this tick is sent. */
bool snapshot_is_complete(uint64_t watermark);

/* Notes that a batch has the notice. */
void snapshot_told(void);

/*
 * Begins the last snapshot at the end of the node if the rings still overwrite. It does so if the recorder has no
 * condition, or if the condition held a moment ago. Otherwise no snapshot has the last events, and the client only
 * counts them. Returns the notice that no batch has yet.
 */
enum leftover_notice snapshot_end(struct snapshot_reach *ret);

#endif
