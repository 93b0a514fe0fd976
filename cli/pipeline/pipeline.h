/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns batches into output: decodes and merges batches, pairs calls with results, filters events, and feeds the sinks.
 * The output of each sink goes to the output function of its view.
 *
 * A command creates one pipeline, feeds it the items of a source, and reads the totals at the end. The pipeline never
 * waits or prints, and does not know whether the batches are live. Its output depends only on the batches and the
 * options, so a replay of a recording gives the same bytes.
 */
#ifndef ETRACE_PIPELINE_H
#define ETRACE_PIPELINE_H

#include "../events/source.h"
#include "../lang/spec.h"
#include "../views/sink.h"
#include "window.h"

/*
 * Writes the output of a sink and sets bytes->len to 0. May keep the memory of *bytes and replace it by other memory or
 * NULL. Returns false if the output was closed, such as a pipe without a reader, or failed. The pipeline then stops; it
 * does not report the reason.
 */
typedef bool output_fn(void *output, struct buf *bytes);

struct view {
    const struct sink_type *type;
    struct look look;
    output_fn *write;
    void *output;
};

struct asserts;

struct grep {
    const char *regex;
    bool invert;
};

struct pipeline_options {
    const struct view *views;
    size_t nviews;

    /*
     * The request. It says which calls report a result, and what match specifications collect. If there are no specs,
     * the pipeline compiles the specs of the recording (SOURCE_SPECS), as for a replay.
     */
    const struct spec *const *specs;
    size_t nspecs;

    /* An event is shown if all conditions in `greps` and `wheres` hold, and the `where` of its spec. */
    const struct grep *greps;
    size_t ngreps;
    const struct where *const *wheres; /* -e */
    size_t nwheres;

    /*
     * Events outside of the window are filtered before calls are paired with results. If no later event can be in the
     * window, it ends the trace.
     */
    struct window window;

    /*
     * A clause that counts all shown events, in addition to the clauses of `specs`. It replaces the clauses of recorded
     * specs. May be NULL.
     */
    const struct spec_by *by;

    struct asserts *asserts; /* evaluated for each shown event; may end the trace; may be NULL */

    uint64_t limit;   /* stop after this many shown events; a call and its result count as one; 0: no limit */
    size_t max_calls; /* limit for the open calls; 0: 262144 */
    size_t max_kept;  /* limit for the copies of open calls in bytes; 0: 64 MiB */
    size_t apart;     /* bytes of batches between two checkpoints of a recording; 0: 4 MiB */

    /* Gets each notice of a node that a user may want on stderr (rearmed, guard, …). May be NULL. */
    void (*notice)(void *ctx, const struct event_node *node, struct str text);
    /* Gets how far back a new snapshot reaches, if the node has overwritten older events. May be NULL. */
    void (*reached)(void *ctx, const struct event_node *node, int64_t us);
    /* Gets each hello of a node. May be NULL. */
    void (*attached)(void *ctx, const struct event_node *node);
    void *ctx;
};

enum pipeline_status {
    PIPELINE_MORE,
    PIPELINE_LIMIT, /* the limit is reached, but results of shown calls are missing: wait briefly, then stop */
    /*
     * Stop the source: the limit is reached, a view is finished, an output is closed, the window is over, or the
     * assertions are decided. Later batches are only counted.
     */
    PIPELINE_DONE,
    /* The input is malformed. All later calls return the first error again. pipeline_end() still writes the views. */
    PIPELINE_FAILED,
};

/* Returns NULL and sets *e on failure, for example if a regular expression is malformed. */
struct pipeline *pipeline_new(const struct pipeline_options *o, struct err *e);
void pipeline_free(struct pipeline *p);

/* Adds a batch of the node with this index (0, 1, …). A batch with seq 1 means that the node begins anew. */
enum pipeline_status pipeline_batch(struct pipeline *p, unsigned node, struct str bytes, struct err *e);

/*
 * Adds a note about a node (struct etw_note and a text). Recordings store notes, because the order of the events of
 * several nodes depends on them.
 */
enum pipeline_status pipeline_note(struct pipeline *p, unsigned node, struct str bytes, struct err *e);

/*
 * Promises that no later event of the node is older than these times; INT64_MAX promises that the node sends nothing
 * more. Processes the events of other nodes that waited for this node. Stops the checkpoints of recordings, because
 * recordings do not contain these promises.
 */
enum pipeline_status pipeline_passed(struct pipeline *p, unsigned node, int64_t mono, int64_t wall, struct err *e);

/*
 * Passes the request to the views that record, and announces the node. With several nodes, call it for each node before
 * the first batch.
 */
void pipeline_specs(struct pipeline *p, unsigned node, struct str bytes);

/* Adds an item of a source. */
enum pipeline_status pipeline_item(struct pipeline *p, const struct source_item *item, struct err *e);

/* Returns true if a view may show something as soon as time has passed on the nodes, even without new events. */
bool pipeline_waits(const struct pipeline *p);

/* Passes the pending output of all views to their output functions. Call it when no input is available. */
void pipeline_flush(struct pipeline *p);

/* Writes the current figures of each view with SINK_AGAIN, and passes this output on. */
void pipeline_snapshot(struct pipeline *p);

/* Clears the tables of `by`. */
void pipeline_clear_groups(struct pipeline *p);

/* Notes that the source failed, so that the totals are not complete. */
void pipeline_cut(struct pipeline *p);

/*
 * Ends the trace: processes the waiting events, makes the sinks write what they write at the end, and passes all output
 * on. Returns false if an output is closed. Afterwards, only functions that read the results and pipeline_free() may be
 * called.
 */
bool pipeline_end(struct pipeline *p);

/*
 * Returns the totals. `shown` and `filtered` are always exact; the other counts are exact after the last batch of every
 * node.
 */
const struct totals *pipeline_totals(struct pipeline *p);
/*
 * If no event was shown, appends a sentence that says which condition has rejected events, and how near they came.
 * index: 0, 1, … for each such condition. Returns false if there are no more. No sentence is about conditions that only
 * the node has tested, except those on the duration.
 */
bool pipeline_rejection(const struct pipeline *p, size_t index, struct buf *to);
/* Returns event.number of the last event, shown or not. The numbers also count events before a restored checkpoint. */
uint64_t pipeline_number(const struct pipeline *p);
/* Returns true if an event has matched this spec. Also returns true if this is unknown, because a node counts calls. */
bool pipeline_answered(const struct pipeline *p, size_t spec);
/* Returns true if it is known that no event has matched this spec. */
bool pipeline_is_silent(const struct pipeline *p, size_t spec);

/* See order_waiting() and order_holds_up(). */
uint64_t pipeline_waiting(const struct pipeline *p, unsigned node);
bool pipeline_holds_up(const struct pipeline *p, unsigned node);

#endif
