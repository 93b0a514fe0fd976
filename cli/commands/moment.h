/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the moments of --from and --to. */
#ifndef ETRACE_MOMENT_H
#define ETRACE_MOMENT_H

#include "../ground/err.h"
#include "../pipeline/window.h"

/*
 * Reads a moment: 2026-01-31T18:26:50.5Z (T may be a space; the zone is Z, +02:00 or missing), 2026-01-31, 18:26:50,
 * 18:26, +2s or -5s. Without a zone, the time is local, or UTC with `utc`. NULL gives MOMENT_NONE.
 */
bool moment_read(const char *text, bool utc, struct moment *ret);

#endif
