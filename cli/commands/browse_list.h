/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of `etrace browse`: which lines of the window are on the screen, which one is chosen, and what must be read
 * for that. Reading takes place in small steps, so that keys are served meanwhile. Does not know the terminal.
 */
#ifndef ETRACE_BROWSE_LIST_H
#define ETRACE_BROWSE_LIST_H

#include "../pipeline/regex.h"
#include "browse_window.h"

enum browse_sought {
    BROWSE_TEXT,    /* a line with a match of `regex` */
    BROWSE_SLOW,    /* a line with a duration of at least `slow_ns` */
    BROWSE_PROCESS, /* the next line of the process */
    BROWSE_RESULT,  /* the line of the result of call `number` */
    BROWSE_CALL,    /* the line of call `number` */
    BROWSE_NUMBER,  /* the first line whose event has this number, or a later one */
};

/* A line that is searched for. */
struct browse_seek {
    enum browse_sought what;
    bool backward;
    struct regex *regex; /* borrowed */
    int64_t slow_ns;
    uint64_t who, number;
    unsigned node;
};

/* Why the list reads. */
enum browse_goal {
    BROWSE_FILL,   /* the lines of the screen */
    BROWSE_REACH,  /* a line further down */
    BROWSE_BACK,   /* a line further up, whose segment is not known yet */
    BROWSE_SHOW,   /* a line whose spot is known */
    BROWSE_AHEAD,  /* a search forward */
    BROWSE_BEHIND, /* a search backward */
};

struct browse_list {
    const struct browse_recording *of;
    struct browse_window *window;
    unsigned height;      /* lines of the screen */
    uint64_t top, cursor; /* indexes of the first line of the screen, and of the chosen one */
    bool follows;         /* the last line stays chosen when lines are added */
    bool was_over;        /* while it follows: the window has been at the end */
    bool stopped;         /* the user has stopped the reading: the lines that are there are shown */
    const char *message;  /* for the user; NULL: none */
    struct err trouble;   /* why nothing can be read; status 0: none */

    enum browse_goal goal;
    struct browse_spot
        spot;      /* BACK: lines before it; SHOW: the first line of the screen; BEHIND: its segment is read */
    uint64_t left; /* BACK: lines to go back from `spot` */
    uint64_t row;  /* where the chosen line shall be on the screen; SHOW: where it is */
    uint64_t at;   /* REACH, AHEAD, BEHIND: index of a line */
    struct browse_seek seek;
    struct browse_spot origin; /* of a search: the chosen line before it, and its row */
    uint64_t origin_row;
    struct browse_spot hit; /* BEHIND: the last match in the segment */
    bool passes, hits;      /* BEHIND: a segment is read from its beginning; `hit` is set */
    struct buf text;
};

void browse_list_init(struct browse_list *l, const struct browse_recording *of, struct browse_window *window);
void browse_list_release(struct browse_list *l);

/* Begins with the first lines of the recording. */
void browse_list_begin(struct browse_list *l);
/* Shows the lines of new conditions: those from event `number` on, or the last ones if the list follows them. */
void browse_list_again(struct browse_list *l, struct browse_spot near, uint64_t number);

/* Must be called after the recording has changed: shows the lines that have been added. */
void browse_list_grown(struct browse_list *l);
void browse_list_pause(struct browse_list *l); /* stops to follow the last line */

bool browse_list_has(const struct browse_list *l); /* returns true if a line is chosen */
const struct browse_line *browse_list_chosen(const struct browse_list *l);
bool browse_list_searches(const struct browse_list *l);
bool browse_list_waits(const struct browse_list *l); /* returns true if the lines of the screen are not known now */

void browse_list_resize(struct browse_list *l, unsigned height);
void browse_list_move(struct browse_list *l, int64_t lines, bool scrolls); /* scrolls: the screen moves as much */
void browse_list_home(struct browse_list *l);
void browse_list_last(struct browse_list *l);
void browse_list_seek(struct browse_list *l, const struct browse_seek *seek);
/*
 * Stops to read. A search returns to where it began. Returns false if nothing was being read, except to follow the last
 * line.
 */
bool browse_list_stop(struct browse_list *l);

/* Reads a little. Returns true if there is more to read. */
bool browse_list_step(struct browse_list *l);

#endif
