/*
 * Names that outlive their batch: functions, and what processes are called.
 *
 * A function's names are kept once and never dropped, for they are keys of every fold; there are as many as the node
 * has functions, and a cap against one that lies. Processes come and go without end, so their table forgets: it has
 * two halves, and when the young one is full the old one goes. A struct tracee is valid until tracees_at() is called
 * next for its node.
 */
#ifndef ETRACE_NAMES_H
#define ETRACE_NAMES_H

#include "../ground/mem.h"
#include "event.h"

struct funs {
    struct fun **buckets;
    size_t nbuckets, count, bytes;
    struct arena arena;
};

void funs_init(struct funs *f);
void funs_release(struct funs *f);
/* NULL when the cap is reached. */
const struct fun *funs_get(struct funs *f, struct raw module, struct raw name);
/* Mod.fun and :mod.fun, as Elixir writes them. */
void fun_elixir(struct buf *to, struct raw module, struct raw name);

struct tracees_half {
    struct tracee *items;
    uint32_t *slots; /* hash to 1 + index, twice as many as items; 0: free */
    uint32_t count, cap; /* cap: a power of two */
};

struct tracees {
    struct tracees_half young, old;
    uint32_t generation; /* changes when pointers die */
};

void tracees_init(struct tracees *t);
void tracees_release(struct tracees *t);
struct tracee *tracees_at(struct tracees *t, uint64_t id);               /* makes it when it is not there */
const struct tracee *tracees_find(const struct tracees *t, uint64_t id); /* NULL: not there */
void tracee_name(struct tracee *t, struct safe name);                    /* cut when long */

#endif
