/* SPDX-License-Identifier: Apache-2.0 */
/* Runs code that blocks, such as a DNS lookup, on a thread of its own, while the loop continues. */
#ifndef ETRACE_ASIDE_H
#define ETRACE_ASIDE_H

#include "loop.h"

/*
 * Calls work(data) on a thread and steps the loop until work() returns. Only `work` may use `data` until then, and
 * `work` must not use the loop. Never call aside() from a handler of the loop. If no thread can be started, aside()
 * calls work(data) directly.
 */
void aside(struct loop *loop, void (*work)(void *data), void *data);

#endif
