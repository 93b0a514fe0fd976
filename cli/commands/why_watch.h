/* SPDX-License-Identifier: Apache-2.0 */
/* Asks again and again what one process does, while a table shows it, and prints the page of `etrace why`. */
#ifndef ETRACE_WHY_WATCH_H
#define ETRACE_WHY_WATCH_H

#include "why_page.h"

struct why_watch {
    struct look_process process;
    unsigned node;  /* index of its node */
    bool waits;     /* the node has not answered the last question yet */
    struct buf who; /* the process, for requests */
    struct why_look look;
    struct why_samples samples;
};

void why_watch_release(struct why_watch *w);

/* Begins to watch a process of the node with index `node`, and forgets the one before. */
bool why_watch_begin(struct why_watch *w, const struct look_process *process, unsigned node,
                     const struct session_node *there, struct err *e);
void why_watch_request(struct why_watch *w, struct buf *to); /* appends the next question */
bool why_watch_answer(struct why_watch *w, struct etf answer, struct funs *funs, struct err *e);

/*
 * Prints the page. Uses of `page` only how it is printed and what it names: node, ssh, named, paint and columns.
 */
void why_watch_text(const struct why_watch *w, const struct why_page *page, struct buf *to);

#endif
