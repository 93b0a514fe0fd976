/*
 * Recordings (.etr): a header, then blocks, each with a checksum (nif/etrace_wire.h). Batches stand in them as they came.
 *
 * The writer's functions only append to a buffer; whoever owns the file writes it. A file that was cut short is good up
 * to the end of its last whole block. An appended run begins behind the earlier one's footer, with batches from seq 1.
 */
#ifndef ETRACE_RECFILE_H
#define ETRACE_RECFILE_H

#include "../../nif/etrace_wire.h"
#include "../ground/buf.h"
#include "source.h"

/* ---- writing ---- */

void recfile_header(struct buf *to);
void recfile_block(struct buf *to, unsigned type, unsigned node, struct str bytes);

/*
 * The file to write to, mode 0600, never through a symbolic link; -1: e is filled. With `append`, it is positioned
 * behind the last whole block of the recording that is there, and *ret_fresh says whether a header is still needed.
 */
int recfile_create(const char *path, bool append, bool *ret_fresh, struct err *e);

/* ---- reading ---- */

/* A file, or "-" for standard input. NULL: e is filled. Errors while reading name the byte of the file. */
struct source *recfile_open(const char *path, struct err *e);
/* The same over an open descriptor, which is closed with it; `name` is copied, for errors. */
struct source *recfile_open_fd(int fd, const char *name, struct err *e);

/* ---- what was asked for: entries of a key and a text, in their order ---- */

/*
 * Keys: "expr" an expression as it was given, "label" what the next one is called, "let" NAME=TERM, "hrl" the text of a header file with records, "needs" what filters beside the
 * expressions read of calls (lang_where_needs()), "node" the node's name, "option" an option that changed what was captured, as it was given. Readers skip keys that they do not
 * know. As bytes: KEY SPACE LENGTH LF TEXT LF.
 */
void recfile_spec_add(struct buf *to, const char *key, struct str text);
void recfile_spec_needs(struct buf *to, unsigned needs); /* nothing for 0 */
/* Takes the next entry off *rest; false at the end, and at anything malformed. */
bool recfile_spec_next(struct str *rest, struct raw *ret_key, struct raw *ret_text);

#endif
