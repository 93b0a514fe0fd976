/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the file of a recording that may still be written: how far its whole blocks reach, and where its checkpoints
 * are. Reads only the headers of blocks.
 */
#ifndef ETRACE_RECGROW_H
#define ETRACE_RECGROW_H

#include "recseek.h"

struct recgrow {
    const char *path; /* borrowed */
    int fd;
    struct recseek seek;
    bool begun;       /* the file has its header, and `seek` is open */
    bool behind;      /* the last look has not read all headers */
    bool writes;      /* somebody seems to write the file */
    int64_t grown_at; /* loop_now() time of the last growth */
};

enum recgrow_news {
    RECGROW_SAME,
    RECGROW_MORE,     /* the file has more whole blocks, so somebody writes it */
    RECGROW_ENDED,    /* nobody writes the file any more */
    RECGROW_CUT,      /* the file is shorter than its whole blocks were */
    RECGROW_REPLACED, /* the path names another file, or no file */
};

/* Opens the file and reads the headers of its blocks so far. Returns false and sets *e if the file cannot be read. */
bool recgrow_open(struct recgrow *g, const char *path, struct err *e);
void recgrow_close(struct recgrow *g);

/* Reads headers of the blocks that came since the last call, but only a limited number. Returns what has changed. */
enum recgrow_news recgrow_look(struct recgrow *g);

static inline uint64_t recgrow_whole(const struct recgrow *g)
{
    return g->seek.whole;
}

#endif
