/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the options of the flight recorder for etrace trace and for the interactive mode, except --then, which only
 * etrace trace has.
 */
#ifndef ETRACE_RECORDER_H
#define ETRACE_RECORDER_H

#include "../ground/err.h"
#include "../trace/settings.h"

/*
 * Sets limit->ring. Its `on` is true if --ring or --snapshot-when is given. Borrows the texts of the options. Returns
 * false, with an error, if an option is invalid.
 */
bool recorder_read(const struct recorder_opts *o, struct limit_opts *limit, struct err *e);

/* Returns the name of the given option that turns the recorder on; NULL: none. */
const char *recorder_option(const struct recorder_opts *o);

#endif
