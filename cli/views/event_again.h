/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the commands that trace more events like one event: calls of its function, calls of this function in its
 * process, and slower calls of it. Each line has a label of EVENT_AGAIN_LABEL columns and a command, ready to paste.
 * `etrace browse` uses this view, so --as does not offer it.
 */
#ifndef ETRACE_EVENT_AGAIN_H
#define ETRACE_EVENT_AGAIN_H

#include "sink.h"

#define EVENT_AGAIN_LABEL 17

extern const struct sink_type event_again; /* shows the commands for the event look.sought (event_page.h) */

#endif
