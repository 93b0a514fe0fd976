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
 * Sets limit->ring; its `on` is false if neither --ring nor --snapshot-when is given. The texts of the options are
 * borrowed. False: e says what is wrong.
 */
bool recorder_read(const struct recorder_opts *o, struct limit_opts *limit, struct err *e);

#endif
