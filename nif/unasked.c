/* SPDX-License-Identifier: Apache-2.0 */
#include "unasked.h"

#include "bell.h"
#include "encode.h"
#include "lane.h"

#define KEPT_SLOTS 2048 /* a power of two */
#define KEPT_MOST (KEPT_SLOTS / 2)
#define NAME_BYTES 1024 /* an atom has 255 characters */

_Static_assert(UNASKED_NAMES == UINT64_C(1) << (64 - 52), "unasked_slot() takes as many bits");

_Atomic uint64_t unasked_names[UNASKED_NAMES];

/* The functions whose events are not dropped. A slot is written once, its module last. */
static struct kept {
    _Atomic ERL_NIF_TERM module; /* 0: free */
    ERL_NIF_TERM name;
    unsigned arity;
} kept[KEPT_SLOTS];
static unsigned kept_count;

static _Atomic bool busy;
static ERL_NIF_TERM atom_module_info;

void unasked_load(ErlNifEnv *env)
{
    atom_module_info = enif_make_atom(env, "module_info");
}

bool unasked_is_generated(ErlNifEnv *env, ERL_NIF_TERM name)
{
    char text[NAME_BYTES];
    _Atomic uint64_t *slot = &unasked_names[unasked_slot(name)];
    uint64_t known = atomic_load_explicit(slot, memory_order_relaxed);
    if (known >> 1 == name)
        return known & 1;
    bool generated =
        name == atom_module_info || (enif_get_atom(env, name, text, sizeof text, ENCODING_UTF8) > 1 && text[0] == '-');
    atomic_store_explicit(slot, name << 1 | generated, memory_order_relaxed);
    return generated;
}

/* ---- functions whose events stay --------------------------------------------------------------------------------- */

static struct kept *find_kept(ERL_NIF_TERM module, ERL_NIF_TERM name, unsigned arity)
{
    unsigned at = (unsigned)((module ^ name << 5) * UINT64_C(0x9e3779b97f4a7c15) >> 53);
    for (;; at = (at + 1) % KEPT_SLOTS) {
        struct kept *k = &kept[at];
        ERL_NIF_TERM there = atomic_load_explicit(&k->module, memory_order_acquire);
        if (!there || (there == module && k->name == name && k->arity == arity))
            return k;
    }
}

bool unasked_keep(ERL_NIF_TERM module, ERL_NIF_TERM name, unsigned arity)
{
    struct kept *k = find_kept(module, name, arity);
    if (atomic_load_explicit(&k->module, memory_order_relaxed))
        return true;
    if (kept_count == KEPT_MOST)
        return false;
    kept_count++;
    k->name = name;
    k->arity = arity;
    atomic_store_explicit(&k->module, module, memory_order_release);
    return true;
}

void unasked_forget(void)
{
    for (unsigned i = 0; i < KEPT_SLOTS; i++)
        atomic_store_explicit(&kept[i].module, 0, memory_order_relaxed);
    kept_count = 0;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static struct lane_unasked *count_place(struct lane *lane, ERL_NIF_TERM module, ERL_NIF_TERM name)
{
    return &lane->unasked[((module ^ name << 5) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % LANE_UNASKED];
}

/* Counts an event in the thread's own table. If another function has the slot, discards the count of that function. */
static void count_in_lane(const ERL_NIF_TERM *mfa, unsigned arity)
{
    struct lane *lane = lane_mine();
    if (!lane)
        return;
    struct lane_unasked *u = count_place(lane, mfa[0], mfa[1]);
    uint32_t n = atomic_load_explicit(&u->count, memory_order_relaxed);
    if (atomic_load_explicit(&u->module, memory_order_relaxed) != mfa[0] ||
        atomic_load_explicit(&u->name, memory_order_relaxed) != mfa[1] ||
        atomic_load_explicit(&u->arity, memory_order_relaxed) != arity) {
        atomic_store_explicit(&u->module, mfa[0], memory_order_relaxed);
        atomic_store_explicit(&u->name, mfa[1], memory_order_relaxed);
        atomic_store_explicit(&u->arity, arity, memory_order_relaxed);
        n = 0;
    }
    atomic_store_explicit(&u->count, n + 1, memory_order_relaxed);
    if (n + 1 == LANE_UNASKED_BUSY && !atomic_exchange(&busy, true))
        bell_ring();
}

bool unasked_drop(ErlNifEnv *env, const ERL_NIF_TERM *mfa)
{
    unsigned arity;
    if (!enif_get_uint(env, mfa[2], &arity) && !enif_get_list_length(env, mfa[2], &arity))
        return false;
    if (atomic_load_explicit(&find_kept(mfa[0], mfa[1], arity)->module, memory_order_relaxed))
        return false;
    count_in_lane(mfa, arity);
    return true;
}

/* ---- for the worker ---------------------------------------------------------------------------------------------- */

bool unasked_is_busy(void)
{
    return atomic_load(&busy);
}

ERL_NIF_TERM unasked_busy(ErlNifEnv *env)
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    atomic_store(&busy, false);
    for (uint32_t i = 0; i < lanes_claimed(); i++)
        for (unsigned j = 0; j < LANE_UNASKED; j++) {
            struct lane_unasked *u = &lane_at(i)->unasked[j];
            if (atomic_load_explicit(&u->count, memory_order_relaxed) < LANE_UNASKED_BUSY)
                continue;
            atomic_store_explicit(&u->count, 0, memory_order_relaxed);
            list =
                enif_make_list_cell(env,
                                    enif_make_tuple3(env, atomic_load_explicit(&u->module, memory_order_relaxed),
                                                     atomic_load_explicit(&u->name, memory_order_relaxed),
                                                     enif_make_uint(env, atomic_load_explicit(&u->arity,
                                                                                              memory_order_relaxed))),
                                    list);
        }
    return list;
}
