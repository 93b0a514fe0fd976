/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes the line for Tab. Modules, functions, records and processes come from the current node; words, labels,
 * views and words of the language need no node. Answers of a node are cached for some seconds.
 */
#ifndef ETRACE_REPL_COMPLETE_H
#define ETRACE_REPL_COMPLETE_H

#include "repl_probes.h"

struct repl_complete;

struct repl_complete *repl_complete_new(struct repl_base *base, struct repl_nodes *nodes, struct repl_probes *probes);
void repl_complete_free(struct repl_complete *c); /* accepts NULL */

/* Completes the text before the cursor; `so_far` is the earlier lines of the expression. May wait for the node. */
void repl_complete(struct repl_complete *c, struct str so_far, struct str before);
/* Adds the names of the reply to their list. Ignores replies to requests of other files. */
void repl_complete_on_answer(struct repl_complete *c, const struct session_reply *reply);

#endif
