/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <stddef.h>
#include <string.h>

#include "encode.h"
#include "etrace_wire.h"
#include "imm.h"

#define FUNCTIONS_MOST (PROGRAM_SLOTS / 2)
#define PROGRAMS_MOST 1024

struct step {
    uint8_t what, value, n, into;
    uint8_t yes, no;
    bool is_word; /* `term` is an immediate term, so it is compared as a word */
    bool named;   /* `term` is a binary with the name of an atom */
    ERL_NIF_TERM term;
};

struct program {
    struct program *older;
    ErlNifEnv *env; /* owns the terms of the steps */
    unsigned count;
    struct step steps[];
};

_Static_assert(ETW_PROGRAM_STEPS + 1 <= UINT8_MAX && ETW_PROGRAM_VALUES <= 64,
               "steps are numbered in a byte, values are bits of a word");
_Static_assert(PROGRAM_SLOTS == UINT64_C(1) << (64 - 51), "program_slot() takes as many bits");

struct program_slot program_slots[PROGRAM_SLOTS];
static unsigned functions, programs;
static struct program *newest;
static ERL_NIF_TERM word_true, word_false, word_atom;

void program_load(ErlNifEnv *env)
{
    word_true = enif_make_atom(env, "true");
    word_false = enif_make_atom(env, "false");
    word_atom = enif_make_atom(env, "etrace_atom");
}

/* ---- making a program -------------------------------------------------------------------------------------------- */

static bool get_byte(ErlNifEnv *env, ERL_NIF_TERM t, unsigned most, uint8_t *ret)
{
    unsigned value;
    if (!enif_get_uint(env, t, &value) || value > most)
        return false;
    *ret = (uint8_t)value;
    return true;
}

static unsigned count_found_values(const struct step *s)
{
    switch ((enum etw_step)s->what) {
    case ETW_STEP_TUPLE:
        return s->n;
    case ETW_STEP_CELL:
        return 2;
    case ETW_STEP_FIELD:
        return 1;
    case ETW_STEP_SAME:
    case ETW_STEP_EQUAL:
    case ETW_STEP_LESS:
    case ETW_STEP_MOST:
    case ETW_STEP_IS:
    case ETW_STEP_KINDS:
        break;
    }
    return 0;
}

static bool get_step(ErlNifEnv *env, ERL_NIF_TERM t, unsigned at, unsigned count, struct step *s,
                     ERL_NIF_TERM *ret_term)
{
    const ERL_NIF_TERM *e;
    int n;
    if (!enif_get_tuple(env, t, &n, &e) || n != 7 || !get_byte(env, e[0], ETW_STEP_KINDS - 1, &s->what) ||
        !get_byte(env, e[1], ETW_PROGRAM_VALUES - 1, &s->value) || !get_byte(env, e[2], ETW_PROGRAM_VALUES, &s->n) ||
        !get_byte(env, e[3], ETW_PROGRAM_VALUES, &s->into) || !get_byte(env, e[4], count + 1, &s->yes) ||
        !get_byte(env, e[5], count + 1, &s->no))
        return false;
    *ret_term = e[6];
    return s->yes > at && s->no > at && s->into + count_found_values(s) <= ETW_PROGRAM_VALUES &&
           (s->what != ETW_STEP_IS || s->n < ETW_IS_KINDS);
}

static void free_program(struct program *p)
{
    enif_free_env(p->env);
    enif_free(p);
}

/*
 * Replaces {etrace_atom, Name} with Name. Returns false if Name is not a binary, or the step compares the atom by its
 * order.
 */
static bool get_name(ErlNifEnv *env, struct step *s, ERL_NIF_TERM *term)
{
    const ERL_NIF_TERM *parts;
    ErlNifBinary name;
    int n;
    if (!enif_get_tuple(env, *term, &n, &parts) || n != 2 || parts[0] != word_atom)
        return true;
    if (!enif_inspect_binary(env, parts[1], &name) || s->what == ETW_STEP_LESS || s->what == ETW_STEP_MOST)
        return false;
    s->named = true;
    *term = parts[1];
    return true;
}

/* Returns an older program with the same steps, or NULL. */
static struct program *find_same(const struct program *p)
{
    for (struct program *old = newest; old; old = old->older) {
        unsigned i = 0;
        while (old->count == p->count && i < p->count &&
               memcmp(&old->steps[i], &p->steps[i], offsetof(struct step, term)) == 0 &&
               enif_is_identical(old->steps[i].term, p->steps[i].term))
            i++;
        if (old->count == p->count && i == p->count)
            return old;
    }
    return NULL;
}

struct program *program_new(ErlNifEnv *env, ERL_NIF_TERM steps, bool named)
{
    unsigned count, at = 0;
    ERL_NIF_TERM t, term;
    if (!enif_get_list_length(env, steps, &count) || count == 0 || count > ETW_PROGRAM_STEPS)
        return NULL;
    struct program *p = enif_alloc(sizeof *p + count * sizeof *p->steps);
    if (!p)
        return NULL;
    *p = (struct program){.older = newest, .env = enif_alloc_env(), .count = count};
    for (; enif_get_list_cell(env, steps, &t, &steps); at++) {
        struct step *s = &p->steps[at];
        *s = (struct step){0};
        if (!get_step(env, t, at, count, s, &term) || (named && !get_name(env, s, &term))) {
            free_program(p);
            return NULL;
        }
        s->term = enif_make_copy(p->env, term);
        s->is_word = enif_is_atom(env, s->term) || s->term == imm_nil || (imm_known && imm_is_small(s->term));
    }
    struct program *same = find_same(p);
    if (same || programs >= PROGRAMS_MOST) {
        free_program(p);
        return same;
    }
    newest = p;
    programs++;
    return p;
}

/* A bit of known[] is set if the value is defined on every path to the step. */
bool program_takes(const struct program *p, unsigned arity)
{
    uint64_t known[ETW_PROGRAM_STEPS + 2];
    for (unsigned i = 0; i < p->count + 2; i++)
        known[i] = i ? UINT64_MAX : (UINT64_C(1) << arity) - 1;
    for (unsigned i = 0; i < p->count; i++) {
        const struct step *s = &p->steps[i];
        unsigned found = count_found_values(s);
        if (!(known[i] >> s->value & 1))
            return false;
        known[s->no] &= known[i];
        for (unsigned j = 0; j < found; j++)
            known[i] |= UINT64_C(1) << (s->into + j);
        known[s->yes] &= known[i];
    }
    return true;
}

/* ---- programs of functions --------------------------------------------------------------------------------------- */

static struct program_slot *slot_of(ERL_NIF_TERM module, ERL_NIF_TERM name, unsigned arity)
{
    unsigned at = program_slot(module, name);
    for (; atomic_load_explicit(&program_slots[at].module, memory_order_relaxed); at = (at + 1) % PROGRAM_SLOTS) {
        struct program_slot *slot = &program_slots[at];
        if (slot->module == module && slot->name == name && slot->arity == arity)
            return slot;
    }
    return &program_slots[at];
}

bool program_bind(struct program *program, ERL_NIF_TERM module, ERL_NIF_TERM name, unsigned arity)
{
    struct program_slot *slot = slot_of(module, name, arity);
    bool is_new = !slot->module;
    if (program &&
        (arity > ETW_PROGRAM_ARITY || (is_new && functions >= FUNCTIONS_MOST) || !program_takes(program, arity)))
        program = NULL;
    atomic_store_explicit(&slot->program, program, memory_order_release);
    if (program && is_new) {
        functions++;
        slot->name = name;
        slot->arity = arity;
        atomic_store_explicit(&slot->module, module, memory_order_release);
    }
    return program;
}

void program_clear(void)
{
    const unsigned used = functions ? PROGRAM_SLOTS : 0;
    for (unsigned i = 0; i < used; i++)
        if (atomic_load_explicit(&program_slots[i].module, memory_order_relaxed))
            atomic_store_explicit(&program_slots[i].program, NULL, memory_order_release);
}

void program_unload(void)
{
    while (newest) {
        struct program *p = newest;
        newest = p->older;
        free_program(p);
    }
    memset(program_slots, 0, sizeof program_slots); /* the library may stay mapped and be loaded again */
    functions = programs = 0;
}

/* ---- run --------------------------------------------------------------------------------------------------------- */

static bool is_of_kind(ErlNifEnv *env, ERL_NIF_TERM t, enum etw_is kind)
{
    double d;
    switch (kind) {
    case ETW_IS_ATOM:
        return enif_is_atom(env, t);
    case ETW_IS_BINARY:
        return enif_is_binary(env, t);
    case ETW_IS_BOOLEAN:
        return t == word_true || t == word_false;
    case ETW_IS_FLOAT:
        return enif_get_double(env, t, &d);
    case ETW_IS_FUNCTION:
        return enif_is_fun(env, t);
    case ETW_IS_INTEGER:
        return enif_is_number(env, t) && !enif_get_double(env, t, &d);
    case ETW_IS_LIST:
        return enif_is_list(env, t);
    case ETW_IS_MAP:
        return enif_is_map(env, t);
    case ETW_IS_NUMBER:
        return enif_is_number(env, t);
    case ETW_IS_PID:
        return enif_is_pid(env, t);
    case ETW_IS_PORT:
        return enif_is_port(env, t);
    case ETW_IS_REFERENCE:
        return enif_is_ref(env, t);
    case ETW_IS_TUPLE:
        return enif_is_tuple(env, t);
    case ETW_IS_KINDS:
        break;
    }
    return false;
}

/* Compares a value with the term of a step. Returns less than 0, 0, or more, like enif_compare(). */
static int compare_to_term(const struct step *s, ERL_NIF_TERM t)
{
    if (imm_known && imm_is_small(t) && imm_is_small(s->term))
        return (imm_small(t) > imm_small(s->term)) - (imm_small(t) < imm_small(s->term));
    return enif_compare(t, s->term);
}

/*
 * Returns the atom that a step names. If the node does not have that atom, returns the binary with its name, which is
 * not equal to any value as a word.
 */
static ERL_NIF_TERM named_atom(ErlNifEnv *env, const struct step *s)
{
    ErlNifBinary name;
    ERL_NIF_TERM atom = s->term;
    if (enif_inspect_binary(env, s->term, &name))
        enif_make_existing_atom_len(env, (const char *)name.data, name.size, &atom, ENCODING_UTF8);
    return atom;
}

static bool run_step(ErlNifEnv *env, const struct step *s, ERL_NIF_TERM *values)
{
    ERL_NIF_TERM t = values[s->value];
    const ERL_NIF_TERM *elements;
    int n;
    if (s->named) {
        ERL_NIF_TERM atom = named_atom(env, s);
        return s->what == ETW_STEP_FIELD ? enif_get_map_value(env, t, atom, &values[s->into]) : t == atom;
    }
    switch ((enum etw_step)s->what) {
    case ETW_STEP_SAME:
        return s->is_word ? t == s->term : enif_is_identical(t, s->term);
    case ETW_STEP_EQUAL:
        return compare_to_term(s, t) == 0;
    case ETW_STEP_LESS:
        return compare_to_term(s, t) < 0;
    case ETW_STEP_MOST:
        return compare_to_term(s, t) <= 0;
    case ETW_STEP_IS:
        return is_of_kind(env, t, (enum etw_is)s->n);
    case ETW_STEP_CELL:
        return enif_get_list_cell(env, t, &values[s->into], &values[s->into + 1]);
    case ETW_STEP_FIELD:
        return enif_get_map_value(env, t, s->term, &values[s->into]);
    case ETW_STEP_TUPLE:
    case ETW_STEP_KINDS:
        break;
    }
    if (!enif_get_tuple(env, t, &n, &elements) || n != s->n)
        return false;
    for (int i = 0; i < n; i++)
        values[s->into + i] = elements[i];
    return true;
}

static bool run_program(ErlNifEnv *env, const struct program *p, ERL_NIF_TERM *values)
{
    unsigned at = 0;
    while (at < p->count)
        at = run_step(env, &p->steps[at], values) ? p->steps[at].yes : p->steps[at].no;
    return at == p->count;
}

bool program_accepts(ErlNifEnv *env, const struct program *program, ERL_NIF_TERM argument)
{
    ERL_NIF_TERM values[ETW_PROGRAM_VALUES] = {argument};
    return run_program(env, program, values);
}

/*
 * Returns true if the call is shown. That is so if its function has no program, or the program accepts the arguments.
 * at: the first slot with the call's module and name.
 */
bool program_decide(ErlNifEnv *env, unsigned at, const ERL_NIF_TERM *mfa)
{
    ERL_NIF_TERM values[ETW_PROGRAM_VALUES], args = mfa[2], module;
    unsigned arity = 0;
    while (args != imm_nil && arity < ETW_PROGRAM_ARITY && enif_get_list_cell(env, args, &values[arity], &args))
        arity++;
    if (args != imm_nil)
        return true;
    for (; (module = atomic_load_explicit(&program_slots[at].module, memory_order_acquire));
         at = (at + 1) % PROGRAM_SLOTS) {
        const struct program_slot *slot = &program_slots[at];
        if (module == mfa[0] && slot->name == mfa[1] && slot->arity == arity) {
            struct program *p = atomic_load_explicit(&slot->program, memory_order_acquire);
            return !p || run_program(env, p, values);
        }
    }
    return true;
}
