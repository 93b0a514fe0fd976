/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a table that a screen shows: the rows that contain the filter, from the first one that the user has
 * scrolled to, and the row that the user has chosen. A table that is printed has a window with a filter and a limit.
 */
#ifndef ETRACE_GRID_WINDOW_H
#define ETRACE_GRID_WINDOW_H

#include "grid.h"

struct grid_window {
    const char *filter; /* shows only the rows that contain this text, ignoring case; NULL or "": all rows */
    size_t room;        /* limit for the rows; 0: none */
    bool scrolls;       /* the window is that of a screen; false: it shows the first rows */
    bool chooses;       /* the screen marks the chosen row */
    bool pins;          /* the user looks at the chosen row, so if this row leaves the table, no other one is chosen */
    /* The members below are the state. */
    size_t first, chosen; /* the first row, and the chosen one */
    size_t rows;          /* number of rows that contain the filter */
    bool last;            /* the user wants to be at the end, also when there are more rows */
    bool moved;           /* the user has moved since the rows were shown */
    /* Name of the chosen row, which stays chosen when the order changes; "": the mark stays where it is. */
    struct buf held;
};

void grid_window_release(struct grid_window *w);

/* Moves the mark, or the window if it has no mark, down or up. */
void grid_window_down(struct grid_window *w, size_t rows);
void grid_window_up(struct grid_window *w, size_t rows);
void grid_window_last(struct grid_window *w);
#define GRID_WINDOW_HOME SIZE_MAX /* grid_window_up() by this many rows leads to the first one */

/* Returns how many rows the caller must make to fill this window and the next one; SIZE_MAX: all rows. */
size_t grid_window_needs(const struct grid_window *w);

/* Sets g->first, g->most, g->marked and the order of the rows to what the window shows. w NULL: shows all rows. */
void grid_show(struct grid *g, struct grid_window *w);

/*
 * Scrolls the window so that it lies within `rows` lines and contains the mark. grid_show() calls this function for a
 * grid.
 */
void grid_window_fit(struct grid_window *w, size_t rows);

/* Returns true if the text contains the filter, ignoring case. */
bool grid_matches(const char *filter, struct str text);

/*
 * The screen that shows the table of a live trace. The view prints the whole table and names its rows. The screen
 * scrolls the lines and lets the user choose a row.
 */
struct grid_screen {
    bool open;         /* the screen shows the next text of the view; false: the text stays on the terminal */
    struct buf wanted; /* name of the row whose details the view prints instead of the table; empty: the table */
    struct buf names;  /* a line with the name of each row; empty: the text is not a single table */
};

/* Returns true if the next text of the view goes to a screen. */
static inline bool grid_screen_is_open(const struct grid_screen *s)
{
    return s && s->open;
}

/* Adds the names of the rows of the grid to the screen, if it is open. */
void grid_screen_name(struct grid_screen *s, const struct grid *g);
/*
 * Returns true if the screen wants the details of a row of the grid instead of the table. *ret_row is then the row, or
 * g->nrows if the row is gone.
 */
bool grid_screen_wants(const struct grid_screen *s, const struct grid *g, size_t *ret_row);
void grid_screen_release(struct grid_screen *s);

/*
 * Prints the columns of a row that have a title, one in each line, with the whole text. Leaves out empty cells.
 */
void grid_row_text(const struct grid *g, size_t row, struct buf *to);

#endif
