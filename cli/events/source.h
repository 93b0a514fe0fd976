/*
 * Where batches come from: a node or a recording. A command takes items from a source and hands them to a pipeline;
 * neither knows which kind the source is. Items are borrowed until the next call of source_next() or source_close().
 */
#ifndef ETRACE_SOURCE_H
#define ETRACE_SOURCE_H

#include "../ground/err.h"

enum source_type {
    SOURCE_BATCH,  /* bytes: one batch of node `node` */
    SOURCE_SPECS,  /* bytes: what was asked for (recfile.h) */
    SOURCE_FOOTER, /* bytes: struct etw_footer, the totals when it was recorded */
    SOURCE_NOTE,   /* bytes: struct etw_note, and a text */
};

struct source_item {
    enum source_type type;
    unsigned node;
    struct str bytes;
    uint64_t offset; /* where the bytes begin in the file; 0: no file */
};

enum source_got {
    SOURCE_ITEM,
    SOURCE_NOTHING, /* within timeout_ms; try again */
    SOURCE_END,     /* complete */
    SOURCE_FAILED,  /* err is filled; what came before it is good */
};

struct source {
    const struct source_ops *ops;
};

struct source_ops {
    enum source_got (*next)(struct source *s, struct source_item *ret, int timeout_ms, struct err *e);
    /* Optional: asks for an orderly end; items go on until SOURCE_END. */
    void (*stop)(struct source *s);
    void (*close)(struct source *s); /* frees */
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
