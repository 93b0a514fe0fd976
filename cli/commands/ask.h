/*
 * Lets a command ask its nodes one question after another. Each call waits for the answer and serves the loop
 * meanwhile. An answer stays valid until the next question.
 */
#ifndef ETRACE_ASK_H
#define ETRACE_ASK_H

#include "asked.h"
#include "peers.h"

struct ask {
    struct peers peers;
    struct buf answer; /* holds the bytes of the last answer */
};

bool ask_open(struct ask *a, struct ctx *ctx, const struct node_opts *o, struct err *e);
void ask_close(struct ask *a); /* leaves every node as it was; accepts one that failed to open */

bool ask_node(struct ask *a, struct peer *p, struct str request, struct etf *ret_answer, struct err *e);

/* ---- the questions ({ask, What}) ---- */

/* Appends the head of a question: its name and room for `extra` more elements. 0: the question is the name alone. */
void ask_begin(struct buf *b, const char *what, size_t extra);

/*
 * Appends the functions that the texts select, in the form of an arm request: {arm, …} without its 131. Fails if a text
 * is more than a selector.
 */
bool ask_selection(struct buf *b, struct asked *asked, const struct what_opts *what, const struct texts *texts,
                   const struct session_node *node, struct err *e);

/*
 * Checks the texts like ask_selection() but without a node, to report mistakes before connecting. *ret_texts gets the
 * words and the texts of files (asked_texts()).
 */
bool ask_check(struct ctx *ctx, const struct what_opts *what, const struct texts *words, struct arena *a, struct texts *ret_texts, struct err *e);

/* Replaces the number of an expression in the node's {error, {empty, _}} by the user's text. */
void ask_empty(const struct texts *words, const char *node, struct err *e);

#endif
