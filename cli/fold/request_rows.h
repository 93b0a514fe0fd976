/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums figures of requests by server and shape. If one duration of a request is unknown, its other durations still
 * count. Bounded: after REQUEST_ROWS rows, all further servers and shapes share one row.
 */
#ifndef ETRACE_REQUEST_ROWS_H
#define ETRACE_REQUEST_ROWS_H

#include "../events/process_name.h"
#include "request_pairs.h"
#include "stats.h"

#define REQUEST_ROWS 2048

struct request_row {
    const struct event_node *node; /* NULL: all nodes together */
    uint32_t label, shape;         /* the keys of the server and of the request's shape */
    bool elixir;
    uint64_t calls;   /* number of requests, including open ones */
    uint64_t callers; /* number of requests whose caller was traced */
    uint64_t timed_out, late, down;
    struct stat waited, worked, reply;
    struct request_wait longest; /* the longest wait that is over; ns 0: none */
    /*
     * The requests without a reply at the last request_rows_open(). open_timed: those whose caller has stopped waiting,
     * also if they count in `uncertain`.
     */
    uint64_t open, open_timed;
    /* Requests that may have ended unseen, because events were lost. `open` does not count these requests. */
    uint64_t uncertain;
    uint64_t open_ns;                /* sum of the ages of open requests, without the waits that are in `waited` */
    int64_t oldest_ns;               /* the age of the oldest open request; -1: unknown */
    struct request_wait waits_still; /* the longest wait of an open request; ns 0: none */
};

struct request_rows {
    bool by_node;
    struct request_pairs *pairs;
    struct process_names *servers; /* count only requests to these processes; NULL: to all processes */
    struct request_row *items;
    size_t n, cap;
    struct table by_key;
    /*
     * Numbers of requests that no traced process has received. `elsewhere` counts the settled ones. `elsewhere_open`
     * counts the open ones whose caller has received the reply or stopped waiting.
     */
    uint64_t elsewhere, elsewhere_open;
    const struct request *oldest; /* the oldest open request with a known age, until the next event; NULL: none */
};

void request_rows_release(struct request_rows *s);
/* Returns true if the request is to be shown: its server was seen, and is one of `servers`. */
bool request_is_shown(const struct request_rows *s, const struct request *r);
/* Count a request. Call them from the callbacks with these names of struct request_pairs. */
void request_rows_begun(struct request_rows *s, struct request *r);
void request_rows_settled(struct request_rows *s, struct request *r);
void request_rows_got(struct request_rows *s, const struct request *r);
void request_rows_gave_up(struct request_rows *s, const struct request *r);
/*
 * Adds the open requests to the rows. Sorts the rows by the total duration of their requests; an open request counts
 * with its duration so far.
 */
void request_rows_open(struct request_rows *s);
bool request_rows_of_several(const struct request_rows *s); /* returns true if the rows are of several servers */
/* Returns the longest wait of a row, whether the wait is over or not. */
const struct request_wait *request_row_longest(const struct request_row *r);
/* Returns the key of the server of a request: its callback module or, if unknown, its name, or its pid. */
uint32_t request_label(struct request_pairs *p, const struct request *r);

#endif
