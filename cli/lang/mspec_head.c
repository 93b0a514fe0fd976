/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles heads. A match specification has variables, literals, tuples, lists and maps; all other parts of a pattern
 * become guards. Variables that name a part with its own pattern read their value by a path from '$_'. Binaries are
 * compared by their parts. Native records are tested by name. A --let value that contains a map or a variable such as
 * '$1' is compared with =:=, because a head would not match it literally.
 */
#include <string.h>

#include "mspec.h"

enum step { STEP_ROOT, STEP_ITEM, STEP_TAIL, STEP_ELEMENT, STEP_VALUE };

/* A path from '$_' to a part of the head; `up` is the path to the part around it. */
struct path {
    const struct path *up;
    enum step step;
    /*
     * STEP_ITEM: the number of the element, from 0. STEP_ELEMENT: the same, from 1. STEP_TAIL: the number of elements
     * before the tail.
     */
    size_t index;
    term_t key; /* STEP_VALUE: the key of the map */
};

static term_t call_with_one(struct arena *a, const char *name, term_t x)
{
    return TUPLE(a, term_atom(a, name), x);
}

static term_t call_with_two(struct arena *a, const char *name, term_t x, term_t y)
{
    return TUPLE(a, term_atom(a, name), x, y);
}

/* Limit for nested calls: enough to read a part of the 255th argument. */
#define MAX_STEPS 300

static term_t steps_term(struct mclause *m, const struct path *p)
{
    if (p->step == STEP_ROOT)
        return term_atom(m->a, "$_");
    term_t t = steps_term(m, p->up);
    switch (p->step) {
    case STEP_ELEMENT:
        return call_with_two(m->a, "element", term_int(m->a, (int64_t)p->index), t);
    case STEP_VALUE:
        return call_with_two(m->a, "map_get", mspec_value(m, p->key), t);
    case STEP_ROOT:
    case STEP_ITEM:
    case STEP_TAIL:
        break;
    }
    for (size_t i = 0; i < p->index; i++)
        t = call_with_one(m->a, "tl", t);
    return p->step == STEP_ITEM ? call_with_one(m->a, "hd", t) : t;
}

/*
 * Makes the expression that reads the part at the end of the path. Each step is a nested call, so a long path is an
 * error; returns NULL after it.
 */
static term_t path_term(struct mclause *m, const struct path *p, const struct ast *at)
{
    size_t steps = 0;

    for (const struct path *s = p; s->step != STEP_ROOT; s = s->up)
        steps += 1 + (s->step == STEP_ITEM || s->step == STEP_TAIL ? s->index : 0);
    if (steps <= MAX_STEPS)
        return steps_term(m, p);
    diag(m->k->c, at->from, at->len, "this is too deep in its term to be used here");
    return NULL;
}

static struct binding *find_binding(struct mclause *m, struct str name)
{
    for (size_t i = 0; i < m->nbindings; i++)
        if (str_same(m->bindings[i].name, name))
            return &m->bindings[i];
    return NULL;
}

static void add_binding(struct mclause *m, struct str name, term_t value)
{
    if (m->nbindings == m->cap) {
        size_t cap = m->cap ? m->cap * 2 : 8;
        struct binding *b = arena_alloc(m->a, cap * sizeof(*b));
        if (m->nbindings)
            memcpy(b, m->bindings, m->nbindings * sizeof(*b));
        m->bindings = b;
        m->cap = cap;
    }
    m->bindings[m->nbindings++] = (struct binding){name, value};
}

static bool is_taken(const struct mclause *m, int n)
{
    return n < 128 && m->taken[n / 64] >> (n % 64) & 1;
}

static term_t fresh_variable(struct mclause *m)
{
    char name[16];
    int n = m->next;

    while (is_taken(m, n))
        n++;
    m->next = n + 1;
    name[0] = '$';
    size_t len = 1;
    for (int d = n; d; d /= 10)
        len++;
    for (size_t i = len - 1; n; n /= 10)
        name[i--] = (char)('0' + n % 10);
    return term_atom_n(m->a, (struct str){name, len});
}

static void add_guard(struct mclause *m, term_t t)
{
    ptrs_add(&m->guards, m->a, (void *)(uintptr_t)t);
}

static void guard_same(struct mclause *m, term_t x, term_t y)
{
    add_guard(m, call_with_two(m->a, "=:=", x, y));
}

static term_t head_pattern(struct mclause *m, const struct ast *n, const struct path *at);

/*
 * Binds a variable to a part that has its own pattern. The value is the part's '$N', or a path from '$_' to the part.
 */
static bool name_part(struct mclause *m, const struct ast *var, term_t part, const struct path *at)
{
    struct binding *b = find_binding(m, var->text);
    term_t value = spec_variable(part) >= 0 ? part : path_term(m, at, var);

    if (!value)
        return false;
    if (b)
        guard_same(m, value, b->value);
    else
        add_binding(m, var->text, value);
    return true;
}

/* ---- P = Q: merges both into one pattern ---- */

static struct ast *report_unmergeable(struct mclause *m, const struct ast *q)
{
    diag(m->k->c, q->from, q->len, "this can never match together with the pattern beside it");
    return NULL;
}

static struct ast *make_match_node(struct mclause *m, struct ast *p, struct ast *q)
{
    struct ast *n = check_new(m->k, A_MATCH, p);

    n->items = arena_alloc(m->a, 2 * sizeof(*n->items));
    n->items[0] = p;
    n->items[1] = q;
    n->count = 2;
    return n;
}

/* Converts a known list or tuple to a node with element nodes, so that it can be merged. */
static struct ast *open_literal(struct mclause *m, struct ast *n)
{
    if (n->type != A_LIT || (n->value->type != TERM_TUPLE && n->value->type != TERM_LIST))
        return n;
    struct ast *out = check_new(m->k, n->value->type == TERM_TUPLE ? A_TUPLE : A_LIST, n);
    out->count = n->value->count;
    out->items = arena_alloc(m->a, out->count * sizeof(*out->items) + 1);
    for (size_t i = 0; i < out->count; i++)
        out->items[i] = check_lit(m->k, n->value->items[i], n);
    if (n->value->tail)
        out->tail = check_lit(m->k, n->value->tail, n);
    return out;
}

static struct ast *rest_of(struct mclause *m, struct ast *list, size_t from)
{
    if (from == list->count && list->tail)
        return list->tail;
    struct ast *out = check_new(m->k, A_LIST, list);
    out->items = list->items + from;
    out->count = list->count - from;
    out->tail = list->tail;
    return out;
}

static struct ast *merge_maps(struct mclause *m, struct ast *p, struct ast *q)
{
    struct ast *out = check_new(m->k, A_MAP, p);

    out->items = arena_alloc(m->a, (p->count + q->count) * sizeof(*out->items) + 1);
    if (p->count)
        memcpy(out->items, p->items, p->count * sizeof(*out->items));
    out->count = p->count;
    for (size_t i = 0; i < q->count; i += 2) {
        size_t j = 0;
        while (j < p->count && !term_equal(p->items[j]->known, q->items[i]->known))
            j += 2;
        if (j < p->count) {
            out->items[j + 1] = make_match_node(m, p->items[j + 1], q->items[i + 1]);
            continue;
        }
        out->items[out->count++] = q->items[i];
        out->items[out->count++] = q->items[i + 1];
    }
    return out;
}

static struct ast *merge_patterns(struct mclause *m, struct ast *p, struct ast *q)
{
    p = open_literal(m, p);
    q = open_literal(m, q);
    if (p->type == A_LIT && q->type == A_LIT)
        return term_equal(p->value, q->value) ? p : report_unmergeable(m, q);
    if (p->type != q->type)
        return report_unmergeable(m, q);
    if (p->type == A_NATIVE && (!p->text.len || !q->text.len))
        return p->text.len ? p : q;
    if (p->type == A_NATIVE && str_same(p->text, q->text) && str_same(p->module, q->module))
        return p;
    struct ast *out = check_new(m->k, p->type, p);
    size_t count = MIN(p->count, q->count);
    switch (p->type) {
    case A_MAP:
        return merge_maps(m, p, q);
    case A_TUPLE:
        if (p->count != q->count)
            return report_unmergeable(m, q);
        break;
    case A_LIST:
        if (p->count == count && q->count == count)
            out->tail = !p->tail && !q->tail ? NULL : make_match_node(m, rest_of(m, p, count), rest_of(m, q, count));
        else if (p->count == count ? !p->tail : !q->tail)
            return report_unmergeable(m, q);
        else
            out->tail = make_match_node(m, rest_of(m, p, count), rest_of(m, q, count));
        break;
    case A_LIT:
    case A_ANY:
    case A_VAR:
    case A_PIN:
    case A_RECORD:
    case A_RECFIELD:
    case A_NATIVE:
    case A_BIN:
    case A_SEG:
    case A_MATCH:
    case A_OP:
    case A_CALL:
    case A_DOT:
    case A_INDEX:
    case A_UNIT:
    case A_REGEX:
        return report_unmergeable(m, q);
    }
    out->count = count;
    out->items = arena_alloc(m->a, count * sizeof(*out->items) + 1);
    for (size_t i = 0; i < count; i++)
        out->items[i] = make_match_node(m, p->items[i], q->items[i]);
    return out;
}

static void collect_leaves(struct mclause *m, struct ast *n, struct ptrs *ret)
{
    if (n->type != A_MATCH) {
        ptrs_add(ret, m->a, n);
        return;
    }
    collect_leaves(m, n->items[0], ret);
    collect_leaves(m, n->items[1], ret);
}

/* Compiles P = Q = V: merges the patterns into one and binds the variables to it. */
static term_t alias_pattern(struct mclause *m, struct ast *n, const struct path *at)
{
    struct ptrs all = {0};
    struct ast *merged = NULL, *named = NULL;

    collect_leaves(m, n, &all);
    for (size_t i = 0; i < all.count; i++) {
        struct ast *leaf = all.items[i];
        if (leaf->type == A_ANY)
            continue;
        if (leaf->type == A_VAR)
            named = named ? named : leaf;
        else if (!(merged = merged ? merge_patterns(m, merged, leaf) : leaf))
            return NULL;
    }
    struct ast *first = merged ? merged : named ? named : all.items[0];
    term_t t = head_pattern(m, first, at);
    for (size_t i = 0; t && i < all.count; i++) {
        struct ast *leaf = all.items[i];
        if (leaf->type == A_VAR && leaf != first && !name_part(m, leaf, t, at))
            return NULL;
    }
    return t;
}

/* ---- binaries ---- */

static term_t make_binary_part(struct mclause *m, term_t whole, int64_t from, term_t len)
{
    return TUPLE(m->a, term_atom(m->a, "binary_part"), whole, term_int(m->a, from), len);
}

static term_t binary_pattern(struct mclause *m, const struct ast *n)
{
    term_t whole = fresh_variable(m);
    int64_t bits = 0;
    const struct ast *last = n->items[n->count - 1];
    bool rest = last->bits < 0, loose = rest && last->seg.type == SEG_BITS;

    for (size_t i = 0; i < n->count; i++)
        bits += n->items[i]->bits < 0 ? 0 : n->items[i]->bits;
    if (loose || bits % 8) {
        add_guard(m, call_with_two(m->a, rest ? ">=" : "=:=", call_with_one(m->a, "bit_size", whole),
                                   term_int(m->a, bits)));
    } else {
        add_guard(m, call_with_one(m->a, "is_binary", whole));
        if (bits || !rest)
            add_guard(m, call_with_two(m->a, rest ? ">=" : "=:=", call_with_one(m->a, "byte_size", whole),
                                       term_int(m->a, bits / 8)));
    }
    bits = 0;
    for (size_t i = 0; i < n->count; i++) {
        const struct ast *seg = n->items[i];
        int64_t from = bits / 8;
        bits += seg->bits < 0 ? 0 : seg->bits;
        if (seg->value) {
            guard_same(m, make_binary_part(m, whole, from, term_int(m->a, seg->bits / 8)), seg->value);
            continue;
        }
        const struct ast *var = seg->items[0];
        if (var->type != A_VAR)
            continue;
        term_t len = term_int(m->a, seg->bits / 8);
        if (seg->bits < 0)
            len = from ? call_with_two(m->a, "-", call_with_one(m->a, "byte_size", whole), term_int(m->a, from))
                       : call_with_one(m->a, "byte_size", whole);
        term_t value = seg->bits < 0 && !from ? whole : make_binary_part(m, whole, from, len);
        struct binding *b = find_binding(m, var->text);
        if (b)
            guard_same(m, value, b->value);
        else
            add_binding(m, var->text, value);
    }
    return whole;
}

static term_t native_pattern(struct mclause *m, const struct ast *n)
{
    term_t t = fresh_variable(m);

    if (n->text.len) {
        add_guard(m, TUPLE(m->a, term_atom(m->a, "is_record"), t, mspec_value(m, term_atom_n(m->a, n->module)),
                           mspec_value(m, term_atom_n(m->a, n->text))));
        return t;
    }
    add_guard(m, call_with_two(m->a, ">", t, mspec_value(m, term_tuple(m->a, 0, NULL))));
    add_guard(m, call_with_two(m->a, "<", t, mspec_value(m, term_map(m->a, 0, NULL))));
    add_guard(m, call_with_one(m->a, "not", call_with_one(m->a, "is_tuple", t)));
    return t;
}

/* Adds the guard of %_{} and %name{}: the name of the struct is an atom. */
static term_t struct_name(struct mclause *m, term_t t)
{
    if (term_is_atom(t, "_"))
        t = fresh_variable(m);
    add_guard(m, call_with_one(m->a, "is_atom", t));
    return t;
}

static term_t variable_pattern(struct mclause *m, const struct ast *n)
{
    struct binding *b = find_binding(m, n->text);

    if (!b) {
        term_t t = fresh_variable(m);
        add_binding(m, n->text, t);
        return t;
    }
    if (spec_variable(b->value) >= 0)
        return b->value;
    term_t again = fresh_variable(m);
    guard_same(m, again, b->value);
    return again;
}

static bool value_holds_map(term_t t)
{
    if (t->type == TERM_MAP)
        return true;
    for (size_t i = 0; i < t->count; i++)
        if (value_holds_map(t->items[i]))
            return true;
    return t->tail && value_holds_map(t->tail);
}

static term_t pinned_pattern(struct mclause *m, term_t value)
{
    if (!value_holds_map(value) && !check_special(value))
        return value;
    term_t t = fresh_variable(m);
    guard_same(m, t, call_with_one(m->a, "const", value));
    return t;
}

static term_t head_pattern(struct mclause *m, const struct ast *n, const struct path *at)
{
    term_t *items, value, tail = NULL;

    switch (n->type) {
    case A_ANY:
    case A_VAR:
        value = n->type == A_ANY ? term_atom(m->a, "_") : variable_pattern(m, n);
        return n->quoted ? struct_name(m, value) : value;
    case A_LIT:
        return n->value;
    case A_PIN:
        return pinned_pattern(m, n->value);
    case A_OP: /* a constant */
        value = fresh_variable(m);
        guard_same(m, value, mspec_expr(m, n));
        return value;
    case A_MATCH:
        return alias_pattern(m, (struct ast *)(uintptr_t)n, at);
    case A_BIN:
        return binary_pattern(m, n);
    case A_NATIVE:
        return native_pattern(m, n);
    case A_TUPLE:
    case A_LIST:
    case A_MAP:
        break;
    case A_RECORD:
    case A_RECFIELD:
    case A_SEG:
    case A_CALL:
    case A_DOT:
    case A_INDEX:
    case A_UNIT:
    case A_REGEX:
        diag(m->k->c, n->from, n->len, "this is not allowed in an argument list");
        return NULL;
    }
    items = arena_alloc(m->a, n->count * sizeof(*items) + 1);
    for (size_t i = 0; i < n->count; i++) {
        struct path step = {.up = at, .index = i};
        if (n->type == A_MAP && i % 2 == 0) {
            items[i] = n->items[i]->known;
            continue;
        }
        step.step = n->type == A_TUPLE ? STEP_ELEMENT : n->type == A_LIST ? STEP_ITEM : STEP_VALUE;
        if (n->type == A_TUPLE)
            step.index = i + 1;
        if (n->type == A_MAP) {
            step.index = 0;
            step.key = items[i - 1];
        }
        if (!(items[i] = head_pattern(m, n->items[i], &step)))
            return NULL;
    }
    if (n->tail) {
        struct path step = {.up = at, .step = STEP_TAIL, .index = n->count};
        if (!(tail = head_pattern(m, n->tail, &step)))
            return NULL;
    }
    return ast_term(m->a, n, items, tail);
}

/* Reserves the numbers of the '$N' that the user wrote in the head, and binds each '$N' to itself. */
static void take_numbers(struct mclause *m, const struct ast *n)
{
    const int v = n->type == A_LIT ? spec_variable(n->value) : -1;

    if (v >= 0) {
        if (v < 128)
            m->taken[v / 64] |= UINT64_C(1) << (v % 64);
        struct str own = n->value->text;
        if (!find_binding(m, own))
            add_binding(m, own, n->value);
        return;
    }
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i])
            take_numbers(m, n->items[i]);
    if (n->tail)
        take_numbers(m, n->tail);
}

bool mspec_head(struct mclause *m, const struct ast_clause *cl, size_t pad)
{
    const struct path root = {.step = STEP_ROOT};
    term_t *items = arena_alloc(m->a, (cl->nhead + pad) * sizeof(*items) + 1), tail = NULL;

    m->next = 1;
    add_binding(m, STR("$_"), term_atom(m->a, "$_"));
    add_binding(m, STR("$$"), term_atom(m->a, "$$"));
    for (size_t i = 0; i < cl->nhead; i++)
        take_numbers(m, cl->head[i]);
    if (!cl->has_head) {
        m->head = term_atom(m->a, "_");
        if (cl->whole) {
            m->head = fresh_variable(m);
            add_binding(m, cl->whole->text, m->head);
        }
        return true;
    }
    if (cl->whole)
        add_binding(m, cl->whole->text, term_atom(m->a, "$_"));
    for (size_t i = 0; i < pad; i++)
        items[i] = term_atom(m->a, "_");
    for (size_t i = 0; i < cl->nhead; i++) {
        struct path step = {.up = &root, .step = STEP_ITEM, .index = i + pad};
        if (!(items[i + pad] = head_pattern(m, cl->head[i], &step)))
            return false;
    }
    if (cl->prefix)
        tail = term_atom(m->a, "_");
    if (cl->tail) {
        struct path step = {.up = &root, .step = STEP_TAIL, .index = cl->nhead};
        tail = term_atom(m->a, "_");
        if (cl->tail->type == A_VAR && !name_part(m, cl->tail, tail, &step))
            return false;
    }
    m->nargs = cl->nhead + pad;
    m->head = term_list(m->a, m->nargs, items, tail);
    return true;
}
