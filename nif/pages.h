/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and clears large mappings of zeroed memory. The kernel allocates a page when a thread first touches it.
 */
#ifndef ETRACE_PAGES_H
#define ETRACE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* The largest page of a kernel of this architecture: madvise() rejects an address that is not on a page boundary. */
#if defined(__x86_64__)
#define PAGE 4096u
#else
#define PAGE 65536u
#endif

static inline size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/*
 * Maps zeroed memory without huge pages, so that the first touch of a word makes the kernel clear 4 KB, not 2 MB.
 * Returns NULL if memory is missing.
 */
static inline void *pages_map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
#if defined(MADV_NOHUGEPAGE)
    (void)madvise(at, bytes, MADV_NOHUGEPAGE); /* a kernel without huge pages rejects this, which is harmless */
#endif
    return at;
}

/*
 * Clears the next `bytes` bytes of a mapping, from *at on, by returning their pages to the kernel. Advances *at.
 * Returns false once the whole mapping is cleared. The kernel needs time for each page that was touched, so a caller
 * with little time passes few bytes.
 */
static inline bool pages_clear(void *mapping, size_t all, size_t *at, size_t bytes)
{
    size_t left = all > *at ? all - *at : 0;
    if (bytes > left)
        bytes = left;
    if (bytes)
        (void)madvise((uint8_t *)mapping + *at, bytes, MADV_DONTNEED); /* fails only for addresses without a mapping */
    *at += bytes;
    return bytes < left;
}

#endif
