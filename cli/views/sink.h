/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of views: a sink turns events into bytes.
 *
 * A sink appends to `out`, which the pipeline passes on; a sink does no I/O itself. Each sink is one file with one
 * struct sink_type, listed in sinks.def. Events are borrowed (event.h). Callbacks may be NULL. The memory of a sink is
 * bounded; its end reports what it had to leave out.
 */
#ifndef ETRACE_SINK_H
#define ETRACE_SINK_H

#include "../events/event.h"
#include "../ground/err.h"

struct spec;
struct texts;
struct stat;
struct groups;
struct process_names;
struct death_choice;

#define TOTALS_OPEN_NS INT64_C(1000000000)

/* Calls whose results are traced and that had not returned after TOTALS_OPEN_NS. */
struct totals_open {
    uint64_t calls;
    int64_t ns; /* how long the oldest one was open; the rest is about this one */
    const struct fun *fun;
    int arity;
    struct tracee who;
};

struct totals_node {
    const struct event_node *node; /* NULL: a gap in the node numbers of a recording */
    uint64_t seen, shown, filtered;
    uint64_t lost[ETW_LOSSES];
    uint64_t missing;
    bool complete;
    struct totals_open open;
};

/* Calls that made no event because of a budget (--overhead). They are not part of `seen`. */
struct totals_untraced {
    bool any;       /* there was a budget */
    bool unknown;   /* further calls, whose number no node knows */
    bool estimated; /* the number has an estimate */
    uint64_t calls;
};

/* Counts of events. They are exact: seen = shown + filtered + lost[...] + missing. */
struct totals {
    uint64_t seen; /* produced by the VM */
    uint64_t shown, filtered;
    uint64_t lost[ETW_LOSSES];
    uint64_t missing;       /* produced, but the stream ended before they arrived; 0 after an orderly end */
    uint64_t truncated;     /* shown with a truncated term */
    uint64_t endless;       /* functions that call themselves in loops, so their later calls have no duration */
    uint64_t snapshots;     /* snapshots of the flight recorder that have all their events */
    uint64_t reloads;       /* of modules: calls between a reload and the next look were not seen */
    uint64_t tokens;        /* processes that kept a trace token of this trace */
    uint64_t incomplete;    /* calls without a result, and results without a call */
    uint64_t filter_errors; /* a grep exceeded its limits; the event was shown */
    uint64_t undecided;     /* shown because no filter could decide */
    uint64_t asked;         /* calls that a pattern or guard could reject; of each node, ETW_ASKED_MOST at most */
    struct totals_untraced untraced;
    struct totals_open open;
    const struct stat *counted; /* functions with calls that were only counted, because of a budget */
    size_t ncounted;
    struct groups *const *groups; /* tables of the events that are counted by keys; the views may sort them */
    size_t ngroups;
    bool complete;                   /* every run of every node ended with its last batch */
    const struct totals_node *nodes; /* per node, if there are several */
    size_t nnodes;
};

enum time_style { TIME_LOCAL, TIME_UTC, TIME_RELATIVE, TIME_DELTA };
enum terms_style {
    TERMS_AUTO /* by the language of the node and of the module (line_printer()) */,
    TERMS_ERLANG,
    TERMS_ELIXIR,
    TERMS_JSON /* structure, in JSON */
};

/* Display options. Strings are borrowed for the life of the sink. */
struct look {
    enum time_style time;
    enum terms_style terms;
    bool colour;
    bool nodes;         /* show the node; the pipeline sets it when a second node appears */
    const char *fields; /* --fields: comma-separated names; NULL: the view's default */
    const char *format; /* --format; NULL: none */
    unsigned width;     /* columns of the terminal; 0: not a terminal */
    const char *file;   /* name of the output; views with several formats choose by its extension; NULL: stdout */
    struct process_names *servers; /* the views of requests show only requests to them; NULL: all */
    struct death_choice *deaths;   /* the views of exits show these; NULL: those that are not normal */
    bool append;                   /* the output already contains a run of the same view */
};

struct sink {
    const struct sink_type *type;
    struct buf *out;
    struct look look;
    bool done; /* set by the sink: it has shown all that it was to show, so the trace can end */
};

enum sink_flags {
    SINK_CALL_ARGS = 1 << 0,  /* needs event.call->event on results */
    SINK_RAW = 1 << 1,        /* takes unmodified batches, before any filter */
    SINK_LINES = 1 << 2,      /* writes whole lines as events arrive; without it, everything is written at the end */
    SINK_BINARY = 1 << 3,     /* must not go to a terminal */
    SINK_FIELDS = 1 << 4,     /* supports --fields */
    SINK_FORMAT = 1 << 5,     /* supports --format */
    SINK_WHOLE = 1 << 6,      /* one document: nothing can be appended later */
    SINK_FIGURES = 1 << 7,    /* shows only figures of calls, so ETW_TALLY can replace events */
    SINK_AGAIN = 1 << 8,      /* end() may be called repeatedly, with events in between */
    SINK_ALONE = 1 << 9,      /* shows each event independently of other events */
    SINK_TIMES = 1 << 10,     /* shows only events with a duration or a stack trace */
    SINK_STACKS = 1 << 11,    /* shows stacks and their weights, so it needs no calls */
    SINK_NESTED = 1 << 12,    /* shows an event below its enclosing calls, even if these fail the filters */
    SINK_ANONYMOUS = 1 << 13, /* reads no senders of received messages */
    SINK_ROWS = 1 << 14,      /* shows only the tables of `by`, so ETW_ROW can replace events */
    SINK_PAIRS = 1 << 15,     /* shows what several events make together, so a filter must not hide one of them */
    SINK_FOLDS = 1 << 16,     /* shows figures of all events and no single event, so no rate applies by default */
};

struct sink_type {
    const char *name;       /* --as NAME */
    const char *extensions; /* separated by spaces: ".json .ndjson"; NULL: none */
    const char *about;
    const char *item; /* SINK_PAIRS: what the view shows, made of several events */
    unsigned flags;
    size_t size; /* size of the struct that begins with a struct sink; zeroed at first */
    bool (*open)(struct sink *s, struct err *e);          /* out and look are set; false: e is filled */
    void (*event)(struct sink *s, const struct event *e); /* also gets losses, notices, and nodes that go and come */
    /*
     * Time may have passed on the nodes (struct event_node) without events. Returns true if the sink waits for more
     * time to pass: a live trace then asks the nodes for it.
     */
    bool (*passed)(struct sink *s);
    void (*specs)(struct sink *s, unsigned node, struct str bytes); /* SINK_RAW */
    void (*batch)(struct sink *s, unsigned node, struct str bytes); /* SINK_RAW */
    void (*note)(struct sink *s, unsigned node, struct str bytes);  /* SINK_RAW */
    /* SINK_RAW: a block of a checkpoint, with its type and node; if set, the pipeline makes checkpoints */
    void (*checkpoint)(struct sink *s, enum etw_block_type type, unsigned node, struct str bytes);
    void (*end)(struct sink *s, const struct totals *t);
    void (*release)(struct sink *s); /* what the sink allocated; also called if open() fails */
};

/* All views; NULL terminates the list. */
extern const struct sink_type *const sink_types[];

/* The caller ends with sink_free(). `out` and the strings of `look` must live as long. NULL: e is filled. */
struct sink *sink_open(const struct sink_type *type, const struct look *look, struct buf *out, struct err *e);
void sink_free(struct sink *s);

const struct sink_type *sink_by_name(const char *name); /* NULL: none */
/* Finds the view with the longest matching extension. If several match, returns `preferred` (may be NULL) or the first.
 * NULL: none. */
const struct sink_type *sink_by_file(const char *file_name, const struct sink_type *preferred);
size_t sink_extension_length(const char *file_name);               /* 0: no view has the extension of the file */
bool look_is_file(const struct look *look, const char *extension); /* true if the file's name ends with the extension */

#endif
