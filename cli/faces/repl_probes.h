/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds, starts and stops probes, and asks the nodes to trace them. It knows no views: before a caller starts probes, it
 * opens the live view again if that has ended, so that the view shows the first events.
 *
 * A request is for all running probes. If a node refuses it, the next request is without those that are new to that
 * node.
 */
#ifndef ETRACE_REPL_PROBES_H
#define ETRACE_REPL_PROBES_H

#include "repl_nodes.h"
#include "repl_probe_list.h"

struct repl_probes;

struct repl_probes *repl_probes_new(struct repl_base *base, struct repl_nodes *nodes);
void repl_probes_free(struct repl_probes *ps); /* accepts NULL */

/*
 * Adds the expression of the line, which may have a label; *ret_expr is where the expression begins. May ask a node
 * for a record, and waits for the answer. false: e says why. repl_probes_begin() must follow.
 */
bool repl_probes_add(struct repl_probes *ps, const char *line, const char **ret_expr, struct err *e);
/* Asks the nodes and waits for them, but only for a moment. false: one refused, the error is printed. */
bool repl_probes_begin(struct repl_probes *ps);

/* In these three functions NULL means all probes. false: there is no such label. */
bool repl_probes_drop(struct repl_probes *ps, const char *label);
bool repl_probes_stop(struct repl_probes *ps, const char *label); /* the views still show the events that came before */
bool repl_probes_resume(struct repl_probes *ps, const char *label); /* repl_probes_arm() must follow */

/* Asks the nodes for the probes that run now. A refusal is printed, and its probes are left out. */
void repl_probes_arm(struct repl_probes *ps);
/* Waits until each node is prepared or the timeout has passed; -1: none. false: a node refused, or Ctrl-C was typed. */
bool repl_probes_arm_all(struct repl_probes *ps, int64_t patience_ms, struct err *e);

/* The readers of results and callers of calls: the probes must collect these. */
enum repl_probes_for { PROBES_FOR_VIEW, PROBES_FOR_TRIGGER, PROBES_FORS };
/* Sets what it reads (PROPERTY_NEEDS_RETURN and _CALLER). If that is new to running probes, asks the nodes again. */
void repl_probes_collect(struct repl_probes *ps, enum repl_probes_for who, unsigned needs);
/* Whether a flight recorder can trace the running probes. */
bool repl_probes_may_overwrite(const struct repl_probes *ps, struct err *e);

bool repl_probes_armed(const struct repl_probes *ps);                    /* something is traced */
bool repl_probes_arming(const struct repl_probes *ps);                   /* some node has not answered yet */
const struct probe_list *repl_probes_list(const struct repl_probes *ps); /* the probes, for printing and counting */

/* The handlers of the nodes call these. */
void repl_probes_on_ready(struct repl_probes *ps, const struct peer *peer);
void repl_probes_on_armed(struct repl_probes *ps, const struct peer *peer, const struct arm_result *result);
void repl_probes_on_refused(struct repl_probes *ps, const struct peer *peer, const struct err *e);

/* The timer calls these in this order. repl_probes_tick() returns when to call again; -1: no need. */
void repl_probes_arm_due(struct repl_probes *ps); /* handles refusals, and asks nodes attached since the last request */
int64_t repl_probes_tick(struct repl_probes *ps); /* :for */
void repl_probes_say_stopped(struct repl_probes *ps); /* prints that the probes are stopped, below the last events */

#endif
