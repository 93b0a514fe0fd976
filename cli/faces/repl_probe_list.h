/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the list of probes: their labels, their states, and their texts for requests and for the scrollback. The list
 * knows no nodes; repl_probes.c sends the requests.
 */
#ifndef ETRACE_REPL_PROBE_LIST_H
#define ETRACE_REPL_PROBE_LIST_H

#include "../trace/exprs.h"
#include "../ground/buf.h"

struct probe {
    char *label, *text;
    char *records;         /* text of a header that defines the records of the probe; NULL: the probe has none */
    size_t number, nspecs; /* number of the first spec, never reused, and the number of specs */
    uint64_t since;        /* mark of the first request that contains the probe; NO_REQUEST: no request does */
    bool stopped;
    bool fresh; /* some node has not accepted the probe yet */
    bool told;  /* events of the probe may still arrive */
    bool gone;  /* the user has dropped the probe; it stays in the list while `told` is true */
};

#define NO_REQUEST UINT64_MAX /* greater than every mark of a request */

struct probe_list {
    struct probe *items;
    size_t count, cap;
    size_t numbers;  /* number of all specs so far, also of dropped probes */
    unsigned labels; /* last number that was chosen as a label */
};

void probe_list_release(struct probe_list *l);

/*
 * Adds a probe, and drops an older probe of the same label. `labelled` is the length of the label in `line`; 0: the
 * line has none, so the probe gets a number as its label.
 */
void probe_list_add(struct probe_list *l, const char *line, size_t labelled, const char *expr, size_t nspecs,
                    const struct buf *records);
/*
 * Drop, stop or (`stopped` false) resume a probe; NULL and "all" mean all probes. Return false if no probe has the
 * label.
 */
bool probe_list_drop(struct probe_list *l, const char *label);
bool probe_list_stop(struct probe_list *l, const char *label, bool stopped);
/*
 * Drops the probes that some node has not accepted, if their first request came after the request with this mark or has
 * not been sent. Returns false if there are none.
 */
bool probe_list_drop_fresh(struct probe_list *l, uint64_t mark);
void probe_list_accept(struct probe_list *l); /* marks all probes as accepted by all nodes */
/* Returns the number of probes that are neither stopped nor dropped. */
size_t probe_list_running(const struct probe_list *l);

/*
 * probe_list_texts() returns the texts for the next request. probe_list_begin() notes the mark of this request in new
 * probes, and frees dropped probes. If `keep` is true, events of ended probes may still arrive, so dropped probes are
 * kept.
 */
void probe_list_texts(const struct probe_list *l, struct texts *ret);
void probe_list_begin(struct probe_list *l, uint64_t mark, bool keep);

/* Returns true if events of probes that no longer run may still arrive. */
bool probe_list_has_ended(const struct probe_list *l);
/*
 * Appends the running probes in the format of a recording; with `told`, also ended probes whose events may still
 * arrive.
 */
void probe_list_specs(const struct probe_list *l, const struct what_opts *what, const struct exprs *exprs, bool told,
                      struct buf *to);

void probe_list_print(const struct probe_list *l, struct buf *to);
void probe_list_labels(const struct probe_list *l, void (*each)(void *data, const char *label), void *data);

#endif
