/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts bytes that arrive in pieces into lines of bounded length. */
#ifndef ETRACE_LINES_H
#define ETRACE_LINES_H

#include "buf.h"

struct lines {
    struct buf line; /* the line so far, without its newline */
    bool too_long;   /* the line is longer than `most` bytes, and `line` has at most its beginning */
};

/* Moves bytes from *bytes to `line`, up to the end of the line. Returns true if the line is complete. */
bool lines_take(struct lines *l, struct str *bytes, size_t most);
void lines_next(struct lines *l); /* begins the next line */
void lines_release(struct lines *l);

#endif
