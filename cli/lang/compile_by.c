/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles `by`: the keys and aggregates by which the client counts events. pipeline/grouping.c evaluates them. */
#include <string.h>

#include "../../nif/etrace_wire.h"
#include "compile.h"
#include "meant.h"

const char *const by_kind_names[BY_KINDS] = {"count", "sum", "min", "max", "avg", "hist", "quantiles"};

/* Returns the text of a node as written, with blanks for line breaks and tabs. */
static struct str text_of_node(struct comp *c, const struct ast *n)
{
    char *copy = arena_strndup(c->arena, c->text.at + n->from, n->len);

    for (size_t i = 0; i < n->len; i++)
        if (copy[i] == '\n' || copy[i] == '\t' || copy[i] == '\r')
            copy[i] = ' ';
    return (struct str){copy, n->len};
}

static bool report_too_many(struct comp *c, const struct ast *first, const char *what, size_t most)
{
    diag(c, first->from, first->len, "too many %s", what);
    return diag_note(c, "at most %zu", most);
}

/* ---- keys ---- */

static bool is_tag(const struct ast *n)
{
    return n->type == A_CALL && !n->module.len && str_is(n->text, "tag") && n->count == 1;
}

/* Rejects `by A and B`: it would be one key, the boolean result of `and`. */
static bool check_key_is_one(struct comp *c, const struct ast *n)
{
    bool tests = n->type != A_OP || (n->op != FN_AND && n->op != FN_ANDALSO);

    for (size_t i = 0; i < n->count && !tests; i++)
        tests = n->items[i]->type == A_OP || n->items[i]->type == A_CALL;
    if (tests)
        return true;
    diag(c, n->from, n->len, "'and' joins tests, and these are keys");
    return diag_note(c, "separate keys by commas");
}

static bool compile_key(struct unit *u, struct ast *n, const struct ast_probe *p, struct by_key *ret)
{
    if (!check_key_is_one(u->c, n))
        return false;
    ret->tag = is_tag(n);
    ret->text = text_of_node(u->c, n);
    ret->value = where_value(&u->k, ret->tag ? n->items[0] : n, p, &u->needs);
    return ret->value != NULL;
}

/* ---- aggregates ---- */

/* Returns the name of an aggregate, which is a word or the name of a call; empty if the node is neither. */
static struct str aggregate_name(const struct ast *n)
{
    if (n->type == A_CALL && !n->module.len)
        return n->text;
    if (n->type == A_LIT && n->value->type == TERM_ATOM && !n->quoted)
        return n->value->text;
    return n->type == A_VAR ? n->text : (struct str){0};
}

bool by_kind_find(struct str name, enum by_kind *ret)
{
    int i = 0;

    while (i < BY_KINDS && !str_is(name, by_kind_names[i]))
        i++;
    *ret = (enum by_kind)i;
    return i < BY_KINDS;
}

static bool find_kind(struct comp *c, const struct ast *n, enum by_kind *ret)
{
    const struct str name = aggregate_name(n);
    struct guess g;

    if (by_kind_find(name, ret))
        return true;
    guess_init(&g, name);
    for (int i = 0; i < BY_KINDS; i++)
        guess_offer(&g, str_of(by_kind_names[i]));
    diag(c, n->from, n->len, "this is not an aggregate");
    diag_note(c, "count sum(X) min(X) max(X) avg(X) hist(X) quantiles(X)");
    if (n->type == A_OP && (n->op == FN_AND || n->op == FN_ANDALSO))
        return diag_note(c, "separate aggregates by commas");
    return name.len ? meant_note(c, MEANT_AGGREGATE, name, &g) : false;
}

/* Returns true if the value certainly is no number: a test, a text, a function, a container. */
static bool is_no_number(const struct where *w)
{
    return w->kind == WT_BOOL || w->kind == WT_TEXT || w->kind == WT_FUNCTION || w->type == WHERE_TUPLE ||
           w->type == WHERE_LIST || w->type == WHERE_MAP;
}

static bool compile_aggregate(struct unit *u, struct ast *n, const struct ast_probe *p, struct by_aggregate *ret)
{
    const size_t count = n->type == A_CALL ? n->count : 0;

    if (!find_kind(u->c, n, &ret->kind))
        return false;
    const char *name = by_kind_names[ret->kind];
    if (ret->kind == BY_COUNT && count) {
        diag(u->c, n->from, n->len, "count has no value");
        return diag_note(u->c, "it is the number of events; sum(X) adds up values");
    }
    if (ret->kind == BY_COUNT) {
        ret->text = STR("count");
        return true;
    }
    if (count != 1) {
        diag(u->c, n->from, n->len, "%s needs one value", name);
        return diag_note(u->c, "as in %s(dur)", name);
    }
    const struct ast *of = n->items[0];
    const struct str text = text_of_node(u->c, of);
    if (!(ret->value = where_value(&u->k, n->items[0], p, &u->needs)))
        return false;
    if (is_no_number(ret->value))
        return diag(u->c, of->from, of->len, "this is not a number");
    ret->late = where_uses(ret->value) & PROPERTY_NEEDS_RETURN;
    ret->text.at = arena_printf(u->c->arena, "%s(" STR_FMT ")", name, STR_ARG(text));
    ret->text.len = strlen(ret->text.at);
    return true;
}

/* ---- the clause ---- */

static void set_by_text(struct unit *u, struct spec_by *by)
{
    struct buf b = {0};

    for (size_t i = 0; i < by->nkeys; i++)
        buf_printf(&b, "%s" STR_FMT, i ? ", " : LEX_BY " ", STR_ARG(by->keys[i].text));
    for (size_t i = 0; i < by->naggregates; i++)
        buf_printf(&b, "%s" STR_FMT, i ? ", " : ": ", STR_ARG(by->aggregates[i].text));
    by->text = (struct str){arena_strndup(u->c->arena, b.data, b.len), b.len};
    buf_release(&b);
}

/*
 * Returns all PROPERTY_ bits of a property. where_uses() leaves out PROPERTY_AROUND for properties that the node
 * compares; here the client reads the value itself.
 */
static unsigned value_uses(const struct where *w)
{
    return w->type == WHERE_NAME ? property_rows[w->property].uses : 0;
}

static void set_by_uses(struct spec_by *by)
{
    for (size_t i = 0; i < by->nkeys; i++)
        by->uses |= where_collect(by->keys[i].value, value_uses);
    by->late = by->any_late = by->uses & PROPERTY_NEEDS_RETURN;
    for (size_t i = 0; i < by->naggregates; i++) {
        by->uses |= by->aggregates[i].value ? where_collect(by->aggregates[i].value, value_uses) : 0;
        by->any_late = by->any_late || by->aggregates[i].late;
    }
}

static bool report_repeated(struct unit *u, const struct ast_probe *p, const struct by_aggregate *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_same(all[i].text, all[n].text))
            return !diag(u->c, p->aggregates[n]->from, p->aggregates[n]->len, "this aggregate is given twice");
    return false;
}

const struct spec_by *compile_by(struct unit *u, const struct ast_probe *p, const struct ast_probe *head)
{
    struct arena *a = u->c->arena;
    struct spec_by *by = arena_alloc(a, sizeof(*by));
    struct by_key *keys = arena_alloc(a, p->nkeys * sizeof(*keys));
    struct by_aggregate *aggregates = arena_alloc(a, (p->naggregates + 1) * sizeof(*aggregates));

    if (p->nkeys > SPEC_KEYS_MAX)
        return report_too_many(u->c, p->keys[SPEC_KEYS_MAX], "keys", SPEC_KEYS_MAX), NULL;
    if (p->naggregates > SPEC_AGGREGATES_MAX)
        return report_too_many(u->c, p->aggregates[SPEC_AGGREGATES_MAX], "aggregates", SPEC_AGGREGATES_MAX), NULL;
    for (size_t i = 0; i < p->nkeys; i++)
        if (!compile_key(u, p->keys[i], head, &keys[i]))
            return NULL;
    for (size_t i = 0; i < p->naggregates; i++)
        if (!compile_aggregate(u, p->aggregates[i], head, &aggregates[i]) || report_repeated(u, p, aggregates, i))
            return NULL;
    if (!p->naggregates)
        aggregates[0] = (struct by_aggregate){.text = STR("count")};
    *by = (struct spec_by){.keys = keys,
                           .nkeys = p->nkeys,
                           .aggregates = aggregates,
                           .surface = u->c->surface,
                           .most = u->c->opt->most_keys ? u->c->opt->most_keys : ETW_BY_ROWS};
    by->naggregates = MAX(p->naggregates, 1);
    set_by_text(u, by);
    set_by_uses(by);
    return by;
}

static unsigned reads_stack(const struct where *w)
{
    return w->type == WHERE_NAME && w->property == PROPERTY_stack;
}

/* Rejects `by` with a counter of the VM, and a key that reads the stack if the probe does not collect the stack. */
static bool check_collects(struct unit *u)
{
    const struct ast_probe *p = u->probe;
    const struct spec_by *by = u->spec->by;

    if (compile_has_action(p, HOW_COUNT, FN_NONE))
        return diag(u->c, p->by_from, p->by_len, "the VM's counters have no keys");
    if (p->raw || compile_has_action(p, HOW_PACK, FN_CURRENT_STACKTRACE))
        return true;
    for (size_t i = 0; i < by->nkeys; i++)
        if (where_collect(by->keys[i].value, reads_stack)) {
            diag(u->c, p->keys[i]->from, p->keys[i]->len, "the probe collects no stack");
            return diag_note(u->c, "write -> stack before 'by'");
        }
    return true;
}

bool unit_by(struct unit *u)
{
    const struct ast_probe *p = u->probe;

    return !p->nkeys || ((u->spec->by = compile_by(u, p, p)) && check_collects(u));
}
