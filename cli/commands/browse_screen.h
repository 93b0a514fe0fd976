/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The screen of `etrace browse` and of `etrace trace --browse`: keys, prompts, the open event, and turns that read
 * between keys.
 */
#ifndef ETRACE_BROWSE_SCREEN_H
#define ETRACE_BROWSE_SCREEN_H

#include "../trace/ctx.h"
#include "browse_filter.h"
#include "browse_growth.h"
#include "browse_reader.h"

struct browse_options {
    const char *title;
    enum time_style time;
    bool utc;
    struct browse_growth *growth; /* follows the file; NULL: nothing is added to the recording */
};

struct browse_screen;

/* Begins with the first lines of the recording. All arguments are borrowed until browse_screen_free(). */
struct browse_screen *browse_screen_new(struct ctx *ctx, struct browse_recording *of, struct browse_filter *filter,
                                        const struct browse_options *o);
/*
 * Frees a screen that is closed, or was never open. Returns the exit status: 1 after damage in the recording, which it
 * reports.
 */
int browse_screen_free(struct browse_screen *s);

/* Takes the terminal, which must be able to show a screen (screen_can()), and the signals. */
void browse_screen_open(struct browse_screen *s);
void browse_screen_close(struct browse_screen *s);

/* Serves everything once. Returns the loop_now() time at which it must be called again, at the latest. */
int64_t browse_screen_turn(struct browse_screen *s);
bool browse_screen_done(const struct browse_screen *s); /* returns true if the user has ended the program */

void browse_screen_follow(struct browse_screen *s);                  /* goes to the last line, and follows it */
void browse_screen_title(struct browse_screen *s, const char *text); /* `text` is borrowed, and may change */
/* Says something in the last line until the end; the text is copied. */
void browse_screen_note(struct browse_screen *s, const char *text);
/* Appends the last lines as they are on the screen. Reads what is missing. */
void browse_screen_last(struct browse_screen *s, struct buf *to);

/* Shows the recording until the user ends the program. Returns the exit status like browse_screen_free(). */
int browse_screen_run(struct ctx *ctx, struct browse_recording *of, struct browse_filter *filter,
                      const struct browse_options *o);

#endif
