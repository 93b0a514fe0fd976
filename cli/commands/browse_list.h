/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the state of the list of `etrace browse`: which lines of the window are on the screen, and which one is chosen.
 * Reads the lines that it needs, in small steps, so that keys are served meanwhile. Does not know the terminal.
 */
#ifndef ETRACE_BROWSE_LIST_H
#define ETRACE_BROWSE_LIST_H

#include "../pipeline/regex.h"
#include "browse_window.h"

enum browse_sought {
    BROWSE_TEXT,    /* a line that matches `regex` */
    BROWSE_SLOW,    /* a line whose duration is at least `slow_ns` */
    BROWSE_PROCESS, /* the next line of process `who` on `node` */
    BROWSE_RESULT,  /* the line of the result of call `number` */
    BROWSE_RECEIPT, /* the line that received the message of event `number` */
    BROWSE_CAUSE,   /* the line of event `number` */
    BROWSE_NUMBER,  /* the first line whose event has `number` or a higher number */
};

/* The target of a search. */
struct browse_seek {
    enum browse_sought what;
    bool backward;
    struct regex *regex; /* borrowed */
    int64_t slow_ns;
    uint64_t who, number;
    unsigned node;
};

/* Why the list reads the recording. */
enum browse_goal {
    BROWSE_FILL,   /* to fill the screen */
    BROWSE_REACH,  /* to choose a line further down */
    BROWSE_BACK,   /* to choose a line further up; the segment of that line is not known yet */
    BROWSE_SHOW,   /* to show a line whose spot (browse_window.h) is known */
    BROWSE_AHEAD,  /* to search forward */
    BROWSE_BEHIND, /* to search backward */
};

struct browse_list {
    const struct browse_recording *of;
    struct browse_window *window;
    unsigned height;      /* number of lines of the list on the screen */
    uint64_t top, cursor; /* indexes in the window: of the first line on the screen, and of the chosen line */
    bool follows;         /* when lines are added, the last one becomes the chosen line */
    bool was_over;        /* while the list follows: the window has reached the end at least once */
    bool stopped;         /* the user has stopped reading, so the screen shows only the lines that were read */
    const char *message;  /* message for the user; NULL: none */
    struct err trouble;   /* why the recording cannot be read; status 0: it can */

    enum browse_goal goal;
    /* BACK: the list goes back from this line; SHOW: first line on the screen; BEHIND: search the lines before it */
    struct browse_spot spot;
    uint64_t left; /* BACK: number of lines to go back from `spot` */
    uint64_t row;  /* row of the screen for the chosen line */
    uint64_t at;   /* REACH: index of the line to choose; AHEAD, BEHIND: index of the next line to compare */
    struct browse_seek seek;
    struct browse_spot origin; /* the line that was chosen before the search, and its row on the screen */
    uint64_t origin_row;
    struct browse_spot hit; /* BEHIND: the last match so far in the segment that is searched */
    /* passes: BEHIND reads a segment from its beginning, BACK counts the lines of one; hits: `hit` is set */
    bool passes, hits;
    struct buf text;
};

void browse_list_init(struct browse_list *l, const struct browse_recording *of, struct browse_window *window);
void browse_list_release(struct browse_list *l);

/* Shows the first lines of the recording. */
void browse_list_begin(struct browse_list *l);
/*
 * Must be called after the conditions have changed. Shows the lines from event `number` on, searching from the segment
 * of `near`; or the last lines if the list follows the end.
 */
void browse_list_again(struct browse_list *l, struct browse_spot near, uint64_t number);

/* Must be called after the extent of the recording has changed. Shows the lines that were added. */
void browse_list_grown(struct browse_list *l);
void browse_list_pause(struct browse_list *l); /* stops following the last line */

bool browse_list_has(const struct browse_list *l); /* returns true if a line is chosen */
const struct browse_line *browse_list_chosen(const struct browse_list *l);
bool browse_list_searches(const struct browse_list *l);
bool browse_list_waits(const struct browse_list *l); /* returns true if the lines for the screen are not known yet */

void browse_list_resize(struct browse_list *l, unsigned height);
/* Moves the cursor; with `scrolls`, moves the screen as far as the cursor. */
void browse_list_move(struct browse_list *l, int64_t lines, bool scrolls);
void browse_list_home(struct browse_list *l);
void browse_list_last(struct browse_list *l);
void browse_list_seek(struct browse_list *l, const struct browse_seek *seek);
/*
 * Stops reading. A search goes back to the line where it began. Returns false if the list read nothing, or only read to
 * follow the last line.
 */
bool browse_list_stop(struct browse_list *l);

/* Reads a small part of the recording. Returns true if there is more to read. */
bool browse_list_step(struct browse_list *l);

#endif
