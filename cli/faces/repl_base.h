/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that all parts of the interactive mode share: the context, the options, the scrollback, the line editor,
 * and how to wait. The parts call only downward; repl.c stands above all of them and owns everything here.
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
    struct editor *line;     /* NULL: there is no terminal to edit on */
    struct loop_timer timer; /* renews leases, retries, ends :for */
    /* Runs one turn of the loop without the keyboard. Waits until `until` at most; -1: until something happens. */
    void (*serve)(void *data, int64_t until);
    void *serve_data;
    bool leaving; /* the session ends */
    int status;   /* exit status of the first line that failed; 0: none failed */
};

void repl_step(struct repl_base *b, int64_t until);      /* serve(): for code that waits, never for a handler */
void repl_wake(struct repl_base *b);                     /* runs the timer in the next turn */
int repl_fail(struct repl_base *b, const struct err *e); /* prints the error; the status of the first one is kept */
bool repl_interrupted(struct repl_base *b);              /* Ctrl-C was typed since the last call */

#endif
