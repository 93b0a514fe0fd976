/* SPDX-License-Identifier: Apache-2.0 */
/* Reports missing events and calls that were not traced, for the end of a view. */
#ifndef ETRACE_MISSING_H
#define ETRACE_MISSING_H

#include "sink.h"

/* Appends lines like `*** 812 events lost (rate) ***`, each after `prefix`. Appends nothing if nothing is missing. */
void missing_report(struct buf *to, const struct totals *t, const char *prefix);
/* Append the two parts of the report. A view that shows losses where they happened calls only missing_counted(). */
void missing_events(struct buf *to, const struct totals *t, const char *prefix);
void missing_counted(struct buf *to, const struct totals *t, const char *prefix);

/* Writes the member "not_traced" like missing_untraced_json(), and "reloads" if modules were reloaded. */
void missing_json(struct buf *to, const struct totals *t);
/* Writes the member "open" about calls that have not returned, if there are any. */
void missing_open_json(struct buf *to, const struct totals_open *open);
/* Writes the member "not_traced" if there was a budget (--overhead). */
void missing_untraced_json(struct buf *to, const struct totals_untraced *u);

#endif
