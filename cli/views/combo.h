/*
 * The spec of an event that several probes ask for: their union. There is one for each set of clauses, made when it is first needed.
 * It has `parts`, the specs that it stands for, and one label for all of them. A filter looks at the parts (filter.h).
 */
#ifndef ETRACE_COMBO_H
#define ETRACE_COMBO_H

#include "../lang/spec.h"

/* One probe that an event answers. */
struct answer {
    const struct spec *spec;
    int64_t clause; /* the index of the clause that matched; -1: not known */
    const uint8_t *term; /* what it collected; NULL: nothing */
};

struct combos;

/* The combined specs live until combos_free(): open calls point to them. The parts are borrowed for as long. */
struct combos *combos_new(void);
void combos_free(struct combos *c);

const struct spec *combos_get(struct combos *c, const struct answer *answers, size_t n);

/* The spec that stands for those parts of a combined spec whose bit in `keep`, a byte for each, is set. */
const struct spec *combos_narrow(struct combos *c, const struct spec *s, const bool *keep);

/* Calls of the clause that matched report their results: 0 no, 1 yes, 2 some do. */
unsigned combo_wants(const struct spec *s, int64_t clause);

#endif
