/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates memory, also in arenas.
 *
 * No function here returns NULL. If memory runs out, the handler given to mem_on_exhausted() ends the process; the
 * traced node cleans up when the connection closes.
 *
 * mem_give_back() makes the allocator return large freed blocks to the system. Call it before any allocation. By
 * default glibc keeps more and more of such blocks, which looks like a leak to a user.
 *
 * An arena owns everything allocated from it. arena_clear() frees all of it at once and keeps the newest block for
 * reuse.
 */
#ifndef ETRACE_MEM_H
#define ETRACE_MEM_H

#include "macros.h"

void mem_on_exhausted(void (*handler)(void));
void mem_give_back(void);

void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
void *mem_realloc(void *old, size_t size);
char *mem_strndup(const char *text, size_t len); /* NUL-terminated */

/* Returns `items`, reallocated if it has less room than `want` items of `each` bytes. *cap is the room in items. */
void *mem_grow(void *items, size_t *cap, size_t want, size_t each);

struct arena_block;
struct arena {
    struct arena_block *blocks; /* newest first */
    char *at, *end;
};

void arena_init(struct arena *a);
void arena_release(struct arena *a);
void arena_clear(struct arena *a);
void *arena_alloc(struct arena *a, size_t size);                    /* zeroed, aligned for any type */
char *arena_strndup(struct arena *a, const char *text, size_t len); /* NUL-terminated */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
