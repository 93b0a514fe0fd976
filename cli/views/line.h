/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats an event as a line of text, for the text view and for --grep. The line has no newline; line_body() adds
 * neither time nor node.
 */
#ifndef ETRACE_LINE_H
#define ETRACE_LINE_H

#include "../erlang/term_print.h"
#include "paint.h"
#include "sink.h"

/*
 * Returns the printer for everything that a line shows of an event, including its function. TERMS_AUTO chooses Elixir if
 * the node runs Elixir, or if the function's module is one of Elixir. Never NULL.
 */
const struct printer *line_printer(const struct event *e, enum terms_style style);

void line_body(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint);

/* Like line_body(), without the process in front. */
void line_event(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint);

/* Parts of a line that other views use too. */
void line_who(struct buf *to, const struct event *e, const struct paint *paint); /* <0.84.0>(cart) */
void line_fun(struct buf *to, const struct event *e, enum terms_style style);    /* mod:fun, without arity */
/*
 * The same as one of many names, without terms. TERMS_AUTO: in the language of the function's module, as line_mfa_name()
 * prints the functions of stacks.
 */
void line_fun_name(struct buf *to, const struct event *e, enum terms_style style);
void line_call(struct buf *to, const struct event *e, const struct printer *p, enum terms_style style); /* mod:fun(a, b) */
/* a, b: the arguments of a call; _ for an argument that the probe does not show */
void line_args(struct buf *to, const struct event *e, const struct printer *p);
/* Formats {M,F,A}, {M,F,Args} or {M,F,A,{File,Line}} as a function, and anything else as a term. */
void line_mfa(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at);
/* A stack as m:f/1 < m:g/2 */
void line_stack(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at);
/* The class and reason of the exception term {Class, Reason}. False: another term. */
bool line_exception(const struct event *e, struct raw *ret_class, const uint8_t **ret_reason);
/* The parts of a tuple that names a function. line_read_mfa() returns false for any other term. */
struct line_mfa {
    struct raw module, function;
    int64_t arity;       /* -1: see args */
    const uint8_t *args; /* a list; NULL: see arity */
    struct raw file;     /* points into the event or into the buffer; empty: unknown */
    int64_t line;
};
struct raw line_base_name(struct raw path);
bool line_read_mfa(const struct event *e, const uint8_t *at, struct line_mfa *ret, struct buf *file);
/* The number of arguments that were captured, if the list was cut. */
int64_t line_mfa_arity(const struct line_mfa *m, bool *ret_cut);
void line_mfa_name(struct buf *to, const struct line_mfa *m, enum terms_style style); /* mod:fun/arity */
void line_loss(struct buf *to, const struct event *e, enum etw_loss reason, uint64_t count);
void line_node(struct buf *to, const struct event *e);                           /* ETW_DOWN, ETW_UP */
void line_notice(struct buf *to, const struct event *e, enum terms_style style); /* ETW_NOTICE */
/* How often the condition of a snapshot held too soon after the last one. */
void line_put_skipped(struct buf *to, uint64_t times);
/* Reads the function that a notice reports as endless. Returns false if the notice reports something else. */
bool line_endless(const struct event *e, struct line_mfa *ret);
/*
 * Reads the root of `inside` that a notice reports as calling itself in a loop. The node sends the results of this root, but
 * no calls of roots that run inside of its loops. Returns false if the notice reports something else.
 */
bool line_root_loops(const struct event *e, struct line_mfa *ret);

/* Trace tokens that the node could not remove at the end. */
struct line_tokens {
    int64_t held, queued; /* processes with a token; processes with queued messages that may carry one */
    bool known;           /* false: the node could not count them */
};

/* A notice about the budget of the trace. Shares are hundredths of a percent. */
struct line_overhead {
    int64_t functions; /* how many are only counted; 0: the notice at the end */
    int64_t taken, limit;
    int64_t calls; /* calls a second of the busiest function; at the end: calls that were rejected */
    int64_t untraced; /* at the end: calls that made no event because of the budget; -1: unknown */
    bool estimated;   /* that number is an estimate */
    struct line_mfa busiest;
};
/* The texts after a name of -P in a message. A pid follows the first one. */
#define LINE_RESTARTED " restarted: now "
#define LINE_EXITED " has exited: etrace traces the next process with this name"

/* How many modules were loaded or reloaded, according to this notice. Their calls until then were not seen. */
uint64_t line_reloads(const struct event *e);
void line_share(struct buf *to, int64_t hundredths);                  /* 310: 3.10 */
bool line_overhead(const struct event *e, struct line_overhead *ret); /* false: the notice reports something else */
bool line_tokens(const struct event *e, struct line_tokens *ret);     /* false: the notice reports something else */

#endif
