/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of requests by server and shape. A time that is not known counts nowhere; the other times of the request do.
 * Bounded: requests after the first REQUEST_ROWS rows share the last one.
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
    /* events were lost, so these requests may have ended; `open` does not count them */
    uint64_t uncertain;
    uint64_t open_ns;                /* the sum of the ages of open requests, less the waits that `waited` has */
    int64_t oldest_ns;               /* the age of the oldest open request; -1: unknown */
    struct request_wait waits_still; /* the longest wait of an open request; ns 0: none */
};

struct request_rows {
    bool by_node;
    struct request_pairs *pairs;
    struct process_names *servers; /* count only requests to these; NULL: to all */
    struct request_row *items;
    size_t n, cap;
    struct table by_key;
    /* Requests of traced callers that no traced process has received. elsewhere_open: how many of these requests are
       still open although their callers have stopped waiting. */
    uint64_t elsewhere, elsewhere_open;
    const struct request *oldest; /* the oldest open request, until the next event; NULL: none whose age is known */
};

void request_rows_release(struct request_rows *s);
/* Whether the request is to be shown: its server was seen, and is one of `servers`. */
bool request_is_shown(const struct request_rows *s, const struct request *r);
/* For the callbacks of struct request_pairs. */
void request_rows_begun(struct request_rows *s, struct request *r);
void request_rows_settled(struct request_rows *s, struct request *r);
void request_rows_got(struct request_rows *s, const struct request *r);
void request_rows_gave_up(struct request_rows *s, const struct request *r);
/* Completes the rows with the requests that are open, and sorts them by the time that all took, open ones so far. */
void request_rows_open(struct request_rows *s);
bool request_rows_of_several(const struct request_rows *s); /* servers */
/* The longest wait of a row, whether it is over or not. */
const struct request_wait *request_row_longest(const struct request_row *r);
/* The key of a server in tables: its callback module, else its name, else its pid. */
uint32_t request_label(struct request_pairs *p, const struct request *r);

#endif
