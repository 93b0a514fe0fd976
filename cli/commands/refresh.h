/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows a table on the screen and redraws it in place. Handles the size of the screen, common keys, the help, the
 * filter, the chosen row and its details. The command provides the title, the rows, the details and its own keys.
 */
#ifndef ETRACE_REFRESH_H
#define ETRACE_REFRESH_H

#include "../ground/err.h"
#include "../ground/loop.h"
#include "../trace/peers.h"
#include "../views/grid_order.h"
#include "../views/grid_window.h"

#define REFRESH_FILTER 60 /* limit for the bytes of the filter */

struct refresh {
    struct ctx *ctx;
    const char *name;        /* name of the command, at the beginning of the title */
    const char *keys;        /* the keys, shown in the last line */
    const char *const *help; /* lines of the help, NULL-terminated */
    void *data;              /* argument of the functions below */
    void (*title)(void *data, struct buf *to);
    /* Prints the rows of `window`, in lines that end with \n: the titles of the columns, the rows, and what follows. */
    void (*rows)(void *data, unsigned columns, struct buf *to);
    void (*key)(void *data, int key); /* handles a key that refresh does not handle itself */
    /*
     * Prints the details of the chosen row, in lines that end with \n. NULL: the table has no details, and Enter is a
     * key of the command.
     */
    void (*details)(void *data, unsigned columns, struct buf *to);
    const char *details_keys; /* the keys while the details are open */
    bool details_ask;         /* the command looks for the details, also while the table is paused */
    bool filters;             /* `/` lets the user type a filter */
    bool sorts;               /* s, arrows and o change `turn` */
    bool steady;              /* also look while the table is paused */
    int64_t until;            /* loop_now() time at which the table ends by itself; 0: never */
    bool color;
    /* The members below are the state. */
    bool live;   /* the screen is open */
    bool paused; /* the table shows old figures until the user resumes it */
    bool help_shown, typing;
    bool dirty;      /* the table must be redrawn */
    bool done;       /* the table must be closed */
    unsigned failed; /* number of errors since the screen was opened */
    int64_t next;    /* loop_now() time of the next look; a key that needs new rows sets it to 0 */
    struct grid_window window;
    bool opened;             /* the screen shows the details of the chosen row */
    bool was_paused;         /* the table was paused when the details were opened */
    struct grid_window page; /* the lines of the details that the screen shows */
    size_t asked;            /* number of rows that the last look asked for */
    struct grid_turn turn;   /* what the keys have changed about the order of the rows */
    unsigned columns, lines;
    char filter[REFRESH_FILTER + 1]; /* rows must contain this text; "": all rows match */
    struct buf notes;                /* errors and warnings that refresh_close() prints */
    struct err lack;                 /* why the last node was left out; status 0: none was */
};

void refresh_open(struct refresh *r);
/* Closes the screen. Prints the notes and whatever follows to the terminal. Does nothing if the screen is not open. */
void refresh_close(struct refresh *r);
void refresh_release(struct refresh *r);
void refresh_draw(struct refresh *r); /* redraws if the table is dirty or the size of the terminal has changed */

/*
 * Calls look() at the time `next`, and then every `interval` ms unless the table is paused. Redraws the screen if it is
 * open. Returns at the time `until`, when the user or the command closes the table, when a signal comes, when no node
 * is left, or when the output has failed.
 */
void refresh_loop(struct refresh *r, struct peers *peers, int64_t interval, void (*look)(void *data));

/* Opens the screen, calls refresh_loop() and closes the screen. */
void refresh_run(struct refresh *r, struct peers *peers, int64_t interval, void (*look)(void *data));

/*
 * Returns the number of rows to ask for, at least `least`, so that the user can scroll. When the user needs more, the
 * next look is due at once.
 */
size_t refresh_wants(struct refresh *r, size_t least);

/* Reports an error, or keeps it until the screen is closed, and counts it in the title. Sets *status if it is 0. */
void refresh_fail(struct refresh *r, int *status, const struct err *e);
/*
 * Reports that a node has refused, as refresh_fail() does, and begins to leave the node. Returns true if that was only
 * a warning, because peers_may_lack().
 */
bool refresh_refused(struct refresh *r, int *status, struct peer *p, struct err *e);
/* Fails if nodes were left out, and nothing else has failed: the command calls it if it has nothing to show. */
void refresh_empty(struct refresh *r, int *status);

#endif
