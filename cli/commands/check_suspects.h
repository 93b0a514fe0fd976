/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that `etrace check` watches closely, and the order and time in which it looks at them. */
#ifndef ETRACE_CHECK_SUSPECTS_H
#define ETRACE_CHECK_SUSPECTS_H

#include "why_look.h"

/* Why the scan of all processes makes a process a suspect. */
enum check_reason {
    CHECK_LONG_QUEUE,
    CHECK_MUCH_MEMORY,
    CHECK_RUNS,
    CHECK_IS_COLLECTING,
    CHECK_IS_SUSPENDED,
    CHECK_IS_PAUSED, /* by sys:suspend/1 */
    CHECK_IS_EXITING,
    CHECK_REASONS
};

/* How many processes have each reason, and how many of them the node has chosen as suspects. */
struct check_chosen {
    int64_t all[CHECK_REASONS], chosen[CHECK_REASONS];
};

bool check_chosen_read(struct etf r, struct check_chosen *ret); /* sets `all`, if the node has sent it */
void check_chosen_count(struct check_chosen *c, const char *reason);

struct check_suspect {
    /* reason: why check watches the process: a word from the node, or "silent", "port", "target" or "owner". */
    char pid[32], reason[24];
    struct buf who; /* the process, encoded for requests to the node */
    bool wanted;    /* others wait for the process, or it may hold what they wait for */
    /* whole: `look` has all details. Without it, `look` does not say for which process the suspect waits. */
    bool whole;
    struct why_look look;
    struct why_samples samples;
    unsigned slow; /* number of answers that took at least CHECK_SLOW_MS */
};

/* A running process needs only a few ms to answer, except during a long garbage collection or a long BIF. */
#define CHECK_SLOW_MS 20

/*
 * Orders suspects for a round of looks, which may end before the last one: first those that are wanted, because they
 * explain why others wait, and last those that do not answer, because each look at them takes long and says little.
 * Keeps the order of suspects that rank equally.
 */
void check_suspects_order(struct check_suspect **items, size_t n);

/* Returns how many ms the looks with all details at n suspects may take together. */
int64_t check_suspects_ms(size_t n);

/* Returns true if the looks are enough for a finding: a look had all details, or the process does not answer. */
bool check_suspect_is_known(const struct check_suspect *s);

#endif
