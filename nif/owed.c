#include "owed.h"

#include <stdatomic.h>
#include <stddef.h>

#define SLOTS 4096
#define PROBES 8

static struct slot {
    _Atomic uint64_t process;
    _Atomic uint32_t count;
} slots[SLOTS];

static struct slot *slot_at(uint64_t process, unsigned probe)
{
    return &slots[((unsigned)(process * UINT64_C(0x9e3779b97f4a7c15) >> 52) + probe) % SLOTS];
}

static struct slot *find(uint64_t process)
{
    for (unsigned probe = 0; probe < PROBES; probe++)
        if (atomic_load_explicit(&slot_at(process, probe)->process, memory_order_relaxed) == process)
            return slot_at(process, probe);
    return NULL;
}

static struct slot *take(uint64_t process)
{
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct slot *slot = slot_at(process, probe);
        uint64_t other = atomic_load_explicit(&slot->process, memory_order_relaxed);
        if (atomic_load_explicit(&slot->count, memory_order_relaxed) == 0
            && atomic_compare_exchange_strong(&slot->process, &other, process))
            return slot;
    }
    return NULL;
}

void owed_clear(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        atomic_store(&slots[i].count, 0);
        atomic_store(&slots[i].process, 0);
    }
}

bool owed_more(uint64_t process)
{
    struct slot *slot = find(process);
    if (!slot && !(slot = take(process)))
        return true;
    uint32_t count = atomic_load_explicit(&slot->count, memory_order_relaxed) + 1;
    atomic_store_explicit(&slot->count, count, memory_order_relaxed);
    return count <= OWED_MOST;
}

void owed_less(uint64_t process)
{
    struct slot *slot = find(process);
    uint32_t count = slot ? atomic_load_explicit(&slot->count, memory_order_relaxed) : 0;
    if (count)
        atomic_store_explicit(&slot->count, count - 1, memory_order_relaxed);
}
