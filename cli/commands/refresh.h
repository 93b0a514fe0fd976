/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws a table again and again in place: the screen, its size, its keys, the help and the filter. The command gives
 * the title, the rows and its own keys.
 */
#ifndef ETRACE_REFRESH_H
#define ETRACE_REFRESH_H

#include "../ground/err.h"
#include "../ground/loop.h"
#include "../trace/peers.h"

#define REFRESH_FILTER 60 /* limit for the bytes of a filter */

struct refresh {
    struct ctx *ctx;
    const char *name;        /* the command, which begins the title */
    const char *keys;        /* the last line */
    const char *const *help; /* lines, NULL-terminated */
    void *data;              /* for the functions */
    void (*title)(void *data, struct buf *to);
    void (*rows)(void *data, unsigned columns, const char *end, struct buf *to); /* each line must end with `end` */
    void (*key)(void *data, int key); /* handles a key that has no common meaning */
    bool filters, chooses;            /* filters: `/` begins to type a filter; chooses: arrows choose a row */
    bool steady;                      /* the command also looks while it is paused */
    int64_t until;                    /* loop_now() time at which the table ends by itself; 0: never */
    bool color;
    /* The state: */
    bool live;   /* the screen is open */
    bool paused; /* the table keeps its figures */
    bool help_shown, typing;
    bool dirty;   /* the table must be drawn */
    bool done;    /* the user or the command has ended the table */
    int64_t next; /* loop_now() time of the next look; a key that needs other rows sets it to 0 */
    size_t chosen;
    unsigned columns, lines;
    char filter[REFRESH_FILTER + 1]; /* "": all rows */
    struct loop_fd fd;
    struct buf notes; /* errors and warnings, which refresh_close() prints */
};

void refresh_open(struct refresh *r);
/* A no-op if the screen is not open; the text that is printed next stays on the terminal. */
void refresh_close(struct refresh *r);
void refresh_release(struct refresh *r);
void refresh_draw(struct refresh *r); /* draws if the table is dirty, or the size of the terminal has changed */

/*
 * Calls look() at `next` and then every `interval` ms, unless paused, and draws if the screen is open. Returns at
 * `until`, when the user ends the table, when no node is left, when *status is not 0, or when the output fails.
 * `status` may be NULL.
 */
void refresh_loop(struct refresh *r, struct peers *peers, int64_t interval, const int *status,
                  void (*look)(void *data));

/* Opens the screen, calls refresh_loop() and closes the screen. */
void refresh_run(struct refresh *r, struct peers *peers, int64_t interval, const int *status, void (*look)(void *data));

/* Returns the number of rows that fit. `given` is the user's limit, or 0. */
size_t refresh_room(const struct refresh *r, int64_t given);

/* Returns true if the text of a row contains the filter. Upper and lower case match. */
bool refresh_matches(const char *filter, struct str text);
static inline bool refresh_admits(const struct refresh *r, struct str text)
{
    return refresh_matches(r->filter, text);
}

/* Keeps an error to report after the screen is closed, and the first status. */
void refresh_fail(struct refresh *r, int *status, const struct err *e);

#endif
