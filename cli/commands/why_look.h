/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a node reports about one process (nif/tracer_why.hrl), and finds the cause of what it does. */
#ifndef ETRACE_WHY_LOOK_H
#define ETRACE_WHY_LOOK_H

#include "ps_rows.h"

#define WHY_CHAIN 17 /* the limit of the node, plus one */
#define WHY_FRAMES 12
#define WHY_SHAPES 8
#define WHY_SOME 4
#define WHY_TOPS 64

struct why_row {
    struct look_process process; /* has the node's name as name if `answer` is "elsewhere" */
    char answer[16];             /* known, silent, gone or elsewhere; the members below are set only if known */
    char status[24];
    struct look_frame stack[WHY_FRAMES]; /* the innermost first */
    unsigned nstack;
    int64_t queue, reductions, memory;
    int64_t minor; /* minor collections since the last major one */
    int64_t among; /* the process waits for one of this many processes; 0: it does not wait for a process */
    bool nif;      /* the innermost function is a NIF */
    bool loop;     /* the innermost function is the loop of a behaviour, which waits for any message */
    bool many;     /* the process waits, but has too many links and monitors to say for which process */
};

struct why_waiter {
    struct look_process process; /* has the node's name as name if `elsewhere` */
    bool elsewhere;
};

struct why_shape {
    char shape[80], senders[WHY_SOME][300]; /* senders: a pid, or a pid and its node */
    int64_t count;
    unsigned nsenders;
};

struct why_look {
    struct why_row chain[WHY_CHAIN];
    unsigned n;
    int64_t cycle; /* index of the row that the last row waits for; -1: none */
    bool sure;     /* the cycle is a deadlock; false: the node guessed, or the processes still run */
    bool deep;     /* the chain may be longer than the answer */
    struct ps_row self;
    bool messages_known;
    struct why_shape shapes[WHY_SHAPES];
    unsigned nshapes;
    int64_t waiters;  /* number of processes that wait for its reply; -1: unknown */
    int64_t monitors; /* number of further processes that monitor it, and may wait */
    struct why_waiter waiter[WHY_SOME];
    unsigned nwaiters;
    int64_t at; /* loop_now() time of the answer */
};

bool why_read(struct etf r, struct why_look *ret, struct funs *funs, struct err *e);

/* The results of several looks in a row. */
struct why_samples {
    struct why_row first, last;
    int64_t from, to; /* ms */
    /* Numbers of looks; queued: the process waited although its queue was not empty. */
    unsigned looks, silent, running, nif, collecting, queued;
    int64_t queue_least, queue_most;
    /* The figure fell between two looks, so the rate between the first and the last look is no steady growth. */
    bool queue_fell, memory_fell;
    int64_t minor, major; /* collections; for `major` a lower bound */
    struct why_top {
        struct look_frame frame;
        unsigned running, waiting; /* looks that found the process running, or waiting, in this function */
    } tops[WHY_TOPS];              /* innermost functions */
    unsigned ntops;
    bool counted;     /* `received` is known */
    int64_t received; /* messages that came between the first and the last look */
};

void why_sample(struct why_samples *s, const struct why_look *look);

enum why_cause {
    WHY_GONE,
    WHY_SILENT,
    WHY_DEADLOCK,
    WHY_CYCLE, /* probably a deadlock */
    WHY_SUSPENDED,
    WHY_EXITING,
    WHY_NIF,
    WHY_WAITS,
    WHY_COLLECTS,
    WHY_SOCKET,
    WHY_GROWS,
    WHY_RUNS,
    WHY_SCANS,
    WHY_UNMATCHED,
    WHY_OWES,
    WHY_WORKS,
    WHY_SLEEPS,
    WHY_IDLE,
    WHY_CAUSES
};
extern const char *const why_causes[WHY_CAUSES]; /* the words in JSON */

enum why_cause why_cause_of(const struct why_look *l, const struct why_samples *s);
double why_rate(const struct why_samples *s, int64_t from, int64_t to); /* per second */
/*
 * Returns true if the process has not run. Each look costs it one reduction, and the details some more; it has spent no
 * others.
 */
bool why_has_not_run(const struct why_samples *s);
/*
 * Returns the function that most looks find running; NULL: unknown. Leaves out a function in which a look found the
 * process waiting, because a process answers at its receive, whatever it did before.
 */
const struct why_top *why_busiest(const struct why_samples *s);
/* Returns the number of messages that the process took from its queue; 0: none, or unknown. */
int64_t why_taken(const struct why_samples *s);

bool why_in_suspend(const struct why_row *x); /* by sys:suspend/1 */

/* The port, connection or socket for which the innermost function of a process waits. */
enum why_io {
    WHY_NO_IO,
    WHY_PORT_IO,    /* a busy port */
    WHY_DIST_IO,    /* a busy connection to another node */
    WHY_SEND_IO,    /* a socket takes no more data */
    WHY_RECEIVE_IO, /* a socket has no data or no connection */
    WHY_COMMAND_IO, /* a command of the operating system */
};
enum why_io why_io_of(const struct why_row *x);

#endif
