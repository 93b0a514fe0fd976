/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a tree and resolves its names: calls become operators (functions.h), records become tuples, literal binaries
 * and constant arithmetic become literals. Later passes report only errors that need the whole clause.
 */
#ifndef ETRACE_CHECK_H
#define ETRACE_CHECK_H

#include "ast.h"
#include "comp.h"

struct check {
    struct comp *c;
    const struct ast_probe *probe;
    const struct sel_name *modules; /* modules of the selectors, where records without a module are looked up */
    size_t nmodules;
    unsigned guard, body; /* PLACE_ bits of the guards and of the bodies of this kind of probe */
    unsigned spare; /* not 0 if another clause, alternative or operand may match: a failure is then only a warning */
    unsigned place; /* the PLACE_ bits of the current expression */
    bool literal_dollars; /* '$_' and the like are atoms and not variables, as in dbg's fun */
    int needs_otp;        /* the oldest OTP that has every function checked so far */
    bool met_unknown;     /* the tree has a record that only a node defines (LANG_LATER) */
    struct ptrs names;    /* A_VAR nodes: the variables that the head binds */
};

/* The following functions return the checked tree, or NULL after an error. */
struct ast *check_pattern(struct check *k, struct ast *n); /* checks a head and adds its variables to k->names */
/*
 * Warns about variables of Elixir that are probably atoms, as in {ok, _}: variables in a container that occur only
 * once. The guards and actions of `cl` and the filter and keys of `probe` also count as occurrences; both may be NULL.
 */
void check_atoms(struct check *k, struct ast *const *patterns, size_t count, const struct ast_probe *probe,
                 const struct ast_clause *cl);
struct ast *check_expr(struct check *k, struct ast *n);
bool check_guards(struct check *k, struct ast_clause *cl);
bool check_body(struct check *k, struct ast_clause *cl);  /* sets cl->acts and cl->hides */
void fold_guards(struct check *k, struct ast_clause *cl); /* sets cl->always, and warns about constant tests */

/* ---- parts ---- */

struct ast *check_new(struct check *k, enum ast_type type, const struct ast *like);
struct ast *check_lit(struct check *k, term_t value, const struct ast *like);
struct ast *check_op(struct check *k, int op, const struct ast *like, size_t count, struct ast **items);
#define CHECK_OP(k, op, like, ...)                                                                                     \
    check_op(k, op, like, sizeof((struct ast *[]){__VA_ARGS__}) / sizeof(struct ast *), (struct ast *[]){__VA_ARGS__})
bool check_can_fail(const struct ast *n);         /* returns true if evaluation may raise */
void check_known(struct ast *n, struct arena *a); /* sets the value of a container if all its parts have values */
/* Returns the list of `left ++ right`, both of them checked. */
struct ast *check_concat(struct check *k, struct ast *n, struct ast *left, struct ast *right);
/* Returns the struct that a range stands for, unchecked, or NULL after an error. */
struct ast *check_range(struct check *k, const struct ast *n);
/* Checks that the step of a range is an integer other than 0. Sets *ret to the step, or to 0 if the range has none. */
bool check_step(struct check *k, const struct ast *range, int64_t *ret);
/*
 * Checks that no two keys of a map have the same known value. The error points at a key of `written`, which is the same
 * map before its check.
 */
bool check_keys_differ(struct check *k, const struct ast *map, const struct ast *written);
/* Reports an error and returns true if another alternative binds the variable but this alternative does not. */
bool check_lacks(struct check *k, const struct ast *var);
bool check_unit(struct check *k, const struct ast *n); /* reports an error and returns false: only a filter has units */
void check_assigns(struct comp *c, const struct ast *map); /* warns about ':=' in a term, which redbug accepts */
bool check_let(struct check *k, const struct ast *pin, term_t *ret);
bool check_otp(struct check *k, enum fn fn, const struct ast *at);
struct ast *check_bin(struct check *k, struct ast *n, bool pattern); /* returns a literal if all of it is known */
struct ast *check_record(struct check *k, struct ast *n, bool pattern);
/*
 * Returns the tuple that a record stands for, unchecked, or an A_NATIVE for a native record. Sets *ret_later if the
 * definition of the record is not known yet; the tuple then has only the values that the user gave.
 */
struct ast *check_record_tuple(struct check *k, struct ast *n, bool pattern, bool *ret_later);
/* Returns the literal that #rec.field stands for. Its `known` is NULL if the record's definition is not known yet. */
struct ast *check_record_index(struct check *k, struct ast *n);
/* Finds the definition of a record. Sets *ret_later if it is not known yet; *ret then has only the name. */
bool check_record_of(struct check *k, struct str module, struct str name, const struct ast *at, struct lang_record *ret,
                     bool *ret_later);
struct ast *check_elixir(struct check *k, struct ast *n, bool *ret_done); /* expands Elixir's own functions */
void check_elixir_names(struct guess *g);
/* Reports an error if the node's release has no native records. */
bool check_native(struct check *k, const struct ast *at);
#define CHECK_SMALL (INT64_C(1) << 59) /* the VM stores integers from -CHECK_SMALL to CHECK_SMALL - 1 in one word */
bool check_label(term_t t);            /* returns true if the VM accepts the term as label of a trace token */
bool check_label_wrong(struct check *k, size_t from, size_t len); /* reports an error and returns false */
/* Returns true if the term contains an atom that match specifications read as a variable. */
bool check_special(term_t t);
unsigned term_types(term_t t);

/*
 * Evaluates a function with constant arguments. Returns NULL if the value is not known, or if the function raises an
 * error: *ret_fails is then set.
 */
term_t fold(struct arena *a, enum fn fn, const term_t *args, size_t count, bool *ret_fails);

#endif
