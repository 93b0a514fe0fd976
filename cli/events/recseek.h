/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the checkpoints of a recording: in the index at the end of the file or, if the recording was cut off, by the
 * headers of its blocks. Reads with pread(), so the position of the descriptor does not change.
 *
 * Only the first run of a file has checkpoints that a reader can use, because the checkpoints of an appended run do not
 * contain the state of the runs before it. A damaged checkpoint or index is treated as missing.
 */
#ifndef ETRACE_RECSEEK_H
#define ETRACE_RECSEEK_H

#include "order.h"
#include "recpack.h"

struct recseek {
    int fd;
    uint64_t begin, size; /* offset of the first block; size of the file */
    uint64_t *places;     /* offsets of the checkpoints, rising */
    size_t count, cap;
    bool found; /* the checkpoints are in `places` */
    /*
     * Set by recseek_grow(). whole: offset at which the last whole block ends. finished: the last whole block is a
     * footer. run_over: the first run has ended.
     */
    uint64_t whole;
    bool finished, run_over;
    struct recunpack unpack;
    struct buf in;
    uint64_t bytes; /* number of bytes read so far */
};

/* A checkpoint at which a reader begins. */
struct recseek_place {
    /* Offsets of the checkpoint's first block, of the end of its last block, and of the block to read next. */
    uint64_t at, behind, resume;
    struct etw_checkpoint head;
    struct etw_resume nodes[EVENT_NODES];
};

void recseek_open(struct recseek *s, int fd, uint64_t begin);
void recseek_close(struct recseek *s);

/* Sets *ret to the offsets of all checkpoints, damaged ones included. Returns their number. */
size_t recseek_places(struct recseek *s, const uint64_t **ret);
/*
 * Reads the headers of the blocks that came since the last call, for a file that is still being written. Sets `whole`,
 * and adds the new checkpoints to `places`. Do not call it after recseek_places(). Returns true if it has read all
 * headers. One call reads a limited number of them; if it returns false, call it again.
 */
bool recseek_grow(struct recseek *s);
/* Finds the last checkpoint before which no event is newer than `newest`. Returns false if there is none. */
bool recseek_find(struct recseek *s, int64_t newest, struct recseek_place *ret);
/* Reads the checkpoint at this offset. Returns false if the offset has no checkpoint that a reader can use. */
bool recseek_read(struct recseek *s, uint64_t at, struct recseek_place *ret);
/* Returns the offset of the last whole batch, or 0 if there is none. */
uint64_t recseek_last_batch(struct recseek *s);

#endif
