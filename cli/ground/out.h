/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Non-blocking output to one file descriptor. A writer thread does the write(2)s, so a waiting pager or a slow pipe
 * does not keep the program from serving a node.
 *
 * out_write() and out_take() only append to memory, without a limit. The caller checks out_backlog() and stops
 * producing when it is large. Only the thread that opened the output may call these functions; the writer thread
 * touches nothing but this struct.
 */
#ifndef ETRACE_OUT_H
#define ETRACE_OUT_H

#include "buf.h"
#include "err.h"

struct out;

/*
 * Creates an output for a descriptor, which the caller still owns unless `close_fd`. `name` is for messages ("standard
 * output").
 */
struct out *out_new(int fd, bool close_fd, const char *name);
void out_free(struct out *o); /* drops what is not written yet; accepts NULL */

/*
 * Creates a file with mode 0600, or opens an existing one; refuses symbolic links. Without `append`, out_begin()
 * truncates it. With `append`, several processes may write to the file at the same time.
 */
struct out *out_create(const char *path, bool append, struct err *e);

/*
 * Opens a file for writing like out_create(), and locks it like out_claim(). `flags`: the access mode, and O_APPEND.
 * Does not truncate. Returns the descriptor, or -1.
 */
int out_open(const char *path, int flags, bool beside, struct err *e);
/*
 * Replaces the content of a file, which it opens like out_open(). `regular`: refuses a pipe or a device, which might
 * block.
 */
bool out_write_file(const char *path, struct str bytes, bool regular, struct err *e);

/*
 * Locks a regular file for writing. `beside` takes a shared lock, for writers that append whole lines. Returns false if
 * the file is already being written. Closing the descriptor releases the lock.
 */
bool out_claim(int fd, bool beside, const char *path, struct err *e);

/*
 * Keeps the old content of a non-empty file, and delays all writes, until out_begin(). So a trace that fails to start
 * destroys nothing.
 */
void out_replaces(struct out *o);
void out_begin(struct out *o);

/* Ends lines with CR LF, for a terminal that another process may have put into raw mode. Call it before the first
 * write. */
void out_raw(struct out *o);

/*
 * Changes what is written, for example to compress it. The writer thread calls these functions, so they delay no other
 * thread. bytes() gets whole calls of out_write() and out_take(), and appends to `to`.
 */
struct out_pack {
    void *(*open)(void);
    void (*bytes)(void *state, struct str from, struct buf *to);
    void (*close)(void *state);
};
/* Sets these functions. Call it before the first write. */
void out_pack(struct out *o, const struct out_pack *pack);

void out_write(struct out *o, const void *data, size_t len);
void out_take(struct out *o, struct buf *b); /* like out_write(), but swaps buffers if possible; leaves b empty */

/* Makes the writer thread ask the file server for delayed write errors once everything is written. The output has a
 * backlog until the server has answered. */
void out_settle(struct out *o);

/*
 * Returns the number of unwritten bytes. If it is more than `enough`, out_fd() becomes readable after the next write.
 */
size_t out_backlog(struct out *o, size_t enough);
/*
 * Returns a descriptor that becomes readable after a write of such a backlog, after a write failed, or when the reader
 * of a pipe or socket went away.
 */
int out_fd(struct out *o);
void out_ack(struct out *o); /* makes out_fd() unreadable again, and checks whether the reader went away */

/*
 * Returns true and fills *e if writing failed. Sets *ret_closed if the reader of a pipe or socket went away, which is
 * no error.
 */
bool out_failed(struct out *o, bool *ret_closed, struct err *e);

#endif
