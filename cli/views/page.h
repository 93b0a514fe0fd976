/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the context of a trace that pages and export files show: nodes, expressions and missing events. The context
 * comes only from the events, so a live trace and its recording have the same context.
 */
#ifndef ETRACE_PAGE_H
#define ETRACE_PAGE_H

#include "../ground/json.h"
#include "axis.h"

#define PAGE_ASKED 8

struct page {
    struct axis axis;
    const struct spec *last;
    struct str exprs[PAGE_ASKED]; /* the texts of the expressions; owned */
    unsigned nasked;
    bool asked_more;
    const struct event_node *nodes[8];
    unsigned nnodes;
    int64_t end_ns; /* time of the last event, on the axis */
};

void page_release(struct page *p);
/* Call it for every traced event. Returns the time of the event on the axis. */
int64_t page_event(struct page *p, const struct event *e);

/* Writes a JSON string that is safe inside of <script> and CDATA. */
void page_string(struct buf *to, struct raw text);
/* Writes shop@h1 · shop_stock:_ -> return · 4 events lost (guard) */
void page_title(const struct page *p, struct buf *to, struct str missing);
/* Writes "title":"…","start":"2026-…Z","end_ns":…,"missing":["…"] */
void page_members(const struct page *p, struct buf *to, struct str missing);
/* Writes the lines of missing_report() without their stars, separated by `between`. */
void page_missing(struct str lines, struct buf *to, const char *between);

#endif
