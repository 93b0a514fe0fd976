/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the table of a trace on the terminal again and again (struct live_table). */
#ifndef ETRACE_REDRAW_H
#define ETRACE_REDRAW_H

#include "../pipeline/pipeline.h"
#include "ctx.h"

struct live_table;

struct redraw {
    struct ctx *ctx;
    struct live_table *table; /* NULL: nothing is redrawn */
    struct view original;     /* a copy of the view of standard output; its output becomes the text of the table */
    int64_t due;              /* loop_now() time at which the text is made again; -1: the table is not on the screen */
};

/* Redirects the output of the only view into the text of the table. `view` NULL: the table makes its text itself. */
void redraw_begin(struct redraw *r, struct ctx *ctx, struct live_table *table, struct view *view);
/*
 * Draws the table; the first call takes the screen. If it is time, first makes the text again, and sets *ret_fresh.
 * Returns false if the user ends the trace.
 */
bool redraw_step(struct redraw *r, struct pipeline *p, int64_t ran_ms, bool *ret_fresh);
void redraw_close(struct redraw *r); /* gives the screen back; the view then writes to its own output again */

#endif
