/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds, starts and stops probes, and sends the nodes requests to trace them. This part does not know views. A caller
 * that starts probes must first open the live view again if it has ended; otherwise the view would miss the first
 * events.
 *
 * A request contains all running probes. After a node has refused a request, the next request leaves out the probes
 * that were new to this node.
 */
#ifndef ETRACE_REPL_PROBES_H
#define ETRACE_REPL_PROBES_H

#include "repl_nodes.h"
#include "repl_probe_list.h"

struct repl_probes;

struct repl_probes *repl_probes_new(struct repl_base *base, struct repl_nodes *nodes);
void repl_probes_free(struct repl_probes *ps); /* accepts NULL */

/*
 * Adds the expression in the line, and sets *ret_expr to its beginning, after the label if there is one. May ask a node
 * for records and wait for the answer. If it returns true, the caller must call repl_probes_begin(). Returns false,
 * with an error, if the probe cannot be added.
 */
bool repl_probes_add(struct repl_probes *ps, const char *line, const char **ret_expr, struct err *e);
/*
 * Sends the request, and waits at most PROMPT_MS for the answers. Returns false, and prints the error, if a node has
 * refused or the user has typed Ctrl-C.
 */
bool repl_probes_begin(struct repl_probes *ps);

/*
 * Drop, stop or resume the probe with this label, or all probes if `label` is NULL. Return false if no probe has the
 * label.
 */
bool repl_probes_drop(struct repl_probes *ps, const char *label);
/* Views still show the events that have arrived before. */
bool repl_probes_stop(struct repl_probes *ps, const char *label);
bool repl_probes_resume(struct repl_probes *ps, const char *label); /* the caller must then call repl_probes_arm() */

/*
 * Sends a request for the probes that run now. If a node refuses, prints the error and leaves out the refused probes.
 */
void repl_probes_arm(struct repl_probes *ps);
/*
 * Sends a request, and waits for all answers for at most patience_ms; -1: without a limit. Returns false, with an
 * error, if a node has refused or the user has typed Ctrl-C.
 */
bool repl_probes_arm_all(struct repl_probes *ps, int64_t patience_ms, struct err *e);

/* The users of results and of callers of calls, for repl_probes_collect(). */
enum repl_probes_for { PROBES_FOR_VIEW, PROBES_FOR_TRIGGER, PROBES_FORS };
/*
 * Sets what `who` needs: PROPERTY_NEEDS_RETURN and PROPERTY_NEEDS_CALLER bits. Sends a new request if running probes
 * must then collect other data.
 */
void repl_probes_collect(struct repl_probes *ps, enum repl_probes_for who, unsigned needs);
/* Returns false, with an error, if a flight recorder cannot trace the running probes. */
bool repl_probes_may_overwrite(const struct repl_probes *ps, struct err *e);

/* Returns true if the last request contains probes. */
bool repl_probes_armed(const struct repl_probes *ps);
/* Returns true if a node has not answered the last request. */
bool repl_probes_arming(const struct repl_probes *ps);
const struct probe_list *repl_probes_list(const struct repl_probes *ps); /* the probes, for printing and counting */

/* Handlers for messages of nodes. */
void repl_probes_on_ready(struct repl_probes *ps, const struct peer *peer);
void repl_probes_on_armed(struct repl_probes *ps, const struct peer *peer, const struct arm_result *result);
void repl_probes_on_refused(struct repl_probes *ps, const struct peer *peer, const struct err *e);

/*
 * The timer calls both functions, in this order. repl_probes_arm_due() handles refusals, and sends the last request to
 * nodes that were attached after it. repl_probes_tick() stops the probes at the end of :for, and returns the loop_now()
 * time of the next call; -1: none is needed.
 */
void repl_probes_arm_due(struct repl_probes *ps);
int64_t repl_probes_tick(struct repl_probes *ps);
/* Begins the time of :for now. Otherwise it begins when the nodes trace a probe that was added or started. */
void repl_probes_begin_time(struct repl_probes *ps);
/* Makes the timer print, after the last events, that the probes have stopped. */
void repl_probes_say_stopped(struct repl_probes *ps);

#endif
