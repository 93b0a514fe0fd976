/*
 * Checked trees to match specifications. mspec_head.c makes heads and binds variables, mspec_expr.c makes guards and
 * values, mspec_body.c actions and the pack, mspec_raw.c looks at specifications that came as literals.
 */
#ifndef ETRACE_MSPEC_H
#define ETRACE_MSPEC_H

#include "check.h"

struct binding {
    struct str name;
    term_t value; /* '$1', or an expression that finds it in '$_' */
};

/* One clause while it is made. */
struct mclause {
    struct check *k;
    struct arena *a;
    struct binding *bindings;
    size_t nbindings, cap;
    uint64_t taken[2]; /* numbers of variables that the user wrote himself */
    int next;
    struct ptrs guards; /* what the head could not say, in front of the user's guards */
    size_t nargs;       /* of the whole head as the VM sees it */
    term_t head;
    term_t node, sender; /* recv: expressions for both */
};

/* The head for a clause: `pad` patterns '_' stand in front of it (send(Msg) is [_, Msg]). */
bool mspec_head(struct mclause *m, const struct ast_clause *cl, size_t pad);
term_t mspec_expr(struct mclause *m, const struct ast *n);
term_t mspec_value(struct mclause *m, term_t literal); /* a literal as an expression */
/* The user's guard sequence as one or more lists of guards, each for a clause of its own, without m->guards. */
void mspec_guards(struct mclause *m, const struct ast_clause *cl, struct ptrs *ret_lists);

/* What the body of a clause wants, and its terms. */
struct mbody {
    struct ptrs run;              /* terms, in order */
    term_t pack[PACK_ITEMS];      /* NULL where it is not collected */
    unsigned counters;
    struct spec_clause info;
};

bool mspec_body(struct mclause *m, const struct ast_clause *cl, struct mbody *ret);
bool mspec_raw(struct check *k, struct ast *tree, term_t *ret);

#endif
