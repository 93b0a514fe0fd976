/*
 * An event as a line of text: what the text view prints, and what --grep looks at.
 * The line has no newline, and (line_body) neither time nor node.
 */
#ifndef ETRACE_LINE_H
#define ETRACE_LINE_H

#include "../erlang/term_print.h"
#include "paint.h"
#include "sink.h"

/* How the event's terms are written. Never NULL. */
const struct printer *line_printer(const struct event *e, enum terms_style style);

void line_body(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint);

/* The same without the process in front. */
void line_event(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint);

/* Pieces that other views print too. */
void line_who(struct buf *to, const struct event *e, const struct paint *paint);         /* <0.84.0>(cart) */
void line_fun(struct buf *to, const struct event *e, enum terms_style style);            /* mod:fun, without arity */
void line_call(struct buf *to, const struct event *e, const struct printer *p, enum terms_style style); /* mod:fun(a, b) */
void line_args(struct buf *to, const struct event *e, const struct printer *p); /* a, b: of a call; _ is one not asked for */
/* {M,F,A}, {M,F,Args} or {M,F,A,{File,Line}}; anything else as a term. */
void line_mfa(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at);
/* The class and reason of an exception's term {Class, Reason}; false when it is something else. */
bool line_exception(const struct event *e, struct raw *ret_class, const uint8_t **ret_reason);
/* M, F, A or the arguments, file and line of such a tuple; false: it is none. */
struct line_mfa {
    struct raw module, function;
    int64_t arity;         /* -1: args */
    const uint8_t *args;   /* a list; NULL: arity */
    struct raw file;       /* of the event, or in the buffer; empty: not known */
    int64_t line;
};
struct raw line_base_name(struct raw path);
bool line_read_mfa(const struct event *e, const uint8_t *at, struct line_mfa *ret, struct buf *file);
void line_mfa_name(struct buf *to, const struct line_mfa *m, enum terms_style style); /* mod:fun/arity */
void line_loss(struct buf *to, const struct event *e, enum etw_loss reason, uint64_t count);
void line_node(struct buf *to, const struct event *e); /* ETW_DOWN, ETW_UP */
void line_notice(struct buf *to, const struct event *e, enum terms_style style); /* ETW_NOTICE */
/* The function that a notice says does not return; false: it says something else. */
bool line_endless(const struct event *e, struct line_mfa *ret);

/* Trace tokens that the node could not remove at the end. */
struct line_tokens {
    int64_t held, queued; /* processes that have one; processes with waiting messages that may bring one */
    bool known;           /* false: the node could not count them */
};

bool line_tokens(const struct event *e, struct line_tokens *ret); /* false: the notice says something else */

#endif
