/* SPDX-License-Identifier: Apache-2.0 */
#include "where_steps.h"

#include <string.h>

#include "../../nif/etrace_wire.h"
#include "../erlang/etf_write.h"
#include "functions.h"
#include "match_program.h"

/* Offset of the steps in an encoded filter: after the version, and the heads of a tuple and of a binary. */
#define STEPS_AT 8

/* A filter under construction. */
struct maker {
    struct buf steps, programs; /* struct etw_filter_step, and encoded programs */
    unsigned nprograms;
    struct arena a;
};

static void where_steps_add(struct maker *to, enum etw_filter_what what, enum etw_filter_compare compare, int64_t value)
{
    struct etw_filter_step s = {.what = (uint8_t)what, .compare = (uint8_t)compare, .value = value};

    buf_add(&to->steps, &s, sizeof(s));
}

/* Sets *ret to the comparison of a property with a constant. `turned` means that the constant is on the left. */
static bool comparison_of(enum fn fn, bool turned, enum etw_filter_compare *ret)
{
    static const struct {
        enum fn fn;
        enum etw_filter_compare compare, turned;
    } comparisons[] = {
        {FN_GT, ETW_FILTER_GT, ETW_FILTER_LT},       {FN_GE, ETW_FILTER_GE, ETW_FILTER_LE},
        {FN_LT, ETW_FILTER_LT, ETW_FILTER_GT},       {FN_LE, ETW_FILTER_LE, ETW_FILTER_GE},
        {FN_EQ, ETW_FILTER_EQ, ETW_FILTER_EQ},       {FN_NE, ETW_FILTER_NE, ETW_FILTER_NE},
        {FN_EQ_EXACT, ETW_FILTER_EQ, ETW_FILTER_EQ}, {FN_NE_EXACT, ETW_FILTER_NE, ETW_FILTER_NE},
    };

    for (size_t i = 0; i < ARRAY_LEN(comparisons); i++)
        if (comparisons[i].fn == fn) {
            *ret = turned ? comparisons[i].turned : comparisons[i].compare;
            return true;
        }
    return false;
}

static bool class_of(term_t t, int64_t *ret)
{
    static const char *const names[ETW_CLASSES] = {"error", "exit", "throw"};

    for (int64_t i = 0; i < ETW_CLASSES; i++)
        if (term_is_atom(t, names[i])) {
            *ret = i;
            return true;
        }
    return false;
}

static bool where_steps_test(const struct where *name, term_t constant, enum etw_filter_compare c, struct maker *to)
{
    int64_t class;

    if (name->property == PROPERTY_class) {
        if (c < ETW_FILTER_EQ || !class_of(constant, &class))
            return false;
        where_steps_add(to, ETW_FILTER_CLASS, c, class);
        return true;
    }
    if ((name->property != PROPERTY_dur && name->property != PROPERTY_size) || constant->type != TERM_INT)
        return false;
    where_steps_add(to, name->property == PROPERTY_dur ? ETW_FILTER_DUR : ETW_FILTER_SIZE, c, constant->integer);
    return true;
}

/* ---- tests of the value of a result ---- */

static bool is_ret(const struct where *w)
{
    return w->type == WHERE_NAME && w->property == PROPERTY_ret;
}

static bool has_atom(term_t t)
{
    bool has = t->type == TERM_ATOM;

    for (size_t i = 0; i < t->count && !has; i++)
        has = has_atom(t->items[i]);
    return has || (t->tail && has_atom(t->tail));
}

/*
 * Replaces the atom that a step compares with by the name of the atom, because the node may not have the atom yet.
 * Returns NULL if the step depends on the order of atoms or on atoms inside of a term.
 */
static term_t name_step_atom(struct arena *a, term_t step)
{
    const int64_t what = step->items[0]->integer;
    const term_t term = step->items[6];
    term_t items[7];

    if (!has_atom(term))
        return step;
    if (term->type != TERM_ATOM || what == ETW_STEP_LESS || what == ETW_STEP_MOST)
        return NULL;
    memcpy(items, step->items, sizeof(items));
    items[6] = TUPLE(a, term_atom(a, SPEC_ATOM_MARK), term_bin(a, term->text.at, term->text.len));
    return term_tuple(a, 7, items);
}

/* Adds a step that tests the result of a call with this head and these guards, as if the result were the argument. */
static bool where_steps_program(struct maker *to, term_t head, term_t guards)
{
    const term_t program = program_of(LIST(&to->a, TUPLE(&to->a, head, guards, LIST(&to->a))), &to->a);

    if (!program || to->nprograms == ETW_FILTER_PROGRAMS)
        return false;
    const term_t steps = program->items[2];
    term_t items[ETW_PROGRAM_STEPS];
    for (size_t i = 0; i < steps->count; i++)
        if (!(items[i] = name_step_atom(&to->a, steps->items[i])))
            return false;
    struct buf etf = {0};
    term_to_etf(&etf, term_list(&to->a, steps->count, items, NULL));
    buf_add(&to->programs, etf.data + 1, etf.len - 1); /* without the version */
    buf_release(&etf);
    where_steps_add(to, ETW_FILTER_RET, 0, to->nprograms++);
    return true;
}

/* Adds the steps for a test of the result: a comparison with a constant, a test of the type, or a pattern. */
static bool where_steps_ret(const struct where *w, struct maker *to)
{
    const term_t value = term_atom(&to->a, "$1");

    if (w->type == WHERE_MATCH) {
        const struct where *of = w->items[0];
        return of->type == WHERE_LIST && of->count == 1 && !of->tail && is_ret(of->items[0]) &&
               where_steps_program(to, w->constant, LIST(&to->a));
    }
    if (w->type != WHERE_CALL || w->fn < 0)
        return false;
    term_t call[3] = {term_atom(&to->a, fn_row(w->fn)->name)};
    bool has = false;
    for (size_t i = 0; i < w->count && i < 2; i++) {
        const struct where *x = w->items[i];
        has |= is_ret(x);
        if (!is_ret(x) && x->type != WHERE_CONST)
            return false;
        call[i + 1] = is_ret(x) ? value : TUPLE(&to->a, term_atom(&to->a, "const"), x->constant);
    }
    return has && w->count <= 2 &&
           where_steps_program(to, LIST(&to->a, value), LIST(&to->a, term_tuple(&to->a, w->count + 1, call)));
}

/* ---- the whole condition ---- */

static bool add_steps(const struct where *w, struct maker *to);

static bool all_of(const struct where *const *items, size_t n, enum etw_filter_what operator, struct maker * to)
{
    for (size_t i = 0; i < n; i++) {
        if (!add_steps(items[i], to))
            return false;
        if (i)
            where_steps_add(to, operator, 0, 0);
    }
    return n > 0;
}

static bool add_steps(const struct where *w, struct maker *to)
{
    enum etw_filter_compare c;

    if (to->steps.len > ETW_FILTER_MOST * sizeof(struct etw_filter_step))
        return false;
    if (where_steps_ret(w, to))
        return true;
    if (w->type != WHERE_CALL)
        return false;
    if (w->fn == FN_AND || w->fn == FN_ANDALSO)
        return all_of(w->items, w->count, ETW_FILTER_AND, to);
    if (w->fn == FN_OR || w->fn == FN_ORELSE)
        return all_of(w->items, w->count, ETW_FILTER_OR, to);
    if (w->fn == FN_XOR)
        return w->count == 2 && all_of(w->items, w->count, ETW_FILTER_XOR, to);
    if (w->fn == FN_NOT) {
        if (w->count != 1 || !add_steps(w->items[0], to))
            return false;
        where_steps_add(to, ETW_FILTER_NOT, 0, 0);
        return true;
    }
    const bool turned = w->count == 2 && w->items[0]->type == WHERE_CONST;
    if (w->count != 2 || !comparison_of(w->fn, turned, &c))
        return false;
    const struct where *name = w->items[turned], *constant = w->items[!turned];
    return name->type == WHERE_NAME && constant->type == WHERE_CONST &&
           where_steps_test(name, constant->constant, c, to);
}

/* Copies steps from unaligned memory. Returns 0 if there are too many or if the last step is incomplete. */
static size_t copy_steps(struct str text, struct etw_filter_step *ret)
{
    if (text.len % sizeof(*ret) || text.len > ETW_FILTER_MOST * sizeof(*ret))
        return 0;
    if (text.len)
        memcpy(ret, text.at, text.len);
    return text.len / sizeof(*ret);
}

static void put_filter(const struct maker *m, struct buf *ret)
{
    buf_clear(ret);
    etf_version(ret);
    etf_tuple(ret, 2);
    etf_bin(ret, m->steps.data, m->steps.len);
    etf_list(ret, m->nprograms);
    buf_add(ret, m->programs.data, m->programs.len);
    etf_nil(ret);
}

/* Encodes the filter if `good` is true and the node accepts the steps. Releases the steps. */
static bool encode_filter(struct maker *m, bool good, struct buf *ret)
{
    struct etw_filter_step s[ETW_FILTER_MOST];

    good = good && etw_filter_valid(s, copy_steps(buf_view(&m->steps), s), m->nprograms);
    if (good)
        put_filter(m, ret);
    buf_release(&m->steps);
    buf_release(&m->programs);
    arena_release(&m->a);
    return good;
}

static unsigned is_unknown(const struct where *w)
{
    return w->unknown;
}

/* Returns true if a condition depends on earlier events, which the node must then send, or on an undefined record. */
static bool need_client(const struct where *const *wheres, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (where_uses(wheres[i]) & PROPERTY_AROUND || where_collect(wheres[i], is_unknown))
            return true;
    return false;
}

bool where_steps(const struct where *const *wheres, size_t n, struct buf *ret_filter)
{
    struct maker m = {0};

    if (need_client(wheres, n))
        return false;
    arena_init(&m.a);
    return encode_filter(&m, all_of(wheres, n, ETW_FILTER_AND, &m), ret_filter);
}

/* Appends the steps of the parts of a conjunction that the node can evaluate, joined by AND. Skips the other parts. */
static void add_conjuncts(const struct where *w, size_t *count, struct maker *to)
{
    const size_t steps_before = to->steps.len, programs_before = to->programs.len;
    const unsigned before = to->nprograms;

    if (w->type == WHERE_CALL && (w->fn == FN_AND || w->fn == FN_ANDALSO)) {
        for (size_t i = 0; i < w->count; i++)
            add_conjuncts(w->items[i], count, to);
    } else if (!add_steps(w, to)) {
        to->steps.len = steps_before;
        to->programs.len = programs_before;
        to->nprograms = before;
    } else if ((*count)++) {
        where_steps_add(to, ETW_FILTER_AND, 0, 0);
    }
}

bool where_steps_some(const struct where *const *wheres, size_t n, struct buf *ret_filter)
{
    struct maker m = {0};
    size_t count = 0;

    if (need_client(wheres, n))
        return false;
    arena_init(&m.a);
    for (size_t i = 0; i < n; i++)
        add_conjuncts(wheres[i], &count, &m);
    return encode_filter(&m, count, ret_filter);
}

struct str where_steps_view(struct str filter)
{
    size_t len = 0;

    if (filter.len < STEPS_AT)
        return STR("");
    for (size_t i = STEPS_AT - 4; i < STEPS_AT; i++)
        len = len << 8 | (uint8_t)filter.at[i];
    return (struct str){filter.at + STEPS_AT, len};
}

bool where_steps_of_ends(const struct where *const *wheres, size_t n, struct buf *ret_filter)
{
    return where_steps(wheres, n, ret_filter) && !where_steps_measure(buf_view(ret_filter));
}

bool where_steps_measure(struct str filter)
{
    struct etw_filter_step s[ETW_FILTER_MOST];

    return etw_filter_measures(s, copy_steps(where_steps_view(filter), s));
}
