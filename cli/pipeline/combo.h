/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combines specs for events that answer several probes.
 *
 * A combined spec is the union of its `parts`; its label has the labels of all parts. There is one combined spec for
 * each set of clauses, which combos_get() makes on first use. Filters evaluate the parts separately (filter.h).
 */
#ifndef ETRACE_COMBO_H
#define ETRACE_COMBO_H

#include "../lang/spec.h"

/* A probe that an event answers. */
struct answer {
    const struct spec *spec;
    int64_t clause;      /* index of the clause that matched; -1: unknown */
    const uint8_t *term; /* the term that the probe collected; NULL: none */
};

struct combos;

/*
 * struct combos owns the combined specs. They live until combos_free(), because open calls point to them. The parts of
 * the combined specs must live as long. If too many exist, combos_get() returns the spec of answers[0].
 */
struct combos *combos_new(void);
void combos_free(struct combos *c);

const struct spec *combos_get(struct combos *c, const struct answer *answers, size_t n);

/*
 * Returns the combined spec of the parts of `s` for which `keep` is true: keep[i] is for part i. Returns `s` if no part
 * is kept.
 */
const struct spec *combos_narrow(struct combos *c, const struct spec *s, const bool *keep);

/*
 * Returns 0 if no calls that match the clause report their results, 1 if all do, 2 if some do. For the clause -1, which
 * means unknown, considers all clauses.
 */
unsigned combo_wants(const struct spec *s, int64_t clause);

#endif
