/*
 * What pages and files for other tools say about a trace as a whole: where it was made, what was asked for, what is
 * missing. Gathered from the events, so that a live trace and its recording say the same.
 */
#ifndef ETRACE_PAGE_H
#define ETRACE_PAGE_H

#include "axis.h"

#define PAGE_ASKED 8

struct page {
    struct axis axis;
    const struct spec *last;
    struct str asked[PAGE_ASKED]; /* copies of the expressions' texts */
    unsigned nasked;
    bool asked_more;
    const struct event_node *nodes[8];
    unsigned nnodes;
    int64_t end_ns; /* on the axis */
};

void page_release(struct page *p);
/* Every traced event goes through here; its time on the axis. */
int64_t page_event(struct page *p, const struct event *e);

/* A JSON string that is safe inside of <script> and CDATA, too. */
void page_string(struct buf *to, struct raw text);
/* shop@h1 · shop_stock:_ -> return · 4 events lost (guard) */
void page_title(const struct page *p, struct buf *to, struct str missing);
/* "title":"…","start":"2026-…Z","end_ns":…,"missing":["…"] */
void page_members(const struct page *p, struct buf *to, struct str missing);
/* The lines of ends_missing() and the like without their stars: a, b, c. */
void page_missing(struct str lines, struct buf *to, const char *between);

#endif
