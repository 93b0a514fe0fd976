/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the state that all parts of the interactive mode share: the context, the options, the scrollback, the line
 * editor, and the function that waits. A part calls only the parts below it; repl.c stands above all of them and owns
 * everything here.
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
    struct loop_timer timer; /* due when a lease must be renewed, a node is retried, or :for ends */
    /*
     * Runs one turn of the loop without reading lines. Waits for an event until the loop_now() time `until`; -1:
     * without a limit.
     */
    void (*serve)(void *data, int64_t until);
    void *serve_data;
    bool leaving; /* the session ends */
    int status;   /* exit status of the first line that failed; 0: no line has failed */
};

void repl_step(struct repl_base *b, int64_t until); /* calls serve(); only for code that waits, never for a handler */
void repl_wake(struct repl_base *b);                /* makes the timer run in the next turn of the loop */
int repl_fail(struct repl_base *b, const struct err *e); /* prints the error, and keeps the status of the first error */
bool repl_interrupted(struct repl_base *b);              /* returns true if Ctrl-C was typed since the last call */

#endif
