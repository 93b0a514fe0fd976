/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers which conditions reject events until the first event passes, and how near the events came. A trace that
 * shows nothing can then say why.
 *
 * The filter notes each rejected event. If a condition compares a number with a constant, the nearest number is kept,
 * otherwise the line of the first event. After an event has passed, nothing is noted, and a rejected event costs only
 * the test of `passed`.
 */
#ifndef ETRACE_REJECTIONS_H
#define ETRACE_REJECTIONS_H

#include "../events/notice.h"
#include "where.h"

struct rejection;

struct rejections {
    struct rejection *items; /* in the order of their first events */
    size_t count, cap;
    enum terms_style style;
    bool passed; /* an event has passed, so nothing is noted any more */
};

void rejections_release(struct rejections *r);

/* Notes that the condition has rejected the event. Borrows the condition. */
void rejections_add(struct rejections *r, struct wheres *w, const struct where *condition, const struct event *e);
void rejections_add_grep(struct rejections *r, const struct grep *grep, const struct event *e);

/*
 * Notes the durations that the nodes have tested. They count for each condition that compares the duration with a
 * constant and rejects all of them. For the other conditions nobody knows what the nodes have rejected.
 */
void rejections_add_times(struct rejections *r, const struct where *const *conditions, size_t n,
                          const struct notice_times *times);

/*
 * Appends a sentence about one of the conditions. Returns false if there is no such condition. some: the node has
 * rejected further events, so the numbers of events are unknown.
 */
bool rejections_put(const struct rejections *r, size_t index, bool some, struct buf *to);

#endif
