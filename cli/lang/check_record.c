/* Records: tuples whose definition comes from a header, from --hrl, or from the node, asked through the options. */
#include <string.h>

#include "check.h"

static bool absent(struct check *k, struct str name, const struct lang_lookup *found, const struct ast *at)
{
    const struct lang_options *opt = k->c->opt;
    struct guess g;

    if (found->why.len)
        diag(k->c, at->from, at->len, STR_FMT, STR_ARG(found->why));
    else
        diag(k->c, at->from, at->len, "record " STR_FMT " is not known", STR_ARG(name));
    diag_note(k->c, "--hrl FILE defines records");
    guess_init(&g, name);
    for (size_t i = 0; i < opt->nrecords; i++)
        guess_offer(&g, opt->records[i].name);
    for (size_t i = 0; i < found->nnames; i++)
        guess_offer(&g, found->names[i]);
    return diag_guess(k->c, &g);
}

bool check_record_of(struct check *k, struct str module, struct str name, const struct ast *at, struct lang_record *ret, bool *ret_later)
{
    const struct lang_options *opt = k->c->opt;
    const struct sel_name named = {SEL_ATOM, module};
    struct lang_lookup found = {0};

    *ret_later = false;
    for (size_t i = 0; i < opt->nrecords; i++) {
        if (str_same(opt->records[i].name, name)) {
            *ret = opt->records[i];
            return true;
        }
    }
    enum lang_found what = !opt->find_record ? LANG_ABSENT
                           : module.len      ? opt->find_record(opt->find_data, &named, 1, name, k->c->arena, &found)
                                             : opt->find_record(opt->find_data, k->modules, k->nmodules, name, k->c->arena, &found);
    if (what == LANG_ABSENT)
        return absent(k, name, &found, at);
    *ret_later = what == LANG_LATER;
    *ret = what == LANG_LATER ? (struct lang_record){.name = name} : found.record;
    return true;
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

    if (!check_record_of(k, n->module, n->text, n, &r, &later) || (!later && !field_of(k, &r, n->items[1], &i)))
        return NULL;
    struct ast *index = check_lit(k, term_int(k->c->arena, (int64_t)i + 2), n);
    if (later)
        index->known = NULL;
    return index;
}

static struct ast *field(struct check *k, struct ast *n, bool pattern)
{
    struct ast *index = check_record_index(k, n);

    if (!index || !n->items[0])
        return index;
    if (pattern) {
        diag(k->c, n->from, n->len, "an expression has no place in an argument list");
        return NULL;
    }
    struct ast *of = check_expr(k, n->items[0]);
    return of ? CHECK_OP(k, FN_ELEMENT, n, index, of) : NULL;
}

/* The values of the fields at their places, and in *ret_rest that of `_ = V`. */
static bool given(struct check *k, const struct ast *n, const struct lang_record *r, struct ast **values, struct ast **ret_rest)
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
            return diag(k->c, key->from, key->len, "field " STR_FMT " is there twice", STR_ARG(key->value->text));
        values[at] = n->items[i + 1];
    }
    return true;
}

/* What a field has that nobody gave: anything in a pattern, its default value in a term. */
static struct ast *left_out(struct check *k, const struct ast *n, const struct lang_record *r, size_t i, bool pattern)
{
    if (pattern)
        return check_new(k, A_ANY, n);
    if (r->defaults[i]) {
        struct ast *value = check_lit(k, r->defaults[i], n);
        value->quoted = true; /* no word of a `where` */
        return value;
    }
    diag(k->c, n->from, n->len, "the default value of field " STR_FMT " is no literal term", STR_ARG(r->fields[i]));
    diag_note(k->c, "give the field, or _ = Value");
    return NULL;
}

struct ast *check_record_tuple(struct check *k, struct ast *n, bool pattern, bool *ret_later)
{
    struct ast *tuple = check_new(k, A_TUPLE, n), *rest = NULL;
    struct lang_record r;

    if (!check_record_of(k, n->module, n->text, n, &r, ret_later))
        return NULL;
    tuple->count = *ret_later ? n->count / 2 : r.nfields + 1;
    tuple->items = arena_alloc(k->c->arena, tuple->count * sizeof(*tuple->items) + 1);
    if (*ret_later) {
        for (size_t i = 0; i < tuple->count; i++)
            tuple->items[i] = n->items[2 * i + 1];
        return tuple;
    }
    tuple->items[0] = check_lit(k, term_atom_n(k->c->arena, r.name), n);
    tuple->items[0]->quoted = true;
    if (!given(k, n, &r, tuple->items + 1, &rest))
        return NULL;
    for (size_t i = 1; i < tuple->count; i++)
        if (!tuple->items[i] && !(tuple->items[i] = rest ? rest : left_out(k, n, &r, i - 1, pattern)))
            return NULL;
    return tuple;
}

struct ast *check_record(struct check *k, struct ast *n, bool pattern)
{
    bool later;

    if (n->type == A_RECFIELD)
        return field(k, n, pattern);
    struct ast *tuple = check_record_tuple(k, n, pattern, &later);
    if (tuple)
        tuple = pattern ? check_pattern(k, tuple) : check_expr(k, tuple);
    if (tuple && later)
        tuple->known = NULL;
    return tuple;
}
