/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of names that outlive a batch: functions, and processes.
 *
 * Functions are interned and never dropped, because folded views use them as keys. A limit on their bytes protects
 * against a node that invents names. The number of processes is unbounded, so their table drops old entries: it has two
 * halves, and a full young half replaces the old half. A struct tracee is valid until the next tracees_at() for the
 * same table.
 */
#ifndef ETRACE_NAMES_H
#define ETRACE_NAMES_H

#include "../ground/mem.h"
#include "../ground/table.h"
#include "event.h"
#include "state.h"

struct funs {
    const struct fun **items; /* by fun->serial */
    size_t count, cap, bytes;
    struct table by_name;
    struct arena arena;
    bool elixir; /* functions that are added from now on print in Elixir, whatever their module is */
};

void funs_init(struct funs *f);
void funs_release(struct funs *f);
/* Computes fun->hash of a function. */
static inline uint32_t fun_hash(struct raw module, struct raw name)
{
    return hash_text(hash_byte(hash_text(HASH_BEGIN, raw_view(module)), ':'), raw_view(name));
}

/* Finds or adds a function. Returns NULL if the function is new and the table is full. */
const struct fun *funs_get(struct funs *f, struct raw module, struct raw name);
/*
 * funs_save() writes all functions of a table. funs_load() adds these functions to another table, and sets *ret to an
 * array of them, in the order of their serial numbers in the saved table. funs_load() returns false if the bytes are
 * malformed or the table is full. The caller frees the array in either case.
 */
void funs_save(const struct funs *f, struct buf *to);
bool funs_load(struct funs *f, struct state_in *in, const struct fun ***ret, size_t *ret_count);
/* Append a module (Mod or :mod) or a function (Mod.fun or :mod.fun) in Elixir syntax. */
void module_elixir(struct buf *to, struct raw module);
void fun_elixir(struct buf *to, struct raw module, struct raw name);

struct tracees_half {
    struct tracee *items;
    uint32_t count, cap;
    struct table by_id;
};

struct tracees {
    struct tracees_half young, old;
    uint32_t generation; /* changes whenever pointers become invalid */
};

void tracees_init(struct tracees *t);
void tracees_release(struct tracees *t);
struct tracee *tracees_at(struct tracees *t, uint64_t id);               /* creates a missing entry */
const struct tracee *tracees_find(const struct tracees *t, uint64_t id); /* returns NULL if unknown */
void tracee_name(struct tracee *t, struct safe name);                    /* sets the name, truncated to fit */
/* Prints a registered name: in Elixir syntax if it begins with "Elixir.", otherwise in Erlang syntax. */
void registered_print(struct buf *to, struct raw name);
/* Writes a registered name as tracee_name() would store it: printed, escaped and cut to fit. Returns its length. */
uint8_t tracee_registered(char to[TRACEE_NAME], struct raw name);
void tracees_save(const struct tracees *t, struct buf *to);
bool tracees_load(struct tracees *t, struct state_in *in); /* `t` must be empty */

#endif
