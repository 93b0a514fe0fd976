/*
 * Commands that put questions to nodes one after another: attached as every command is, each question waits for its
 * answer. What the node answers is valid until the next question.
 */
#ifndef ETRACE_ASK_H
#define ETRACE_ASK_H

#include "asked.h"
#include "peers.h"

struct ask {
    struct peers peers;
    struct buf answer; /* the bytes of the last one */
};

bool ask_open(struct ask *a, struct ctx *ctx, const struct node_opts *o, struct err *e);
void ask_close(struct ask *a); /* leaves every node as it was; accepts one that failed to open */

bool ask_node(struct ask *a, struct peer *p, struct str request, struct etf *ret_answer, struct err *e);

/* ---- the questions ({ask, What}) ---- */

/* The head of a question with `extra` more elements behind its name; 0: the name alone. */
void ask_begin(struct buf *b, const char *what, size_t extra);

/* Appends what the texts select, as arming has it: {arm, …} without its 131. They must be selectors and nothing more. */
bool ask_selection(struct buf *b, struct asked *asked, const struct what_opts *what, const struct texts *texts,
                   const struct session_node *node, struct err *e);

/* The same without a node, so that what is wrong is said before any is asked; gives the texts (asked_texts()). */
bool ask_check(struct ctx *ctx, const struct what_opts *what, const struct texts *words, struct arena *a, struct texts *ret_texts, struct err *e);

/* {error, {empty, _}} names a number; the user had words. */
void ask_empty(const struct texts *words, const char *node, struct err *e);

#endif
