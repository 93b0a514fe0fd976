/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what `etrace check` reports: rules that make findings of what was seen of one node. */
#ifndef ETRACE_CHECK_FIND_H
#define ETRACE_CHECK_FIND_H

#include "../ground/command_line.h"
#include "check_node.h"
#include "why_page.h"

/* A process that check looks at again and again. */
struct check_suspect {
    /* reason: why check chose the process, as a word of the node, or "silent", "port", "target", "owner". */
    char pid[32], reason[24];
    struct buf who; /* the process, encoded for questions */
    struct why_look look;
    struct why_samples samples;
    unsigned slow; /* number of answers that took CHECK_SLOW_MS */
};

/* A running process answers within a few ms, unless it is in a long collection or built-in function. */
#define CHECK_SLOW_MS 20

#define CHECK_FACTS 3

/* Everything that check knows about a node. */
struct check_seen {
    const char *name;
    const char *ssh, *named; /* see struct why_page */
    const char *erts, *arch; /* see struct session_node */
    struct check_suspect **suspects;
    size_t nsuspects;
    struct check_facts facts[CHECK_FACTS]; /* the first one lacks what the node computes by comparing */
    unsigned nfacts;
    int64_t total[5];               /* totals of the scan: processes, messages, memory, running, calling */
    const struct ps_node *binaries; /* the processes with the most binaries; NULL: check has not asked for them */
};

/* A note is information and no finding. */
enum check_severity { CHECK_CRITICAL, CHECK_WARNING, CHECK_NOTE };
extern const char *const check_severities[];

/* Ordered by harm, the most harmful first. */
enum check_kind {
    CHECK_DEADLOCK,
    CHECK_SILENT,
    CHECK_STARTING,
    CHECK_ALARM,
    CHECK_MEMORY,
    CHECK_BINARIES,
    CHECK_QUEUE,
    CHECK_POOL,
    CHECK_LOCK,
    CHECK_SUSPENDED,
    CHECK_WAITS,
    CHECK_UNMATCHED,
    CHECK_BUSY,
    CHECK_NIF,
    CHECK_COLLECTS,
    CHECK_EXITING,
    CHECK_RESTARTS,
    CHECK_CONNECTION,
    CHECK_PORT,
    CHECK_DIRTY,
    CHECK_OVERLOAD,
    CHECK_LOG,
    CHECK_PROCESS_COUNT,
    CHECK_PORT_COUNT,
    CHECK_ATOM_COUNT,
    CHECK_ETS,
    CHECK_CLOCK,
    CHECK_VM,
    CHECK_UNKNOWN,
    CHECK_KINDS
};
extern const char *const check_kinds[CHECK_KINDS]; /* the words in JSON */

struct check_finding {
    enum check_severity severity;
    enum check_kind kind;
    struct look_process process; /* the process that the finding is about; without a pid it is about the node */
    struct buf text;
    struct command_line command; /* the command that shows more; empty: none */
};

struct check_findings {
    struct check_finding *items;
    size_t n, cap;
};

/* Appends the findings about a node, the most harmful first. */
void check_find(const struct check_seen *seen, struct check_findings *ret);
void check_findings_release(struct check_findings *f);
size_t check_count(const struct check_findings *f); /* without notes */

#endif
