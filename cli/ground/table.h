/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines a hash table. It maps hashes to the indexes of items in an array of its user.
 *
 * The user owns the items and compares them; the table owns only its slots. A zeroed struct is an empty table.
 *
 * Open addressing with linear probing. The slots double when more than half of them are in use, and the table never
 * shrinks. Each slot has the whole hash, so the table can grow without reading the items. The table has no limit; its
 * user must keep the number of items below 2^31.
 */
#ifndef ETRACE_TABLE_H
#define ETRACE_TABLE_H

#include "macros.h"

#define TABLE_NONE UINT32_MAX
#define HASH_BEGIN 2166136261u

struct table_slot {
    uint32_t hash, item; /* item: 1 + the index of the item, or 0 in a free slot */
};

struct table {
    struct table_slot *slots;
    uint32_t mask, used; /* mask: number of slots - 1 */
};

void table_release(struct table *t);
void table_clear(struct table *t); /* removes all items and keeps the slots */

/* Adds an item that is not in the table. */
void table_add(struct table *t, uint32_t hash, uint32_t item);
/* Removes an item, which must be in the table. Do not remove items while iterating with table_next(). */
void table_remove(struct table *t, uint32_t hash, uint32_t item);

/* Returns the next item with this hash, or TABLE_NONE. Set *step to 0 before the first call. */
static inline uint32_t table_next(const struct table *t, uint32_t hash, uint32_t *step)
{
    while (t->slots) {
        struct table_slot s = t->slots[(hash + (*step)++) & t->mask];
        if (!s.item)
            break;
        if (s.hash == hash)
            return s.item - 1;
    }
    return TABLE_NONE;
}

static inline uint32_t hash_u64(uint64_t v)
{
    return (uint32_t)((v * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* Returns the hash of a process or port of one of several nodes. */
static inline uint32_t hash_tracee(uint64_t id, uint32_t node)
{
    return hash_u64(id ^ (uint64_t)node << 56);
}

/* Returns the hash of some bytes and one more byte. The hash of no bytes is HASH_BEGIN. */
static inline uint32_t hash_byte(uint32_t hash, unsigned char byte)
{
    return (hash ^ byte) * 16777619u;
}

static inline uint32_t hash_text(uint32_t hash, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        hash = hash_byte(hash, (unsigned char)text.at[i]);
    return hash;
}

#endif
