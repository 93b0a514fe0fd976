/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of probes: their labels, their states, and their texts for requests and for the scrollback. It knows no
 * nodes; repl_probes.c sends the requests.
 */
#ifndef ETRACE_REPL_PROBE_LIST_H
#define ETRACE_REPL_PROBE_LIST_H

#include "../trace/exprs.h"
#include "../ground/buf.h"

struct probe {
    char *label, *text;
    char *records;         /* the text of a header that defines the probe's records; NULL: the probe has none */
    size_t number, nspecs; /* the number of the first spec, and the number of specs; spec numbers are never reused */
    uint64_t since;        /* the mark of the first request that contains the probe; NO_REQUEST: none does */
    bool stopped;
    bool fresh; /* some node has not accepted the probe yet */
    bool told;  /* events of the probe may still arrive */
    bool gone;  /* the user has dropped the probe; it stays while `told` */
};

#define NO_REQUEST UINT64_MAX /* greater than every mark */

struct probe_list {
    struct probe *items;
    size_t count, cap;
    size_t numbers;  /* number of specs so far */
    unsigned labels; /* number of labels that we chose */
};

void probe_list_release(struct probe_list *l);

/* Drops an older probe of the same label. `labelled`: the length of the label of `line`; 0: it gets a number. */
void probe_list_add(struct probe_list *l, const char *line, size_t labelled, const char *expr, size_t nspecs,
                    const struct buf *records);
/* In both functions NULL and "all" mean all probes. false: there is no such label. */
bool probe_list_drop(struct probe_list *l, const char *label);
bool probe_list_stop(struct probe_list *l, const char *label, bool stopped);
/* Drops the fresh probes that were not requested yet, or only after this mark. false: there are none. */
bool probe_list_drop_fresh(struct probe_list *l, uint64_t mark);
void probe_list_accept(struct probe_list *l);          /* no probe is fresh any longer */
size_t probe_list_running(const struct probe_list *l); /* number of probes that are neither stopped nor dropped */

/*
 * texts() returns the texts of the next request. begin() gives its mark to new probes, and frees dropped ones. With
 * `keep`, events of ended probes may arrive as long as `keep` is true.
 */
void probe_list_texts(const struct probe_list *l, struct texts *ret);
void probe_list_begin(struct probe_list *l, uint64_t mark, bool keep);

/* Whether events of probes that no longer run may still arrive. */
bool probe_list_has_ended(const struct probe_list *l);
/* Appends the running probes in the format of a recording. `told`: also ended probes whose events may still arrive. */
void probe_list_specs(const struct probe_list *l, const struct what_opts *what, const struct exprs *exprs, bool told,
                      struct buf *to);

void probe_list_print(const struct probe_list *l, struct buf *to);
void probe_list_labels(const struct probe_list *l, void (*each)(void *data, const char *label), void *data);

#endif
