/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines errors. A function that can fail takes a struct err *. If it fails, it fills the err and returns false or
 * NULL. Output parameters are named `ret_x` and are written only on success.
 *
 * Only commands/ and faces/ print an err; the floors below them only fill it. It is printed as `etrace: TEXT`, then the
 * quoted line with a caret if `line` is set, then `hint: HINT`.
 */
#ifndef ETRACE_ERR_H
#define ETRACE_ERR_H

#include "macros.h"

/* Kinds of errors. The value is also the exit status of the program. */
enum err_status {
    ERR_NONE = 0,
    ERR_RUN = 1,      /* failed while running */
    ERR_USAGE = 2,    /* wrong options or a wrong expression */
    ERR_NODE = 3,     /* the node is unreachable, refuses the connection, or cannot be traced */
    ERR_GUARD = 4,    /* the trace stopped to protect the node, because events were lost, or because a lease expired */
    ERR_EMPTY = 5,    /* no function or process on this node matches */
    ERR_FAIL_ON = 10, /* a --fail-on condition held */
    ERR_EXPECT = 11,  /* an --expect condition never held */
    ERR_FOUND = 12,   /* etrace check found something; it is no error */
};

struct err {
    enum err_status status;
    bool refused; /* only with ERR_NODE: a server accepted the connection but rejected us */
    char text[512];
    char hint[256];
    char line[512];   /* for an error in a text: the line with the error; else empty */
    size_t from, len; /* the bytes of `line` under which carets are printed */
    size_t row;       /* number of the line in the text, from 1 */
    char note[160];   /* printed after the carets */
};

/* Fills *e, and escapes the text for a terminal. Always returns false, so that a caller can return the result. */
bool err_set(struct err *e, enum err_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);
void err_hint(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
