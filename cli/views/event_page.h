/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows one event with all its terms, the result of a call, and the calls of its process that were open around it. The
 * event, the result and each open call have one line, without colours; term_layout() breaks the lines. `etrace browse`
 * opens an event with this view, so --as does not offer it.
 */
#ifndef ETRACE_EVENT_PAGE_H
#define ETRACE_EVENT_PAGE_H

#include "sink.h"

struct again;

/* The event that the view shows (look.sought). The earlier events of its process show which calls were open. */
struct event_sought {
    uint64_t number, who; /* event.number of the event; its process */
    unsigned node;
    uint64_t patience;   /* limit for the number of events between a call and its result */
    int64_t dur_ns;      /* duration of the event or of its result, for event_again.h; -1: unknown */
    struct again *again; /* for event_again.h, which fills it */
};

extern const struct sink_type event_page;

#endif
