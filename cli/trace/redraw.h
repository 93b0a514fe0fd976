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
    struct view original;     /* the view of standard output, whose output becomes the text of the table */
    int64_t due;              /* loop_now() time at which the text is made again; -1: the table is not on the screen */
};

/* Lets the table have the output of the view, which is the only one. NULL: the table makes its text itself. */
void redraw_begin(struct redraw *r, struct ctx *ctx, struct live_table *table, struct view *view);
/*
 * Puts the table on the screen. Makes its text again if it is time (*ret_fresh), and draws it. Returns false if the
 * user ends the trace.
 */
bool redraw_step(struct redraw *r, struct pipeline *p, int64_t ran_ms, bool *ret_fresh);
void redraw_close(struct redraw *r); /* gives the screen back; the view writes to its output again */

#endif
