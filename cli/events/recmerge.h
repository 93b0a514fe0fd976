/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads several recordings as one source, in the order of their batches. The nodes of the recordings get different
 * numbers. All recordings must have the same request, because a pipeline has one.
 *
 * If a recording is malformed, the source returns the error after it has read the other recordings to their ends.
 */
#ifndef ETRACE_RECMERGE_H
#define ETRACE_RECMERGE_H

#include "source.h"

/* Takes ownership of the sources, whose order decides between batches of the same time. */
struct source *recmerge_new(struct source *const *files, size_t n);

/* Sets the error of recordings that have more than EVENT_NODES nodes together. Returns false. */
bool recmerge_too_many(struct err *e);

/*
 * Calls recfile_seek() for each recording. Returns false if none moved. Sets *ret_stale if the item that was returned
 * last is no longer valid.
 */
bool recmerge_seek(struct source *merged, int64_t newest, bool *ret_stale);

#endif
