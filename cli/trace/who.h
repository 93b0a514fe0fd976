/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the processes that options name: -P, --server and the argument of `etrace why`. Does not ask a node. */
#ifndef ETRACE_WHO_H
#define ETRACE_WHO_H

#include "../erlang/term.h"
#include "../events/process_name.h"
#include "../ground/texts.h"
#include "../node/arm.h"
#include "ctx.h"

struct who {
    enum arm_who kind;
    /* ARM_WHO_PID: "<0.84.0>"; a name or an application: the characters of the atom; else as the user wrote it. */
    struct str text;
    struct str module;   /* ARM_WHO_INITIAL, ARM_WHO_VIA */
    struct str function; /* ARM_WHO_INITIAL */
    int arity;
    term_t name;  /* ARM_WHO_VIA */
    bool printed; /* ARM_WHO_VIA: `text` has the form that events have */
};

bool who_word(const char *text, enum arm_who *ret); /* reads the words all, existing and new */

/*
 * Reads a word (all, existing, new), a pid, app(A), initial(M:F/A), a name in a registry, or a name as either language
 * writes atoms. The result refers to the text and the arena.
 */
bool who_parse(const char *text, struct arena *a, struct who *ret);
/*
 * Reads the names of processes for a view that selects by them; with `registries` also names in registries as events
 * have them. `option` begins the message of an error. who_names_warn() warns of each name without a process that
 * was seen: `OPTION NAME: no WHAT it was seen`.
 */
bool who_names(const struct texts *texts, const char *option, bool registries, struct arena *a,
               struct process_names *ret, struct err *e);
void who_names_warn(struct ctx *ctx, const struct process_names *n, const struct texts *texts, const char *option,
                    const char *what);
bool who_is_one(const struct who *w); /* returns true for a pid or a name, which only one process can have */

#endif
