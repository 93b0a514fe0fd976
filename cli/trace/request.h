/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets a command ask its nodes one question after another. Each call waits for the answer and serves the loop
 * meanwhile. An answer stays valid until the next question.
 */
#ifndef ETRACE_REQUEST_H
#define ETRACE_REQUEST_H

#include "exprs.h"
#include "peers.h"

struct request {
    struct peers peers;
    struct buf answer; /* holds the bytes of the last answer */
};

bool request_open(struct request *a, struct ctx *ctx, const struct node_opts *o, struct err *e);
void request_close(struct request *a); /* leaves every node as it was; accepts a struct that failed to open */

bool request_node(struct request *a, struct peer *p, struct str request, struct etf *ret_answer, struct err *e);

/* ---- the questions ({ask, What}) ---- */

/*
 * Appends the head of a question: the beginning of a tuple with the name of the question and `extra` further elements,
 * or only the name if `extra` is 0.
 */
void request_begin(struct buf *b, const char *what, size_t extra);

/*
 * Appends the functions that the texts select, as the {arm, …} of an arm request, without the version byte 131. Fails
 * if a text has more than a selector. With `counts` the request also says how they are counted, as in an arm request.
 */
bool request_selection(struct buf *b, struct exprs *exprs, const struct what_opts *what, const struct texts *texts,
                       const struct session_node *node, bool counts, struct err *e);

/*
 * Checks the texts like request_selection() but without a node, so that mistakes are reported before etrace connects.
 * *ret_texts gets the words and the texts of files (exprs_texts()).
 */
bool request_check(struct ctx *ctx, const struct what_opts *what, const struct texts *words, struct arena *a,
                   struct texts *ret_texts, struct err *e);

/*
 * If the node has reported that an expression matches nothing ({error, {empty, _}}), replaces the number of the
 * expression in the error by its text.
 */
void request_empty(const struct texts *words, const char *node, struct err *e);

#endif
