/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of names that outlive a batch: functions, and processes.
 *
 * Functions are interned and never dropped, because folded views use them as keys. A cap protects against a node that
 * invents names. Processes are unbounded, so their table drops old ones: it has two halves, and a full young half
 * replaces the old one. A struct tracee is valid until the next tracees_at() for the same node.
 */
#ifndef ETRACE_NAMES_H
#define ETRACE_NAMES_H

#include "../ground/mem.h"
#include "../ground/table.h"
#include "event.h"
#include "state.h"

struct funs {
    const struct fun **items; /* by serial */
    size_t count, cap, bytes;
    struct table by_name;
    struct arena arena;
};

void funs_init(struct funs *f);
void funs_release(struct funs *f);
/* Computes the hash of struct fun. */
static inline uint32_t fun_hash(struct raw module, struct raw name)
{
    return hash_text(hash_byte(hash_text(HASH_BEGIN, raw_view(module)), ':'), raw_view(name));
}

/* Returns NULL if the function is new and the table is full. */
const struct fun *funs_get(struct funs *f, struct raw module, struct raw name);
/*
 * funs_save() writes all functions. funs_load() adds them to a table, and sets *ret to an array with a pointer to each,
 * in the same order. The caller frees the array, also after false: then the bytes are malformed, or the table is full.
 */
void funs_save(const struct funs *f, struct buf *to);
bool funs_load(struct funs *f, struct state_in *in, const struct fun ***ret, size_t *ret_count);
/* Appends Mod.fun or :mod.fun, in Elixir syntax. */
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
/* Prints a registered name as the node spells it: in Elixir if it begins with Elixir. */
void registered_print(struct buf *to, struct raw name);
/* Writes the name that tracee_name() gives a process with this registered name. Returns the number of bytes. */
uint8_t tracee_registered(char to[TRACEE_NAME], struct raw name);
void tracees_save(const struct tracees *t, struct buf *to);
bool tracees_load(struct tracees *t, struct state_in *in); /* into an empty table */

#endif
