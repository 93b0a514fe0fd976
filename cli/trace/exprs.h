/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds the expressions of one command. Reads them from arguments and files, compiles them for a node's OTP release and
 * builds the request that arms a session. Owns all memory of the specs: pointers to specs are valid until
 * exprs_release().
 */
#ifndef ETRACE_EXPRS_H
#define ETRACE_EXPRS_H

#include "../lang/by_node.h"
#include "../lang/lang.h"
#include "../node/arm.h"
#include "../node/session.h"
#include "ctx.h"
#include "plan.h"
#include "settings.h"

struct exprs {
    struct arena arena;
    const struct spec **specs;
    size_t count, cap;
    const struct where **wheres;
    size_t nwheres;
    const struct spec_by *by; /* the compiled `by_text`; NULL: none */
    unsigned needs;           /* PROPERTY_NEEDS_RETURN and _CALLER, if `wheres` or `by` need results and callers */
    struct str *headers;      /* the texts of the --hrl files */
    size_t nheaders;
    /*
     * The caller may set these members before it compiles. See struct lang_options for `dumps`. find_record() looks up
     * records that no header defines.
     */
    struct buf *const *dumps;
    enum lang_found (*find_record)(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                                   struct arena *a, struct lang_lookup *ret);
    void *find_data;
    const char *by_text; /* keys and aggregates that count all events; NULL: none */
    /* Counters (count, time, memory) are allowed. Otherwise they are an error, because a trace does not show them. */
    bool may_count;
};

/*
 * Reads headers that are no regular files into what->pipes: a pipe can be read only once, but the expressions are
 * compiled again for every node. Skips headers that were read before. Waits and serves the loop meanwhile. The owner of
 * `what` releases what->pipes; the texts live in the arena.
 */
bool exprs_pipes(struct ctx *ctx, struct what_opts *what, struct arena *a, struct err *e);

void exprs_init(struct exprs *p);
void exprs_release(struct exprs *p);

/*
 * Appends the words and the texts of the -f files to *ret. Call it once, because a file may be a pipe. It may wait, and
 * serves the loop meanwhile. The caller releases *ret and the arena.
 */
bool exprs_texts(struct ctx *ctx, const struct what_opts *what, const struct texts *words, struct arena *a,
                 struct texts *ret, struct err *e);

/*
 * Compiles the texts and the filters for OTP release `otp`; 0 accepts the features of every release. The specs also
 * collect the results and callers that the filters and what->needs require. Call it once. A NULL text stands for a
 * deleted spec: the specs after it keep their numbers.
 */
bool exprs_compile(struct exprs *p, const struct what_opts *what, const struct texts *texts, const struct texts *wheres,
                   int otp, struct err *e);

/*
 * A find_record callback for use before a node can be asked. Accepts every record, and sets the bool at `data` to true.
 */
enum lang_found exprs_later(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                            struct arena *a, struct lang_lookup *ret);

/*
 * Checks the regular expressions of selectors and filters. The node compiles the regular expressions of selectors
 * again.
 */
bool exprs_regexes(const struct exprs *p, struct err *e);

/* Returns true if all expressions have the same keys, and the node can count by them. *ret gets the keys. */
bool exprs_by_node(const struct exprs *p, struct by_node *ret);

/* Returns true if the events of an expression are counted by keys. */
bool exprs_counts(const struct exprs *p);

void exprs_warn(const struct exprs *p, struct ctx *ctx);

/* How to build the request to one node. */
struct exprs_how {
    struct plan plan; /* the plan of the trace, after plan_follow_roots() */
    struct arm_mark mark;
    const struct str *unknown; /* the names of exprs_atoms() that are no atoms on the node */
    size_t nunknown;
    bool selects;   /* a question: describe only which functions the expressions select */
    bool *compared; /* one flag for each of `unknown`, or NULL; set if a pattern or guard compares with this atom */
};

/* Appends the name of each atom in the expressions, as encoded binaries. Returns the number of names. */
size_t exprs_atoms(const struct exprs *p, struct buf *ret_names);

/* Appends the processes that -P selects, as an encoded list for the node. */
bool exprs_whom(const struct texts *procs, const struct session_node *node, struct buf *ret_list, struct err *e);

/* Appends the argument of arm_request() for one node. Local pids in expressions become pids of that node. */
bool exprs_arm(const struct exprs *p, const struct what_opts *what, const struct session_node *node,
               struct exprs_how how, struct buf *ret_asked, struct err *e);

/*
 * Returns true if the node can decide which calls to count. The node has one filter for all expressions, so their
 * conditions (`where` and `extra`) must be the same. *ret_filter gets the filter; empty: the node counts all calls.
 */
bool exprs_filter(const struct exprs *p, const struct where *const *extra, size_t n, struct buf *ret_filter);

/*
 * Checks that a flight recorder on the nodes can trace the expressions. A node counts what its rings overwrite, but not
 * what it keeps outside of the rings until a root returns. After false, e has the reason.
 */
bool exprs_may_overwrite(const struct exprs *p, struct err *e);

/*
 * Sets *ret_filter to the condition of a trigger for these expressions. After false, e says why the node cannot decide
 * it.
 */
bool exprs_trigger(const struct exprs *p, const struct where *condition, const char *text, struct buf *ret_filter,
                   struct err *e);
/* Checks that the probe names a system event. The node can trigger a snapshot only by system events. */
bool exprs_system_trigger(const char *probe, struct err *e);

/*
 * Returns true if the node can keep each call until its result, and drop both if they fail the filter in *ret_filter.
 * That filter is the client's filter or a part of it; the client still applies its own filter. Returns false if a call
 * may not report its result.
 */
bool exprs_hold(const struct exprs *p, const struct where *const *extra, size_t n, struct buf *ret_filter);

/* Returns true if a filter or a key may read the sender of a received message. */
bool exprs_reads_sender(const struct exprs *p);

/* Returns true if a key or an aggregate of an event depends on earlier events. */
bool exprs_counts_around(const struct exprs *p);

struct arm_pattern exprs_pattern(const struct sel_name *name);

/*
 * Returns the kinds of events that the expressions need, one bit for each. *ret_besides gets the kinds that are only
 * needed for pairing and not shown, such as the start of a garbage collection for its duration.
 */
uint64_t exprs_kinds(const struct exprs *p, uint64_t *ret_besides);

/* ---- shared by the files exprs*.c ---- */

const char *exprs_file_name(const char *path); /* returns the name of a file for messages */
/* Reads a --hrl file, or takes the text that exprs_pipes() has read. */
bool exprs_read_header(const struct what_opts *what, const char *path, struct buf *b, struct err *e);

/* Returns the first root whose result decides whether to show what happened inside of it; NULL: no such root. */
const struct spec *exprs_deciding_root(const struct exprs *p);
/* Appends the condition of a deciding root for the node. Returns false if the node cannot evaluate it. */
bool exprs_root_steps(const struct spec *root, struct buf *ret_filter);
/*
 * Returns the trace flags that calls of roots set and clear on processes for this spec. Returns 0 unless the spec is a
 * root or is traced inside of roots.
 */
unsigned exprs_flags_by_roots(const struct spec *s);

#endif
