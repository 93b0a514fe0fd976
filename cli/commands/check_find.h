/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what `etrace check` reports. Its rules turn the answers of one node into findings. */
#ifndef ETRACE_CHECK_FIND_H
#define ETRACE_CHECK_FIND_H

#include "../ground/command_line.h"
#include "check_node.h"
#include "check_suspects.h"
#include "check_trace.h"
#include "why_page.h"

#define CHECK_FACTS 3

/* Everything that check knows about a node. */
struct check_seen {
    const char *name;
    const char *ssh, *named; /* as in struct why_page */
    const char *erts, *arch; /* this and the next member are as in struct session_node */
    bool elixir;
    struct check_suspect **suspects;
    size_t nsuspects;
    size_t left_out; /* number of suspects for which `suspects` had no room */
    struct check_chosen chosen;
    /* answers about the node; the first one does not say what has changed since the look at all processes */
    struct check_facts facts[CHECK_FACTS];
    unsigned nfacts;
    /* totals of the scan: processes, messages, memory, running processes, processes that wait in a call */
    int64_t total[5];
    const struct ps_node *binaries;  /* the processes with the most binaries; NULL: check did not ask for them */
    const struct check_trace *trace; /* NULL: check only looked */
};

/* CHECK_NOTE is for information that is not counted as a finding. */
enum check_severity { CHECK_CRITICAL, CHECK_WARNING, CHECK_NOTE };
extern const char *const check_severities[];

/* Kinds of findings, the most harmful first. */
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
    CHECK_SCHEDULER,
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
extern const char *const check_kinds[CHECK_KINDS]; /* names of the kinds in JSON */

struct check_finding {
    enum check_severity severity;
    enum check_kind kind;
    /* the process that the finding is about; with an empty pid, the finding is about the node */
    struct look_process process;
    struct buf text;
    struct command_line command; /* a command that shows more about the finding; empty: none */
};

struct check_findings {
    struct check_finding *items;
    size_t n, cap;
};

/* Appends the findings about a node, the most harmful first. */
void check_find(const struct check_seen *seen, struct check_findings *ret);
void check_findings_release(struct check_findings *f);
size_t check_count(const struct check_findings *f); /* returns the number of findings, without notes */

#endif
