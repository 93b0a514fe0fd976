/*
 * From batches to bytes: decode -> merge -> pair calls -> filter -> sinks -> outputs.
 *
 * A command makes one pipeline, feeds it what a source gives, and asks for the totals at the end. Nothing here waits,
 * prints or knows whether the batches are live: output depends on the batches and the options alone, so a recording
 * replays to the same bytes.
 */
#ifndef ETRACE_PIPELINE_H
#define ETRACE_PIPELINE_H

#include "../events/source.h"
#include "../lang/spec.h"
#include "sink.h"

/*
 * Takes what a sink wrote. It may keep the memory by putting another (or no) allocation into *bytes; it leaves
 * bytes->len 0. False: nobody wants more of it (a closed pipe) or it failed; the pipeline stops then, and why is the
 * caller's to know.
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
     * What was asked for: says which calls report a result and how ms results are packed. With none, what a recording
     * says (SOURCE_SPECS) is compiled and used, so replay gives none.
     */
    const struct spec *const *specs;
    size_t nspecs;

    /* All must hold for an event to be shown, together with the `where` of its spec. */
    const struct grep *greps;
    size_t ngreps;
    const struct where *const *wheres; /* -e */
    size_t nwheres;

    struct asserts *asserts; /* looks at what is shown, and may decide that it is done; may be NULL */

    uint64_t limit; /* shown events after which it is done, a call and its return counted once; 0: none */
    size_t max_calls; /* open calls that are remembered; 0: 262144 */

    /* Something that a person may want to read on stderr: a node's notice (rearmed, guard, …). May be NULL. */
    void (*notice)(void *ctx, const struct event_node *node, struct str text);
    /* A node said hello. May be NULL. */
    void (*attached)(void *ctx, const struct event_node *node);
    void *ctx;
};

enum pipeline_status {
    PIPELINE_MORE,
    PIPELINE_LIMIT,  /* the limit is reached, but results of shown calls are still to come: give them a moment, then stop */
    PIPELINE_DONE,   /* the limit is reached, an output is closed, or the asserts are decided: stop the source; further batches are only counted */
    PIPELINE_FAILED, /* and so it stays: err is filled each time with the first reason, with the exact place for malformed bytes;
                        pipeline_end() still gives what is known */
};

struct pipeline *pipeline_new(const struct pipeline_options *o, struct err *e); /* NULL: e is filled (a bad regex, …) */
void pipeline_free(struct pipeline *p);

/* A batch as it came, from the node with this index (0, 1, …). A batch with seq 1 begins that node anew. */
enum pipeline_status pipeline_batch(struct pipeline *p, unsigned node, struct str bytes, struct err *e);

/* A note on a node, struct etw_note and a text: kept by recordings, and what the order of several nodes goes by. */
enum pipeline_status pipeline_note(struct pipeline *p, unsigned node, struct str bytes, struct err *e);

/* Nothing older than this comes of the node any more (INT64_MAX: nothing at all): what waited for it comes out. */
enum pipeline_status pipeline_passed(struct pipeline *p, unsigned node, int64_t mono, int64_t wall, struct err *e);

/*
 * What was asked for, to be kept by recordings. Says that this node is to come: where there are several it is said for
 * each before the first batch.
 */
void pipeline_specs(struct pipeline *p, unsigned node, struct str bytes);

/* Any item of a source. A footer is kept and only compared at the end. */
enum pipeline_status pipeline_item(struct pipeline *p, const struct source_item *item, struct err *e);

/* Hands everything written so far to the outputs; call it when there is nothing to read at the moment. */
void pipeline_flush(struct pipeline *p);

/* Writes the ends of the views that can write theirs again and again (SINK_AGAIN), as of now, and hands them on. */
void pipeline_snapshot(struct pipeline *p);

/* The source has failed: whatever has been seen by then, it is not called complete. */
void pipeline_cut(struct pipeline *p);

/*
 * The end: what is held back comes out, sinks write their ends, everything goes to the outputs. False: an output is
 * closed. To be called once; only pipeline_totals() and pipeline_free() after it.
 */
bool pipeline_end(struct pipeline *p);

/* Exact at any time for what was shown and filtered; exact in all after a last batch. */
const struct totals *pipeline_totals(struct pipeline *p);
bool pipeline_answered(const struct pipeline *p, size_t spec); /* whether some event was this spec's; true where the node counts */

/* Of several nodes' batches, see order_waiting() and order_holds_up(). */
uint64_t pipeline_waiting(const struct pipeline *p, unsigned node);
bool pipeline_holds_up(const struct pipeline *p, unsigned node);

#endif
