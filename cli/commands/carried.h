/* The text files that the program carries, by their names. carried.c is written at build time by cli/carry.escript. */
#ifndef ETRACE_CARRIED_H
#define ETRACE_CARRIED_H

#include "../ground/macros.h"

struct carried {
    const char *name; /* NULL at the end */
    const char *text; /* NUL-terminated */
    size_t len;
};

extern const struct carried carried[];

const struct carried *carried_find(const char *name); /* NULL: there is none */

#endif
