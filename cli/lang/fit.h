/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits a match specification to one node. It renumbers the variables so that only the needed ones remain, and replaces
 * each atom that the node does not have by a term that equals nothing there. Thus a name in an expression never creates
 * an atom on the node.
 */
#ifndef ETRACE_LANG_FIT_H
#define ETRACE_LANG_FIT_H

#include "spec.h"

#define FIT_VARIABLES_MAX 1023 /* limit, because each variable is an atom and the node never frees atoms */

enum fit_result {
    FIT_OK,
    FIT_DEAD,      /* every clause that shows events needs an unknown atom, so no event can match */
    FIT_UNFIT,     /* an unknown atom is used where no other term can replace it */
    FIT_VARIABLES, /* a clause has more than FIT_VARIABLES_MAX variables */
};

struct fit {
    const struct str *unknown; /* atoms that the node does not have */
    size_t nunknown;
    /*
     * Output: for each unknown atom, whether a pattern or guard compares something with the atom. A use in a message
     * does not count. The array may be NULL.
     */
    bool *compared;
    struct arena *a;
    int variables;   /* output: the highest N of a '$N' in use, over all calls with this struct */
    struct str name; /* output with FIT_DEAD and FIT_UNFIT: the unknown atom */
};

/* Copies *s to *ret and fits the match specifications of the copy. *ret is complete after FIT_OK and FIT_DEAD. */
enum fit_result fit_spec(struct fit *f, const struct spec *s, struct spec *ret);

#endif
