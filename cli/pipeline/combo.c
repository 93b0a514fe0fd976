/* SPDX-License-Identifier: Apache-2.0 */
#include "combo.h"

#include <stdlib.h>
#include <string.h>

#include "../ground/buf.h"
#include "../ground/mem.h"
#include "../ground/table.h"

#define COMBOS_MOST 65536 /* limit, because a recording may name any combination */

struct combo {
    struct spec spec; /* must be first: a spec with parts is cast to a combo */
    int64_t *indices; /* for each part, the index of the clause that matched; -1: unknown */
    const struct spec **parts;
    struct spec_clause clauses[2];
};

struct combos {
    struct arena arena;
    struct combo **items;
    size_t count, cap;
    struct table by_answers;
};

struct combos *combos_new(void)
{
    struct combos *c = mem_zalloc(sizeof(*c));

    arena_init(&c->arena);
    return c;
}

void combos_free(struct combos *c)
{
    if (!c)
        return;
    arena_release(&c->arena);
    free(c->items);
    table_release(&c->by_answers);
    free(c);
}

unsigned combo_wants(const struct spec *s, int64_t clause)
{
    size_t yes = 0, all = 0;

    for (size_t i = 0; i < s->nclauses; i++) {
        unsigned actions = s->clauses[i].actions;
        if (actions & ACT_DROP || (clause >= 0 && i != (size_t)clause))
            continue;
        all++;
        yes += (actions & (ACT_RETURN | ACT_RETURN_TRACE)) != 0;
    }
    return !yes ? 0 : yes == all ? 1 : 2;
}

/* Makes the clause show each argument that a part shows. If no part shows an argument, makes it show the arity. */
static void show_args(struct spec_clause *to, const struct answer *answers, size_t n)
{
    bool all = false;

    to->actions |= ACT_ARITY;
    for (size_t i = 0; i < n; i++) {
        const struct spec *s = answers[i].spec;
        const struct spec_clause *c = s->nclauses && answers[i].clause >= 0 ? &s->clauses[answers[i].clause] : NULL;
        if (c && c->actions & ACT_ARITY)
            continue;
        to->actions &= ~(unsigned)ACT_ARITY;
        all |= !c || !(c->actions & ACT_PROJECT);
        for (size_t k = 0; !all && k < ARRAY_LEN(to->args); k++)
            to->args[k] |= c->args[k];
    }
    if (!all && !(to->actions & ACT_ARITY))
        to->actions |= ACT_PROJECT;
}

static bool has_label(const struct answer *answers, size_t n, struct safe label)
{
    for (size_t i = 0; i < n; i++)
        if (str_same(safe_view(answers[i].spec->label), safe_view(label)))
            return true;
    return false;
}

/* Returns the distinct labels of the parts, separated by commas. */
static struct safe label_of(struct arena *a, const struct answer *answers, size_t n)
{
    struct safe label = SAFE("");
    struct buf b = {0};

    for (size_t i = 0; i < n; i++) {
        if (has_label(answers, i, answers[i].spec->label))
            continue;
        if (b.len && answers[i].spec->label.len)
            buf_char(&b, ',');
        buf_safe(&b, answers[i].spec->label);
    }
    label.at = arena_strndup(a, buf_view(&b).at, b.len);
    label.len = b.len;
    buf_release(&b);
    return label;
}

static struct combo *combo_make(struct combos *c, const struct answer *answers, size_t n)
{
    struct combo *x = arena_alloc(&c->arena, sizeof(*x));
    unsigned wants = 0;

    *x = (struct combo){0};
    x->indices = arena_alloc(&c->arena, n * sizeof(*x->indices));
    x->parts = arena_alloc(&c->arena, n * sizeof(*x->parts));
    x->spec = *answers[0].spec;
    for (size_t i = 0; i < n; i++) {
        unsigned more = combo_wants(answers[i].spec, answers[i].clause);
        x->indices[i] = answers[i].clause;
        x->parts[i] = answers[i].spec;
        wants = wants == 1 || more == 1 ? 1 : MAX(wants, more);
    }
    show_args(&x->clauses[0], answers, n);
    x->clauses[1] = x->clauses[0]; /* a second clause without a result, for when only some calls report results */
    x->clauses[0].actions |= wants ? (unsigned)ACT_RETURN : 0;
    x->spec.parts = x->parts;
    x->spec.nparts = n;
    x->spec.label = label_of(&c->arena, answers, n);
    x->spec.where = NULL;
    x->spec.nwhere = x->spec.npack = 0;
    x->spec.clauses = x->clauses;
    x->spec.nclauses = wants == 2 ? 2 : 1;
    return x;
}

static bool is_of(const struct combo *x, const struct answer *answers, size_t n)
{
    if (x->spec.nparts != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (x->parts[i] != answers[i].spec || x->indices[i] != answers[i].clause)
            return false;
    return true;
}

static uint32_t hash_answers(const struct answer *answers, size_t n)
{
    uint32_t hash = (uint32_t)n;

    for (size_t i = 0; i < n; i++)
        hash = hash_u64(hash ^ (uintptr_t)answers[i].spec ^ (uint64_t)answers[i].clause << 48);
    return hash;
}

const struct spec *combos_get(struct combos *c, const struct answer *answers, size_t n)
{
    uint32_t hash = hash_answers(answers, n);

    for (uint32_t step = 0, i; (i = table_next(&c->by_answers, hash, &step)) != TABLE_NONE;)
        if (is_of(c->items[i], answers, n))
            return &c->items[i]->spec;
    if (c->count == COMBOS_MOST)
        return answers[0].spec;
    c->items = mem_grow(c->items, &c->cap, c->count + 1, sizeof(struct combo *));
    c->items[c->count] = combo_make(c, answers, n);
    table_add(&c->by_answers, hash, (uint32_t)c->count);
    return &c->items[c->count++]->spec;
}

const struct spec *combos_narrow(struct combos *c, const struct spec *s, const bool *keep)
{
    const struct combo *x = (const struct combo *)(const void *)s;
    struct answer *answers = mem_alloc(s->nparts * sizeof(*answers));
    size_t n = 0;

    for (size_t i = 0; i < s->nparts; i++)
        if (keep[i])
            answers[n++] = (struct answer){.spec = x->parts[i], .clause = x->indices[i]};
    if (n && n < s->nparts)
        s = combos_get(c, answers, n);
    free(answers);
    return s;
}
