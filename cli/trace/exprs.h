/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds the expressions of one command. Reads them from arguments and files, compiles them for a node's OTP release and
 * builds the request that arms a session. Owns all memory of the specs: pointers to them are valid until
 * exprs_release().
 */
#ifndef ETRACE_EXPRS_H
#define ETRACE_EXPRS_H

#include "../lang/lang.h"
#include "../node/arm.h"
#include "../node/session.h"
#include "ctx.h"
#include "settings.h"

struct exprs {
    struct arena arena;
    const struct spec **specs;
    size_t count, cap;
    const struct where **wheres;
    size_t nwheres;
    const struct spec_by *by; /* of `by_text` */
    unsigned needs;           /* PROPERTY_NEEDS_RETURN and _CALLER: parts of a call that `wheres` and `by` read */
    struct str *headers;      /* the texts of the --hrl files */
    size_t nheaders;
    /*
     * The caller sets these before it compiles, or leaves them NULL. `dumps` is that of struct lang_options.
     * find_record looks up records that no header defines.
     */
    struct buf *const *dumps;
    enum lang_found (*find_record)(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                                   struct arena *a, struct lang_lookup *ret);
    void *find_data;
    const char *by_text; /* keys and aggregates that count all events; NULL: none */
    /* Counters (count, time, memory) are allowed; otherwise they are an error, because a trace shows none. */
    bool may_count;
};

/*
 * Reads the headers that are not regular files into what->pipes: a pipe can be read only once, but every node compiles
 * the expressions again. Skips headers that were read before. Waits and serves the loop meanwhile. The owner of `what`
 * releases what->pipes; the texts live in the arena.
 */
bool exprs_pipes(struct ctx *ctx, struct what_opts *what, struct arena *a, struct err *e);

void exprs_init(struct exprs *p);
void exprs_release(struct exprs *p);

/*
 * Appends the words and the texts of the -f files to *ret. Call it once: a file may be a pipe. It may wait, and serves
 * the loop meanwhile. The caller releases *ret and the arena.
 */
bool exprs_texts(struct ctx *ctx, const struct what_opts *what, const struct texts *words, struct arena *a,
                 struct texts *ret, struct err *e);

/*
 * Compiles the texts and the filters for OTP release `otp`; 0 accepts the features of every release. Calls collect the
 * results and callers that the filters and what->needs require. Call it once. A NULL text is a deleted spec: the specs
 * after it keep their numbers.
 */
bool exprs_compile(struct exprs *p, const struct what_opts *what, const struct texts *texts, const struct texts *wheres,
                   int otp, struct err *e);

/* A find_record callback for use before any node can be asked. `data` is a bool, which the callback sets to true. */
enum lang_found exprs_later(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                            struct arena *a, struct lang_lookup *ret);

/* Whether the regular expressions of selectors and filters are valid. The node compiles those of selectors again. */
bool exprs_regexes(const struct exprs *p, struct err *e);

/* Whether the node can count by the keys of all expressions, which are the same then. */
bool exprs_by_node(const struct exprs *p);

/* Whether events are counted by keys. */
bool exprs_counts(const struct exprs *p);

void exprs_warn(const struct exprs *p, struct ctx *ctx);

/*
 * How the nodes treat the events of a trace, and which work they skip because nobody would see its result. The owner of
 * the views and filters decides this for the whole trace. Recordings and the scrollback of the interactive mode keep
 * every event that was asked for, because other views and filters may read them later.
 */
struct exprs_plan {
    /*
     * ARM_TALLY: the views show only figures of calls. ARM_BY: they show only the tables of `by`, and exprs_by_node()
     * holds. ARM_HOLD: the node may drop what the filter hides. A condition on the result of a root makes it ARM_TREES.
     */
    enum arm_route route;
    bool trigger;   /* with ARM_SENDS: a result that the filter accepts makes the node send a snapshot */
    bool anonymous; /* nobody reads the senders of received messages */
    /* The result of exprs_filter(), exprs_hold() or exprs_trigger(); borrowed. */
    struct str filter;
};

/* The request to one node. */
struct exprs_how {
    struct exprs_plan plan;
    struct arm_mark mark;
    const struct str *unknown; /* those names of exprs_atoms() that are not atoms on the node */
    size_t nunknown;
    bool *compared; /* one for each unknown atom, or NULL: set if a pattern or guard compares with the atom */
};

/* Appends the names of the atoms in the expressions as binaries. Returns their number. */
size_t exprs_atoms(const struct exprs *p, struct buf *ret_names);

/* Appends the processes that -P selects as a list for the node. */
bool exprs_whom(const struct texts *procs, const struct session_node *node, struct buf *ret_list, struct err *e);

/* Appends the argument of arm_request() for that node. The node's name and creation give local pids their meaning. */
bool exprs_arm(const struct exprs *p, const struct what_opts *what, const struct session_node *node,
               struct exprs_how how, struct buf *ret_asked, struct err *e);

/*
 * Whether the node can decide which calls to count, by the `where` of the expressions and the `extra` ones. The node
 * has one filter for all expressions, so they must agree. *ret_filter gets it; empty: the node counts all calls.
 */
bool exprs_filter(const struct exprs *p, const struct where *const *extra, size_t n, struct buf *ret_filter);

/* Whether a flight recorder can trace the expressions. False: e says what is against it. */
bool exprs_may_overwrite(const struct exprs *p, struct err *e);

/* Sets the filter to the condition of a trigger for these expressions. False: e says why the node cannot decide it. */
bool exprs_trigger(const struct exprs *p, const struct where *condition, const char *text, struct buf *ret_filter,
                   struct err *e);
/* Whether a probe of events is one of system events, which are the only ones that the node can react to. */
bool exprs_system_trigger(const char *probe, struct err *e);

/*
 * Whether the node can hold back each call until its result, and send both only if the filter in *ret_filter can pass.
 * That filter is all or a part of the client's filter, and the client still applies its own. Requires that every call
 * is sure to report how it ended.
 */
bool exprs_hold(const struct exprs *p, const struct where *const *extra, size_t n, struct buf *ret_filter);

/* Whether a filter or a key may read the sender of a received message. */
bool exprs_reads_sender(const struct exprs *p);

/* Whether a key or an aggregate depends on the events around its event. */
bool exprs_counts_around(const struct exprs *p);

struct arm_pattern exprs_pattern(const struct sel_name *name);

/*
 * Returns the kinds of events that the expressions need, one bit for each. *ret_besides gets the kinds that are needed
 * only for pairing (the start of a collection, for its duration) and are not shown.
 */
uint64_t exprs_kinds(const struct exprs *p, uint64_t *ret_besides);

#endif
