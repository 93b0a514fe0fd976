/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts checked trees to match specifications. mspec_head.c makes heads and binds variables, mspec_expr.c makes
 * guards and values, mspec_body.c makes actions and the pack, and mspec_raw.c checks literal specifications.
 */
#ifndef ETRACE_MSPEC_H
#define ETRACE_MSPEC_H

#include "check.h"

struct binding {
    struct str name;
    term_t value; /* '$1', or an expression that reads the variable from '$_' */
};

/* One clause under construction. */
struct mclause {
    struct check *k;
    struct arena *a;
    struct binding *bindings;
    size_t nbindings, cap;
    uint64_t taken[2];  /* bit N is set if the user wrote the variable '$N' */
    int next;           /* the first N that may be free for a new '$N' */
    struct ptrs guards; /* tests that the head cannot express; they precede the user's guards */
    size_t nargs;       /* number of patterns in the head, as the VM sees it */
    term_t head;
    term_t node, sender; /* in a probe of received messages: the expressions that read the node and the sender */
};

/* Makes the head of a clause with `pad` patterns '_' before it (send(Msg) is [_, Msg]). */
bool mspec_head(struct mclause *m, const struct ast_clause *cl, size_t pad);
term_t mspec_expr(struct mclause *m, const struct ast *n);
term_t mspec_value(struct mclause *m, term_t literal); /* returns the literal as an expression */
/* Converts the user's guards to guard lists, one for each clause of the specification. Leaves m->guards out. */
void mspec_guards(struct mclause *m, const struct ast_clause *cl, struct ptrs *ret_lists);

/* The result of compiling the body of a clause. */
struct mbody {
    struct ptrs run;         /* the terms of the body that the VM runs, in order */
    term_t pack[PACK_ITEMS]; /* the expression of each item of the pack; NULL if the clause does not collect the item */
    unsigned counters;
    struct spec_clause info;
};

void mspec_body(struct mclause *m, const struct ast_clause *cl, struct mbody *ret);
bool mspec_raw(struct check *k, struct ast *tree, term_t *ret);

#endif
