/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks records. A record stands for a tuple; the definition comes from --hrl, from a module of the node or from
 * another source of the find_record option. Native records are a type of their own since OTP 29: a match specification
 * can test their names but cannot read their fields.
 */
#include <string.h>

#include "check.h"

static bool report_unknown_record(struct check *k, struct str name, const struct lang_lookup *found,
                                  const struct ast *at)
{
    const struct lang_options *opt = k->c->opt;
    struct guess g;

    if (found->why.len)
        diag(k->c, at->from, at->len, STR_FMT, STR_ARG(found->why));
    else
        diag(k->c, at->from, at->len, "unknown record '" STR_FMT "'", STR_ARG(name));
    diag_note(k->c, "define it with --hrl FILE");
    guess_init(&g, name);
    for (size_t i = 0; i < opt->nrecords; i++)
        guess_offer(&g, opt->records[i].name);
    for (size_t i = 0; i < found->nnames; i++)
        guess_offer(&g, found->names[i]);
    return diag_guess(k->c, &g);
}

bool check_record_of(struct check *k, struct str module, struct str name, const struct ast *at, struct lang_record *ret,
                     bool *ret_later)
{
    const struct lang_options *opt = k->c->opt;
    const struct sel_name named = {SEL_ATOM, module};
    struct lang_lookup found = {0};

    *ret_later = false;
    for (size_t i = opt->nrecords; i-- > 0;) { /* the last definition counts */
        if (str_same(opt->records[i].name, name)) {
            *ret = opt->records[i];
            return true;
        }
    }
    enum lang_found what = !opt->find_record ? LANG_ABSENT
                           : module.len
                               ? opt->find_record(opt->find_data, &named, 1, name, k->c->arena, &found)
                               : opt->find_record(opt->find_data, k->modules, k->nmodules, name, k->c->arena, &found);
    if (what == LANG_ABSENT)
        return report_unknown_record(k, name, &found, at);
    *ret_later = what == LANG_LATER;
    k->met_unknown |= *ret_later;
    *ret = what == LANG_LATER ? (struct lang_record){.name = name} : found.record;
    return true;
}

#define NATIVE_OTP 29

bool check_native(struct check *k, const struct ast *at)
{
    k->needs_otp = MAX(k->needs_otp, NATIVE_OTP);
    if (!k->c->opt->otp || k->c->opt->otp >= NATIVE_OTP)
        return true;
    diag(k->c, at->from, at->len, "native records need OTP %d", NATIVE_OTP);
    return diag_note(k->c, "this node has OTP %d", k->c->opt->otp);
}

/* Rejects an expression that needs the fields of a native record and suggests a test that works. Returns NULL. */
static struct ast *no_fields(struct check *k, const struct ast *n, const struct lang_record *r, bool pattern)
{
    struct buf test = {0};

    if (r->native.len) {
        buf_puts(&test, pattern ? "write #" : "is_record(X, ");
        lang_print_term(term_atom_n(k->c->arena, r->native), &test);
        buf_puts(&test, pattern ? ":" : ", ");
        lang_print_term(term_atom_n(k->c->arena, r->name), &test);
        buf_puts(&test, pattern ? "{} for all of them" : ") tests for one");
    } else {
        buf_puts(&test, pattern ? "write #_{} for all of them" : "is_record(X) tests for one");
    }
    if (check_native(k, n)) {
        diag(k->c, n->from, n->len,
             n->type == A_RECORD && !pattern ? "a native record cannot be built here"
                                             : "the fields of native records cannot be read");
        diag_note(k->c, STR_FMT, STR_ARG(buf_view(&test)));
    }
    buf_release(&test);
    return NULL;
}

/* Finds the definition of a record as check_record_of() does, but a record in native syntax is its own definition. */
static bool find_record(struct check *k, const struct ast *n, struct lang_record *ret, bool *ret_later)
{
    if (!n->quoted)
        return check_record_of(k, n->module, n->text, n, ret, ret_later);
    *ret = (struct lang_record){.name = n->text, .native = n->module};
    *ret_later = false;
    return true;
}

static struct ast *check_record_native(struct check *k, const struct ast *n, const struct lang_record *r, bool pattern)
{
    if (!pattern || n->count)
        return no_fields(k, n, r, pattern);
    if (!check_native(k, n))
        return NULL;
    struct ast *out = check_new(k, A_NATIVE, n);
    if (r->native.len) {
        out->module = r->native;
        out->text = r->name;
    }
    return out;
}

static bool field_of(struct check *k, const struct lang_record *r, const struct ast *field, size_t *ret)
{
    struct guess g;

    guess_init(&g, field->value->text);
    for (size_t i = 0; i < r->nfields; i++) {
        if (str_same(r->fields[i], field->value->text)) {
            *ret = i;
            return true;
        }
        guess_offer(&g, r->fields[i]);
    }
    diag(k->c, field->from, field->len, "record " STR_FMT " has no field " STR_FMT, STR_ARG(r->name),
         STR_ARG(field->value->text));
    return diag_guess(k->c, &g);
}

struct ast *check_record_index(struct check *k, struct ast *n)
{
    struct lang_record r;
    bool later;
    size_t i = 0;

    if (!find_record(k, n, &r, &later))
        return NULL;
    if (n->quoted || r.native.len)
        return no_fields(k, n, &r, false);
    if (!later && !field_of(k, &r, n->items[1], &i))
        return NULL;
    struct ast *index = check_lit(k, term_int(k->c->arena, (int64_t)i + 2), n);
    if (later)
        index->known = NULL;
    return index;
}

static struct ast *check_record_field(struct check *k, struct ast *n, bool pattern)
{
    struct ast *index = check_record_index(k, n);

    if (!index || !n->items[0])
        return index;
    if (pattern) {
        diag(k->c, n->from, n->len, "an expression is not allowed in an argument list");
        return NULL;
    }
    struct ast *of = check_expr(k, n->items[0]);
    return of ? CHECK_OP(k, FN_ELEMENT, n, index, of) : NULL;
}

/* Puts the given values at the places of their fields, and the value of `_ = V` into *ret_rest. */
static bool place_given_values(struct check *k, const struct ast *n, const struct lang_record *r, struct ast **values,
                               struct ast **ret_rest)
{
    for (size_t i = 0; i < n->count; i += 2) {
        struct ast *key = n->items[i];
        size_t at;
        if (key->type == A_ANY) {
            *ret_rest = n->items[i + 1];
            continue;
        }
        if (!field_of(k, r, key, &at))
            return false;
        if (values[at])
            return diag(k->c, key->from, key->len, "field " STR_FMT " is given twice", STR_ARG(key->value->text));
        values[at] = n->items[i + 1];
    }
    return true;
}

/* Returns the value of an omitted field: `_` in a pattern, its default value in a term. */
static struct ast *make_omitted_value(struct check *k, const struct ast *n, const struct lang_record *r, size_t i,
                                      bool pattern)
{
    if (pattern)
        return check_new(k, A_ANY, n);
    if (r->defaults[i]) {
        struct ast *value = check_lit(k, r->defaults[i], n);
        value->quoted = true; /* keeps compile_where.c from reading an atom as a property */
        return value;
    }
    diag(k->c, n->from, n->len, "the default value of field " STR_FMT " is not a literal term", STR_ARG(r->fields[i]));
    diag_note(k->c, "give the field, or _ = Value");
    return NULL;
}

struct ast *check_record_tuple(struct check *k, struct ast *n, bool pattern, bool *ret_later)
{
    struct ast *tuple = check_new(k, A_TUPLE, n), *rest = NULL;
    struct lang_record r;

    if (!find_record(k, n, &r, ret_later))
        return NULL;
    if (n->quoted || r.native.len)
        return check_record_native(k, n, &r, pattern);
    tuple->count = *ret_later ? n->count / 2 : r.nfields + 1;
    tuple->items = arena_alloc(k->c->arena, tuple->count * sizeof(*tuple->items) + 1);
    if (*ret_later) {
        for (size_t i = 0; i < tuple->count; i++)
            tuple->items[i] = n->items[2 * i + 1];
        return tuple;
    }
    tuple->items[0] = check_lit(k, term_atom_n(k->c->arena, r.name), n);
    tuple->items[0]->quoted = true;
    if (!place_given_values(k, n, &r, tuple->items + 1, &rest))
        return NULL;
    for (size_t i = 1; i < tuple->count; i++)
        if (!tuple->items[i] && !(tuple->items[i] = rest ? rest : make_omitted_value(k, n, &r, i - 1, pattern)))
            return NULL;
    return tuple;
}

struct ast *check_record(struct check *k, struct ast *n, bool pattern)
{
    bool later;

    if (n->type == A_RECFIELD)
        return check_record_field(k, n, pattern);
    struct ast *tuple = check_record_tuple(k, n, pattern, &later);
    if (tuple && tuple->type != A_NATIVE)
        tuple = pattern ? check_pattern(k, tuple) : check_expr(k, tuple);
    if (tuple && later)
        tuple->known = NULL;
    return tuple;
}
