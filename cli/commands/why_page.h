/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what `etrace why` has found out about a process, as text that fits one screen, or as JSON. */
#ifndef ETRACE_WHY_PAGE_H
#define ETRACE_WHY_PAGE_H

#include "why_look.h"
#include "why_senders.h"

struct why_page {
    const struct why_look *look;
    const struct why_samples *samples;
    const struct why_senders *senders;
    const char *node;  /* name of the node */
    const char *ssh;   /* host of --ssh, for the commands that are printed; NULL: none */
    const char *named; /* node to name in the commands that are printed; NULL: they need not name it */
    struct paint paint;
    unsigned columns; /* width of the terminal; 0: unlimited */
};

/* Prints the cause as a phrase about the process: `deadlock: …`, `waits for …`. */
void why_page_cause(const struct why_page *p, struct buf *to);
void why_page_text(const struct why_page *p, struct buf *to);
void why_page_json(const struct why_page *p, struct buf *to);

#endif
