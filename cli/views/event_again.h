/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the probes that trace more events like one event: calls of its function, calls of this function in its
 * process, and slower calls of it. The view shows a command for each probe, ready to paste, behind a label of
 * EVENT_AGAIN_LABEL columns that begins with the number of the probe. `etrace browse` uses this view, so --as does not
 * offer it.
 */
#ifndef ETRACE_EVENT_AGAIN_H
#define ETRACE_EVENT_AGAIN_H

#include "../ground/texts.h"
#include "sink.h"

#define EVENT_AGAIN_LABEL 20

enum again_probe { AGAIN_FUNCTION, AGAIN_PROCESS, AGAIN_SLOWER, AGAIN_PROBES };

/* The parts of the probes. The texts are safe to print. */
struct again {
    bool found; /* the event is found; before, all texts are empty */
    struct buf node, process;
    struct buf function; /* an expression; "": the event has no function, and the probe traces messages */
    struct buf slower;   /* a condition; "": the event has no duration */
};

bool again_has(const struct again *a, enum again_probe probe);
/* Appends the expressions of the probe. Borrows the text until again_clear() or again_release(). */
void again_expressions(struct again *a, struct texts *to);
void again_clear(struct again *a);
void again_release(struct again *a);

extern const struct sink_type event_again; /* fills look.sought->again and shows the commands (event_page.h) */

#endif
