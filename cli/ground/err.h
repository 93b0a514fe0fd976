/*
 * What went wrong, said once. A function that can fail takes a struct err * and returns false (or NULL); it fills err
 * exactly when it fails. Out-parameters are `ret_x` and written only on success.
 * Floors 0 to 5 fill an err; only the floors above print it, as `etrace: TEXT`, a quoted line with a caret where
 * `where` is set, and `hint: HINT`.
 */
#ifndef ETRACE_ERR_H
#define ETRACE_ERR_H

#include "macros.h"

/* Also the exit status of the program. */
enum err_status {
    ERR_NONE = 0,
    ERR_RUN = 1,    /* failed while running */
    ERR_USAGE = 2,  /* usage, or an expression that is wrong */
    ERR_NODE = 3,   /* the node cannot be reached, refuses, or cannot be traced */
    ERR_GUARD = 4,  /* stopped by a guard, by loss, or by the lease */
    ERR_EMPTY = 5,  /* nothing matches on this node */
    ERR_FAIL_ON = 10, /* a --fail-on held */
    ERR_EXPECT = 11,  /* an --expect never did */
};

struct err {
    enum err_status status;
    bool refused; /* ERR_NODE: there is a node, or something else, and it does not let us in */
    char text[512];
    char hint[256];
    /* A caret diagnostic: the source line that is quoted and the span (in bytes of that line) under which carets stand. */
    char line[512];
    size_t from, len;
    size_t row;     /* of that line in its text, from 1 */
    char note[160]; /* printed behind the carets */
};

/* Returns false, so that a failing function may say `return err_set(...)`. Text is made safe for a terminal. */
bool err_set(struct err *e, enum err_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);
void err_hint(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
