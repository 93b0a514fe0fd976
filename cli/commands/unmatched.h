/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows a call that no expression matched, after a trace that had no events although its functions were called. It
 * traces the same functions once more, without patterns and guards, until the first call, for at most half a second. It
 * does nothing if that would ask the user for a password or read standard input again.
 */
#ifndef ETRACE_UNMATCHED_H
#define ETRACE_UNMATCHED_H

#include "../trace/live.h"

/*
 * Shows a call of the functions that no call of the ended trace matched. `o`: the options of that trace. `functions`:
 * the text that live_run() wrote to o->unmatched; it is empty if the trace had events.
 */
void unmatched_show(struct ctx *ctx, const struct live_options *o, const char *functions);

#endif
