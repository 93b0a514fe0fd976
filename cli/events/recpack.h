/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compresses and decompresses the blocks of recordings with zstd. Each block is a frame of its own, so a reader needs
 * no other block to read it. Only this code knows the sizes of compressed blocks, so it also completes checkpoints with
 * the place where a reader resumes, and writes an index of the checkpoints before the footer.
 */
#ifndef ETRACE_RECPACK_H
#define ETRACE_RECPACK_H

#include "../../nif/etrace_wire.h"
#include "../ground/buf.h"
#include "../ground/out.h"

/* Compresses the blocks of a recording where that makes them smaller. The file's header and other bytes stay. */
extern const struct out_pack recpack;

struct recunpack {
    void *zstd;
    struct buf bytes;
    uint64_t blocks; /* decompressed so far */
};

/*
 * Decompresses the stored bytes of a block; *ret is valid until the next call. Returns false if they are malformed, or
 * their decompressed size is not b->whole, which is at most ETW_MAX_BLOCK.
 */
bool recunpack_block(struct recunpack *u, const struct etw_block *b, const void *bytes, struct str *ret);
void recunpack_release(struct recunpack *u);

#endif
