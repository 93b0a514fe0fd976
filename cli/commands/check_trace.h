/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces one node for `etrace check --for`, because events can begin and end between two looks. Counts the system
 * events of the node, and the senders of messages to the processes with a long queue. check_unseen.c decides which
 * counts become findings.
 *
 * The node sends at most CHECK_TRACE_RATE messages and CHECK_TRACE_RATE system events a second. It counts the rest as
 * lost. Only the processes with a long queue have a trace flag, at most CHECK_INBOXES of them. The memory here is
 * bounded: at most CHECK_EVENT_ROWS rows for each kind of event, and SENDERS_MOST senders for each queue.
 */
#ifndef ETRACE_CHECK_TRACE_H
#define ETRACE_CHECK_TRACE_H

#include "../pipeline/pipeline.h"
#include "../trace/prepare.h"
#include "sender_counts.h"

#define CHECK_TRACE_RATE 1000
#define CHECK_EVENT_ROWS 100
#define CHECK_INBOXES 6
/* Bytes of the heap of a process from which on the node reports its collections. */
#define CHECK_HEAP_LEAST (256 << 20)

enum check_event {
    CHECK_LONG_GC,
    CHECK_LONG_SCHEDULE,
    CHECK_LARGE_HEAP,
    CHECK_BUSY_PORT,
    CHECK_BUSY_DIST_PORT,
    CHECK_EVENTS
};

/*
 * The events of one kind at the processes with one name, such as the workers of a pool, or at one process without a
 * name.
 */
struct check_event_row {
    enum check_event event;
    struct look_process process; /* of the event with the largest value; of the first event if they have no value */
    bool several;                /* other processes had such events, too */
    char where[140];             /* the function at the end of the time slice, or the busy port; empty: unknown */
    uint64_t count;
    int64_t most, sum; /* ms of a collection or time slice; bytes of a large heap */
    int64_t weight;    /* sum of MAX(value, 1) of the events, plus the weight of the row that this one has replaced */
};

/* The messages that arrived at one process and were sent to the client. */
struct check_inbox {
    char pid[32];
    int64_t from, to; /* loop_now() times between which its messages are traced; to is 0 while they are */
    uint64_t received;
    struct sender_counts by; /* sorted by check_trace_end() */
};

struct check_trace {
    bool on;          /* the node traces, or has traced */
    bool system;      /* the trace has system events */
    char why[512];    /* why there are no system events; empty: there are */
    int64_t from, to; /* loop_now() times of the beginning and the end of the trace */
    struct check_event_row rows[CHECK_EVENTS * CHECK_EVENT_ROWS];
    size_t nrows;
    struct check_inbox inboxes[CHECK_INBOXES];
    size_t ninboxes, late; /* late: number of inboxes, at the end of the array, that the current request adds */
    uint64_t received;     /* messages in all inboxes */
    uint64_t unseen;       /* further messages to these processes, which the node only counted */
    bool lossy;            /* system events were lost or rows replaced, so the counts of `rows` are too low */
    bool crowded;          /* rows were replaced: events of one kind had more processes than rows */
    /* The members below are private. */
    bool counts; /* the tracer can count messages by sender */
    struct ctx *ctx;
    struct session *session;
    struct pipeline *pipeline;
    struct prepare *prepare;
    struct exprs exprs;
    struct what_opts what;
    struct texts words;
    struct view view;
    char heap_probe[40];
    int wordsize; /* bytes of a word of the node */
};

/* Must be called before the first batch, because the pipeline needs every batch. */
struct check_trace *check_trace_new(void);
void check_trace_free(struct check_trace *t); /* accepts NULL */

/* Adds a process whose messages are counted by sender, unless there are CHECK_INBOXES of them. */
void check_trace_inbox(struct check_trace *t, const char *pid);
/* Asks the node to trace. Returns false if there is nothing to trace on this node, or `why` says why not. */
bool check_trace_begin(struct check_trace *t, struct ctx *ctx, struct session *s);
/*
 * Asks the node to trace the processes that check_trace_inbox() has added meanwhile, too. Returns false if there is
 * nothing to ask.
 */
bool check_trace_again(struct check_trace *t);
/*
 * Handles a refusal: takes out of the request what the reason `why` names, so that another request can succeed. That is
 * a process that has exited, or else the new processes, or else all processes, and at last the system events. Keeps
 * what was counted.
 */
void check_trace_refuse(struct check_trace *t, const char *why);
/* Takes a reply of the node. Returns true when the node traces, or has refused it. */
bool check_trace_reply(struct check_trace *t, const struct session_reply *reply);

void check_trace_batch(struct check_trace *t, const void *batch, size_t len);
/* Counts an event in its row. Without room for a new row, replaces the row of its kind with the smallest weight. */
void check_trace_count(struct check_trace *t, enum check_event event, const struct look_process *process,
                       const char *where, int64_t value);

/*
 * Sorts the senders, and appends the pids of the most frequent ones of each queue, for look_names_request(). Returns
 * the number of pids.
 */
size_t check_trace_pids(struct check_trace *t, struct buf *pids);
bool check_trace_names(struct check_trace *t, struct etf names);
void check_trace_end(struct check_trace *t); /* must be called after the last batch */

static inline int64_t check_traced_ms(const struct check_trace *t) /* how long the node has traced */
{
    return t->to - t->from;
}

#endif
