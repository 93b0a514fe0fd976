/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes recordings (.etr): a header, then blocks with a checksum each (nif/etrace_wire.h). Batches are
 * stored unchanged, or compressed one by one.
 *
 * The writing functions only append to a buffer; the owner of the file writes it, and compresses it (recpack.h). A
 * truncated file is valid up to its last whole block. An appended run begins after the footer of the earlier one, with
 * batches from seq 1.
 */
#ifndef ETRACE_RECFILE_H
#define ETRACE_RECFILE_H

#include "../../nif/etrace_wire.h"
#include "../ground/buf.h"
#include "source.h"

/* ---- writing ---- */

void recfile_header(struct buf *to);
void recfile_block(struct buf *to, unsigned type, unsigned node, struct str bytes);
uint32_t recfile_crc(const struct etw_block *b, const void *bytes); /* returns the right value of b->crc */

/*
 * Creates or opens the file with mode 0600; refuses symbolic links. Returns -1 and fills e on failure. With `append`,
 * the file is positioned after the last whole block of an existing recording, and *ret_fresh says whether it still
 * needs a header.
 */
int recfile_create(const char *path, bool append, bool *ret_fresh, struct err *e);

/* ---- reading ---- */

/*
 * Opens a file, or standard input for "-". On failure returns NULL and sets *e. Read errors name the byte offset in the
 * file.
 */
struct source *recfile_open(const char *path, struct err *e);
/*
 * Like recfile_open(), for an open descriptor, which source_close() closes. `name`, which is copied, appears in errors.
 */
struct source *recfile_open_fd(int fd, const char *name, struct err *e);

/*
 * Continues at the last checkpoint before which no event is newer than `newest`. The blocks of the checkpoint come
 * first. The item that source_next() returned last is no longer valid. Returns false and changes nothing if the file
 * has no such checkpoint or is not a regular file.
 */
bool recfile_seek(struct source *s, int64_t newest);
/*
 * Sets *ret to the offsets of the checkpoints, rising, which are valid until source_close(). Returns their number; 0 if
 * the file is not a regular file. Call it after the first source_next(), and before a seek.
 */
size_t recfile_places(struct source *s, const uint64_t **ret);
/* Finds the offset of the checkpoint at which recfile_seek() would continue. Returns false if there is none. */
bool recfile_place(struct source *s, int64_t newest, uint64_t *ret);
/* Like recfile_seek(), for the checkpoint at this offset. Returns false if a reader cannot use it. */
bool recfile_seek_place(struct source *s, uint64_t place);
/*
 * Reads the times of the first event from a checkpoint: its key in the order of events, and when it happened. Returns
 * false if the file has no checkpoint.
 */
bool recfile_first(struct source *s, int64_t *ret_key, int64_t *ret_ns);

/*
 * Limits the source to the blocks that end at this offset or before, because the file is still being written: there it
 * returns SOURCE_NOTHING at once. UINT64_MAX: no limit.
 */
void recfile_bound(struct source *s, uint64_t end);

struct recfile_effort {
    uint64_t bytes, blocks; /* number of bytes that were read, and of blocks that were decompressed */
};
struct recfile_effort recfile_effort(const struct source *s);

/*
 * Sets *ret_wall_ns to the wall clock of the last batch, or to INT64_MIN if the recording has none. Reads the heads of
 * the blocks and one block. Returns false if the file is malformed, or is not a regular file: the end of a pipe is
 * unknown before it is read.
 */
bool recfile_end(const char *path, int64_t *ret_wall_ns, struct err *e);

/* ---- the request: an ordered list of entries, each a key and a text ---- */

/*
 * Keys: "expr": an expression as the user gave it. "root": likewise, a root (spec.h). "label": the label of the next
 * expression. "number": the number of the next expression's first spec. "let": NAME=TERM. "hrl": the text of a header
 * file with records. "needs": bits of PROPERTY_NEEDS_RETURN and _CALLER, for filters outside of the expressions.
 * "node": the node's name. "option": an option that changed the capture, as the user gave it. Readers skip unknown
 * keys. Format: KEY SPACE LENGTH LF TEXT LF.
 */
void recfile_spec_add(struct buf *to, const char *key, struct str text);
void recfile_spec_needs(struct buf *to, unsigned needs); /* adds nothing for 0 */
/* Removes the next entry from *rest. Returns false at the end and at malformed input. */
bool recfile_spec_next(struct str *rest, struct raw *ret_key, struct raw *ret_text);

#endif
