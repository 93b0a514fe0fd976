/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the screen of `etrace browse` and of `etrace trace --browse`: handles keys and prompts, shows the list or one
 * event, and reads the recording between keys.
 */
#ifndef ETRACE_BROWSE_SCREEN_H
#define ETRACE_BROWSE_SCREEN_H

#include "../trace/ctx.h"
#include "browse_filter.h"
#include "browse_growth.h"
#include "browse_reader.h"
#include "../views/event_again.h"

struct browse_options {
    const char *title;
    enum time_style time;
    struct browse_growth *growth; /* follows the file; NULL: the recording does not grow */
    void *data;                   /* argument of the functions below */
    /*
     * Traces a probe of the page of `x` instead of the current ones, or the probes before them. Returns false if that
     * is impossible; *ret_why is then the reason, as a static text. NULL: there is no trace to change.
     */
    bool (*refine)(void *data, struct again *probes, enum again_probe probe, const char **ret_why);
    bool (*widen)(void *data, const char **ret_why);
};

struct browse_screen;

/*
 * Makes a screen that begins with the first lines of the recording. Borrows all arguments until browse_screen_free().
 */
struct browse_screen *browse_screen_new(struct ctx *ctx, struct browse_recording *of, struct browse_filter *filter,
                                        const struct browse_options *o);
/* Frees a screen, which must not be open. Reports damage in the recording and returns 1 if there is any, else 0. */
int browse_screen_free(struct browse_screen *s);

/* Takes over the terminal, which must be able to show a screen (screen_can()), and the signals. */
void browse_screen_open(struct browse_screen *s);
void browse_screen_close(struct browse_screen *s);

/* Handles keys and signals, reads, and draws, once. Returns the latest loop_now() time for the next call. */
int64_t browse_screen_turn(struct browse_screen *s);
bool browse_screen_done(const struct browse_screen *s); /* returns true if the user has left the screen */

void browse_screen_follow(struct browse_screen *s);                  /* goes to the last line and follows it */
void browse_screen_title(struct browse_screen *s, const char *text); /* borrows `text`, which may change later */
/* Shows a message in the last line until a key is pressed. Copies the text. */
void browse_screen_say(struct browse_screen *s, const char *text);
/* Shows a note in the last line of the screen from now on. Copies the text. */
void browse_screen_note(struct browse_screen *s, const char *text);
/* Appends the last lines of the recording as plain text. Reads them first if necessary. */
void browse_screen_last(struct browse_screen *s, struct buf *to);

/* Shows the recording until the user leaves the screen. Returns the same exit status as browse_screen_free(). */
int browse_screen_run(struct ctx *ctx, struct browse_recording *of, struct browse_filter *filter,
                      const struct browse_options *o);

#endif
