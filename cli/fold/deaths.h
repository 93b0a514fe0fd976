/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out why processes exit, what their exits do to others, and who starts them again.
 *
 * A cause is only stated if events show it:
 *
 *   a signal   another process has called exit/2 with the reason
 *   a link     a process that it is linked to has exited with the reason just before
 *   a call     the reason has the reason of a process whose 'DOWN' it has received just before
 *   its own    it has called exit/1 or raise/3 with the reason, or the reason has the stack of an error
 *
 * A link that is older than the trace is unknown. A process that is older, too, and exits with the reason of another
 * one right after it, but not by itself, is DEATH_SAME. Everything else is DEATH_UNKNOWN.
 *
 * Exits with one origin are a tree. A tree is done when nothing has joined it for DEATH_SETTLE_NS, and after
 * DEATH_LONGEST_NS in any case; done() gets the trees in the order of their first exits. Bounded: the oldest tree is
 * done early if more than DEATHS_OPEN exits are open, which `hurried` counts if its first exit is not normal.
 */
#ifndef ETRACE_DEATHS_H
#define ETRACE_DEATHS_H

#include "lives.h"

#define DEATH_SETTLE_NS INT64_C(500000000)
#define DEATH_LONGEST_NS INT64_C(5000000000)
#define DEATHS_OPEN 16384
#define DEATH_HEIRS 16 /* processes that are kept of those that survive an exit */
#define DEATH_NODES 64

enum death_cause {
    DEATH_UNKNOWN,
    DEATH_ENDED,  /* normal: no signal can do that */
    DEATH_EXIT,   /* its own call of exit/1 or raise/3 */
    DEATH_ERROR,  /* an error with a stack */
    DEATH_LINK,   /* the signal of a linked process: the parent of the tree */
    DEATH_SAME,   /* the same reason as that of the parent, right after it */
    DEATH_CALL,   /* its call of the parent failed */
    DEATH_SIGNAL, /* exit/2 by another process */
};

/* A process that an exit reached and that went on. */
struct death_heir {
    bool monitor; /* it got a 'DOWN'; else it trapped the exit signal of a link */
    struct tracee who;
    int64_t mono_ns;
};

struct death_again {
    bool known;
    bool named; /* it has the name of the dead one; else only its function and its parent */
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
    struct tracee by;      /* DEATH_SIGNAL: the sender; DEATH_SAME, DEATH_LINK, DEATH_CALL: the parent */
    int64_t by_ns;         /* the time of the signal or of the parent's exit */
    struct life_exit *own; /* DEATH_EXIT, DEATH_CALL, DEATH_SIGNAL: the call, for its place; owned; NULL: unknown */
    struct death_heir *heirs;
    size_t nheirs, heirs_cap;
    uint64_t more_heirs;
    struct death_again again;
    uint64_t others;                            /* the exits below it in the tree */
    struct death *parent, *first, *last, *next; /* the tree */
    /* Private to deaths.c: */
    struct death *older, *newer;
    int64_t settled;
};

struct deaths {
    struct lives lives;
    struct death *oldest, *newest;
    size_t open;
    int64_t now[DEATH_NODES]; /* the monotonic time of each node */
    uint64_t hurried;
    void *ctx;
    void (*done)(void *ctx, struct death *root); /* borrowed: the tree is freed afterwards */
};

void deaths_init(struct deaths *d);
void deaths_release(struct deaths *d);
void deaths_event(struct deaths *d, const struct event *e);
/* Time has passed on the nodes (struct event_node). Returns true if trees still wait for more of it. */
bool deaths_passed(struct deaths *d);
void deaths_end(struct deaths *d); /* all trees are done */

#endif
