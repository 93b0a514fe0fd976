/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes recordings (.etr): a header, then blocks with a checksum each (nif/etrace_wire.h). Batches are
 * stored unchanged, or compressed one by one.
 *
 * The writing functions only append to a buffer; the caller compresses the buffer (recpack.h) and writes it to the
 * file. A truncated file is valid up to its last whole block. An appended run begins after the footer of the previous
 * run, and numbers its batches from seq 1.
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

/* A recording to which a run is appended. */
struct recfile_before {
    uint64_t whole; /* the offset at which the run begins; 0: the file still needs a header */
    bool old;       /* the file has version 1 in its header; compressed blocks need the header of recfile_header() */
};

/*
 * Creates the file with mode 0600, or opens it, and changes nothing in it; refuses symbolic links. With `append`, *ret
 * says what the file contains. A recording that is damaged before its end is refused, because the damage would hide the
 * new run. Returns -1 and sets *e on failure.
 */
int recfile_create(const char *path, bool append, struct recfile_before *ret, struct err *e);

/* ---- reading ---- */

/*
 * Opens a file, or standard input for "-". On failure returns NULL and sets *e. Read errors name the byte offset in the
 * file.
 */
struct source *recfile_open(const char *path, struct err *e);
/*
 * Reads from an open descriptor, which source_close() closes. Errors contain `name`, which recfile_open_fd() copies.
 */
struct source *recfile_open_fd(int fd, const char *name, struct err *e);

/*
 * Makes the source continue at the last checkpoint before which no event is newer than `newest`. The source returns the
 * blocks of the checkpoint first. The item that source_next() returned last becomes invalid. Returns false and changes
 * nothing if the file has no such checkpoint or is not a regular file.
 */
bool recfile_seek(struct source *s, int64_t newest);
/*
 * Sets *ret to the offsets of the checkpoints in rising order, valid until source_close(). Returns their number; 0 if
 * the file is not a regular file. Call it after the first source_next(), and before a seek.
 */
size_t recfile_places(struct source *s, const uint64_t **ret);
/* Finds the offset of the checkpoint at which recfile_seek() would continue. Returns false if there is none. */
bool recfile_place(struct source *s, int64_t newest, uint64_t *ret);
/* Makes the source continue at the checkpoint with this offset. Returns false if a reader cannot use the checkpoint. */
bool recfile_seek_place(struct source *s, uint64_t place);
/*
 * Reads the times of the recording's first event from a checkpoint. *ret_key is the time by which the event is ordered;
 * *ret_ns is when the event happened. Returns false if the file has no checkpoint.
 */
bool recfile_first(struct source *s, int64_t *ret_key, int64_t *ret_ns);

/*
 * Limits the source to the blocks that end at this offset or before, for a file that is still being written. At the
 * limit, the source returns SOURCE_NOTHING at once. UINT64_MAX removes the limit.
 */
void recfile_bound(struct source *s, uint64_t end);

struct recfile_effort {
    uint64_t bytes, blocks; /* number of bytes that were read, and of blocks that were decompressed */
};
struct recfile_effort recfile_effort(const struct source *s);

/*
 * Sets *ret_wall_ns to the wall clock of the last batch, or to INT64_MIN if the recording has no batch. Reads only the
 * headers of blocks and one block. Returns false if the file is malformed, or if it is a pipe, whose end is unknown
 * before everything is read.
 */
bool recfile_end(const char *path, int64_t *ret_wall_ns, struct err *e);

/* ---- the request: an ordered list of entries, each a key and a text ---- */

/*
 * Appends an entry in the format KEY SPACE LENGTH LF TEXT LF. The keys and their texts:
 *
 *     expr     an expression as the user gave it
 *     root     a root, a function behind `inside`, as the user gave it (spec.h)
 *     label    the label of the next expression
 *     number   the number of the first spec of the next expression
 *     let      NAME=TERM
 *     hrl      the text of a header file with records
 *     needs    bits of PROPERTY_NEEDS_RETURN and _CALLER, for filters outside of the expressions
 *     node     the node's name
 *     option   an option that changed what was captured, as the user gave it
 *
 * Readers skip unknown keys.
 */
void recfile_spec_add(struct buf *to, const char *key, struct str text);
void recfile_spec_needs(struct buf *to, unsigned needs); /* adds nothing for 0 */
/* Reads the next entry and removes it from *rest. Returns false at the end, or if the entry is malformed. */
bool recfile_spec_next(struct str *rest, struct raw *ret_key, struct raw *ret_text);

#endif
