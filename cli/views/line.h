/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats an event as a line of text, for the text view and for --grep. The line has no newline, and line_body() prints
 * neither time nor node.
 */
#ifndef ETRACE_LINE_H
#define ETRACE_LINE_H

#include "../erlang/term_print.h"
#include "../events/mfa.h"
#include "paint.h"
#include "sink.h"

/*
 * Returns the printer for everything that a line shows of an event, including its function. TERMS_AUTO chooses Elixir
 * if the node runs Elixir, or if the function's module is one of Elixir. Never NULL.
 */
const struct printer *line_printer(const struct event *e, enum terms_style style);

void line_body(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint);

/* Like line_body(), without the process at the beginning. */
void line_event(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint);

/*
 * Print the two parts of the line of a result, without its duration. The head ends with the function. The tail begins
 * with a space; it has the value, and the caller, stack and other values that the probe has collected.
 */
void line_result_head(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint);
void line_result_tail(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint);
/*
 * Prints the beginning of a line before the process: the node, if `node`, and the label of the probe. A space follows
 * each of them.
 */
void line_place(struct buf *to, const struct event *e, bool node, const struct paint *paint);
/*
 * Prints losses, notices, and nodes that were lost or came back as whole lines, with stars and without a time, so that
 * nobody mistakes them for events. Prints nothing for other events, and for notices that no view shows.
 */
void line_own(struct buf *to, const struct event *e, const struct look *look, const struct paint *paint);

/* Parts of a line that other views use, too. */
void line_who(struct buf *to, const struct event *e, const struct paint *paint); /* <0.84.0>(cart) */
void line_fun(struct buf *to, const struct event *e, enum terms_style style);    /* mod:fun, without arity */
/*
 * Like line_fun(), but for a list of names without terms: TERMS_AUTO chooses the language by the module of the function
 * alone.
 */
void line_fun_name(struct buf *to, const struct event *e, enum terms_style style);
/* Prints mod:fun(a, b). */
void line_call(struct buf *to, const struct event *e, const struct printer *p, enum terms_style style);
/* Prints the arguments of a call as `a, b`; _ for an argument that the probe does not show. */
void line_args(struct buf *to, const struct event *e, const struct printer *p);
/* Formats {M,F,A}, {M,F,Args} or {M,F,A,{File,Line}} as a function, and anything else as a term. */
void line_mfa(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at);
/* Prints a stack as m:f/1 < m:g/2. */
void line_stack(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at);
/* Reads the exception term {Class, Reason}. Returns false for another term. */
bool line_exception(const struct event *e, struct raw *ret_class, const uint8_t **ret_reason);
/* Prints mod:fun/arity for a list of names, like line_fun_name(). */
void line_function_name(struct buf *to, struct raw module, struct raw name, int64_t arity, enum terms_style style);
void line_mfa_name(struct buf *to, const struct mfa *m, enum terms_style style);
void line_loss(struct buf *to, const struct event *e, enum etw_loss reason, uint64_t count);
void line_node(struct buf *to, const struct event *e);                           /* ETW_DOWN, ETW_UP */
void line_notice(struct buf *to, const struct event *e, enum terms_style style); /* ETW_NOTICE */
/* Prints how often the condition of a snapshot held too soon after the previous snapshot. */
void line_put_skipped(struct buf *to, uint64_t times);
/* Texts of messages about a process of -P; the name of the process stands before them. A pid follows the first text. */
#define LINE_RESTARTED " restarted: now "
#define LINE_EXITED " has exited: etrace traces the next process with this name"

void line_share(struct buf *to, int64_t hundredths); /* prints hundredths of a percent: 310 as 3.10 */

#endif
