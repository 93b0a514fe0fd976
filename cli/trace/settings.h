/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines the settings of a trace: the options of a command as structs. commands/groups.c fills them from the command
 * line, and the interactive mode changes them.
 */
#ifndef ETRACE_SETTINGS_H
#define ETRACE_SETTINGS_H

#include <stdint.h>

#include "../ground/texts.h"

struct node_opts {
    struct texts nodes;
    const char *os_pid;
    const char *ssh;
    const char *cookie_file;
    int64_t port; /* 0: $ERL_DIST_PORT, if at most one node is given, or else what epmd says */
    bool cluster, reattach;
    bool tls, tls_no_verify;
    const char *tls_ca, *tls_cert, *tls_key, *tls_optfile;
    bool fallback;
};
#define NODE_OPTS_INIT ((struct node_opts){0})
#define PORT_OF_EPMD (-1) /* value of `port`: ask epmd even if $ERL_DIST_PORT is set */

struct what_opts {
    struct texts procs, ports;
    int inherit; /* index into "none|spawn|first-spawn|link|first-link" */
    struct texts files, lets, records;
    struct texts pipes; /* headers that can be read only once: path, text, path, text, … (exprs_pipes()) */
    bool follow, silent, unsafe, allow_empty, force, dry_run;
    /* PROPERTY_NEEDS_RETURN and _CALLER, if filters that are compiled separately need results or callers */
    unsigned needs;
    int64_t overhead;  /* hundredths of a percent of the schedulers' time; 0: not given */
    int64_t sample;    /* show one of this many roots; 0: all roots */
    int64_t keys;      /* limit for the keys of `by` on each node; 0: ETW_BY_ROWS */
    bool builtin;      /* the command has made the expressions, not the user: no warning if one matches nothing */
    unsigned requests; /* enum etw_requests; not 0: the events are only for views of requests */
    /*
     * Wildcards also select modules that are not loaded, and load them. For a node that is held while it boots, which
     * has not loaded its program yet.
     */
    bool available;
};
#define WHAT_OPTS_INIT ((struct what_opts){0})

#define RING_MOST (64u << 20) /* bytes of a thread's ring, for --ring */

/* The actions when a snapshot begins, and after it (--then); snapshot_command.h reads the actions. */
struct then_opts {
    bool stacks;
    struct texts probes; /* probes to trace for a time; the array is owned, the texts are borrowed */
    int64_t for_ns;
    const char *command; /* NULL: none */
};

/*
 * The flight recorder: the nodes overwrite their oldest events, and send the kept events only for a snapshot. If the
 * nodes cannot decide `when`, they send all events, and the recorder is in this program (keeper.h).
 */
struct ring_opts {
    bool on;
    uint32_t bytes;     /* bytes of a thread's ring; 0: the default of the node */
    uint32_t most_ms;   /* milliseconds: maximal age of the events of a snapshot; 0: any age */
    const char *when;   /* --snapshot-when: a condition, or a probe of system events; NULL: one snapshot, at the end */
    bool system;        /* `when` is a probe of system events, which is also one of the expressions */
    uint32_t within_ms; /* the figures of keys begin anew after this time; 0: only when a snapshot begins */
    /* how long a snapshot lasts; time from the end of a snapshot until the next one may begin */
    uint32_t after_ms, interval_ms;
    uint64_t snapshots; /* the trace ends after this many snapshots */
    struct then_opts then;
};

struct limit_opts {
    int64_t limit, for_ns, rate, memory, size, depth, items; /* `rate` and `memory` are -1 without the option */
    struct texts redact;
    bool redact_defaults;
    int on_loss;           /* index into "warn|stop" */
    struct ring_opts ring; /* only `etrace trace` and the interactive mode set it */
};

#define RATE_DEFAULT 10000 /* --rate by default, if a view shows single events and there is no flight recorder */

/*
 * The options of the flight recorder as the command line gives them; struct ring_opts has them checked and converted.
 */
struct recorder_opts {
    const char *ring, *when;
    struct texts then;
    int64_t after_ns, interval_ns, within_ns, snapshots, then_for_ns;
};
#define RECORDER_OPTS_INIT                                                                                             \
    ((struct recorder_opts){.after_ns = 500000000,                                                                     \
                            .interval_ns = 10000000000,                                                                \
                            .snapshots = 1,                                                                            \
                            .then_for_ns = 10000000000})

/* Converts --memory to the value in struct session_options: 0 means the default, UINT64_MAX means no limit. */
static inline uint64_t memory_option(int64_t given)
{
    return given < 0 ? 0 : given ? (uint64_t)given : UINT64_MAX;
}

#define LIMIT_OPTS_INIT                                                                                                \
    ((struct limit_opts){.rate = -1, .memory = -1, .size = 1024, .depth = 32, .items = 256, .redact_defaults = true})

struct view_opts {
    const char *as;
    bool json, summary;
    struct texts outputs;
    struct texts numbered; /* set by code, borrowed: the names of -o with %n, whose files snapshots open */
    bool append;
    const char *fields, *format, *sort;
    int terms; /* enum terms_style */
    int time;  /* enum time_style */
    struct texts greps, wheres;
    const char *by;     /* keys and aggregates that count all events; NULL: none */
    bool browse;        /* the events are shown in the list of `etrace browse` */
    const char *record; /* set by code: this file gets a recording, and standard output no view; NULL: no file */
    /* set by code: the options are settings of the interactive mode, and --sort is for its later tables */
    bool settings;
    const struct grid_turn *turn; /* set by code: what the keys of the screen change about `sort`; NULL: no screen */
    struct grid_screen *screen;   /* set by code: the screen of the table; NULL: no screen */
    bool live;   /* set by code: a table on the terminal is redrawn, which leaves the last column free */
    bool tables; /* set by code: the trace counts events by keys, so the views are tables unless `as` names a view */
    bool invert;
    int color;                     /* index into "auto|always|never" */
    struct process_names *servers; /* for the views of requests: only requests to these processes; NULL: all */
    struct death_choice *deaths;   /* for the views of exits; NULL: exits that are not normal */
};
#define VIEW_OPTS_INIT ((struct view_opts){0})

struct assert_opts {
    struct texts expects, fails;
};

#endif
