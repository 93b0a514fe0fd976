/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes the line when the user types Tab. Modules, functions, records and processes come from the current node,
 * whose answers are cached for some seconds. Commands, labels, views and words of the language need no node.
 */
#ifndef ETRACE_REPL_COMPLETE_H
#define ETRACE_REPL_COMPLETE_H

#include "repl_probes.h"

struct repl_complete;

struct repl_complete *repl_complete_new(struct repl_base *base, struct repl_nodes *nodes, struct repl_probes *probes);
void repl_complete_free(struct repl_complete *c); /* accepts NULL */

/*
 * Completes the text `before` the cursor. `so_far` are the earlier lines of the expression. May wait for an answer of
 * the node.
 */
void repl_complete(struct repl_complete *c, struct str so_far, struct str before);
/* Adds the names in the reply to the list that they are for. Ignores replies to requests of other parts. */
void repl_complete_on_answer(struct repl_complete *c, const struct session_reply *reply);

#endif
