/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a trace: what the options of a command say, in structs. commands/groups.c fills them from the command
 * line, and the interactive mode changes them.
 */
#ifndef ETRACE_SETTINGS_H
#define ETRACE_SETTINGS_H

#include <stdint.h>

#include "../ground/texts.h"

struct node_opts {
    struct texts nodes;
    const char *os_pid;
    const char *cookie_file;
    int64_t port;
    bool cluster, reattach;
    bool tls, tls_no_verify;
    const char *tls_ca, *tls_cert, *tls_key, *tls_optfile;
    bool fallback;
};
#define NODE_OPTS_INIT ((struct node_opts){0})

struct what_opts {
    struct texts procs, ports;
    int inherit; /* index into "none|spawn|first-spawn|link|first-link" */
    struct texts files, lets, records;
    struct texts pipes; /* headers that can be read only once: path, text, path, text, …; exprs_pipes() */
    bool follow, silent, unsafe, allow_empty, force, dry_run;
    unsigned needs; /* bits of PROPERTY_NEEDS_RETURN and _CALLER, for filters that are compiled separately */
    bool available; /* wildcards load modules, too: a node that is held while it boots has not loaded its program */
};
#define WHAT_OPTS_INIT ((struct what_opts){0})

struct limit_opts {
    int64_t limit, for_ns, rate, memory, size, depth, items; /* memory: -1 without --memory */
    struct texts redact;
    bool redact_defaults;
    int on_loss; /* index into "warn|stop" */
};
/* The value for struct session_options: 0 means the default, UINT64_MAX means no limit. */
static inline uint64_t memory_option(int64_t given)
{
    return given < 0 ? 0 : given ? (uint64_t)given : UINT64_MAX;
}

#define LIMIT_OPTS_INIT                                                                                                \
    ((struct limit_opts){.rate = 10000, .memory = -1, .size = 1024, .depth = 32, .items = 256, .redact_defaults = true})

struct view_opts {
    const char *as;
    bool json, summary;
    struct texts outputs;
    bool append;
    const char *fields, *format;
    int terms; /* enum terms_style */
    bool elixir;
    struct texts greps, wheres;
    bool invert;
    bool utc, relative, delta;
    int color; /* index into "auto|always|never" */
};
#define VIEW_OPTS_INIT ((struct view_opts){0})

struct assert_opts {
    struct texts expects, fails;
};

#endif
