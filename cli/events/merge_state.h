/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a merge. Only merge.c and merge_state.c include this header; merge_state.c saves and restores them.
 */
#ifndef ETRACE_MERGE_STATE_H
#define ETRACE_MERGE_STATE_H

#include "merge.h"
#include "ticks.h"

#define MERGE_RINGS 4096 /* limit of rings; no VM has as many threads */

/* The batch that a part of a ring's held bytes came from. Error messages name it. */
struct piece {
    size_t at;     /* offset of the part in `held` */
    uint64_t seq;  /* number of the batch */
    size_t offset; /* offset of the part in the batch */
};

struct ring {
    struct decode_ring decode;
    const uint8_t *at, *end; /* unread bytes: first in `held`, then in the batch's section */
    const uint8_t *section, *section_end;
    bool in_held;
    struct decode_head head; /* head of the frame at `at` */
    struct buf held;
    struct piece *pieces;
    size_t npieces, cap;
    uint64_t seen, lost[ETW_LOSSES]; /* cumulative counters from the section headers */
    uint64_t told[ETW_LOSSES];       /* losses already reported as events */
    uint64_t fresh[ETW_LOSSES];      /* losses in the latest event that reported losses; event.lost points here */
    /*
     * The ring has new losses whose place between the events is not known yet, because only a section header or an
     * unread frame reports them (recompute_doubt()).
     */
    bool doubtful;
};

struct merge {
    struct event_node node;
    struct decode_node decode;
    struct ring **rings; /* all rings but `meta`, in order of appearance */
    size_t nrings, cap;
    struct ring *by_id[MERGE_RINGS];
    struct ring meta;         /* the frames of the node's owner process */
    struct decode_ring namer; /* reads the frames of `meta` ahead of time, for the names in them */

    struct ring **heap; /* min-heap of rings with unread frames, by tick */
    size_t nheap;
    unsigned doubtful; /* number of doubtful rings */
    struct ticks ticks;
    int64_t ahead_ns; /* how far the wall clock of the run before was ahead of its monotonic clock, if `anew` */
    bool anew;        /* the first batch of a further run is due */
    struct str batch;
    struct etw_batch head;
    uint64_t next_seq;
    uint64_t watermark;
    bool ending, failed;
    struct err why;             /* the error to report after the events before it are returned */
    size_t held;                /* held bytes of all rings */
    int64_t last_mono, told_ns; /* time of the last event, and of the last report by tell_remainder() */
    bool remainder_told;        /* tell_remainder() has nothing more to do until the next batch */
    uint64_t remainder[ETW_LOSSES];
    uint64_t from;  /* a snapshot has every event after this tick; older events count as overwritten */
    bool gap;       /* a snapshot begins, and the events that were overwritten before it are not reported yet */
    bool begins;    /* the notice of a snapshot is due: it is reported before the events of the snapshot */
    uint64_t older; /* events before the snapshot that were ignored and not reported yet */

    struct merge_counts before; /* totals of earlier runs of the node */
    bool cut;                   /* an earlier run ended without its last batch */
    uint64_t decoded, tallied;  /* tallied: events that the node counted and did not send */
    bool last;
    struct buf text, hello;
    struct buf name, otp, tracee_name; /* node name, node version, name of the latest named process */
    struct {
        struct safe name; /* empty: the latest event has named no process */
        uint64_t id;
        bool registered;
    } learned; /* a process name from the latest event, see learn_name() */
    struct buf learned_name;
};

/*
 * Ends the current run: adds its counts to those of the earlier runs, sets `cut` if its last batch is missing, and
 * releases its rings.
 */
void merge_begin_anew(struct merge *m);
struct ring *merge_ring(struct merge *m, uint32_t id); /* returns NULL if `id` is out of range */
void merge_read_hello(struct merge *m, const struct event *e);

#endif
