/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups exits by the first of these that is known: the name of the process, its initial function, its parent, or the
 * reason. So the exits of a process that its supervisor starts again and again are one group, whatever the pids. The
 * first exits of a group are shown in full. Similar exits soon after them are folded: they are only counted, and
 * death_groups_tell() reports the count.
 *
 * Bounded: after DEATH_GROUPS groups, all further exits share one group. A group keeps DEATH_REASONS reasons.
 */
#ifndef ETRACE_DEATH_GROUPS_H
#define ETRACE_DEATH_GROUPS_H

#include "deaths.h"

#define DEATH_GROUPS 4096
#define DEATH_REASONS 8

enum death_label { LABEL_OTHERS, LABEL_NAME, LABEL_FUNCTION, LABEL_SPAWNER, LABEL_REASON };

struct death_reason {
    struct exit_reason key;
    uint8_t *term; /* owned */
    uint64_t times;
};

struct death_group {
    enum death_label label;
    const struct event_node *node;
    /* LABEL_NAME: the dead process; LABEL_SPAWNER: its parent. Has a name or, if there is none, only the pid. */
    struct tracee who;
    const struct fun *initial; /* LABEL_FUNCTION */
    uint8_t arity;
    struct exit_reason reason; /* LABEL_REASON */
    uint64_t times;            /* number of exits, shown in full or folded */
    uint64_t quiet;            /* number of normal exits, which are not shown */
    uint64_t folded;           /* number of folded exits since the last line about the group */
    uint64_t most_others;      /* largest number of further exits that one exit of the group has caused */
    /* others: number of exits that the group's exits have caused; restarts: number of replaced processes */
    uint64_t others, restarts;
    struct tracee restarter;   /* the last process that started a replacement; text_len 0: unknown */
    int64_t first_ns, last_ns; /* as of event_steady() */
    int64_t last_wall_ns;
    /*
     * due_ns: the wall clock at which the next line about folded exits is due. pause_ns: the time between this line and
     * the previous line.
     */
    int64_t due_ns, pause_ns;
    struct death_reason reasons[DEATH_REASONS]; /* the reasons, in the order of their first exits */
    size_t nreasons;
    uint64_t other_reasons; /* number of exits whose reasons are not in `reasons` */
};

struct death_groups {
    struct death_group *items; /* up to DEATH_GROUPS groups, and one for all further exits */
    size_t n, cap, folding;    /* folding: number of groups with folded exits */
    int64_t due_ns;            /* no line is due before this wall clock */
    struct table by_label;
    uint64_t quiet;
};

void death_groups_release(struct death_groups *s);
/*
 * Counts an exit and the exits that it has caused. Returns true if the exit must be shown in full: the previous exit of
 * its group was long ago, or the exit has a new reason, or it caused more exits than each earlier exit of the group.
 * Otherwise folds the exit.
 */
bool death_groups_add(struct death_groups *s, const struct death *root, struct death_group **ret);
/* Counts a normal exit that is not shown. */
void death_groups_add_quiet(struct death_groups *s, const struct death *root);
/* Calls tell() for the groups whose line about folded exits is due at this time. */
void death_groups_tell(struct death_groups *s, int64_t wall_ns, void (*tell)(void *ctx, const struct death_group *g),
                       void *ctx);
/* Calls tell() for the groups whose line is due at the time that their node has passed (event_node.passed). */
void death_groups_passed(struct death_groups *s, void (*tell)(void *ctx, const struct death_group *g), void *ctx);
/* Fills `ret` with the reasons of a group, the most frequent first, and returns their number. */
size_t death_reasons_sorted(const struct death_group *g, const struct death_reason *ret[DEATH_REASONS]);
/* Fills `ret` with the groups that have the most quiet exits, and returns their number, at most `most`. */
size_t death_groups_quietest(const struct death_groups *s, const struct death_group **ret, size_t most);

#endif
