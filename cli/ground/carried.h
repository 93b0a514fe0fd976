/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the text files that are built into the program. cli/carry.escript writes carried.c at build time. */
#ifndef ETRACE_CARRIED_H
#define ETRACE_CARRIED_H

#include "macros.h"

struct carried {
    const char *name; /* NULL ends the array */
    const char *text; /* NUL-terminated */
    size_t len;
};

extern const struct carried carried[];

const struct carried *carried_find(const char *name); /* returns NULL if there is no such file */

#endif
