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
    /*
     * For ARM_WHO_PID "<0.84.0>"; for a name or an application the characters of the atom; else the text of the user.
     */
    struct str text;
    struct str module;   /* ARM_WHO_INITIAL, ARM_WHO_VIA */
    struct str function; /* ARM_WHO_INITIAL */
    int arity;
    term_t name;  /* ARM_WHO_VIA */
    bool printed; /* ARM_WHO_VIA: `text` is written as events print such names */
};

bool who_word(const char *text, enum arm_who *ret); /* reads the words all, existing and new */

/*
 * Reads a word (all, existing, new), a pid, app(A), initial(M:F/A), a name in a registry, or a registered name, written
 * as an atom of Erlang or Elixir. The result refers to the text and the arena.
 */
bool who_parse(const char *text, struct arena *a, struct who *ret);
/*
 * Reads the names of processes by which a view selects; with `registries`, also names in registries as events print
 * them. `option` begins the message of an error. who_names_warn() warns of each name that belongs to no process of the
 * trace: `OPTION NAME: no WHAT it was seen`.
 */
bool who_names(const struct texts *texts, const char *option, bool registries, struct arena *a,
               struct process_names *ret, struct err *e);
void who_names_warn(struct ctx *ctx, const struct process_names *n, const struct texts *texts, const char *option,
                    const char *what);
bool who_is_one(const struct who *w); /* returns true for a pid or a name, which only one process can have */

#endif
