/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scrollback: a bounded history of events in memory.
 *
 * Events are stored in self-contained pieces (rebatch.h), and the oldest pieces are dropped when memory is full. Any
 * number of readers can read it like a recording while it grows. A reader is a source that returns SOURCE_NOTHING when
 * it has read everything.
 *
 * The request may change while nodes stay attached. scroll_specs() registers the request for an arming mark. The node
 * confirms the mark with the notice `armed`; readers get the request before the first event that was traced for it.
 */
#ifndef ETRACE_SCROLL_H
#define ETRACE_SCROLL_H

#include "source.h"

struct scroll;

struct scroll *scroll_new(size_t max_bytes);
void scroll_free(struct scroll *s); /* free its readers first */
/*
 * Forgets the events before `end`, a position from scroll_end(), and resets the count of dropped events. Readers
 * continue normally.
 */
void scroll_clear(struct scroll *s, uint64_t end);

/*
 * Sets whether the nodes are flight recorders from now on. The notice of a snapshot is newer than the events that
 * follow the notice, so the notice gets the time of the event before it. With SCROLL_ONE_BY_ONE, the last batch of each
 * snapshot is marked as the node's last batch, because readers read every snapshot alone.
 */
enum scroll_recorders { SCROLL_STREAMS, SCROLL_RECORDERS, SCROLL_ONE_BY_ONE };
void scroll_of_recorders(struct scroll *s, enum scroll_recorders how);
/* Returns true if the node is a flight recorder and sends no snapshot now. Its next events may then be of any age. */
bool scroll_records(const struct scroll *s, unsigned node);

struct scroll_snapshots {
    bool going;       /* a node has begun a snapshot and not ended it */
    uint64_t begun;   /* sum of the snapshots that the nodes have begun */
    int64_t reach_us; /* how far back the snapshots of all nodes reach; -1: no node has overwritten any events */
};
void scroll_snapshots(const struct scroll *s, struct scroll_snapshots *ret);
uint64_t scroll_begun(const struct scroll *s, unsigned node); /* returns the number of this node's snapshots */

/*
 * Adds a batch from a node. Returns false if the batch is malformed; *e says where, and the node's next batch must then
 * have seq 1.
 */
bool scroll_batch(struct scroll *s, unsigned node, struct str bytes, struct err *e);
/*
 * Adds a note about a node, in the format of recordings (struct etw_note and a text). If the note says that the node is
 * down, first adds the events that still waited for events of other threads.
 */
void scroll_note(struct scroll *s, unsigned node, struct str bytes);
/* Adds the waiting events of all nodes. Call it when no node sends batches any more. */
void scroll_end_runs(struct scroll *s);
/* Registers a request. `bytes` come from recfile_spec_add(). */
void scroll_specs(struct scroll *s, uint64_t mark, struct str bytes);

/* Creates a reader that starts at the oldest piece, or with from_now at the next one. Close it with source_close(). */
struct source *scroll_read(struct scroll *s, bool from_now);
uint64_t scroll_missed(const struct source *reader); /* number of events dropped before the reader got to them */
size_t scroll_ahead(const struct source *reader);    /* number of unread bytes */
/*
 * scroll_place() returns the position that the reader reads next; scroll_end() returns the position of the next piece.
 * A reader whose position is at least an earlier scroll_end() has read all pieces that existed then.
 */
uint64_t scroll_place(const struct source *reader);
uint64_t scroll_end(const struct scroll *s);

/* Sets a lower bound for the times of all later events of the node. Returns false if no bound is known. */
bool scroll_passed(const struct scroll *s, unsigned node, int64_t *ret_mono, int64_t *ret_wall);

/*
 * Makes a reader act as a flight recorder. It counts dropped events as overwritten instead of leaving them out, and
 * adds the notices of a recorder, so that its items read like those of a node that is a flight recorder.
 */
void scroll_act_as_recorder(struct source *reader);
/*
 * Counts the events of the oldest unread piece as overwritten and skips it. If the piece has no events, reads it
 * instead and returns true; the caller must then pass *ret on.
 */
bool scroll_overwrite_oldest(struct source *reader, struct source_item *ret);
/* Returns true if the oldest unread piece has no events: it is a note, or the first or last batch of a node. */
bool scroll_oldest_is_eventless(const struct source *reader);
/* Begins or ends a snapshot: the reader then gives a notice about it for each node. */
void scroll_begin_snapshot(struct source *reader);
void scroll_end_snapshot(struct source *reader);
/*
 * Ends the recorder; call it when every piece is read or overwritten. The reader then gives the counts that no item has
 * contained yet, for each node that has not ended.
 */
void scroll_end_recorder(struct source *reader);

struct scroll_counts {
    size_t bytes;             /* bytes in memory */
    uint64_t events, dropped; /* events in memory; events dropped from memory */
    uint64_t taken;           /* events stored since the start */
    uint64_t seen;            /* events that the nodes produced since the start */
    uint64_t overwritten;     /* events of `seen` that flight recorders have overwritten */
};
void scroll_counts(const struct scroll *s, struct scroll_counts *ret);

#endif
