/* SPDX-License-Identifier: Apache-2.0 */
#include "mem.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE (256 << 10)

static void (*exhausted)(void);

void mem_on_exhausted(void (*handler)(void))
{
    exhausted = handler;
}

/* Sets both thresholds, so that glibc does not raise them whenever a large block is freed. */
void mem_give_back(void)
{
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, LARGE);
    mallopt(M_TRIM_THRESHOLD, LARGE);
#endif
}

static void *require_block(void *p)
{
    if (unlikely(!p)) {
        if (exhausted)
            exhausted();
        abort();
    }
    return p;
}

void *mem_alloc(size_t size)
{
    return require_block(malloc(size ? size : 1));
}

void *mem_zalloc(size_t size)
{
    return require_block(calloc(1, size ? size : 1));
}

void *mem_realloc(void *old, size_t size)
{
    return require_block(realloc(old, size ? size : 1));
}

char *mem_strndup(const char *text, size_t len)
{
    char *copy = mem_alloc(len + 1);
    if (len)
        memcpy(copy, text, len);
    copy[len] = 0;
    return copy;
}

void *mem_grow(void *items, size_t *cap, size_t want, size_t each)
{
    size_t n = *cap ? *cap : 8;

    if (want <= *cap)
        return items;
    while (n < want)
        n = n > SIZE_MAX / 2 ? want : n * 2;
    if (n > SIZE_MAX / each)
        return require_block(NULL);
    *cap = n;
    return mem_realloc(items, n * each);
}

struct arena_block {
    struct arena_block *next;
    size_t size;
    max_align_t data[];
};

#define FIRST_BLOCK 4000

void arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

void arena_release(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
    a->at = a->end = NULL;
}

/* Frees all blocks but the newest, which is the largest. */
void arena_clear(struct arena *a)
{
    struct arena_block *b = a->blocks;

    if (!b)
        return;
    struct arena older = {.blocks = b->next};
    arena_release(&older);
    b->next = NULL;
    a->at = (char *)b->data;
    a->end = a->at + b->size;
}

static void add_block(struct arena *a, size_t size)
{
    size_t want = a->blocks ? a->blocks->size * 2 : FIRST_BLOCK;
    if (want < size)
        want = size;

    struct arena_block *b = mem_alloc(sizeof(*b) + want);
    b->next = a->blocks;
    b->size = want;
    a->blocks = b;
    a->at = (char *)b->data;
    a->end = a->at + want;
}

void *arena_alloc(struct arena *a, size_t size)
{
    const size_t align = sizeof(max_align_t);

    if (size > SIZE_MAX / 4)
        return require_block(NULL);
    size = (size + align - 1) / align * align;
    if ((size_t)(a->end - a->at) < size)
        add_block(a, size);
    void *p = a->at;
    a->at += size;
    return memset(p, 0, size);
}

char *arena_strndup(struct arena *a, const char *text, size_t len)
{
    char *copy = arena_alloc(a, len + 1);
    if (len)
        memcpy(copy, text, len);
    return copy;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args, again;

    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = arena_alloc(a, (size_t)(n > 0 ? n : 0) + 1);
    if (n > 0)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}
