/*
 * Large mappings of memory that is zero and that takes room only where somebody has touched it.
 */
#ifndef ETRACE_PAGES_H
#define ETRACE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGE 4096u

static inline size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* NULL: no memory. Without huge pages: a thread that touches one word takes 4 KB, not 2 MB that the kernel has to clear first. */
static inline void *pages_map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
#if defined(MADV_NOHUGEPAGE)
    (void)madvise(at, bytes, MADV_NOHUGEPAGE); /* a kernel without huge pages refuses this, which does no harm */
#endif
    return at;
}

/*
 * Gives the memory of the next `bytes` of a mapping back to the system, from *at on, which moves; they are zero then. False: those were
 * the last. The system takes time for each page that somebody has touched, so a caller with little time asks for few bytes.
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
