/*
 * The processes (and ports) that were seen, numbered 0, 1, 2, … as they appear, with what each is called. Bounded: whoever
 * comes after the first ROSTER_MAX is the last of them all, "(other processes)".
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
    uint32_t *slots; /* hash to 1 + index */
    size_t nslots;
    unsigned nodes; /* the highest number of a node, for labels */
};

void roster_release(struct roster *r);
/* The number of a tracee of the event's node; who: what is known of it, or NULL. */
uint32_t roster_number(struct roster *r, const struct event *e, uint64_t tracee, const struct tracee *who);
/* <0.84.0>(cart), with its node where there are several. */
void roster_label(const struct roster *r, uint32_t number, struct buf *to);

#endif
