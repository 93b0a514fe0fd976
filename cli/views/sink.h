/*
 * A sink turns events into bytes. It writes into `out`, which the pipeline hands on when enough has gathered; a sink
 * does no input or output itself. Every kind of sink is one file with one table, and all tables stand in sinks.c.
 *
 * Events are borrowed (event.h). Slots may be NULL. A sink is bounded in memory however many events it sees; what it
 * had to leave out it says in its end.
 */
#ifndef ETRACE_SINK_H
#define ETRACE_SINK_H

#include "../events/event.h"
#include "../ground/err.h"

struct spec;

/* What happened to the events, exact: seen = shown + filtered + lost[…] + missing. */
struct totals_node {
    const struct event_node *node; /* NULL: a recording has others of higher numbers */
    uint64_t seen, shown, filtered;
    uint64_t lost[ETW_LOSSES];
    uint64_t missing;
    bool complete;
};

struct totals {
    uint64_t seen;     /* offered by the VM */
    uint64_t shown, filtered;
    uint64_t lost[ETW_LOSSES];
    uint64_t missing;    /* offered, but the stream ended before they came; 0 after an orderly end */
    uint64_t truncated;  /* shown, with something of a term left out */
    uint64_t endless;    /* functions that do not return, so their calls have no duration from then on */
    uint64_t tokens;     /* processes that kept a trace token of this trace at its end */
    uint64_t incomplete; /* calls without their return, and the other way around */
    uint64_t filter_errors; /* a pattern gave up; the event was kept */
    uint64_t undecided;     /* shown because a filter could not decide */
    bool complete;       /* every node said that it was its last batch, whenever it was traced */
    const struct totals_node *nodes; /* of each, where there are several */
    size_t nnodes;
};

enum time_style { TIME_LOCAL, TIME_UTC, TIME_RELATIVE, TIME_DELTA };
enum terms_style { TERMS_AUTO /* by the module's language */, TERMS_ERLANG, TERMS_ELIXIR, TERMS_JSON /* structure, in JSON */ };

/* How a view looks. Strings are borrowed for the life of the sink. */
struct look {
    enum time_style time;
    enum terms_style terms;
    bool colour;
    bool nodes;         /* a column with the node; the pipeline sets it when there is a second one */
    const char *fields; /* --fields: names with commas between; NULL: the view's own */
    const char *format; /* --format; NULL: none */
    unsigned width;     /* columns of the terminal, 0: not a terminal */
    const char *file;   /* the name of the output: views with several forms take the one of its extension; NULL: stdout */
    bool append;        /* the output already begins with a run of the same view */
};

struct sink {
    const struct sink_type *type;
    struct buf *out;
    struct look look;
};

enum sink_flags {
    SINK_CALL_ARGS = 1, /* wants event.call->args on returns */
    SINK_RAW = 2,       /* takes batches as they are, before any filter */
    SINK_LINES = 4,     /* whole lines as events come; without it everything comes at the end */
    SINK_BINARY = 8,    /* nothing for a terminal */
    SINK_FIELDS = 16,   /* --fields means something to it */
    SINK_FORMAT = 32,   /* --format does */
    SINK_WHOLE = 64,    /* one document: nothing can be added to it later */
    SINK_FIGURES = 128, /* of calls it shows nothing but figures: ETW_TALLY says as much as the events do */
    SINK_AGAIN = 256,   /* its end may be written again and again, with events in between */
    SINK_ALONE = 512,   /* shows an event by itself, whatever stands around it */
    SINK_TIMES = 1024,  /* nothing in it but what has a duration, or comes with a stack trace */
    SINK_NESTED = 2048, /* shows an event below the calls that it happened in, also where these do not pass the filters */
};

struct sink_type {
    const char *name;       /* --as NAME */
    const char *extensions; /* with spaces between: ".json .ndjson"; NULL: none */
    const char *about;
    unsigned flags;
    struct sink *(*open)(const struct look *look, struct buf *out, struct err *e); /* NULL: e is filled */
    void (*event)(struct sink *s, const struct event *e); /* also losses, notices, and a node's coming and going */
    void (*specs)(struct sink *s, unsigned node, struct str bytes);                     /* SINK_RAW */
    void (*batch)(struct sink *s, unsigned node, struct str bytes);                     /* SINK_RAW */
    void (*note)(struct sink *s, unsigned node, struct str bytes);                      /* SINK_RAW */
    void (*end)(struct sink *s, const struct totals *t);
    void (*free)(struct sink *s);
};

/* All of them, NULL at the end. */
extern const struct sink_type *const sink_types[];

const struct sink_type *sink_by_name(const char *name); /* NULL: none */
/* By the longest extension that fits; where several views have it, `preferred` (or NULL) or the first. NULL: none. */
const struct sink_type *sink_by_file(const char *file_name, const struct sink_type *preferred);
bool look_is_file(const struct look *look, const char *extension); /* its file's name ends so */

#endif
