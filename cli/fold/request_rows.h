/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums figures of requests by server and shape. A time that is not known is not counted; the other times of the request
 * are. Bounded: requests after the first REQUEST_ROWS rows share the last row.
 */
#ifndef ETRACE_REQUEST_ROWS_H
#define ETRACE_REQUEST_ROWS_H

#include "../events/process_name.h"
#include "request_pairs.h"
#include "stats.h"

#define REQUEST_ROWS 2048

struct request_row {
    const struct event_node *node; /* NULL: all nodes together */
    uint32_t label, shape;         /* keys: the server, the request */
    bool elixir;
    uint64_t calls;   /* requests, including open ones */
    uint64_t callers; /* requests whose caller was traced */
    uint64_t timed_out, late, down;
    struct stat waited, worked, reply;
    struct request_wait longest; /* ns 0: none */
    /* Requests without a reply, at the last request_rows_open(). */
    uint64_t open, open_timed;
    /* requests that may have ended, because events were lost; `open` does not count them */
    uint64_t uncertain;
    uint64_t open_ns;                /* sum of the ages of open requests, without the waits that `waited` contains */
    int64_t oldest_ns;               /* the age of the oldest open request; -1: unknown */
    struct request_wait waits_still; /* the longest wait of an open request; ns 0: none */
};

struct request_rows {
    bool by_node;
    struct request_pairs *pairs;
    struct process_names *servers; /* count only requests to these processes; NULL: to all */
    struct request_row *items;
    size_t n, cap;
    struct table by_key;
    /*
     * Requests of traced callers that no traced process has received. elsewhere_open: those that are still open
     * although their callers have stopped waiting.
     */
    uint64_t elsewhere, elsewhere_open;
    const struct request *oldest; /* the oldest open request with a known age, until the next event; NULL: none */
};

void request_rows_release(struct request_rows *s);
/* Returns true if the request is to be shown: its server was seen, and is one of `servers`. */
bool request_is_shown(const struct request_rows *s, const struct request *r);
/* Handlers for the callbacks of struct request_pairs. */
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
/* Returns the longest wait of a row, over or still going on. */
const struct request_wait *request_row_longest(const struct request_row *r);
/* Returns the key of a server in tables: its callback module, else its name, else its pid. */
uint32_t request_label(struct request_pairs *p, const struct request *r);

#endif
