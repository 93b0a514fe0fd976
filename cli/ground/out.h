/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes to one file descriptor without blocking the caller. A writer thread calls write(2), so a waiting pager or a
 * slow pipe does not keep the program from serving a node.
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
 * Creates an output for a descriptor. With `close_fd` the output owns the descriptor, else the caller does. `name` is
 * for messages ("standard output").
 */
struct out *out_new(int fd, bool close_fd, const char *name);
void out_free(struct out *o); /* drops what is not written yet; accepts NULL */

/*
 * Creates a file with mode 0600, or opens an existing one; refuses symbolic links. Without `append`, out_begin()
 * truncates it. With `append`, several processes may write to the file at the same time.
 */
struct out *out_create(const char *path, bool append, struct err *e);

/*
 * Opens a file for writing like out_create(), and locks it like out_claim(). Does not truncate it. `flags` is the
 * access mode, possibly with O_APPEND. Returns the descriptor, or -1.
 */
int out_open(const char *path, int flags, bool beside, struct err *e);
/*
 * Opens a file like out_open() and replaces its content. With `regular`, refuses a pipe or a device, because writing to
 * it may block.
 */
bool out_write_file(const char *path, struct str bytes, bool regular, struct err *e);

/*
 * Locks a regular file for writing. `beside` takes a shared lock, for writers that append whole lines. Returns false if
 * the file is already being written. Closing the descriptor releases the lock.
 */
bool out_claim(int fd, bool beside, const char *path, struct err *e);

/*
 * Keeps the old content of a non-empty file, and delays all writes, until out_begin() is called. Thus a trace that
 * fails to start does not destroy the file.
 */
void out_replaces(struct out *o);
/* Makes out_free() remove the file, which the caller has just created, if out_begin() was not called. */
void out_is_new(struct out *o);
/* Like out_replaces(), but out_begin() keeps the first `kept` bytes of the file. `header` then replaces the first of
 * these. */
void out_continues(struct out *o, uint64_t kept, struct str header);
void out_begin(struct out *o);

/*
 * Makes the output end lines with CR LF, for a terminal that another process may have put into raw mode. Call it before
 * the first write.
 */
void out_raw(struct out *o);

/*
 * Functions that change the written bytes, for example to compress them. The writer thread calls these functions, so
 * they delay no other thread. bytes() gets the data of whole calls of out_write() and out_take(), and appends to `to`.
 */
struct out_pack {
    void *(*open)(void);
    void (*bytes)(void *state, struct str from, struct buf *to);
    void (*close)(void *state);
};
/* Sets the functions that change the written bytes. Call it before the first write. */
void out_pack(struct out *o, const struct out_pack *pack);

void out_write(struct out *o, const void *data, size_t len);
void out_take(struct out *o, struct buf *b); /* like out_write(), but swaps buffers if possible; leaves b empty */

/*
 * Makes the writer thread ask the file server for delayed write errors once everything is written. out_backlog() is not
 * 0 until the server has answered.
 */
void out_settle(struct out *o);

/*
 * Returns the number of unwritten bytes; 0 after an error, or while out_begin() is awaited. If there are more than
 * `enough`, the descriptor of out_fd() becomes readable after the next write.
 */
size_t out_backlog(struct out *o, size_t enough);
/*
 * Returns a descriptor that becomes readable when a large backlog shrinks (see out_backlog()), when a write fails, or
 * when the reader of a pipe or socket goes away.
 */
int out_fd(struct out *o);
void out_ack(struct out *o); /* makes the descriptor unreadable again, and checks whether the reader went away */

/*
 * Returns true and fills *e if writing failed. Sets *ret_closed if the reader of a pipe or socket went away, which is
 * no error.
 */
bool out_failed(struct out *o, bool *ret_closed, struct err *e);

#endif
