/* SPDX-License-Identifier: Apache-2.0 */
/* The units of durations and sizes, in options and in conditions. */
#ifndef ETRACE_UNITS_H
#define ETRACE_UNITS_H

#include <stdbool.h>

#include "buf.h"

enum unit_kind { UNIT_DURATION, UNIT_SIZE };

struct unit {
    const char *name;
    enum unit_kind kind;
    double factor; /* nanoseconds, or bytes */
};

/* Returns the unit with this name, in upper or lower case if `any_case`. NULL: there is no such unit. */
const struct unit *unit_find(struct str name, bool any_case);

#endif
