/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a node tells about one process (nif/tracer_why.hrl), and finds the cause of what it does. */
#ifndef ETRACE_WHY_LOOK_H
#define ETRACE_WHY_LOOK_H

#include "ps_rows.h"

#define WHY_CHAIN 17 /* one more than the node's limit */
#define WHY_FRAMES 12
#define WHY_SHAPES 8
#define WHY_SOME 4
#define WHY_TOPS 64

struct why_row {
    struct look_process process; /* with the node's name if `answer` is elsewhere */
    char answer[16];             /* known, silent, gone, elsewhere; the rest only if it is known */
    char status[24];
    struct look_frame stack[WHY_FRAMES]; /* the innermost first */
    unsigned nstack;
    int64_t queue, reductions, memory;
    int64_t minor; /* minor collections since the last major one */
    int64_t among; /* it waits for one of so many processes; 0: for none */
    bool nif;      /* the innermost function is a NIF */
    bool loop;     /* the innermost function is the loop of a behaviour, which waits for any message */
    bool many;     /* it waits, but has too many links and monitors to tell for which process */
};

struct why_waiter {
    struct look_process process; /* with the node's name if `elsewhere` */
    bool elsewhere;
};

struct why_shape {
    char shape[80], senders[WHY_SOME][300]; /* a pid, or a pid and its node */
    int64_t count;
    unsigned nsenders;
};

struct why_look {
    struct why_row chain[WHY_CHAIN];
    unsigned n;
    int64_t cycle; /* the row that the last row waits for; -1: none */
    bool sure;     /* the cycle is a deadlock; false: the node guessed, or the processes still run */
    bool deep;     /* the chain may be longer */
    struct ps_row self;
    bool messages_known;
    struct why_shape shapes[WHY_SHAPES];
    unsigned nshapes;
    int64_t waiters;  /* processes that wait for its reply; -1: unknown */
    int64_t monitors; /* further processes that monitor it, and may wait */
    struct why_waiter waiter[WHY_SOME];
    unsigned nwaiters;
    int64_t at; /* when the answer came: ms of loop_now() */
};

bool why_read(struct etf r, struct why_look *ret, struct funs *funs, struct err *e);

/* The results of several looks in a row. */
struct why_samples {
    struct why_row first, last;
    int64_t from, to;                                         /* ms */
    unsigned looks, silent, running, nif, collecting, queued; /* queued: it waited although its queue was not empty */
    int64_t queue_least, queue_most;
    /* between two looks: the rate between the first and the last look is no steady growth */
    bool queue_fell, memory_fell;
    int64_t minor, major; /* collections; major: at least so many */
    struct why_top {
        struct look_frame frame;
        unsigned running, waiting; /* looks that found the process running or waiting there */
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
extern const char *const why_causes[WHY_CAUSES]; /* the words of JSON */

enum why_cause why_cause_of(const struct why_look *l, const struct why_samples *s);
double why_rate(const struct why_samples *s, int64_t from, int64_t to); /* per second */
/* Each look costs the process one reduction, and the details some more: with no others it has not run. */
bool why_has_not_run(const struct why_samples *s);
/*
 * The function that most looks find running. One in which a look found the process waiting is left out, because a
 * process answers at its receive, whatever it did before. NULL: unknown.
 */
const struct why_top *why_busiest(const struct why_samples *s);
int64_t why_taken(const struct why_samples *s); /* messages that the process took from its queue; 0: none, or unknown */

bool why_in_suspend(const struct why_row *x); /* by sys:suspend/1 */

/* The port, connection or socket that the innermost function of a process waits for. */
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
