/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores the list of probes: their labels and states, and their texts for requests and for the scrollback. It sends
 * nothing; repl_probes.c sends the requests.
 */
#ifndef ETRACE_REPL_PROBE_LIST_H
#define ETRACE_REPL_PROBE_LIST_H

#include "../trace/exprs.h"
#include "../ground/buf.h"

struct probe {
    char *label, *text;
    char *records;         /* text of a header that defines the records in the probe; NULL: it uses none */
    size_t number, nspecs; /* number of its first spec, which is never reused, and number of its specs */
    uint64_t since;        /* mark of the first request with this probe; NO_REQUEST: it was not in a request yet */
    bool stopped;
    bool fresh; /* a node has not accepted the probe yet */
    bool told;  /* the probe was in a request, so its events may still arrive */
    bool gone;  /* the user has dropped the probe; it stays in the list while `told` is true */
};

#define NO_REQUEST UINT64_MAX /* greater than the mark of any request */

struct probe_list {
    struct probe *items;
    size_t count, cap;
    size_t numbers;  /* number of all specs that were ever added, including those of dropped probes */
    unsigned labels; /* the last number that was used as a label */
};

void probe_list_release(struct probe_list *l);

/*
 * Adds a probe, and drops the older probe that has the same label. `labelled` is the length of the label in `line`,
 * with its colon; 0: there is none, so the label becomes a number.
 */
void probe_list_add(struct probe_list *l, const char *line, size_t labelled, const char *expr, size_t nspecs,
                    const struct buf *records);
/*
 * Drop, stop or resume the probe with this label, or all probes if `label` is NULL or "all". probe_list_stop() resumes
 * if `stopped` is false. Return false if no probe has the label.
 */
bool probe_list_drop(struct probe_list *l, const char *label);
bool probe_list_stop(struct probe_list *l, const char *label, bool stopped);
/*
 * Drops probes that some node has not accepted, but only those that no request up to this mark contained. Returns false
 * if it has dropped none.
 */
bool probe_list_drop_fresh(struct probe_list *l, uint64_t mark);
void probe_list_accept(struct probe_list *l); /* marks all probes as accepted by all nodes */
/* Returns the number of probes that are neither stopped nor dropped. */
size_t probe_list_running(const struct probe_list *l);

/*
 * Call probe_list_texts() to get the texts for a request, and probe_list_begin() when the request is sent.
 * probe_list_begin() stores the mark of the request in new probes, and frees dropped probes. With `keep`, it keeps
 * dropped probes, because their events may still arrive.
 */
void probe_list_texts(const struct probe_list *l, struct texts *ret);
void probe_list_begin(struct probe_list *l, uint64_t mark, bool keep);

/* Returns true if events may still arrive of a probe that is stopped or dropped. */
bool probe_list_has_ended(const struct probe_list *l);
/*
 * Appends the running probes in the format of a recording. With `told`, also appends stopped and dropped probes whose
 * events may still arrive.
 */
void probe_list_specs(const struct probe_list *l, const struct what_opts *what, const struct exprs *exprs, bool told,
                      struct buf *to);

void probe_list_print(const struct probe_list *l, struct buf *to);
void probe_list_labels(const struct probe_list *l, void (*each)(void *data, const char *label), void *data);

#endif
