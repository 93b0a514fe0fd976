/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the values of --from and --to. */
#ifndef ETRACE_MOMENT_H
#define ETRACE_MOMENT_H

#include "../ground/err.h"
#include "../pipeline/window.h"

/*
 * Parses a point of time: 2026-01-31T18:26:50.5Z (T may be a space; the zone is Z, +02:00 or missing), 2026-01-31,
 * 18:26:50, 18:26, +2s or -5s. A time without a zone is local, or UTC if `utc`. If `text` is NULL, *ret becomes
 * MOMENT_NONE.
 */
bool moment_read(const char *text, bool utc, struct moment *ret);

#endif
