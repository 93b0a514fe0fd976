/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows one event with all its terms, the result of a call, and the calls of its process that were open around it. The
 * text has one line for each of them, without colours; term_layout() breaks the lines. `etrace browse` opens an event
 * with this view, so --as does not offer it.
 */
#ifndef ETRACE_EVENT_PAGE_H
#define ETRACE_EVENT_PAGE_H

#include "sink.h"

/* The event that the view shows (look.sought). The others of its process tell which calls were open. */
struct event_sought {
    uint64_t number, who; /* event.number; the process */
    unsigned node;
    uint64_t patience; /* the result of a call may come this many events later */
    int64_t dur_ns;    /* of the event or its result, for event_again.h; -1: unknown */
};

extern const struct sink_type event_page;

#endif
