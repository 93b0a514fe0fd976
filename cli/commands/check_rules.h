/* SPDX-License-Identifier: Apache-2.0 */
/* Shares the helpers of the rules of `etrace check` between check_find.c and check_unseen.c. */
#ifndef ETRACE_CHECK_RULES_H
#define ETRACE_CHECK_RULES_H

#include "check_find.h"

#define CHECK_SOME_LOOKS 8 /* with fewer looks, no state of a process counts as lasting */

struct check_rules {
    const struct check_seen *seen;
    const struct check_facts *first, *last;
    struct check_findings *to;
};

/* Adds a finding. The pointer is valid until the next finding is added. */
struct check_finding *check_add(const struct check_rules *r, enum check_severity severity, enum check_kind kind);
/* Adds a finding about a process; its text begins with the process. */
struct check_finding *check_about(const struct check_rules *r, enum check_severity severity, enum check_kind kind,
                                  const struct look_process *p);

/* Begin the command that shows more. check_command_of() adds the process. */
void check_command(const struct check_rules *r, struct check_finding *f, const char *name);
void check_command_of(const struct check_rules *r, struct check_finding *f, const char *name, const char *pid);

bool check_is_large(const struct check_rules *r, int64_t bytes); /* a large part of the node's memory */
const struct check_suspect *check_suspect_of(const struct check_seen *seen, const char *pid); /* NULL: none */

/* Adds notes that say what check has not looked at. */
void check_unlooked(const struct check_rules *r);

/*
 * Adds the findings of the trace of --for, and appends its evidence to existing findings. Must be called after all
 * other rules. Does nothing without a trace.
 */
void check_unseen(const struct check_rules *r);

#endif
