/* SPDX-License-Identifier: Apache-2.0 */
/* Reports missing events. Every view prints this report at its end. */
#ifndef ETRACE_MISSING_H
#define ETRACE_MISSING_H

#include "sink.h"

/* Appends lines like `*** 812 events lost (rate) ***`, each after `prefix`. Appends nothing if nothing is missing. */
void missing_report(struct buf *to, const struct totals *t, const char *prefix);
/* Append the two parts of the report. Tables of calls show the second part in their own way. */
void missing_events(struct buf *to, const struct totals *t, const char *prefix);
void missing_counted(struct buf *to, const struct totals *t, const char *prefix);

/* Writes the members "not_traced" and "reloads" of a summary if there may be calls that were not seen. */
void missing_json(struct buf *to, const struct totals *t);
/* Writes the member "open" about calls that have not returned, if there are any. */
void missing_open_json(struct buf *to, const struct totals_open *open);
/* Writes the member "not_traced" if there was a budget (--overhead). */
void missing_untraced_json(struct buf *to, const struct totals_untraced *u);

#endif
