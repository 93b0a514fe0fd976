/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of views: a sink turns events into bytes.
 *
 * A sink appends to `out`, which the pipeline passes on; a sink does no I/O itself. Each sink is one file with one
 * struct sink_type, listed in sinks.def. Events are borrowed (event.h). Callbacks may be NULL. A sink uses
 * bounded memory, and end() reports what the sink had to leave out.
 */
#ifndef ETRACE_SINK_H
#define ETRACE_SINK_H

#include "../events/event.h"
#include "../ground/err.h"
#include "grid_order.h"

struct spec;
struct texts;
struct stat;
struct groups;
struct process_names;
struct death_choice;
struct event_sought;
struct grid_screen;

#define TOTALS_OPEN_NS INT64_C(1000000000)

/* Traced calls that were open for longer than TOTALS_OPEN_NS. Calls whose results are not traced do not count. */
struct totals_open {
    uint64_t calls;
    int64_t ns; /* how long the oldest call has been open; the members below describe this call */
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

/* Calls that made no event because of a budget (--overhead); `seen` does not include them. */
struct totals_untraced {
    bool any;       /* the trace had a budget */
    bool unknown;   /* there are further calls, and no node knows how many */
    bool estimated; /* a part of the number is an estimate */
    uint64_t calls;
};

/* Counts of events. They are exact: seen = shown + filtered + lost[…] + missing. */
struct totals {
    uint64_t seen; /* all events that the VM has produced */
    uint64_t shown, filtered;
    uint64_t lost[ETW_LOSSES];
    uint64_t missing;   /* events that never arrived, because the stream ended before; 0 after an orderly end */
    uint64_t truncated; /* shown events in which a term was truncated */
    uint64_t endless;   /* functions that call themselves in a loop, so their later calls have no duration */
    uint64_t snapshots; /* complete snapshots of the flight recorder */
    uint64_t reloads; /* reloads of modules; calls were not seen between a reload and the next self-check of the node */
    uint64_t tokens;  /* processes that have kept a trace token of this trace */
    uint64_t incomplete;    /* calls without a result, and results without a call */
    uint64_t filter_errors; /* how often a grep exceeded its limits, so that its event was shown */
    uint64_t undecided;     /* events that were shown because the filter could not decide */
    uint64_t asked;         /* calls that a pattern or guard could reject; at most ETW_ASKED_MOST for each node */
    struct totals_untraced untraced;
    struct totals_open open;
    const struct stat *counted; /* functions with calls that were counted without an event, because of a budget */
    size_t ncounted;
    struct groups *const *groups; /* tables of the events that are counted by keys; the views may sort them */
    size_t ngroups;
    bool complete;                   /* the last batch of each run of each node has arrived */
    const struct totals_node *nodes; /* one for each node, if there are several */
    size_t nnodes;
};

enum time_style { TIME_LOCAL, TIME_UTC, TIME_RELATIVE, TIME_DELTA };
enum terms_style {
    TERMS_AUTO /* that of the language of the event's node and module (line_printer()) */,
    TERMS_ERLANG,
    TERMS_ELIXIR,
    TERMS_JSON /* terms as JSON structures */
};

/* Display options. The strings are borrowed until sink_free(). */
struct look {
    enum time_style time;
    enum terms_style terms;
    bool colour;
    bool nodes;                 /* show the node of each event; the pipeline sets it when a second node appears */
    const char *fields;         /* --fields: comma-separated names; NULL: the view's default */
    const char *format;         /* --format; NULL: none */
    struct grid_sort sort;      /* --sort, and what the user has pressed; only for views with SINK_SORTS */
    struct grid_screen *screen; /* the screen that shows the table; NULL: none; only for views with SINK_SORTS */
    unsigned width;             /* columns of the terminal; 0: not a terminal */
    const char *file; /* name of the output; a view with several formats chooses by the extension; NULL: stdout */
    struct process_names *servers;     /* the views of requests show only requests to these processes; NULL: all */
    struct death_choice *deaths;       /* the exits that the views of exits show; NULL: those that are not normal */
    const struct event_sought *sought; /* the event that the view of one event shows */
    bool append; /* the output already contains events that the same view has written; this sink continues it */
};

struct sink {
    const struct sink_type *type;
    struct buf *out;
    struct look look;
    bool done; /* the sink sets it once it has shown everything, so that the trace can end */
};

enum sink_flags {
    SINK_CALL_ARGS = 1 << 0,  /* the event of a result must have the event of its call (event.call->event) */
    SINK_RAW = 1 << 1,        /* takes unmodified batches, before any filter */
    SINK_LINES = 1 << 2,      /* writes whole lines as events arrive; other views write everything at the end */
    SINK_BINARY = 1 << 3,     /* must not go to a terminal */
    SINK_FIELDS = 1 << 4,     /* supports --fields */
    SINK_FORMAT = 1 << 5,     /* supports --format */
    SINK_WHOLE = 1 << 6,      /* writes one document, to which nothing can be appended later */
    SINK_FIGURES = 1 << 7,    /* shows only figures of calls, so ETW_TALLY can replace events */
    SINK_AGAIN = 1 << 8,      /* end() may be called repeatedly, with events in between */
    SINK_ALONE = 1 << 9,      /* shows each event independently of other events */
    SINK_TIMES = 1 << 10,     /* shows only events with a duration or a stack trace */
    SINK_STACKS = 1 << 11,    /* shows stacks and their weights, so it needs no calls */
    SINK_NESTED = 1 << 12,    /* shows the calls around an event, even if these calls fail the filters */
    SINK_ANONYMOUS = 1 << 13, /* does not read the senders of received messages */
    SINK_ROWS = 1 << 14,      /* shows only the tables of `by`, so ETW_ROW can replace events */
    SINK_PAIRS = 1 << 15,     /* makes one item of several events, so a filter must not hide some of them */
    SINK_FOLDS = 1 << 16,     /* shows only figures of all events, so there is no rate limit by default */
    SINK_SORTS = 1 << 17,     /* supports --sort */
};

struct sink_type {
    const char *name;       /* --as NAME */
    const char *extensions; /* separated by spaces: ".json .ndjson"; NULL: none */
    const char *about;
    const char *item;  /* SINK_PAIRS: the name of an item, which several events make together */
    const char *brief; /* with `item`: short name for the command of such items, such as csv; NULL: only `name` */
    const struct grid_table *table; /* SINK_SORTS: the columns; NULL with SINK_ROWS, where `by` names the columns */
    const char *without_results;    /* how the view behaves if no expression asks for results; NULL: as usual */
    unsigned flags;
    size_t size; /* size of the struct of the sink, which begins with a struct sink; its memory is zeroed */
    bool (*open)(struct sink *s, struct err *e); /* `out` and `look` are set; returns false with an error in `e` */
    /* Called for each event, and for losses, notices, and nodes that are lost or come back. */
    void (*event)(struct sink *s, const struct event *e);
    /*
     * Called when time may have passed on the nodes (struct event_node), even without events. Returns true if the sink
     * waits for more time to pass; a live trace then asks the nodes for their time.
     */
    bool (*passed)(struct sink *s);
    void (*specs)(struct sink *s, unsigned node, struct str bytes); /* SINK_RAW */
    void (*batch)(struct sink *s, unsigned node, struct str bytes); /* SINK_RAW */
    void (*note)(struct sink *s, unsigned node, struct str bytes);  /* SINK_RAW */
    /* SINK_RAW: takes a block of a checkpoint. Unless this is NULL, the pipeline makes checkpoints. */
    void (*checkpoint)(struct sink *s, enum etw_block_type type, unsigned node, struct str bytes);
    void (*end)(struct sink *s, const struct totals *t);
    void (*release)(struct sink *s); /* frees what the sink has allocated; also called after a failure of open() */
};

/* All views, terminated by NULL. */
extern const struct sink_type *const sink_types[];

/*
 * Opens a sink, which the caller frees with sink_free(). `out` and the strings of `look` must live as long as the sink.
 * Returns NULL, with an error, on failure.
 */
struct sink *sink_open(const struct sink_type *type, const struct look *look, struct buf *out, struct err *e);
void sink_free(struct sink *s);

const struct sink_type *sink_by_name(const char *name); /* NULL: none */
/* Returns the view of these items (sink_type.item) that has this brief name. NULL: none. */
const struct sink_type *sink_of_item(const char *item, const char *brief);
/*
 * Returns the view for the longest extension that the name of the file ends with. If several views have this extension,
 * returns `preferred` if it is one of them (NULL: none), or else one that shows the same items, such as exits, or else
 * the first view. NULL: no view has an extension of the file.
 */
const struct sink_type *sink_by_file(const char *file_name, const struct sink_type *preferred);
size_t sink_extension_length(const char *file_name); /* returns 0 if no view has the extension of the file */
/* Returns true if the file's name ends with the extension. */
bool look_is_file(const struct look *look, const char *extension);

#endif
