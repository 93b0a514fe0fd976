/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the views of exits: it feeds the events to the fold (fold/deaths.h), selects what is shown, and
 * prints the parts of exits that both views have.
 */
#ifndef ETRACE_DEATH_VIEW_H
#define ETRACE_DEATH_VIEW_H

#include "../fold/death_choice.h"
#include "../fold/death_groups.h"
#include "clock.h"
#include "paint.h"
#include "sink.h"

struct death_view {
    struct sink sink;
    struct deaths deaths;
    struct death_groups groups;
    struct death_choice *choice;
    /* Called for each tree that is shown. fresh: it is unlike the latest ones of its group. */
    void (*show)(struct death_view *v, const struct death *root, const struct death_group *g, bool fresh);
    struct paint paint;
    struct clock clock;
    struct buf cell, line;
    uint64_t shown; /* trees */
};

void death_view_init(struct death_view *v);
/* For struct sink_type. */
void death_view_event(struct sink *sink, const struct event *e);
void death_view_release(struct sink *sink);

/* The moment of an exit as an event, for the clock and the printers. */
struct event death_moment(const struct event_node *node, int64_t mono_ns, int64_t wall_ns);
void death_put_process(struct buf *to, const struct tracee *t); /* <0.84.0>(cart) */
/* As death_put_process(), with the initial function of a process without a name. */
void death_put_who(const struct death_view *v, struct buf *to, const struct death *x);
/* The reason; of an error without its stack. */
void death_put_reason(const struct death_view *v, struct buf *to, const struct event_node *node, const uint8_t *reason);
/* The function and the line where the process failed or called exit. False: they are not known, and nothing is put. */
bool death_put_place(const struct death_view *v, struct buf *to, const struct death *x);
void death_put_group(const struct death_view *v, struct buf *to, const struct death_group *g);
/* The time from the exit to what followed from it, at least 0. */
int64_t death_after(const struct death *x, int64_t mono_ns);
/* Whether the process is an exit of its own in the tree of `x`. */
bool death_has_child(const struct death *x, const struct tracee *who);

#endif
