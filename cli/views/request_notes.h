/* SPDX-License-Identifier: Apache-2.0 */
/* Prints notes below the figures of requests: the longest wait, requests without a reply, and what is missing. */
#ifndef ETRACE_REQUEST_NOTES_H
#define ETRACE_REQUEST_NOTES_H

#include "request_view.h"

/* Prints a line for each note. Call request_rows_open() first. */
void request_put_notes(struct request_view *q, struct buf *to, const struct totals *totals);
/*
 * Print three of the notes: the part of the requests that the nodes have admitted, the requests that no traced process
 * has received, and the requests to servers that were not followed.
 */
void request_put_share(const struct request_view *q, struct buf *to, const struct totals *totals);
void request_put_elsewhere(const struct request_view *q, struct buf *to);
void request_put_unfollowed(const struct request_view *q, struct buf *to);

#endif
