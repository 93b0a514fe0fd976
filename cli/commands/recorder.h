/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the options of the flight recorder, for etrace trace and the interactive mode. It does not read --then, which
 * only etrace trace has.
 */
#ifndef ETRACE_RECORDER_H
#define ETRACE_RECORDER_H

#include "../ground/err.h"
#include "../trace/settings.h"

/*
 * Sets limit->ring; `on` is false if neither --ring nor --snapshot-when is given. Borrows the texts of the options.
 * After false, e has the error.
 */
bool recorder_read(const struct recorder_opts *o, struct limit_opts *limit, struct err *e);

/* Returns the option that makes a recorder; NULL: none is given. */
const char *recorder_option(const struct recorder_opts *o);

#endif
