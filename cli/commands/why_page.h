/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what `etrace why` has found out about one process, as one screen of text and as JSON. */
#ifndef ETRACE_WHY_PAGE_H
#define ETRACE_WHY_PAGE_H

#include "why_look.h"
#include "why_senders.h"

struct why_page {
    const struct why_look *look;
    const struct why_samples *samples;
    const struct why_senders *senders;
    const char *node;  /* its name */
    const char *ssh;   /* the host of --ssh, for commands; NULL: none */
    const char *named; /* the node, for commands that show more; NULL: they need no node */
    struct paint paint;
    unsigned columns; /* the width; 0: unlimited */
};

/* Prints the cause, a phrase about the process: `deadlock: …`, `waits for …`. */
void why_page_cause(const struct why_page *p, struct buf *to);
void why_page_text(const struct why_page *p, struct buf *to);
void why_page_json(const struct why_page *p, struct buf *to);

#endif
