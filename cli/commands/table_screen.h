/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the table of a running trace on the screen of a terminal, and refreshes it in place (struct live_table). */
#ifndef ETRACE_TABLE_SCREEN_H
#define ETRACE_TABLE_SCREEN_H

#include "../trace/live.h"
#include "refresh.h"

struct table_screen {
    struct refresh refresh;
    struct live_table table;   /* for struct live_options */
    struct grid_screen screen; /* the row that the user chose, and the names of all rows; for struct view_opts */
    struct buf shown, names;   /* copies of the table on the screen, and of the names of its rows */
    struct buf details;        /* the text about the chosen row */
};

/* `name` is the name of the command. interval_ns 0 means one second. `color` is an enum tty_color. */
void table_screen_init(struct table_screen *s, struct ctx *ctx, const char *name, int64_t interval_ns, int color);
void table_screen_release(struct table_screen *s);

#endif
