/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds, starts and stops probes, and sends the nodes requests to trace them. This part knows no views: before a caller
 * starts probes, the caller must open the live view again if the view has ended, so that the view shows the first
 * events.
 *
 * A request contains all running probes. If a node refuses a request, the next request lacks the probes that were new
 * to that node.
 */
#ifndef ETRACE_REPL_PROBES_H
#define ETRACE_REPL_PROBES_H

#include "repl_nodes.h"
#include "repl_probe_list.h"

struct repl_probes;

struct repl_probes *repl_probes_new(struct repl_base *base, struct repl_nodes *nodes);
void repl_probes_free(struct repl_probes *ps); /* accepts NULL */

/*
 * Adds the expression of the line, which may begin with a label; *ret_expr becomes the start of the expression. May ask
 * a node for a record and wait for the answer. Returns false, with an error, if the probe cannot be added. If it can,
 * repl_probes_begin() must follow.
 */
bool repl_probes_add(struct repl_probes *ps, const char *line, const char **ret_expr, struct err *e);
/*
 * Sends the request, and waits at most PROMPT_MS for the answers. Returns false, and prints the error, if a node
 * refused or Ctrl-C was typed.
 */
bool repl_probes_begin(struct repl_probes *ps);

/* Drop, stop or resume one probe; `label` NULL: all. Return false if no probe has the label. */
bool repl_probes_drop(struct repl_probes *ps, const char *label);
/* Events that came before stay in the scrollback, and views show them. */
bool repl_probes_stop(struct repl_probes *ps, const char *label);
bool repl_probes_resume(struct repl_probes *ps, const char *label); /* repl_probes_arm() must follow */

/* Sends a request for the probes that run now. Prints a refusal, and leaves out the refused probes. */
void repl_probes_arm(struct repl_probes *ps);
/*
 * Sends a request, and waits for all answers, at most patience_ms; -1: without a limit. Returns false, with an error,
 * if a node refused or Ctrl-C was typed.
 */
bool repl_probes_arm_all(struct repl_probes *ps, int64_t patience_ms, struct err *e);

/* The users of results and callers of calls, for repl_probes_collect(). */
enum repl_probes_for { PROBES_FOR_VIEW, PROBES_FOR_TRIGGER, PROBES_FORS };
/*
 * Sets which of PROPERTY_NEEDS_RETURN and PROPERTY_NEEDS_CALLER `who` needs. If this changes what running probes must
 * collect, sends a new request.
 */
void repl_probes_collect(struct repl_probes *ps, enum repl_probes_for who, unsigned needs);
/* Returns false, with an error, if a flight recorder cannot trace the running probes. */
bool repl_probes_may_overwrite(const struct repl_probes *ps, struct err *e);

bool repl_probes_armed(const struct repl_probes *ps);                    /* true if the last request contains probes */
bool repl_probes_arming(const struct repl_probes *ps);                   /* true if some node has not answered yet */
const struct probe_list *repl_probes_list(const struct repl_probes *ps); /* the probes, for printing and counting */

/* Handle the messages of nodes. */
void repl_probes_on_ready(struct repl_probes *ps, const struct peer *peer);
void repl_probes_on_armed(struct repl_probes *ps, const struct peer *peer, const struct arm_result *result);
void repl_probes_on_refused(struct repl_probes *ps, const struct peer *peer, const struct err *e);

/*
 * The timer calls these in this order. repl_probes_tick() returns the loop_now() time of the next call; -1: none is
 * needed.
 */
/* Handles refusals, and asks nodes that were attached after the last request. */
void repl_probes_arm_due(struct repl_probes *ps);
int64_t repl_probes_tick(struct repl_probes *ps);     /* stops the probes when the time of :for is over */
void repl_probes_say_stopped(struct repl_probes *ps); /* prints, after the last events, that the probes are stopped */

#endif
