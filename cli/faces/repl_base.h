/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the state that all parts of the interactive mode share: the context, the options, the scrollback, the line
 * editor, and the function that waits. repl.c owns this state. A part calls only parts below it in the list of repl.h.
 */
#ifndef ETRACE_REPL_BASE_H
#define ETRACE_REPL_BASE_H

#include "../trace/ctx.h"
#include "../events/scroll.h"
#include "editor.h"
#include "repl_options.h"

struct repl_base {
    struct ctx *ctx;
    struct repl_options options;
    struct scroll *scroll;   /* the captured events */
    struct editor *line;     /* NULL: lines do not come from a terminal */
    struct loop_timer timer; /* due when etrace must renew a lease, retry a node, or end :for */
    /*
     * Runs the loop once, without reading lines. Waits for an event at most until the loop_now() time `until`; -1:
     * without a limit.
     */
    void (*serve)(void *data, int64_t until);
    void *serve_data;
    bool leaving; /* the session is ending */
    int status;   /* exit status of the first line that failed; 0: no line has failed */
};

void repl_step(struct repl_base *b, int64_t until); /* calls serve(); only code that waits may use it, not a handler */
void repl_wake(struct repl_base *b);                /* makes the timer run in the next iteration of the loop */
/* Prints the error, and keeps its status if it is the first error. */
int repl_fail(struct repl_base *b, const struct err *e);
/* Returns true if the user has typed Ctrl-C since the last call. */
bool repl_interrupted(struct repl_base *b);

#endif
