/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of batches: a node, a recording or the scrollback. A command passes items from a source to a pipeline, and
 * neither knows which kind of source it is. Items are borrowed until the next source_next() or source_close().
 */
#ifndef ETRACE_SOURCE_H
#define ETRACE_SOURCE_H

#include "../ground/err.h"

enum source_type {
    SOURCE_BATCH,  /* bytes: one batch of node `node` */
    SOURCE_SPECS,  /* bytes: the request (recfile.h) */
    SOURCE_FOOTER, /* bytes: struct etw_footer, the totals at the end of the recording */
    SOURCE_NOTE,   /* bytes: struct etw_note and a text */
    /*
     * The header of a checkpoint, and the state of each node in it. They come only after recfile_seek() or
     * recfile_seek_place(), before all other items.
     */
    SOURCE_CHECKPOINT,
    SOURCE_STATE,
};

struct source_item {
    enum source_type type;
    unsigned node;
    struct str bytes;
    uint64_t offset; /* file offset of the bytes; 0: the source is no file */
};

enum source_got {
    SOURCE_ITEM,
    SOURCE_NOTHING, /* nothing arrived within timeout_ms; try again */
    SOURCE_END,     /* the stream is complete */
    SOURCE_FAILED,  /* *e is filled; earlier items are valid */
};

struct source {
    const struct source_ops *ops;
};

struct source_ops {
    enum source_got (*next)(struct source *s, struct source_item *ret, int timeout_ms, struct err *e);
    /* Optional. Requests an orderly end; items continue until SOURCE_END. */
    void (*stop)(struct source *s);
    void (*close)(struct source *s); /* frees the source */
};

static inline enum source_got source_next(struct source *s, struct source_item *ret, int timeout_ms, struct err *e)
{
    return s->ops->next(s, ret, timeout_ms, e);
}

static inline void source_stop(struct source *s)
{
    if (s->ops->stop)
        s->ops->stop(s);
}

static inline void source_close(struct source *s)
{
    if (s)
        s->ops->close(s);
}

#endif
