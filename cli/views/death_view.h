/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the common work of the views of exits: feeds events to the fold (fold/deaths.h), selects the exits that are
 * shown, and prints the parts of an exit that appear in text and in JSON.
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
    /*
     * Called for each exit that is shown (`root`), with the exits that it has caused. `fresh`: the exit differs from
     * the previous ones of its group, so the view must show all of it.
     */
    void (*show)(struct death_view *v, const struct death *root, const struct death_group *g, bool fresh);
    struct paint paint;
    struct clock clock;
    struct buf cell, line;
    uint64_t shown; /* number of calls of show() */
};

extern const char *const death_causes[]; /* names of enum death_cause for programs */

void death_view_init(struct death_view *v);
/* Callbacks for struct sink_type. */
void death_view_event(struct sink *sink, const struct event *e);
bool death_view_passed(struct sink *sink);
void death_view_release(struct sink *sink);

/* Return an event that has only a node, or also a time, for the clock and the printers. */
struct event death_on(const struct event_node *node);
struct event death_moment(const struct death *x);
void death_put_process(struct buf *to, const struct tracee *t); /* <0.84.0>(cart) */
/* Prints the initial function of a process; nothing if it is unknown. */
void death_put_initial(const struct death_view *v, struct buf *to, const struct death *x);
/* Like death_put_process(), and appends the initial function of a process without a name. */
void death_put_who(const struct death_view *v, struct buf *to, const struct death *x);
/* Prints the reason of an exit. Leaves out the stack trace that the reason of an error contains. */
void death_put_reason(const struct death_view *v, struct buf *to, const struct event_node *node, const uint8_t *reason);
/*
 * Prints the function and line where the process failed or called exit. Returns false, and prints nothing, if they are
 * unknown.
 */
bool death_put_place(const struct death_view *v, struct buf *to, const struct death *x);
void death_put_group(const struct death_view *v, struct buf *to, const struct death_group *g);
/* Returns the time from the exit to one of its consequences, at least 0. */
int64_t death_after(const struct death *x, int64_t mono_ns);
/* Prints the name of `node` and a blank, unless the exit `x` happened on that node. */
void death_put_node(struct buf *to, const struct death *x, const struct event_node *node);
/* Prints x->away: the port, or the process of another node. */
void death_put_away(struct buf *to, const struct death *x);
/* Returns true if the exit of process `who` is one of the exits that `x` has caused. */
bool death_has_child(const struct death *x, const struct event_node *node, const struct tracee *who);

#endif
