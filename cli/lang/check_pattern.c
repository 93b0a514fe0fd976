/* SPDX-License-Identifier: Apache-2.0 */
/* Checks heads: the patterns of arguments. Binds variables in the order in which they appear. */
#include <string.h>

#include "check.h"
#include "meant.h"

static bool check_children(struct check *k, struct ast *out, const struct ast *n)
{
    out->items = arena_alloc(k->c->arena, n->count * sizeof(*out->items) + 1);
    out->count = n->count;
    for (size_t i = 0; i < n->count; i++)
        if (!(out->items[i] = check_pattern(k, n->items[i])))
            return false;
    if (n->tail && !(out->tail = check_pattern(k, n->tail)))
        return false;
    return true;
}

/*
 * Returns true if the key of a map contains a map. Such a key is checked as an expression. As a pattern it would have
 * no known value, because a map in a pattern also matches maps with more keys.
 */
static bool key_holds_map(const struct ast *n)
{
    for (size_t i = 0; i < n->count; i++)
        if (key_holds_map(n->items[i]))
            return true;
    return n->type == A_MAP || (n->tail && key_holds_map(n->tail));
}

static bool check_key(struct check *k, const struct ast *key, struct ast **ret)
{
    if (key->type == A_VAR || key->type == A_ANY) {
        diag(k->c, key->from, key->len,
             key->type == A_ANY ? "'_' cannot be a map key" : "a variable cannot be a map key");
        return diag_note(k->c, "use a literal, or ^NAME with --let");
    }
    const size_t bound = k->names.count;
    struct ast *node = (struct ast *)(uintptr_t)key;
    struct ast *out = key_holds_map(key) ? check_expr(k, node) : check_pattern(k, node);
    if (!out)
        return false;
    if (out->known && out->type != A_PIN)
        out = check_lit(k, out->known, key);
    if ((out->type == A_LIT || out->type == A_PIN) && check_special(out->value))
        return diag(k->c, key->from, key->len, "the VM would read this key as a variable");
    if (!out->known || k->names.count != bound)
        return diag(k->c, key->from, key->len, "a map key must be a literal");
    *ret = out;
    return true;
}

static struct ast *check_map(struct check *k, struct ast *n)
{
    struct ast *out = check_new(k, A_MAP, n);

    out->items = arena_alloc(k->c->arena, n->count * sizeof(*out->items) + 1);
    out->count = n->count;
    out->types = TY_MAP;
    for (size_t i = 0; i < n->count; i += 2) {
        if (!check_key(k, n->items[i], &out->items[i]))
            return NULL;
        if (!(out->items[i + 1] = check_pattern(k, n->items[i + 1])))
            return NULL;
    }
    return check_keys_differ(k, out, n) ? out : NULL;
}

/* Checks "GET " <> rest, and returns it as the binary pattern <<"GET ", rest/binary>>. */
static struct ast *check_bincat(struct check *k, struct ast *n)
{
    struct ast *bin = check_new(k, A_BIN, n), *first = check_new(k, A_SEG, n->items[0]);
    struct ast *rest = check_new(k, A_SEG, n->items[1]), *right = n->items[1];
    struct ast **segs = arena_alloc(k->c->arena, 2 * sizeof(*segs));

    if (right->type == A_OP && right->op == OP_BINCAT && !(right = check_bincat(k, right)))
        return NULL;
    if (right->type == A_BIN && right->count && right->items[0]->type == A_SEG) { /* "a" <> "b" <> rest */
        struct ast **more = arena_alloc(k->c->arena, (right->count + 1) * sizeof(*more));
        for (size_t i = 0; i < right->count; i++) {
            struct ast *s = right->items[i];
            if (s->value) { /* bytes, made by check_bin() from known segments */
                struct ast **value = arena_alloc(k->c->arena, sizeof(*value));
                struct ast *plain = check_new(k, A_SEG, s);
                value[0] = check_lit(k, s->value, s);
                plain->items = value;
                plain->count = 1;
                plain->seg.type = SEG_BINARY;
                s = plain;
            }
            more[i + 1] = s;
        }
        segs = more;
        bin->count = right->count + 1;
    } else {
        rest->items = arena_alloc(k->c->arena, sizeof(*rest->items));
        rest->items[0] = right;
        rest->count = 1;
        rest->seg.type = SEG_BINARY;
        segs[1] = rest;
        bin->count = 2;
    }
    if (n->items[0]->type == A_VAR || n->items[0]->type == A_ANY) {
        diag(k->c, n->items[0]->from, n->items[0]->len, "'<>' needs a literal before it");
        return NULL;
    }
    first->items = arena_alloc(k->c->arena, sizeof(*first->items));
    first->items[0] = n->items[0];
    first->count = 1;
    first->seg.type = SEG_BINARY;
    segs[0] = first;
    bin->items = segs;
    return check_bin(k, bin, true);
}

/* Returns true if the expression is constant, even if only the VM can compute its value (1 bsl 70). */
static bool is_constant(const struct ast *n)
{
    for (size_t i = 0; n->type == A_OP && i < n->count; i++)
        if (!is_constant(n->items[i]))
            return false;
    return n->known || n->type == A_OP;
}

static struct ast *check_constant(struct check *k, struct ast *n)
{
    if (n->op == OP_CONCAT) {
        struct ast *left = check_pattern(k, n->items[0]), *right = left ? check_pattern(k, n->items[1]) : NULL;
        return right ? check_concat(k, n, left, right) : NULL;
    }
    if (n->op == OP_BINCAT)
        return check_bincat(k, n);
    if (n->op == OP_RANGE) {
        struct ast *map = check_range(k, n);
        return map ? check_pattern(k, map) : NULL;
    }
    if (n->op < FN_COUNT && n->count <= 2 && fn_row((enum fn)n->op)->result != TY_BOOL) {
        struct ast *args[2];
        bool literal = true;
        for (size_t i = 0; i < n->count; i++) {
            if (n->items[i]->type == A_VAR || n->items[i]->type == A_ANY)
                literal = false;
            else if (!(args[i] = check_pattern(k, n->items[i])))
                return NULL;
            else
                literal &= is_constant(args[i]);
        }
        if (literal) {
            struct ast *value = check_op(k, n->op, n, n->count, args);
            if (!value)
                return NULL;
            return value->known ? check_lit(k, value->known, n) : value;
        }
    }
    diag(k->c, n->from, n->len, "an expression is not allowed in an argument list");
    diag_note(k->c, "bind a variable and test it after 'when'");
    return NULL;
}

struct ast *check_pattern(struct check *k, struct ast *n)
{
    struct ast *out;

    switch (n->type) {
    case A_LIT:
        out = check_lit(k, n->value, n);
        if (n->value->type == TERM_ATOM && check_special(n->value))
            out->known = NULL; /* redbug and match specifications read '_' and '$1' as variables */
        return out;
    case A_ANY:
        out = check_new(k, A_ANY, n);
        out->quoted = n->quoted;
        return out;
    case A_VAR:
        out = check_new(k, A_VAR, n);
        out->text = n->text;
        out->quoted = n->quoted;
        ptrs_add(&k->names, k->c->arena, out);
        return out;
    case A_PIN:
        out = check_new(k, A_PIN, n);
        out->text = n->text;
        if (!check_let(k, n, &out->value))
            return NULL;
        out->known = out->value;
        out->types = term_types(out->value);
        return out;
    case A_TUPLE:
    case A_LIST:
        out = check_new(k, n->type, n);
        if (!check_children(k, out, n))
            return NULL;
        out->types = n->type == A_TUPLE ? TY_TUPLE : TY_LIST;
        check_known(out, k->c->arena);
        return out;
    case A_MAP:
        return check_map(k, n);
    case A_RECORD:
    case A_RECFIELD:
        return check_record(k, n, true);
    case A_BIN:
        return check_bin(k, n, true);
    case A_MATCH:
        out = check_new(k, A_MATCH, n);
        return check_children(k, out, n) ? out : NULL;
    case A_OP:
        return check_constant(k, n);
    case A_CALL:
        if (str_is(n->text, "pid") && n->count == 3)
            return check_expr(k, n);
        diag(k->c, n->from, n->len, "a call is not allowed in an argument list");
        diag_note(k->c, "test it after 'when'");
        return NULL;
    case A_UNIT:
        check_unit(k, n);
        return NULL;
    case A_DOT:
    case A_NATIVE:
    case A_INDEX:
    case A_REGEX:
    case A_SEG:
        break;
    }
    diag(k->c, n->from, n->len, "this is not allowed in an argument list");
    return NULL;
}

/* ---- atoms without a colon ---- */

static size_t count_mentions(const struct ast *n, struct str var)
{
    size_t count = n->type == A_VAR && str_same(n->text, var);

    for (size_t i = 0; i < n->count; i++)
        count += n->items[i] ? count_mentions(n->items[i], var) : 0;
    return n->tail ? count + count_mentions(n->tail, var) : count;
}

static bool any_mentions(struct ast *const *trees, size_t count, struct str var)
{
    for (size_t i = 0; i < count; i++)
        if (ast_mentions(trees[i], var))
            return true;
    return false;
}

/* Returns true if a guard, an action, the filter or a key contains the variable. */
static bool is_used(const struct ast_probe *probe, const struct ast_clause *cl, struct str var)
{
    for (size_t i = 0; cl && i < cl->nguards; i++)
        if (any_mentions(cl->guards[i].tests, cl->guards[i].count, var))
            return true;
    if (cl && any_mentions(cl->body, cl->nbody, var))
        return true;
    return probe &&
           ((probe->where && ast_mentions(probe->where, var)) || any_mentions(probe->keys, probe->nkeys, var) ||
            any_mentions(probe->aggregates, probe->naggregates, var));
}

/* Lists the variables in containers that have the name of a common atom. */
static void find_atoms(struct check *k, const struct ast *n, bool inside, struct ptrs *ret)
{
    if (n->type == A_VAR && inside && meant(k->c, MEANT_ATOM, n->text))
        ptrs_add(ret, k->c->arena, (void *)(uintptr_t)n);
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i])
            find_atoms(k, n->items[i], inside || n->type != A_MATCH, ret);
    if (n->tail)
        find_atoms(k, n->tail, true, ret);
}

void check_atoms(struct check *k, struct ast *const *patterns, size_t count, const struct ast_probe *probe,
                 const struct ast_clause *cl)
{
    struct ptrs found = {0};

    for (size_t i = 0; i < count; i++)
        find_atoms(k, patterns[i], false, &found);
    for (size_t i = 0; i < found.count; i++) {
        const struct ast *var = found.items[i];
        size_t mentions = 0;
        for (size_t j = 0; j < count; j++)
            mentions += count_mentions(patterns[j], var->text);
        if (mentions == 1 && !is_used(probe, cl, var->text))
            warn(k->c, var->from, var->len, false, STR_FMT " is a variable and matches anything; the atom is %s",
                 STR_ARG(var->text), meant(k->c, MEANT_ATOM, var->text));
    }
}
