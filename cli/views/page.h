/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of a trace that pages and export files show: nodes, request and missing events. Collected from the
 * events, so a live trace and its recording give the same.
 */
#ifndef ETRACE_PAGE_H
#define ETRACE_PAGE_H

#include "../ground/json.h"
#include "axis.h"

#define PAGE_ASKED 8

struct page {
    struct axis axis;
    const struct spec *last;
    struct str exprs[PAGE_ASKED]; /* copies of the expressions */
    unsigned nasked;
    bool asked_more;
    const struct event_node *nodes[8];
    unsigned nnodes;
    int64_t end_ns; /* time of the end on the axis */
};

void page_release(struct page *p);
/* Call it for every traced event. Returns the event's time on the axis. */
int64_t page_event(struct page *p, const struct event *e);

/* Like json_string(), and safe inside <script> and CDATA. */
void page_string(struct buf *to, struct raw text);
/* shop@h1 · shop_stock:_ -> return · 4 events lost (guard) */
void page_title(const struct page *p, struct buf *to, struct str missing);
/* "title":"…","start":"2026-…Z","end_ns":…,"missing":["…"] */
void page_members(const struct page *p, struct buf *to, struct str missing);
/* Appends the lines of missing_report() without their stars, separated by `between`. */
void page_missing(struct str lines, struct buf *to, const char *between);

#endif
