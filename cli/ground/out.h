/*
 * Output that never blocks the one who writes. A thread of its own does the write(2)s, so that a pager that waits or a
 * slow pipe does not keep the program from answering a node.
 *
 * out_write() and out_take() only append; the caller looks at out_backlog() and stops producing when it is large.
 * All functions belong to the one thread that opened the output; the writer thread touches nothing but this struct.
 */
#ifndef ETRACE_OUT_H
#define ETRACE_OUT_H

#include "buf.h"
#include "err.h"

struct out;

/* The file descriptor stays the caller's unless `close_fd`. `name` is what messages call it ("standard output"). */
struct out *out_new(int fd, bool close_fd, const char *name);
void out_free(struct out *o); /* drops what is not written yet; accepts NULL */

/*
 * Creates a file that only the user can read, or replaces what is in it; never follows a symbolic link. `append` keeps what is there,
 * and may be done by several at a time.
 */
struct out *out_create(const char *path, bool append, struct err *e);

/* False: another one writes to this file; `beside` others who add whole lines is no harm. Whoever closes the file gives it up. */
bool out_claim(int fd, bool beside, const char *path, struct err *e);

/* What a file that is not empty holds is kept, and nothing is written, until out_begin(): who fails before has destroyed nothing. */
void out_replaces(struct out *o);
void out_begin(struct out *o);

/* For a terminal that somebody else may have put into raw mode: lines end in CR LF, which is good in any mode. Before the first write. */
void out_raw(struct out *o);

void out_write(struct out *o, const void *data, size_t len);
void out_take(struct out *o, struct buf *b); /* the same, and leaves b empty; cheaper */

/* Behind all that was written a file server is asked whether it has it: until then there is a backlog. */
void out_settle(struct out *o);

size_t out_backlog(struct out *o, size_t enough); /* bytes that are not written yet; more than enough are waited for */
int out_fd(struct out *o);      /* readable when a backlog that was waited for has shrunk, or writing failed */
void out_ack(struct out *o);    /* makes it unreadable again */

/* Has writing failed? Then e says so. A reader that went away is no failure but the end: *ret_closed; a file has none, wherever it is. */
bool out_failed(struct out *o, bool *ret_closed, struct err *e);

#endif
