/*
 * The scrollback: everything that was seen, in memory, in pieces that stand alone (alone.h), of which the oldest are dropped
 * when there is too much. It is read like a recording, by any number of readers and while it grows; a reader is a source
 * that says SOURCE_NOTHING when it has read all there is.
 *
 * What was asked for changes while the nodes stay attached. scroll_specs() says what the mark of an arming stands for; in what
 * the readers get it comes in front of the first event that answers it, which the notice `armed` of the node tells.
 */
#ifndef ETRACE_SCROLL_H
#define ETRACE_SCROLL_H

#include "source.h"

struct scroll;

struct scroll *scroll_new(size_t max_bytes);
void scroll_free(struct scroll *s); /* after its readers */
void scroll_clear(struct scroll *s, uint64_t end); /* forgets what came before that scroll_end(); what comes next is read as before */

/* A batch as it came. false: it is malformed, e says where; the node's next must be one that begins anew. */
bool scroll_batch(struct scroll *s, unsigned node, struct str bytes, struct err *e);
/* A note on a node, as a recording has it (struct etw_note and a text). */
void scroll_note(struct scroll *s, unsigned node, struct str bytes);
/* `bytes` as recfile_spec_add() made them. */
void scroll_specs(struct scroll *s, uint64_t mark, struct str bytes);

/* From the oldest that is there, or from what comes next; closed with source_close(). */
struct source *scroll_read(struct scroll *s, bool from_now);
uint64_t scroll_missed(const struct source *reader); /* events that were dropped before it came to them */
size_t scroll_ahead(const struct source *reader);    /* bytes that it has not read yet */
uint64_t scroll_place(const struct source *reader);  /* of what it reads next; it has read what there was once it is at the end of then */
uint64_t scroll_end(const struct scroll *s);

/* Whatever still comes of the node is not older than this; false: nothing is known. */
bool scroll_passed(const struct scroll *s, unsigned node, int64_t *ret_mono, int64_t *ret_wall);

struct scroll_counts {
    size_t bytes;            /* kept */
    uint64_t events, dropped; /* kept, and no longer kept */
    uint64_t taken;           /* in all */
    uint64_t seen;           /* offered by the nodes, in all */
};
void scroll_counts(const struct scroll *s, struct scroll_counts *ret);

#endif
