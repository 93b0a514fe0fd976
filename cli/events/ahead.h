/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source that reads another source ahead in a thread, so that the reader of a recording does not wait for the file
 * and the decompression. It keeps at most AHEAD_ITEMS items, and pauses while the kept items have AHEAD_BYTES bytes.
 */
#ifndef ETRACE_AHEAD_H
#define ETRACE_AHEAD_H

#include "source.h"

#define AHEAD_ITEMS 8
#define AHEAD_BYTES ((size_t)2 << 20)

/*
 * Creates a thread that reads `from` ahead. Only that thread uses `from` until ahead_close(), which leaves `from` open.
 * `last` is the item that `from` returned last, or NULL. Its bytes are copied, because the thread reads the next item
 * at once. Returns NULL and leaves `last` unchanged if no thread can be created.
 */
struct source *ahead_new(struct source *from, struct source_item *last);
void ahead_close(struct source *ahead); /* waits for the end of the thread; accepts NULL */

#endif
