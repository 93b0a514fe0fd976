/*
 * The names that one ring has defined: caches from words to ids, direct-mapped. A word that is not in its slot is defined
 * (anew) in the stream and takes the slot. Owned by the ring's producer thread; cleared where its ring begins.
 */
#ifndef ETRACE_INTERN_H
#define ETRACE_INTERN_H

#include <stdint.h>

#include "etrace_wire.h"

struct intern {
    struct intern_function {
        uint64_t module, name;
    } functions[ETW_FUNCTIONS];
    uint64_t atoms[ETW_ATOMS];
};

static inline unsigned intern_function(uint64_t module, uint64_t name)
{
    return (unsigned)((module ^ name << 5) * UINT64_C(0x9e3779b97f4a7c15) >> 54);
}

static inline unsigned intern_atom(uint64_t atom)
{
    return (unsigned)(atom >> 6) % ETW_ATOMS; /* atoms are numbered one after the other */
}

#endif
