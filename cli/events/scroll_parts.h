/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the scrollback, for scroll.c, which writes it, and scroll_reader.c. */
#ifndef ETRACE_SCROLL_PARTS_H
#define ETRACE_SCROLL_PARTS_H

#include "rebatch.h"
#include "merge.h"
#include "order.h"
#include "scroll.h"

struct scroll_piece {
    enum source_type type;
    unsigned node;
    bool hello;
    bool anew; /* first piece of a restarted node, whose clocks are new */
    bool last; /* a piece without events that stands for the last batch of a node */
    size_t bytes, events;
    uint64_t offset;                               /* sum of the bytes of all earlier pieces */
    int64_t first_ns;                              /* monotonic time of the first frame */
    uint64_t seen, lost[ETW_LOSSES];               /* the node's counts before this piece */
    uint64_t seen_behind, lost_behind[ETW_LOSSES]; /* the node's counts after this piece */
    char data[];
};

struct scroll_mark {
    uint64_t mark;
    int64_t mono_ns;
};

struct scroll_node {
    struct merge *merge;
    struct rebatch rebatch;
    uint64_t seen; /* seen, lost: counts of the events that are in pieces already */
    uint64_t lost[ETW_LOSSES];
    struct scroll_mark *marks; /* marks that the node has confirmed, in order; no event after them has come out yet */
    size_t nmarks, marks_cap;
    struct buf clock; /* the latest clock note, for readers that start later */
    bool anew;
    bool snaps;               /* a snapshot has begun and has not ended */
    uint64_t begun;           /* number of snapshots that have begun */
    int64_t mono_ns, wall_ns; /* times of the latest event or hello; set only if scroll.recorders is set */
    int64_t reach_us;         /* how far back the latest snapshot reaches; -1: nothing was overwritten */
};

struct scroll_request {
    uint64_t mark;
    char *text;
    size_t len;
};

struct scroll {
    size_t max, bytes;
    struct funs funs;
    struct scroll_node *nodes[EVENT_NODES];
    struct scroll_piece **pieces; /* entries begin at `head`; the oldest one has the number `first` */
    size_t head, count, cap;
    uint64_t first;
    struct scroll_piece *specs_before; /* the request in force before the oldest piece; NULL: none */
    struct scroll_request *specs;      /* requests without any event yet */
    size_t nspecs, specs_cap;
    uint64_t events, dropped, taken, mark;
    uint64_t offset; /* total bytes of all pieces since the start */
    enum scroll_recorders recorders;
    struct buf text;
};

#endif
