/*
 * Memory: checked allocation, and the arena.
 *
 * No function here returns NULL: when memory is gone the process ends through the handler given to
 * mem_on_exhausted() (the traced node cleans up by itself when the connection closes).
 * mem_give_back(), called first of all, has the library give back to the system what is freed and was large. Else it keeps ever
 * more of it for the next time, in steps over hours, and nobody who looks at the process can tell that from a leak.
 * An arena owns everything allocated from it; arena_clear() forgets all of it at once and keeps the blocks.
 */
#ifndef ETRACE_MEM_H
#define ETRACE_MEM_H

#include "macros.h"

void mem_on_exhausted(void (*handler)(void));
void mem_give_back(void);

void *mem_alloc(size_t size);              /* not zeroed */
void *mem_zalloc(size_t size);             /* zeroed */
void *mem_realloc(void *old, size_t size);
char *mem_strndup(const char *text, size_t len); /* NUL-terminated */

/* Grows *items (of `each` bytes) so that `want` of them fit; *cap is the capacity in items. */
void *mem_grow(void *items, size_t *cap, size_t want, size_t each);

struct arena_block;
struct arena {
    struct arena_block *blocks; /* the newest first */
    char *at, *end;
};

void arena_init(struct arena *a);
void arena_release(struct arena *a);
void arena_clear(struct arena *a);
void *arena_alloc(struct arena *a, size_t size); /* zeroed, aligned for any type */
char *arena_strndup(struct arena *a, const char *text, size_t len); /* NUL-terminated */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
