/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out why processes exit, what their exits do to other processes, and which processes replace them.
 *
 * The cause of an exit is stated only if events show the cause:
 *
 *   a signal   another process has called exit/2 with the reason
 *   a link     a linked process has exited with the reason just before
 *   a call     the reason contains the reason of a process whose 'DOWN' the dead process has just received
 *   its own    the dead process has called exit/1 or raise/3 with the reason, or the reason has the stack of an error
 *
 * A link that is older than the trace is unknown. So if a process is older than the trace, and exits right after
 * another process with the same reason, and has not called exit/1 or raise/3 itself, its cause is DEATH_SAME. Otherwise
 * the cause is DEATH_UNKNOWN; `away` is then the port, or the process of another node, to which the process had a link.
 *
 * If several nodes are traced, the exit of a process of another node is found by the number of the process and by the
 * reason. Times of different nodes are compared by their wall clocks.
 *
 * An exit and the exits that it has caused form a tree. A tree is finished when it has not changed for DEATH_SETTLE_NS,
 * and after DEATH_LONGEST_NS in any case. done() gets the finished trees in the order of their first exits. Bounded: if
 * DEATHS_OPEN exits are in unfinished trees, the oldest tree is finished early. `hurried` counts such trees whose first
 * exit is not normal.
 */
#ifndef ETRACE_DEATHS_H
#define ETRACE_DEATHS_H

#include "lives.h"

#define DEATH_SETTLE_NS INT64_C(500000000)
#define DEATH_LONGEST_NS INT64_C(5000000000)
#define DEATHS_OPEN 16384
#define DEATH_HEIRS 16 /* limit for the survivors that are kept for each exit */

enum death_cause {
    DEATH_UNKNOWN,
    DEATH_ENDED,  /* the process ended with the reason normal, which no signal can cause */
    DEATH_EXIT,   /* the process called exit/1 or raise/3 */
    DEATH_ERROR,  /* an error with a stack */
    DEATH_LINK,   /* the exit signal of a linked process, which is the parent in the tree */
    DEATH_SAME,   /* the process exited right after the parent in the tree, with the same reason */
    DEATH_CALL,   /* the process was calling the parent in the tree */
    DEATH_SIGNAL, /* exit/2 by another process */
};

/* A process that received the signal or 'DOWN' of an exit and went on. */
struct death_heir {
    bool monitor; /* the process received a 'DOWN'; otherwise it trapped the exit signal of a link */
    const struct event_node *node;
    struct tracee who;
    int64_t mono_ns; /* by the clock of the node of the exit */
};

/* The new process that replaces a dead process. */
struct death_again {
    bool known; /* there is a replacement */
    bool named; /* the new process has the name of the dead process; otherwise only the same initial function */
    struct tracee by, as; /* as: the new process; by: the process that started it, if by_known */
    bool by_known;
    int64_t mono_ns;
};

struct death {
    const struct event_node *node;
    struct tracee who;
    const struct fun *initial; /* NULL: unknown */
    uint8_t arity;
    struct tracee spawner;              /* text_len 0: unknown */
    int64_t mono_ns, wall_ns, shift_ns; /* of its event */
    struct life_away away; /* the process was linked to this port, or process of another node; id 0: to none */
    uint8_t *reason;       /* a term with its atoms spelled out; owned */
    uint32_t reason_len;
    bool cut;
    struct exit_reason key;
    bool normal, error;
    enum death_cause cause;
    /* DEATH_SIGNAL: the node of the sender; if the sender told a linked port to exit, `away` is the port. */
    const struct event_node *by_node;
    struct tracee by;      /* DEATH_SIGNAL: the sender; DEATH_SAME, DEATH_LINK, DEATH_CALL: the parent */
    int64_t by_ns;         /* time of the signal or of the parent's exit */
    struct life_exit *own; /* the call of exit or raise with this reason; owned; NULL: none or unknown */
    struct death_heir *heirs;
    size_t nheirs, heirs_cap;
    uint64_t more_heirs;
    struct death_again again;
    uint64_t others;                            /* number of exits below this one in the tree; set for done() */
    struct death *parent, *first, *last, *next; /* the tree */
    /* Private to deaths.c: */
    struct death *older, *newer;
    struct death *above; /* an exit further up the tree: `parent`, or one nearer to the root */
    int64_t settled;
};

/* A call of exit/2 with a port, or with a process of another node. */
struct death_order {
    struct life_away to;
    const struct event_node *node; /* of the caller */
    struct life_exit *call;        /* owned */
};
#define DEATH_ORDERS 64 /* number of the newest calls that are kept */

/* A process that has survived the exit of a process of another node. The event of that exit has not come yet. */
struct death_early {
    uint64_t id;                /* of the process that exits; 0: `name` identifies it */
    char name[256], there[512]; /* the name of the process that exits, and of its node; "": unknown */
    struct death_heir heir;
    int64_t wall_ns;
    struct exit_reason reason; /* of a 'DOWN' */
};
#define DEATH_EARLY 64 /* number of the newest early survivors that are kept */

struct deaths {
    struct lives lives;
    struct death_order orders[DEATH_ORDERS];
    unsigned norders; /* number of calls so far */
    struct death_early early[DEATH_EARLY];
    unsigned nearly; /* number of early survivors so far */
    struct death *oldest, *newest;
    size_t open;
    int64_t now[EVENT_NODES];   /* monotonic time of each node */
    int64_t shift[EVENT_NODES]; /* event.shift_ns of the latest run of each node */
    uint64_t hurried;
    void *ctx;
    void (*done)(void *ctx, struct death *root); /* gets a finished tree, which is freed afterwards */
};

/* Converts the time of an event, or of another exit, to the clock of the node of the exit `x`. */
int64_t death_time(const struct death *x, const struct event_node *node, int64_t mono_ns, int64_t wall_ns);

void deaths_init(struct deaths *d);
void deaths_release(struct deaths *d);
void deaths_event(struct deaths *d, const struct event *e);
/*
 * Finishes the trees that are settled at the times that their nodes have passed (event_node.passed). Returns true if
 * unfinished trees remain.
 */
bool deaths_passed(struct deaths *d);
void deaths_end(struct deaths *d); /* finishes all trees */

#endif
