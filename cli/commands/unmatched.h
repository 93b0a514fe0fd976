/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helps after a trace without events, although the traced functions were called: shows a call that matches no
 * expression. For this, traces the functions again without patterns and guards, for at most half a second or until the
 * first call. Does nothing if the user would have to type a password again, or if standard input would be read again.
 */
#ifndef ETRACE_UNMATCHED_H
#define ETRACE_UNMATCHED_H

#include "../trace/live.h"

/*
 * Shows a call of the functions that did not match. `o` are the options of the ended trace. `functions` is the text
 * that live_run() wrote to o->unmatched; it is empty if the trace had events.
 */
void unmatched_show(struct ctx *ctx, const struct live_options *o, const char *functions);

#endif
