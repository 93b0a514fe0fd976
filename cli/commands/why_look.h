/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what a node reports about one process (nif/tracer_why.hrl), and determines why the process does not go on, or
 * what it does.
 */
#ifndef ETRACE_WHY_LOOK_H
#define ETRACE_WHY_LOOK_H

#include "ps_rows.h"

#define WHY_CHAIN 17 /* limit of the node for the length of a chain, plus one */
#define WHY_FRAMES 12
#define WHY_SHAPES 8
#define WHY_SOME 4
#define WHY_TOPS 64
#define WHY_PATIENCE_MS 300 /* how long a node waits for the answer of a process */

struct why_row {
    struct look_process process; /* if `answer` is "elsewhere", its name is the name of its node */
    char answer[16];             /* known, silent, gone or elsewhere; only if it is known, the members below are set */
    char status[24];
    struct look_frame stack[WHY_FRAMES]; /* innermost function first */
    unsigned nstack;
    int64_t queue, reductions, memory;
    bool least;    /* `memory` is a lower bound, because the queue is too long to measure its messages */
    int64_t minor; /* number of minor collections since the last major one */
    int64_t among; /* the process waits for one of this many processes; 0: it waits for no process */
    bool nif;      /* the innermost function is a NIF */
    bool loop;     /* the innermost function is the loop of a behaviour, where the process waits for any message */
    /*
     * Why the node cannot tell for which process this one waits. "many": it has too many links and monitors. "late": it
     * did not list them in time. "": the node can tell, or the process waits for none.
     */
    char untold[8];
};

struct why_waiter {
    struct look_process process; /* if `elsewhere`, its name is the name of its node */
    bool elsewhere;
};

struct why_shape {
    char shape[80], senders[WHY_SOME][300]; /* senders: each a pid, or a pid and its node */
    int64_t count;
    unsigned nsenders;
};

struct why_look {
    struct why_row chain[WHY_CHAIN];
    unsigned n;
    int64_t cycle; /* index of the row for which the process in the last row waits; -1: the chain is no cycle */
    bool sure;     /* the cycle is a deadlock; false: a part of it was guessed, or its processes still run */
    bool deep;     /* the chain may go on beyond the last row */
    struct ps_row self;
    bool messages_known;
    struct why_shape shapes[WHY_SHAPES];
    unsigned nshapes;
    int64_t waiters;  /* number of processes that wait for a reply of this process; -1: unknown */
    int64_t monitors; /* number of other processes that monitor this process and may wait for it */
    struct why_waiter waiter[WHY_SOME];
    unsigned nwaiters;
    int64_t at; /* loop_now() time of the answer */
};

/*
 * Appends a question about a process. `anew`: it is an error if the process has exited. `whole`: also about what it
 * waits for, its messages, who waits for it, and its details.
 */
void why_request(struct buf *to, struct str who, bool anew, bool whole);
bool why_read(struct etf r, struct why_look *ret, struct funs *funs, struct err *e);

/* A summary of several looks at the same process. */
struct why_samples {
    struct why_row first, last;
    int64_t from, to; /* loop_now() times of the first and of the last look */
    /*
     * Numbers of looks: all, those without an answer, and those that found the process in a state. queued: it was
     * waiting although its queue was not empty.
     */
    unsigned looks, silent, running, nif, collecting, suspended, queued;
    int64_t queue_least, queue_most;
    /*
     * The figure was once lower than at the look before (the queue by more than a hundredth), so its growth from the
     * first to the last look is not steady.
     */
    bool queue_fell, memory_fell;
    int64_t minor, major; /* numbers of collections; `major` is a lower bound */
    struct why_top {
        struct look_frame frame;
        unsigned running, waiting; /* number of looks that found the process in this function, running or waiting */
    } tops[WHY_TOPS];              /* the innermost functions that looks have found */
    unsigned ntops;
    bool counted;     /* `received` is known */
    int64_t received; /* number of messages that arrived between the first and the last look */
};

void why_sample(struct why_samples *s, const struct why_look *look);

enum why_cause {
    WHY_GONE,
    WHY_SILENT,
    WHY_DEADLOCK,
    WHY_CYCLE, /* a probable deadlock */
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
extern const char *const why_causes[WHY_CAUSES]; /* names of the causes in JSON */

/* Returns true if the process did not answer at least a third of the looks. */
bool why_is_silent(const struct why_samples *s);
enum why_cause why_cause_of(const struct why_look *l, const struct why_samples *s);
/* Returns the growth per second of a figure that was `from` at the first look and `to` at the last one. */
double why_rate(const struct why_samples *s, int64_t from, int64_t to);
/* Returns true if the process has not run between the looks: it has used no more reductions than its answers cost. */
bool why_has_not_run(const struct why_samples *s);
/*
 * Returns the function in which most looks found the process running; NULL: unknown. Ignores functions in which a look
 * found the process waiting: a process that receives messages often answers there, even if it mainly runs elsewhere.
 */
const struct why_top *why_busiest(const struct why_samples *s);
/* Returns the number of messages that the process has taken from its queue; 0: none or unknown. */
int64_t why_taken(const struct why_samples *s);

bool why_in_suspend(const struct why_row *x); /* returns true if the process was suspended with sys:suspend/1 */

/* The resource for which the innermost function of a process waits. */
enum why_io {
    WHY_NO_IO,
    WHY_PORT_IO,    /* a busy port */
    WHY_DIST_IO,    /* a busy connection of the distribution to another node */
    WHY_SEND_IO,    /* a socket that does not accept more data */
    WHY_RECEIVE_IO, /* a socket without data, or without a connection */
    WHY_COMMAND_IO, /* a command that was started in the operating system */
};
enum why_io why_io_of(const struct why_row *x);

#endif
