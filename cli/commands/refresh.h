/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table that a command draws again and again in place: the screen, its size, its keys, the help and the filter. The
 * command gives the title, the rows and its own keys.
 */
#ifndef ETRACE_REFRESH_H
#define ETRACE_REFRESH_H

#include "../ground/err.h"
#include "../ground/loop.h"
#include "../trace/peers.h"

#define REFRESH_FILTER 60 /* bytes that a filter may have */

struct refresh {
    struct ctx *ctx;
    const char *name;        /* the command: the title begins with it */
    const char *keys;        /* the last line */
    const char *const *help; /* lines, NULL-terminated */
    void *data;              /* for the functions */
    void (*title)(void *data, struct buf *to);
    void (*rows)(void *data, unsigned columns, const char *end, struct buf *to); /* each line ends with `end` */
    void (*key)(void *data, int key);                                            /* a key that has no common meaning */
    bool filters, chooses; /* `/` begins to type a filter; arrows choose a row */
    bool steady;           /* it looks while it is paused, too */
    int64_t until;         /* when it ends by itself; 0: never */
    bool color;
    /* The rest is the state. */
    bool live;   /* the screen is open */
    bool paused; /* the command takes no new figures */
    bool help_shown, typing;
    bool dirty;   /* the table must be drawn */
    bool done;    /* the user or the command has ended it */
    int64_t next; /* when it looks again: a key that asks for other rows sets it to 0 */
    size_t chosen;
    unsigned columns, lines;
    char filter[REFRESH_FILTER + 1]; /* "": all rows */
    struct loop_fd fd;
    struct buf notes; /* errors and warnings: refresh_close() prints them */
};

void refresh_open(struct refresh *r);
void refresh_close(struct refresh *r); /* no effect if the screen is not open; the text that is printed next stays */
void refresh_release(struct refresh *r);
void refresh_draw(struct refresh *r); /* if the table is dirty, or the terminal has another size */

/*
 * Calls `look` at `next` and then every `interval` ms, unless paused, and draws if the screen is open. Ends at `until`,
 * by the user, when no node is left, and when the output fails. The status may be NULL: no failure ends it.
 */
void refresh_loop(struct refresh *r, struct peers *peers, int64_t interval, const int *status,
                  void (*look)(void *data));

/* Does that on a screen, which it opens and closes. */
void refresh_run(struct refresh *r, struct peers *peers, int64_t interval, const int *status, void (*look)(void *data));

/* Rows that fit. `given` is the user's limit or 0. */
size_t refresh_room(const struct refresh *r, int64_t given);

/* Whether a row with this text contains the filter. Letters match in either case. */
bool refresh_matches(const char *filter, struct str text);
static inline bool refresh_admits(const struct refresh *r, struct str text)
{
    return refresh_matches(r->filter, text);
}

/* Reports an error, after the screen is closed, and keeps the first status. */
void refresh_fail(struct refresh *r, int *status, const struct err *e);

#endif
