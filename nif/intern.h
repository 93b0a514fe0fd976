/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches the names that one ring has defined: direct-mapped tables from atoms (ERL_NIF_TERM) to ids. If an atom is not
 * in its slot, the encoder writes a definition of the slot's id to the ring and stores the atom in the slot. Only the
 * ring's producer thread uses the tables. It clears them when a session begins.
 */
#ifndef ETRACE_INTERN_H
#define ETRACE_INTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "etrace_wire.h"

struct intern {
    struct intern_function {
        uint64_t module, name;
    } functions[ETW_FUNCTIONS];
    uint64_t atoms[ETW_ATOMS];
    uint64_t marks[ETW_ATOMS / 64]; /* bit N: atoms[N] has the name of a secret key */
};

static inline void intern_mark(struct intern *names, unsigned atom, bool marked)
{
    uint64_t bit = UINT64_C(1) << atom % 64;
    names->marks[atom / 64] = marked ? names->marks[atom / 64] | bit : names->marks[atom / 64] & ~bit;
}

static inline bool intern_marked(const struct intern *names, unsigned atom)
{
    return names->marks[atom / 64] >> atom % 64 & 1;
}

static inline unsigned intern_function(uint64_t module, uint64_t name)
{
    return (unsigned)((module ^ name << 5) * UINT64_C(0x9e3779b97f4a7c15) >> 54);
}

static inline unsigned intern_atom(uint64_t atom)
{
    return (unsigned)(atom >> 6) % ETW_ATOMS; /* the VM numbers atoms consecutively */
}

#endif
