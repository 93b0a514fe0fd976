/* SPDX-License-Identifier: Apache-2.0 */
/* The screen of `etrace browse`: keys, prompts, the open event, and the loop that reads between keys. */
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

/*
 * Shows the recording until the user ends the program. The terminal must be able to show a screen (screen_can()).
 * Returns the exit status: 1 after damage in the recording, which it reports.
 */
int browse_screen_run(struct ctx *ctx, struct browse_recording *of, struct browse_filter *filter,
                      const struct browse_options *o);

#endif
