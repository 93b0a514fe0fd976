/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compresses and decompresses the blocks of recordings with zstd. Each block is compressed alone, so a reader can read
 * a block without the other blocks. Only this code knows the sizes of compressed blocks. So this code also completes
 * each checkpoint with the place where a reader resumes, and writes an index of the checkpoints before the footer.
 */
#ifndef ETRACE_RECPACK_H
#define ETRACE_RECPACK_H

#include "../../nif/etrace_wire.h"
#include "../ground/buf.h"
#include "../ground/out.h"

/* Compresses a block of a recording if this makes the block smaller. Copies the file's header and other bytes
 * unchanged. */
extern const struct out_pack recpack;

struct recunpack {
    void *zstd;
    struct buf bytes;
    uint64_t blocks; /* number of blocks decompressed so far */
};

/*
 * Decompresses the stored bytes of a block; *ret is valid until the next call. Returns false if the bytes are
 * malformed, or if their decompressed size is not b->whole. The caller has checked that b->whole is at most
 * ETW_MAX_BLOCK.
 */
bool recunpack_block(struct recunpack *u, const struct etw_block *b, const void *bytes, struct str *ret);
void recunpack_release(struct recunpack *u);

#endif
