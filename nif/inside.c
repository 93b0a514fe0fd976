/* SPDX-License-Identifier: Apache-2.0 */
#include "inside.h"

#include <string.h>

#include "pages.h"

#define LINE 8 /* places that share a cache line */
#define LINES (INSIDE_PLACES / LINE)
#define CLAIMED 1 /* value of inside_owners[] while a thread empties the list; no pid has this value */
#define SWEPT 64  /* lists that tree_for() looks at if all trees are taken */

_Atomic uint64_t *inside_owners;
struct inside *inside_lists;

static uint32_t roots[INSIDE_ROOTS];
static unsigned root_count, sample_of;
static _Atomic unsigned sampled;
static stack_alive_fn *is_alive;

/* A hash table of processes with linear probing, at most half full. */
static _Atomic uint64_t *chosen;
static unsigned chosen_count;
enum choice { CHOICE_ALL, CHOICE_LISTED, CHOICE_OTHERS };
static _Atomic unsigned choice; /* enum choice: which processes may open roots */

#define CHOSEN_SLOTS (2u * INSIDE_CHOSEN)
#define CHOSEN_BYTES (sizeof *chosen * CHOSEN_SLOTS)
#define OWNERS_BYTES (sizeof *inside_owners * INSIDE_PLACES)
#define LISTS_BYTES (sizeof *inside_lists * INSIDE_PLACES)

void inside_unmap(void)
{
    if (inside_owners)
        munmap((void *)inside_owners, OWNERS_BYTES);
    if (inside_lists)
        munmap(inside_lists, LISTS_BYTES);
    if (chosen)
        munmap((void *)chosen, CHOSEN_BYTES);
    inside_owners = NULL;
    inside_lists = NULL;
    chosen = NULL;
}

bool inside_begin(const uint32_t *given, unsigned count, unsigned sample, stack_alive_fn *alive)
{
    size_t at = 0;

    if (!inside_owners)
        inside_owners = pages_map(OWNERS_BYTES);
    if (!inside_lists)
        inside_lists = pages_map(LISTS_BYTES);
    if (!inside_owners || !inside_lists)
        return false;
    for (unsigned i = 0; i < INSIDE_PLACES; i++)
        atomic_store_explicit(&inside_owners[i], 0, memory_order_relaxed);
    pages_clear(inside_lists, LISTS_BYTES, &at, LISTS_BYTES);
    at = 0;
    if (chosen)
        pages_clear((void *)chosen, CHOSEN_BYTES, &at, CHOSEN_BYTES);
    chosen_count = 0;
    atomic_store_explicit(&choice, CHOICE_ALL, memory_order_relaxed);
    is_alive = alive;
    memcpy(roots, given, count * sizeof *roots);
    root_count = count;
    sample_of = sample;
    atomic_store_explicit(&sampled, 0, memory_order_relaxed);
    return true;
}

/* Returns the slot that has the process, or the free slot where the process would be. */
static _Atomic uint64_t *chosen_slot(uint64_t process)
{
    unsigned at = (unsigned)((process >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 40) % CHOSEN_SLOTS;

    for (;; at = (at + 1) % CHOSEN_SLOTS) {
        /* Relaxed: the VM orders the worker's writes before the setting of the first root's trace pattern. */
        uint64_t found = atomic_load_explicit(&chosen[at], memory_order_relaxed);
        if (!found || found == process)
            return &chosen[at];
    }
}

bool inside_choose(const uint64_t *processes, size_t count, bool others)
{
    if (!chosen && !(chosen = pages_map(CHOSEN_BYTES)))
        return false;
    for (size_t i = 0; i < count; i++) {
        _Atomic uint64_t *slot = chosen_slot(processes[i]);
        if (atomic_load_explicit(slot, memory_order_relaxed))
            continue;
        if (chosen_count == INSIDE_CHOSEN)
            return false;
        chosen_count++;
        atomic_store_explicit(slot, processes[i], memory_order_relaxed);
    }
    atomic_store_explicit(&choice, others ? CHOICE_OTHERS : CHOICE_LISTED, memory_order_relaxed);
    return true;
}

bool inside_is_chosen(uint64_t process)
{
    const unsigned how = atomic_load_explicit(&choice, memory_order_relaxed);

    return how == CHOICE_ALL ||
           (atomic_load_explicit(chosen_slot(process), memory_order_relaxed) == process) == (how == CHOICE_LISTED);
}

bool inside_is_root(uint32_t probe)
{
    unsigned i = 0;

    while (i < root_count && roots[i] != probe)
        i++;
    return i < root_count;
}

/* Returns the index of the first place in one of the two cache lines in which a process may have its list. */
static unsigned line_of(uint64_t process, bool second)
{
    const uint64_t hash = (process >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    const unsigned first = (unsigned)(hash >> 40) % LINES, other = 1 + (unsigned)(hash >> 24) % (LINES - 1);

    return (second ? first ^ other : first) * LINE;
}

static uint64_t owner_of(unsigned at)
{
    return atomic_load_explicit(&inside_owners[at], memory_order_relaxed);
}

static struct inside *list_of(uint64_t process)
{
    for (unsigned second = 0; second < 2; second++)
        for (unsigned line = line_of(process, second), at = line; at < line + LINE; at++)
            if (owner_of(at) == process)
                return &inside_lists[at];
    return NULL;
}

/*
 * Empties a list and gives it to a process, or frees the list if `process` is 0. Returns false if another thread
 * claimed it.
 */
static bool claim_list(unsigned at, uint64_t owner, uint64_t process)
{
    if (owner == CLAIMED || !atomic_compare_exchange_strong(&inside_owners[at], &owner, CLAIMED))
        return false;
    struct inside *list = &inside_lists[at];
    if (list->tree)
        tree_free(list->tree);
    list->open = list->used = list->over = 0;
    list->flat = false;
    list->tree = NULL;
    /* Release: the next owner finds the list empty */
    atomic_store_explicit(&inside_owners[at], process, memory_order_release);
    return true;
}

static unsigned free_in(unsigned line)
{
    unsigned n = 0;

    for (unsigned at = line; at < line + LINE; at++)
        n += !owner_of(at);
    return n;
}

/* Claims a free list in a line for the process. With `dead`, also takes over the list of a process that has ended. */
static struct inside *claim_in(void *env, unsigned line, uint64_t process, bool dead)
{
    for (unsigned at = line; at < line + LINE; at++) {
        uint64_t owner = owner_of(at);
        if ((!owner || (dead && owner != CLAIMED && !is_alive(env, owner))) && claim_list(at, owner, process))
            return &inside_lists[at];
    }
    return NULL;
}

/*
 * Returns the list of the process. If the process has none, claims a free list or that of a process that has ended.
 * Returns NULL if both lines of the process are full. The emptier line is tried first, so both lines are full only if
 * many more than half of all places are taken.
 */
static struct inside *list_for(void *env, uint64_t process)
{
    struct inside *list = list_of(process);

    if (list)
        return list;
    const unsigned first = line_of(process, false), second = line_of(process, true);
    const bool swap = free_in(second) > free_in(first);
    for (unsigned dead = 0; dead < 2; dead++)
        if ((list = claim_in(env, swap ? second : first, process, dead)) ||
            (list = claim_in(env, swap ? first : second, process, dead)))
            return list;
    return NULL;
}

bool inside_is_open(uint64_t process)
{
    const struct inside *list = list_of(process);

    return list && list->open;
}

bool inside_is_flat(uint64_t process)
{
    const struct inside *list = list_of(process);

    return list && list->flat;
}

struct tree *inside_tree(uint64_t process)
{
    const struct inside *list = list_of(process);

    return list ? list->tree : NULL;
}

/* Frees a list if it has no calls. */
static void free_unused_list(struct inside *list)
{
    if (list->used || list->over)
        return;
    list->flat = false;
    atomic_store_explicit(&inside_owners[list - inside_lists], 0, memory_order_release);
}

/*
 * Takes a tree. If all trees are taken, looks at the next SWEPT lists and frees the trees of processes that have ended.
 */
static struct tree *tree_for(void *env)
{
    static _Atomic unsigned turn;
    struct tree *t = tree_take();

    for (unsigned i = 0; !t && i < SWEPT; i++) {
        unsigned at = atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed) % INSIDE_PLACES;
        uint64_t owner = owner_of(at);
        if (owner && owner != CLAIMED && !is_alive(env, owner) && claim_list(at, owner, 0))
            t = tree_take();
    }
    return t;
}

/* Counts an outermost root. Returns true if this root belongs to the sample. */
static bool is_sampled(void)
{
    return sample_of <= 1 || atomic_fetch_add_explicit(&sampled, 1, memory_order_relaxed) % sample_of == 0;
}

enum inside_call_is inside_call(void *env, uint64_t process, const struct inside_meta *call)
{
    struct inside *list = call->root ? list_for(env, process) : list_of(process);

    if (!list)
        return call->root ? INSIDE_LOST : INSIDE_OUT;
    if (!call->root && !list->used)
        return INSIDE_OUT;
    const bool root = call->root && (list->used ? list->open > 0 : is_sampled());
    if (root && call->keeps && !list->used && !(list->tree = tree_for(env))) {
        free_unused_list(list);
        return INSIDE_LOST;
    }
    const bool in = root || list->open;
    if (!call->returns)
        return in ? INSIDE_IN : INSIDE_OUT;
    list->flat |= call->root && call->loops;
    if (list->over || list->used >= INSIDE_CALLS) {
        if (list->tree && list->over < TREE_ROOTS)
            list->tree->calls[list->over] = (struct tree_call){call->tick, list->tree->count, root};
        list->over++;
        return in ? INSIDE_IN : INSIDE_OUT;
    }
    const struct stack_function *f = &call->function;
    list->calls[list->used++] =
        (struct inside_call){f->module, f->name, call->tick, f->arity, list->tree ? list->tree->count : 0, root};
    list->open += root;
    return in ? INSIDE_IN : INSIDE_OUT;
}

/*
 * Removes the call that has returned, and all newer calls. The newer calls have ended, too, but the VM has not reported
 * their results.
 */
bool inside_result(uint64_t process, const struct stack_function *f, struct inside_closed *ret)
{
    struct inside *list = list_of(process);

    *ret = (struct inside_closed){0};
    if (!list)
        return false;
    const bool in = list->open > 0;
    if (list->over) {
        list->over--;
        if (list->tree && list->over < TREE_ROOTS) {
            const struct tree_call *c = &list->tree->calls[list->over];
            ret->call = (struct inside_call){.tick = c->tick, .number = c->number, .root = c->root};
        } else if (list->tree) {
            list->tree->doubtful = true;
        }
        return in;
    }
    for (uint32_t at = list->used < INSIDE_CALLS ? list->used : INSIDE_CALLS; at-- > 0;) {
        const struct inside_call *c = &list->calls[at];
        if (c->name != f->name || c->module != f->module || c->arity != f->arity)
            continue;
        for (uint32_t i = at; i < list->used && i < INSIDE_CALLS; i++)
            list->open -= list->calls[i].root;
        ret->call = *c;
        list->used = at;
        if (!at) {
            ret->tree = list->tree;
            list->tree = NULL;
        }
        free_unused_list(list);
        return in;
    }
    return false;
}
