/* SPDX-License-Identifier: Apache-2.0 */
#include "match_program.h"

#include <string.h>

#include "../../nif/etrace_wire.h"
#include "check.h"

#define STEPS ETW_PROGRAM_STEPS
#define MAX_NODES 64 /* limit for the nodes of all constants together */
#define MAX_BYTES 64 /* limit for the bytes of a binary */

/*
 * The target of a step is the index of an existing step, or one of these ends: SHOWN or HIDDEN. Functions that add
 * steps return NOWHERE if the match specification cannot become a program.
 */
enum { NOWHERE = -1, SHOWN = STEPS, HIDDEN = STEPS + 1 };

struct step {
    enum etw_step what;
    unsigned value, n, into;
    int yes, no;
    term_t term;
};

/* Builds the program backwards, from the last step to the first, so that the targets of a step already exist. */
struct maker {
    struct arena *a;
    struct step steps[STEPS];
    int first;
    size_t nodes;
    int least, most; /* the lowest and the highest arity that every head so far accepts */

    /* The fields below describe the current clause. */
    struct step tests[STEPS]; /* tests of the head, in order */
    size_t ntests;
    struct {
        term_t name;
        unsigned value;
    } vars[ETW_PROGRAM_VALUES];
    size_t nvars;
    unsigned values;
};

static bool program_is_nil(term_t t)
{
    return t->type == TERM_LIST && !t->count && !t->tail;
}

static bool is_small_binary(term_t t)
{
    return t->type == TERM_BIN && t->text.len <= MAX_BYTES && (t->bits == 8 || !t->text.len);
}

/* ---- heads ---- */

static bool add_test(struct maker *m, enum etw_step what, unsigned value, unsigned n, unsigned found, term_t term)
{
    if (m->ntests == STEPS || m->values + found > ETW_PROGRAM_VALUES)
        return false;
    m->tests[m->ntests++] =
        (struct step){.what = what, .value = value, .n = n, .into = found ? m->values : 0, .term = term};
    m->values += found;
    return true;
}

static bool term_pattern(struct maker *m, term_t t, unsigned value);

static bool list_pattern(struct maker *m, term_t t, unsigned value)
{
    for (size_t i = 0; i < t->count; i++) {
        const unsigned into = m->values;
        if (!add_test(m, ETW_STEP_CELL, value, 0, 2, NULL) || !term_pattern(m, t->items[i], into))
            return false;
        value = into + 1;
    }
    return t->tail ? term_pattern(m, t->tail, value)
                   : add_test(m, ETW_STEP_SAME, value, 0, 0, term_list(m->a, 0, NULL, NULL));
}

static bool tuple_pattern(struct maker *m, term_t t, unsigned value)
{
    const unsigned into = m->values;

    if (t->count > ETW_PROGRAM_VALUES ||
        !add_test(m, ETW_STEP_TUPLE, value, (unsigned)t->count, (unsigned)t->count, NULL))
        return false;
    for (size_t i = 0; i < t->count; i++)
        if (!term_pattern(m, t->items[i], into + (unsigned)i))
            return false;
    return true;
}

static bool map_pattern(struct maker *m, term_t t, unsigned value)
{
    if (!t->count)
        return add_test(m, ETW_STEP_IS, value, ETW_IS_MAP, 0, NULL);
    for (size_t i = 0; i < t->count; i += 2) {
        const term_t key = t->items[i];
        const unsigned into = m->values;
        if (key->type == TERM_ATOM ? check_special(key) : key->type != TERM_INT && !is_small_binary(key))
            return false;
        if (!add_test(m, ETW_STEP_FIELD, value, 0, 1, key) || !term_pattern(m, t->items[i + 1], into))
            return false;
    }
    return true;
}

static bool program_variable(struct maker *m, term_t t, unsigned value)
{
    for (size_t i = 0; i < m->nvars; i++)
        if (term_equal(m->vars[i].name, t))
            return false; /* comparing two terms of the call would take unbounded time */
    if (m->nvars == ARRAY_LEN(m->vars))
        return false;
    m->vars[m->nvars].name = t;
    m->vars[m->nvars++].value = value;
    return true;
}

static bool term_pattern(struct maker *m, term_t t, unsigned value)
{
    switch (t->type) {
    case TERM_ATOM:
        if (term_is_atom(t, "_"))
            return true;
        if (spec_variable(t) >= 0)
            return program_variable(m, t, value);
        return !check_special(t) && add_test(m, ETW_STEP_SAME, value, 0, 0, t);
    case TERM_INT:
        return add_test(m, ETW_STEP_SAME, value, 0, 0, t);
    case TERM_BIN:
        return is_small_binary(t) && add_test(m, ETW_STEP_SAME, value, 0, 0, t);
    case TERM_LIST:
        return list_pattern(m, t, value);
    case TERM_TUPLE:
        return tuple_pattern(m, t, value);
    case TERM_MAP:
        return map_pattern(m, t, value);
    case TERM_BIG:
    case TERM_FLOAT:
    case TERM_PID:
    case TERM_PORT:
    case TERM_REF:
    case TERM_EXPORT:
        return false;
    }
    return false;
}

static bool program_head(struct maker *m, term_t t)
{
    m->ntests = m->nvars = 0;
    m->values = ETW_PROGRAM_ARITY; /* values inside of arguments get numbers after those of all arguments */
    if (term_is_atom(t, "_"))
        return true;
    if (t->type != TERM_LIST || t->count > ETW_PROGRAM_ARITY || (t->tail && !term_is_atom(t->tail, "_")))
        return false;
    m->least = MAX(m->least, (int)t->count);
    m->most = MIN(m->most, t->tail ? SPEC_ARITY_MAX : (int)t->count);
    for (size_t i = 0; i < t->count; i++)
        if (!term_pattern(m, t->items[i], (unsigned)i))
            return false;
    return m->least <= m->most;
}

/* ---- guards ---- */

static int add_step(struct maker *m, struct step s, int yes, int no)
{
    if (yes == NOWHERE || no == NOWHERE || !m->first)
        return NOWHERE;
    s.yes = yes;
    s.no = no;
    m->steps[--m->first] = s;
    return m->first;
}

static bool program_find(const struct maker *m, term_t t, unsigned *ret_value)
{
    for (size_t i = 0; i < m->nvars; i++)
        if (term_equal(m->vars[i].name, t)) {
            *ret_value = m->vars[i].value;
            return true;
        }
    return false;
}

/*
 * Returns the constant that an expression stands for, or NULL if the expression is not constant or too large. `quoted`
 * is true inside of {const, T}.
 */
static term_t program_constant(struct maker *m, term_t t, bool quoted)
{
    term_t *items, tail = NULL;

    if (++m->nodes > MAX_NODES)
        return NULL;
    switch (t->type) {
    case TERM_INT:
    case TERM_FLOAT:
        return t;
    case TERM_BIG:
        return t->text.len <= MAX_BYTES ? t : NULL;
    case TERM_BIN:
        return is_small_binary(t) ? t : NULL;
    case TERM_ATOM:
        return quoted || !check_special(t) ? t : NULL;
    case TERM_LIST:
        break;
    case TERM_TUPLE:
        if (quoted)
            break;
        if (spec_is_call(t, "const") && t->count == 2)
            return program_constant(m, t->items[1], true);
        if (t->count != 1 || t->items[0]->type != TERM_TUPLE)
            return NULL;
        t = t->items[0];
        break;
    case TERM_MAP:
    case TERM_PID:
    case TERM_PORT:
    case TERM_REF:
    case TERM_EXPORT:
        return NULL;
    }
    items = arena_alloc(m->a, t->count * sizeof(*items) + 1);
    for (size_t i = 0; i < t->count; i++)
        if (!(items[i] = program_constant(m, t->items[i], quoted)))
            return NULL;
    if (t->tail && !(tail = program_constant(m, t->tail, quoted)))
        return NULL;
    return t->type == TERM_TUPLE ? term_tuple(m->a, t->count, items) : term_list(m->a, t->count, items, tail);
}

/*
 * The step `what` evaluates X Op C, and `turned` evaluates C Op X. If `not` or `turned_not` is set, negate the result.
 */
static const struct {
    const char *name;
    enum etw_step what, turned;
    bool not, turned_not;
} compares[] = {
    {"=:=", ETW_STEP_SAME, ETW_STEP_SAME, false, false},  {"=/=", ETW_STEP_SAME, ETW_STEP_SAME, true, true},
    {"==", ETW_STEP_EQUAL, ETW_STEP_EQUAL, false, false}, {"/=", ETW_STEP_EQUAL, ETW_STEP_EQUAL, true, true},
    {"<", ETW_STEP_LESS, ETW_STEP_MOST, false, true},     {"=<", ETW_STEP_MOST, ETW_STEP_LESS, false, true},
    {">", ETW_STEP_MOST, ETW_STEP_LESS, true, false},     {">=", ETW_STEP_LESS, ETW_STEP_MOST, true, false},
};

static const char *const kinds[] = {
    [ETW_IS_ATOM] = "is_atom",   [ETW_IS_BINARY] = "is_binary",     [ETW_IS_BOOLEAN] = "is_boolean",
    [ETW_IS_FLOAT] = "is_float", [ETW_IS_FUNCTION] = "is_function", [ETW_IS_INTEGER] = "is_integer",
    [ETW_IS_LIST] = "is_list",   [ETW_IS_MAP] = "is_map",           [ETW_IS_NUMBER] = "is_number",
    [ETW_IS_PID] = "is_pid",     [ETW_IS_PORT] = "is_port",         [ETW_IS_REFERENCE] = "is_reference",
    [ETW_IS_TUPLE] = "is_tuple",
};

static int program_compare(struct maker *m, size_t row, term_t x, term_t y, int yes, int no)
{
    struct step s = {.what = compares[row].what};
    bool not = compares[row].not ;

    if (!program_find(m, x, &s.value)) {
        if (!program_find(m, y, &s.value))
            return NOWHERE;
        s.what = compares[row].turned;
        not = compares[row].turned_not;
        y = x;
    }
    if (!(s.term = program_constant(m, y, false)))
        return NOWHERE;
    return add_step(m, s, not ? no : yes, not ? yes : no);
}

/*
 * Adds the steps of a test, which continue at the step `yes` or `no`. Returns the first of these steps. Accepts only
 * tests that are always true or false and cannot raise.
 */
static int program_condition(struct maker *m, term_t t, int yes, int no)
{
    struct step s = {.what = ETW_STEP_IS};

    if (term_is_atom(t, "true"))
        return yes;
    if (term_is_atom(t, "false"))
        return no;
    if (t->type != TERM_TUPLE || t->count < 2 || t->items[0]->type != TERM_ATOM)
        return NOWHERE;
    const struct str name = t->items[0]->text;
    if (str_is(name, "not"))
        return t->count == 2 ? program_condition(m, t->items[1], no, yes) : NOWHERE;
    const bool all = str_is(name, "and") || str_is(name, "andalso");
    if (all || str_is(name, "or") || str_is(name, "orelse")) {
        int at = program_condition(m, t->items[t->count - 1], yes, no);
        for (size_t i = t->count - 1; i-- > 1 && at != NOWHERE;)
            at = program_condition(m, t->items[i], all ? at : yes, all ? no : at);
        return at;
    }
    for (size_t i = 0; i < ARRAY_LEN(compares); i++)
        if (t->count == 3 && str_is(name, compares[i].name))
            return program_compare(m, i, t->items[1], t->items[2], yes, no);
    for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
        if (t->count == 2 && str_is(name, kinds[i]) && program_find(m, t->items[1], &s.value)) {
            s.n = i;
            return add_step(m, s, yes, no);
        }
    return NOWHERE;
}

/* ---- whole programs ---- */

/*
 * Adds the steps of a clause and returns the first one. If the clause does not match, they continue at the step `next`.
 */
static int program_clause(struct maker *m, term_t t, int next)
{
    const term_t guards = t->items[1], body = t->items[2];
    int at = SHOWN;

    if (body->type == TERM_LIST && body->count == 1 && spec_is_call(body->items[0], "message") &&
        body->items[0]->count == 2 && term_is_atom(body->items[0]->items[1], "false"))
        at = HIDDEN;
    else if (!program_is_nil(body))
        return NOWHERE;
    if (guards->type != TERM_LIST || guards->tail || !program_head(m, t->items[0]))
        return NOWHERE;
    for (size_t i = guards->count; i-- && at != NOWHERE;)
        at = program_condition(m, guards->items[i], at, next);
    for (size_t i = m->ntests; i-- && at != NOWHERE;)
        at = add_step(m, m->tests[i], at, next);
    return at;
}

static term_t step_term(struct arena *a, const struct step *s, int first)
{
    return TUPLE(a, term_int(a, s->what), term_int(a, s->value), term_int(a, s->n), term_int(a, s->into),
                 term_int(a, s->yes - first), term_int(a, s->no - first),
                 s->term ? s->term : term_list(a, 0, NULL, NULL));
}

term_t program_of(term_t ms, struct arena *a)
{
    struct maker m = {.a = a, .first = STEPS, .most = SPEC_ARITY_MAX};
    term_t steps[STEPS];
    int at = HIDDEN;

    if (ms->type != TERM_LIST || ms->tail)
        return NULL;
    for (size_t i = ms->count; i-- && at != NOWHERE;) {
        const term_t t = ms->items[i];
        at = t->type == TERM_TUPLE && t->count == 3 ? program_clause(&m, t, at) : NOWHERE;
    }
    if (at == NOWHERE || at >= STEPS)
        return NULL;
    /* Leaves out the steps before `at`, which are unreachable: for example tests after a `false`. */
    for (int i = at; i < STEPS; i++)
        steps[i - at] = step_term(a, &m.steps[i], at);
    return TUPLE(a, term_int(a, m.least), term_int(a, m.most), term_list(a, (size_t)(STEPS - at), steps, NULL));
}

/* ---- output for people ---- */

static unsigned step_item(term_t step, size_t i)
{
    return (unsigned)step->items[i]->integer;
}

static void print_value(unsigned value, struct buf *b)
{
    buf_printf(b, value < ETW_PROGRAM_ARITY ? "A%u" : "P%u",
               value < ETW_PROGRAM_ARITY ? value + 1 : value - ETW_PROGRAM_ARITY + 1);
}

static void print_test(term_t step, struct buf *b)
{
    static const char *const ops[] = {
        [ETW_STEP_SAME] = "=:=",
        [ETW_STEP_EQUAL] = "==",
        [ETW_STEP_LESS] = "<",
        [ETW_STEP_MOST] = "=<",
    };
    const unsigned n = step_item(step, 2), into = step_item(step, 3);

    if (step_item(step, 0) == ETW_STEP_IS)
        buf_printf(b, "%s(", kinds[n]);
    print_value(step_item(step, 1), b);
    switch ((enum etw_step)step_item(step, 0)) {
    case ETW_STEP_IS:
        buf_char(b, ')');
        return;
    case ETW_STEP_TUPLE:
        buf_puts(b, " = {");
        for (unsigned i = 0; i < n; i++) {
            buf_puts(b, i ? ", " : "");
            print_value(into + i, b);
        }
        buf_char(b, '}');
        return;
    case ETW_STEP_CELL:
        buf_puts(b, " = [");
        print_value(into, b);
        buf_puts(b, " | ");
        print_value(into + 1, b);
        buf_char(b, ']');
        return;
    case ETW_STEP_FIELD:
        buf_puts(b, " = #{");
        lang_print_term(step->items[6], b);
        buf_puts(b, " := ");
        print_value(into, b);
        buf_char(b, '}');
        return;
    case ETW_STEP_SAME:
    case ETW_STEP_EQUAL:
    case ETW_STEP_LESS:
    case ETW_STEP_MOST:
    case ETW_STEP_KINDS:
        buf_printf(b, " %s ", ops[step_item(step, 0)]);
        lang_print_term(step->items[6], b);
    }
}

static void print_target(unsigned to, size_t count, struct buf *b)
{
    if (to < count)
        buf_printf(b, "%u", to + 1);
    else
        buf_puts(b, to == count ? "shown" : "hidden");
}

void program_print(term_t program, const char *first, const char *other, struct buf *b)
{
    const term_t steps = program->items[2];

    for (size_t i = 0; i < steps->count; i++) {
        buf_printf(b, "%s%zu: ", i ? other : first, i + 1);
        print_test(steps->items[i], b);
        buf_puts(b, " -> ");
        print_target(step_item(steps->items[i], 4), steps->count, b);
        buf_puts(b, ", else ");
        print_target(step_item(steps->items[i], 5), steps->count, b);
        buf_char(b, '\n');
    }
}
