/* Records: tuples whose definition comes from a header, from --hrl, or from the node, asked through the options. */
#include <string.h>

#include "check.h"

static bool lookup(struct check *k, struct str module, struct str name, struct lang_record *ret)
{
    const struct lang_options *opt = k->c->opt;

    for (size_t i = 0; i < opt->nrecords; i++) {
        const struct lang_record *r = &opt->records[i];
        if (str_same(r->name, name) && (!r->module.len || str_same(r->module, module))) {
            *ret = *r;
            return true;
        }
    }
    return opt->find_record && opt->find_record(opt->find_data, module, name, k->c->arena, ret);
}

bool check_record_of(struct check *k, struct str module, struct str name, const struct ast *at, struct lang_record *ret)
{
    const struct lang_options *opt = k->c->opt;
    struct guess g;

    if (!module.len)
        module = k->module;
    if (lookup(k, module, name, ret))
        return true;
    diag(k->c, at->from, at->len, "record " STR_FMT " is not known", STR_ARG(name));
    diag_note(k->c, "--hrl FILE defines records");
    guess_init(&g, name);
    for (size_t i = 0; i < opt->nrecords; i++)
        guess_offer(&g, opt->records[i].name);
    return diag_guess(k->c, &g);
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

static struct ast *field(struct check *k, struct ast *n, const struct lang_record *r, bool pattern)
{
    size_t i;

    if (!field_of(k, r, n->items[1], &i))
        return NULL;
    struct ast *index = check_lit(k, term_int(k->c->arena, (int64_t)i + 2), n);
    if (!n->items[0])
        return index;
    if (pattern) {
        diag(k->c, n->from, n->len, "an expression has no place in an argument list");
        return NULL;
    }
    struct ast *of = check_expr(k, n->items[0]);
    return of ? CHECK_OP(k, FN_ELEMENT, n, index, of) : NULL;
}

struct ast *check_record(struct check *k, struct ast *n, bool pattern)
{
    struct lang_record r;

    if (!check_record_of(k, n->module, n->text, n, &r))
        return NULL;
    if (n->type == A_RECFIELD)
        return field(k, n, &r, pattern);

    struct ast *tuple = check_new(k, A_TUPLE, n), *rest = NULL;
    tuple->count = r.nfields + 1;
    tuple->items = arena_alloc(k->c->arena, tuple->count * sizeof(*tuple->items));
    tuple->items[0] = check_lit(k, term_atom_n(k->c->arena, r.name), n);
    for (size_t i = 0; i < n->count; i += 2) {
        struct ast *key = n->items[i];
        if (key->type == A_ANY) {
            rest = n->items[i + 1];
            continue;
        }
        size_t at;
        if (!field_of(k, &r, key, &at))
            return NULL;
        if (tuple->items[at + 1]) {
            diag(k->c, key->from, key->len, "field " STR_FMT " is there twice", STR_ARG(key->value->text));
            return NULL;
        }
        tuple->items[at + 1] = n->items[i + 1];
    }
    for (size_t i = 1; i < tuple->count; i++) {
        if (tuple->items[i])
            continue;
        if (rest)
            tuple->items[i] = rest;
        else if (pattern)
            tuple->items[i] = check_new(k, A_ANY, n);
        else {
            diag(k->c, n->from, n->len, "field " STR_FMT " is left out, and its default value is not known", STR_ARG(r.fields[i - 1]));
            diag_note(k->c, "give it, or _ = Value");
            return NULL;
        }
    }
    return pattern ? check_pattern(k, tuple) : check_expr(k, tuple);
}
