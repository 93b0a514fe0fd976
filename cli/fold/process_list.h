/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers the processes and ports 0, 1, 2, … in the order of their first events, and keeps their names. Bounded:
 * processes after the first PROCESS_LIST_MAX have no number.
 */
#ifndef ETRACE_PROCESS_LIST_H
#define ETRACE_PROCESS_LIST_H

#include "../events/event.h"
#include "../ground/table.h"

#define PROCESS_LIST_MAX 65536
#define PROCESS_LIST_NONE UINT32_MAX

struct process_list_entry {
    uint64_t tracee;
    const struct event_node *node;
    uint8_t name_len;
    char name[TRACEE_NAME]; /* empty: no name is known yet */
};

struct process_list {
    struct process_list_entry *items;
    size_t n, cap;
    struct table by_tracee;
    unsigned nodes;    /* highest index of a node */
    uint64_t left_out; /* events for which process_list_own() found no number */
};

void process_list_release(struct process_list *r);
/*
 * Returns the number of a process or port on the event's node, or PROCESS_LIST_NONE. `who` has the name of the process;
 * may be NULL.
 */
uint32_t process_list_number(struct process_list *r, const struct event *e, uint64_t tracee, const struct tracee *who);
/*
 * Returns the number of the process of the event. If the process has none, counts the event as left out and returns
 * PROCESS_LIST_NONE.
 */
uint32_t process_list_own(struct process_list *r, const struct event *e);

#endif
