/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows a call that no expression matched, after a trace whose functions were called and that has no event: the same
 * functions are traced once more, without patterns and guards, until the first call, for half a second at most. Not if
 * that would ask the user for a password or read standard input again.
 */
#ifndef ETRACE_UNMATCHED_H
#define ETRACE_UNMATCHED_H

#include "../trace/live.h"

/* `o`: of the trace that has ended, `functions`: what live_run() wrote into o->unmatched; "": it had events. */
void unmatched_show(struct ctx *ctx, const struct live_options *o, const char *functions);

#endif
