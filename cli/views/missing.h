/* SPDX-License-Identifier: Apache-2.0 */
/* The report on missing events that every view prints at its end. */
#ifndef ETRACE_MISSING_H
#define ETRACE_MISSING_H

#include "sink.h"

/* Appends lines like `*** 812 events lost (rate) ***`, each after `prefix`. Appends nothing if nothing is missing. */
void missing_report(struct buf *to, const struct totals *t, const char *prefix);
/* The two parts of it. Tables of calls show the second part themselves. */
void missing_events(struct buf *to, const struct totals *t, const char *prefix);
void missing_counted(struct buf *to, const struct totals *t, const char *prefix);

/* Writes the members of a summary for the calls that were not seen, if there may be any. */
void missing_json(struct buf *to, const struct totals *t);
/* Writes the member about calls that have not returned, if there are any. */
void missing_open_json(struct buf *to, const struct totals_open *open);
/* Writes the first of them, if there was a budget. */
void missing_untraced_json(struct buf *to, const struct totals_untraced *u);

#endif
