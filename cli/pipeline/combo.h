/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combines specs for events that answer several probes.
 *
 * A combined spec is the union of its `parts` and has one label for all of them. There is one combined spec for each
 * set of clauses, made on first use. Filters evaluate the parts separately (filter.h).
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
 * Owns the combined specs, which live until combos_free() because open calls point to them. Their parts must live as
 * long.
 */
struct combos *combos_new(void);
void combos_free(struct combos *c);

const struct spec *combos_get(struct combos *c, const struct answer *answers, size_t n);

/* Returns the combined spec of those parts i of `s` for which keep[i] is set. */
const struct spec *combos_narrow(struct combos *c, const struct spec *s, const bool *keep);

/* Returns whether calls that match this clause report their results: 0 no; 1 yes; 2 some do. */
unsigned combo_wants(const struct spec *s, int64_t clause);

#endif
