/*
 * Whether a tree means something, and the tree with names resolved: calls become operators (functions.h), records
 * tuples, literal binaries literals, constant arithmetic its result. Behind check no pass reports what the user wrote
 * wrong, but for what only the whole clause shows.
 */
#ifndef ETRACE_CHECK_H
#define ETRACE_CHECK_H

#include "ast.h"
#include "comp.h"

struct check {
    struct comp *c;
    const struct ast_probe *probe;
    const struct sel_name *modules; /* where records are looked for when they name no module */
    size_t nmodules;
    unsigned guard, body; /* the PLACE_ bits of this kind of probe */
    unsigned spare;    /* not 0: the match may succeed without this part, by another clause, alternative or operand */
    unsigned place;    /* where the expression at hand stands */
    bool literal_dollars; /* in dbg's fun: '$_' is an atom */
    int needs_otp;     /* the oldest OTP that has every function so far */
    struct ptrs names; /* A_VAR nodes that the head bound */
};

/* Each returns the checked tree, or NULL with an error. */
struct ast *check_pattern(struct check *k, struct ast *n); /* adds the variables to k->names */
struct ast *check_expr(struct check *k, struct ast *n);
bool check_guards(struct check *k, struct ast_clause *cl, bool *ret_always); /* ret_always: they are no condition */

/* ---- parts ---- */

struct ast *check_new(struct check *k, enum ast_type type, const struct ast *like);
struct ast *check_lit(struct check *k, term_t value, const struct ast *like);
struct ast *check_op(struct check *k, int op, const struct ast *like, size_t count, struct ast **items);
#define CHECK_OP(k, op, like, ...) \
    check_op(k, op, like, sizeof((struct ast *[]){__VA_ARGS__}) / sizeof(struct ast *), (struct ast *[]){__VA_ARGS__})
bool check_can_fail(const struct ast *n); /* whether evaluating it may raise */
/* The struct that a range is, not checked yet; NULL with an error. */
struct ast *check_range(struct check *k, const struct ast *n);
bool check_step(struct check *k, const struct ast *range, int64_t *ret); /* 0: the range has none; only an integer may be one */
/* Whether no two keys of a map have the same known value; `written` has their places. */
bool check_keys_differ(struct check *k, const struct ast *map, const struct ast *written);
/* Whether another alternative binds the variable, which this one lacks: then that is the error. */
bool check_lacks(struct check *k, const struct ast *var);
bool check_unit(struct check *k, const struct ast *n); /* always false: a unit outside of a filter */
bool check_let(struct check *k, const struct ast *pin, term_t *ret);
bool check_otp(struct check *k, enum fn fn, const struct ast *at);
struct ast *check_bin(struct check *k, struct ast *n, bool pattern); /* a literal where all of it is known */
struct ast *check_record(struct check *k, struct ast *n, bool pattern);
/* The tuple that a record stands for, not checked yet; one that is known later has its values alone. Of a native record A_NATIVE. */
struct ast *check_record_tuple(struct check *k, struct ast *n, bool pattern, bool *ret_later);
struct ast *check_record_index(struct check *k, struct ast *n); /* of #rec.field; not known when it is later */
/* ret_later: it is not known yet, and ret has its name alone. */
bool check_record_of(struct check *k, struct str module, struct str name, const struct ast *at, struct lang_record *ret, bool *ret_later);
struct ast *check_elixir(struct check *k, struct ast *n, bool *ret_done); /* Elixir's own functions, written out */
void check_elixir_names(struct guess *g);
bool check_native(struct check *k, const struct ast *at); /* whether the node's release has native records */
#define CHECK_SMALL (INT64_C(1) << 59) /* the VM keeps an integer below it, and not below its negative, in one word */
bool check_label(term_t t); /* whether a trace token may have it */
bool check_label_wrong(struct check *k, size_t from, size_t len); /* always false */
bool check_special(term_t t); /* it holds an atom that match specifications read as a variable */
unsigned term_types(term_t t);

/* The value of a function of constant arguments: NULL when it is not known; *ret_fails when it raises. */
term_t fold(struct arena *a, enum fn fn, const term_t *args, size_t count, bool *ret_fails);

#endif
