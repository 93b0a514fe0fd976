/*
 * Strings kept once: equal texts have equal pointers, so names are compared and hashed as pointers.
 * The table owns its symbols until intern_release(). Not thread-safe: the main thread's alone.
 */
#ifndef ETRACE_INTERN_H
#define ETRACE_INTERN_H

#include "macros.h"

struct sym {
    struct sym *next; /* of its bucket */
    uint32_t hash, len;
    char text[]; /* NUL-terminated, may hold any byte */
};

struct intern {
    struct sym **buckets;
    size_t nbuckets, count;
};

void intern_init(struct intern *t);
void intern_release(struct intern *t);
const struct sym *intern(struct intern *t, const char *text, size_t len);

#endif
