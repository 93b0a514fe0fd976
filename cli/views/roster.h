/*
 * Numbers the processes and ports seen, 0, 1, 2, ... in order of appearance, and keeps their names. Bounded: all
 * processes after the first ROSTER_MAX share one last entry, "(other processes)".
 */
#ifndef ETRACE_ROSTER_H
#define ETRACE_ROSTER_H

#include "sink.h"

#define ROSTER_MAX 65536

struct roster_entry {
    uint64_t tracee;
    const struct event_node *node;
    struct tracee who;
};

struct roster {
    struct roster_entry *items;
    size_t n, cap;
    uint32_t *slots; /* hash table of 1 + index */
    size_t nslots;
    unsigned nodes; /* highest node number, for labels */
};

void roster_release(struct roster *r);
/* The number of a tracee on the event's node. who: its name, or NULL. */
uint32_t roster_number(struct roster *r, const struct event *e, uint64_t tracee, const struct tracee *who);
/* Appends <0.84.0>(cart), with the node if there are several. */
void roster_label(const struct roster *r, uint32_t number, struct buf *to);

#endif
