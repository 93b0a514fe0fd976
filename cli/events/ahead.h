/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source that reads another source ahead in a thread, so that the reader of a recording does not wait for the file
 * and the decompression. It keeps at most AHEAD_ITEMS items; it reads no further while they have AHEAD_BYTES bytes.
 */
#ifndef ETRACE_AHEAD_H
#define ETRACE_AHEAD_H

#include "source.h"

#define AHEAD_ITEMS 8
#define AHEAD_BYTES ((size_t)2 << 20)

/*
 * Only the thread uses `from` until ahead_close(), which leaves it open. `last` is the last item of `from`, or NULL; it
 * moves to a copy, because the thread reads the next item at once. NULL: no thread could be created, and `last` is as
 * it was.
 */
struct source *ahead_new(struct source *from, struct source_item *last);
void ahead_close(struct source *ahead); /* waits for the end of the thread; accepts NULL */

#endif
