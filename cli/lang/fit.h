/*
 * Fits a match specification to one node: numbers only the variables that it needs, and puts a term that equals nothing there
 * in the place of each atom that the node does not have, so that no expression makes an atom out of a name.
 */
#ifndef ETRACE_LANG_FIT_H
#define ETRACE_LANG_FIT_H

#include "spec.h"

#define FIT_VARIABLES_MAX 1023 /* each is an atom that the node keeps for ever */

enum fit_result {
    FIT_OK,
    FIT_DEAD,      /* every clause that shows an event needs an unknown atom, so none can match */
    FIT_UNFIT,     /* an unknown atom stands where no other term can replace it */
    FIT_VARIABLES, /* more than FIT_VARIABLES_MAX variables in one clause */
};

struct fit {
    const struct str *unknown; /* the atoms that the node does not have */
    size_t nunknown;
    bool *compared; /* out, one for each: a pattern or a guard has it, not only a message; or NULL */
    struct arena *a;
    int variables;   /* out: the specification has '$1' up to this one; grows over several calls */
    struct str name; /* out, with FIT_DEAD and FIT_UNFIT: the atom */
};

/* Copies *s to *ret, with other specifications; *ret is complete also with FIT_DEAD. */
enum fit_result fit_spec(struct fit *f, const struct spec *s, struct spec *ret);

#endif
