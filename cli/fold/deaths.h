/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out why processes exit, what their exits do to other processes, and which process starts them again.
 *
 * The cause of an exit is only stated if events show it:
 *
 *   a signal   another process has called exit/2 with the reason
 *   a link     a linked process has exited with the reason just before
 *   a call     the reason contains the reason of a process whose 'DOWN' the dead process has just received
 *   its own    the dead process has called exit/1 or raise/3 with the reason, or the reason has the stack of an error
 *
 * A link that is older than the trace is unknown. If a process is older than the trace, and exits with the reason of
 * another process right after that process, but not by a call of its own, its cause is DEATH_SAME. Everything else is
 * DEATH_UNKNOWN.
 *
 * Exits with one origin are a tree. A tree is done when no exit has joined it for DEATH_SETTLE_NS, and after
 * DEATH_LONGEST_NS in any case; done() gets the trees in the order of their first exits. Bounded: if more than
 * DEATHS_OPEN exits are open, the oldest tree is done early; `hurried` counts such trees whose first exit is not
 * normal.
 */
#ifndef ETRACE_DEATHS_H
#define ETRACE_DEATHS_H

#include "lives.h"

#define DEATH_SETTLE_NS INT64_C(500000000)
#define DEATH_LONGEST_NS INT64_C(5000000000)
#define DEATHS_OPEN 16384
#define DEATH_HEIRS 16 /* limit for the survivors that are kept for each exit */
#define DEATH_NODES 64

enum death_cause {
    DEATH_UNKNOWN,
    DEATH_ENDED,  /* normal, which no signal can cause */
    DEATH_EXIT,   /* its own call of exit/1 or raise/3 */
    DEATH_ERROR,  /* an error with a stack */
    DEATH_LINK,   /* the exit signal of a linked process, the parent in the tree */
    DEATH_SAME,   /* the reason of the parent in the tree, right after the parent */
    DEATH_CALL,   /* the process was calling the parent in the tree */
    DEATH_SIGNAL, /* exit/2 by another process */
};

/* A process that received the signal or 'DOWN' of an exit and went on. */
struct death_heir {
    bool monitor; /* it received a 'DOWN'; else it trapped the exit signal of a link */
    struct tracee who;
    int64_t mono_ns;
};

struct death_again {
    bool known;
    bool named; /* the new process has the name of the dead one; else only the same function and parent */
    struct tracee by, as;
    bool by_known;
    int64_t mono_ns;
};

struct death {
    const struct event_node *node;
    struct tracee who;
    const struct fun *initial; /* NULL: unknown */
    uint8_t arity;
    struct tracee spawner; /* text_len 0: unknown */
    int64_t mono_ns, wall_ns;
    uint8_t *reason; /* a term with its atoms spelled out; owned */
    uint32_t reason_len;
    bool cut;
    struct exit_reason key;
    bool normal, error;
    enum death_cause cause;
    struct tracee by; /* DEATH_SIGNAL: the sender; DEATH_SAME, DEATH_LINK, DEATH_CALL: the parent */
    int64_t by_ns;    /* time of the signal or of the parent's exit */
    /* DEATH_EXIT, DEATH_CALL, DEATH_SIGNAL: the call of exit, for its place; owned; NULL: unknown. */
    struct life_exit *own;
    struct death_heir *heirs;
    size_t nheirs, heirs_cap;
    uint64_t more_heirs;
    struct death_again again;
    uint64_t others;                            /* number of exits below this one in the tree */
    struct death *parent, *first, *last, *next; /* the tree */
    /* Private to deaths.c: */
    struct death *older, *newer;
    int64_t settled;
};

struct deaths {
    struct lives lives;
    struct death *oldest, *newest;
    size_t open;
    int64_t now[DEATH_NODES]; /* monotonic time of each node */
    uint64_t hurried;
    void *ctx;
    void (*done)(void *ctx, struct death *root); /* gets a finished tree, which is freed afterwards */
};

void deaths_init(struct deaths *d);
void deaths_release(struct deaths *d);
void deaths_event(struct deaths *d, const struct event *e);
/* Lets time pass on the nodes (struct event_node). Returns true while trees wait for more time. */
bool deaths_passed(struct deaths *d);
void deaths_end(struct deaths *d); /* finishes all trees */

#endif
