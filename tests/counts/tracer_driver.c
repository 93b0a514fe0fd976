/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the companion's library without a virtual machine: loads the file that etrace sends to a node, and offers it
 * events as a VM does. It implements only the part of the VM that the library uses: terms, and functions to inspect
 * them.
 *
 *     tracer_driver FILE.so CASE EVENTS
 *     tracer_driver FILE.so bounded EVENTS
 *
 * The first form is for counting instructions (tests/counts/run) and prints nothing. It exits with 1 if the library's
 * counts of seen or lost events are wrong.
 *
 * The second form is a test. It puts binaries that start inside a byte into every position of a term, and counts the
 * bytes that the library makes the VM copy or compare.
 */
#include <dlfcn.h>
#include <erl_nif.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etrace_wire.h"

#define UNUSED __attribute__((unused))

static void die(const char *what)
{
    fprintf(stderr, "tracer_driver: %s\n", what);
    exit(1);
}

/* ---- terms: immediates have the form of a 64-bit VM; all others point to a struct box ---------------------------- */

enum what { CELL, TUPLE, MAP, FLOAT, BINARY, SHIFTED, REF, BIG }; /* SHIFTED: a binary that starts inside a byte */

struct box {
    enum what what;
    uint32_t count;
    ERL_NIF_TERM words[]; /* elements; of a map: first the keys, then the values */
};

enum { TAG_LIST = 1, TAG_BOXED = 2, TAG_PID = 3, TAG_PORT = 7, TAG_ATOM = 0xb, TAG_SMALL = 0xf, NIL = 0x3b };

static _Alignas(16) uint8_t heap[1 << 22];
static size_t heap_used;

static struct box *new_box(enum what what, size_t count, size_t bytes)
{
    struct box *box = (struct box *)(void *)(heap + heap_used);
    heap_used += (sizeof *box + bytes + 15) / 16 * 16;
    if (heap_used > sizeof heap)
        die("no memory");
    box->what = what;
    box->count = (uint32_t)count;
    return box;
}

static ERL_NIF_TERM boxed(const struct box *box)
{
    return (ERL_NIF_TERM)(uintptr_t)box | TAG_BOXED;
}

static const struct box *box_of(ERL_NIF_TERM t, enum what what)
{
    if ((t & 3) != TAG_BOXED)
        return NULL;
    const struct box *box = (const struct box *)(uintptr_t)(t - TAG_BOXED);
    return box->what == what ? box : NULL;
}

static const struct box *cell_of(ERL_NIF_TERM t)
{
    return (t & 3) == TAG_LIST ? (const struct box *)(uintptr_t)(t - TAG_LIST) : NULL;
}

static ERL_NIF_TERM small(int64_t value)
{
    return (ERL_NIF_TERM)(uint64_t)value << 4 | TAG_SMALL;
}

static ERL_NIF_TERM pid(uint64_t data)
{
    return data << 4 | TAG_PID;
}

static ERL_NIF_TERM atom(const char *name)
{
    return enif_make_atom(NULL, name);
}

#define tuple(n, ...) enif_make_tuple(NULL, n, __VA_ARGS__)

static ERL_NIF_TERM cons(ERL_NIF_TERM head, ERL_NIF_TERM tail)
{
    return enif_make_list_cell(NULL, head, tail);
}

static ERL_NIF_TERM real(double value)
{
    struct box *box = new_box(FLOAT, 1, sizeof value);
    memcpy(box->words, &value, sizeof value);
    return boxed(box);
}

static ERL_NIF_TERM binary(size_t bytes)
{
    ERL_NIF_TERM t;
    memset(enif_make_new_binary(NULL, bytes, &t), 'x', bytes);
    return t;
}

static ERL_NIF_TERM string(const char *text)
{
    ERL_NIF_TERM list = NIL;
    for (size_t n = strlen(text); n--;)
        list = cons(small((unsigned char)text[n]), list);
    return list;
}

/* ---- functions that the library calls ---------------------------------------------------------------------------- */

static char atoms[256][32];

ERL_NIF_TERM enif_make_atom(UNUSED ErlNifEnv *env, const char *name)
{
    unsigned i = 0;
    for (; i < 256 && atoms[i][0]; i++)
        if (strcmp(atoms[i] + 1, name) == 0)
            return i << 6 | TAG_ATOM;
    if (i == 256 || strlen(name) > sizeof *atoms - 2)
        die("too many atoms");
    atoms[i][0] = 'a';
    strcpy(atoms[i] + 1, name);
    return i << 6 | TAG_ATOM;
}

int enif_make_existing_atom_len(UNUSED ErlNifEnv *env, const char *name, size_t len, ERL_NIF_TERM *ret,
                                UNUSED ErlNifCharEncoding encoding)
{
    for (unsigned i = 0; i < 256 && atoms[i][0]; i++)
        if (strlen(atoms[i] + 1) == len && memcmp(atoms[i] + 1, name, len) == 0) {
            *ret = i << 6 | TAG_ATOM;
            return 1;
        }
    return 0;
}

#if ERL_NIF_MINOR_VERSION < 17 && ERL_NIF_MAJOR_VERSION == 2 /* the headers of OTP 25 lack the type */
typedef int ErlNifOption;
int enif_set_option(ErlNifEnv *env, ErlNifOption option, ...);
#endif

int enif_set_option(UNUSED ErlNifEnv *env, UNUSED ErlNifOption option, ...)
{
    return 0;
}

int enif_is_atom(UNUSED ErlNifEnv *env, ERL_NIF_TERM t)
{
    return (t & 0x3f) == TAG_ATOM;
}
int enif_is_list(UNUSED ErlNifEnv *env, ERL_NIF_TERM t)
{
    return t == NIL || (t & 3) == TAG_LIST;
}
int enif_is_empty_list(UNUSED ErlNifEnv *env, ERL_NIF_TERM t)
{
    return t == NIL;
}
int enif_is_binary(UNUSED ErlNifEnv *env, ERL_NIF_TERM t)
{
    return box_of(t, BINARY) || box_of(t, SHIFTED);
}
int enif_is_ref(UNUSED ErlNifEnv *env, ERL_NIF_TERM t)
{
    return box_of(t, REF) != NULL;
}
ErlNifUInt64 enif_hash(UNUSED ErlNifHash type, ERL_NIF_TERM t, UNUSED ErlNifUInt64 salt)
{
    return t * UINT64_C(0x9e3779b97f4a7c15);
}
int enif_is_fun(UNUSED ErlNifEnv *env, UNUSED ERL_NIF_TERM t)
{
    return 0;
}
int enif_is_map(UNUSED ErlNifEnv *env, ERL_NIF_TERM t)
{
    return box_of(t, MAP) != NULL;
}
int enif_is_tuple(UNUSED ErlNifEnv *env, ERL_NIF_TERM t)
{
    return box_of(t, TUPLE) != NULL;
}
int enif_is_identical(ERL_NIF_TERM a, ERL_NIF_TERM b)
{
    return a == b;
}
int enif_is_pid(UNUSED ErlNifEnv *env, ERL_NIF_TERM t)
{
    return (t & 0xf) == TAG_PID;
}
int enif_is_port(UNUSED ErlNifEnv *env, ERL_NIF_TERM t)
{
    return (t & 0xf) == TAG_PORT;
}
int enif_is_number(UNUSED ErlNifEnv *env, ERL_NIF_TERM t)
{
    return (t & 0xf) == TAG_SMALL || box_of(t, BIG) || box_of(t, FLOAT);
}

int enif_get_atom(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, char *at, unsigned room, UNUSED ErlNifCharEncoding encoding)
{
    size_t bytes = strlen(atoms[t >> 6] + 1) + 1;
    if (bytes > room)
        return 0;
    memcpy(at, atoms[t >> 6] + 1, bytes);
    return (int)bytes;
}

int enif_get_local_pid(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, ErlNifPid *ret)
{
    ret->pid = t;
    return (t & 0xf) == TAG_PID;
}

int enif_get_local_port(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, ErlNifPort *ret)
{
    ret->port_id = t;
    return (t & 0xf) == TAG_PORT;
}

int enif_get_long(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, long *ret)
{
    *ret = (long)t >> 4;
    return (t & 0xf) == TAG_SMALL;
}

int enif_get_ulong(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, unsigned long *ret)
{
    *ret = t >> 4;
    return (t & 0xf) == TAG_SMALL && (long)t >= 0;
}

int enif_get_uint(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, unsigned *ret)
{
    *ret = (unsigned)(t >> 4);
    return (t & 0xf) == TAG_SMALL && t >> 4 <= UINT32_MAX;
}

int enif_get_double(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, double *ret)
{
    const struct box *box = box_of(t, FLOAT);
    if (!box)
        return 0;
    memcpy(ret, box->words, sizeof *ret);
    return 1;
}

int enif_get_tuple(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, int *arity, const ERL_NIF_TERM **elements)
{
    const struct box *box = box_of(t, TUPLE);
    if (!box)
        return 0;
    *arity = (int)box->count;
    *elements = box->words;
    return 1;
}

int enif_get_list_cell(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, ERL_NIF_TERM *head, ERL_NIF_TERM *tail)
{
    const struct box *cell = cell_of(t);
    if (!cell)
        return 0;
    *head = cell->words[0];
    *tail = cell->words[1];
    return 1;
}

int enif_get_list_length(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, unsigned *ret)
{
    *ret = 0;
    for (const struct box *cell; (cell = cell_of(t)); t = cell->words[1])
        ++*ret;
    return t == NIL;
}

int enif_get_map_size(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, size_t *ret)
{
    const struct box *box = box_of(t, MAP);
    if (!box)
        return 0;
    *ret = box->count;
    return 1;
}

int enif_get_map_value(UNUSED ErlNifEnv *env, ERL_NIF_TERM map, ERL_NIF_TERM key, ERL_NIF_TERM *ret)
{
    const struct box *box = box_of(map, MAP);
    for (unsigned i = 0; box && i < box->count; i++) {
        if (box->words[i] == key) {
            *ret = box->words[box->count + i];
            return 1;
        }
    }
    return 0;
}

int enif_map_iterator_create(UNUSED ErlNifEnv *env, ERL_NIF_TERM map, ErlNifMapIterator *each,
                             UNUSED ErlNifMapIteratorEntry entry)
{
    each->map = map;
    each->size = box_of(map, MAP)->count;
    each->idx = 0;
    return 1;
}

int enif_map_iterator_get_pair(UNUSED ErlNifEnv *env, ErlNifMapIterator *each, ERL_NIF_TERM *key, ERL_NIF_TERM *value)
{
    const struct box *box = box_of(each->map, MAP);
    if (each->idx >= each->size)
        return 0;
    *key = box->words[each->idx];
    *value = box->words[each->size + each->idx];
    return 1;
}

int enif_map_iterator_next(UNUSED ErlNifEnv *env, ErlNifMapIterator *each)
{
    return ++each->idx < each->size;
}
void enif_map_iterator_destroy(UNUSED ErlNifEnv *env, UNUSED ErlNifMapIterator *each)
{
}

/* Bytes that the VM had to copy or compare. */
static uint64_t copied, compared;

/* Makes a binary that has no bytes in memory: each byte that a reader gets is 'x'. */
static ERL_NIF_TERM shifted(size_t bytes)
{
    return boxed(new_box(SHIFTED, bytes, 0));
}

int enif_inspect_binary(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, ErlNifBinary *ret)
{
    static uint8_t copies[2][1 << 16];
    static unsigned turn;
    const struct box *box = box_of(t, BINARY);
    if (!box && (box = box_of(t, SHIFTED))) {
        copied += box->count;
        *ret = (ErlNifBinary){.size = box->count, .data = memset(copies[++turn % 2], 'x', sizeof *copies)};
        return 1;
    }
    if (!box)
        return 0;
    ret->size = box->count;
    ret->data = (unsigned char *)(uintptr_t)box->words;
    return 1;
}

int enif_snprintf(char *at, size_t room, UNUSED const char *format, ...)
{
    return snprintf(at, room, "#Ref<0.1.2.3>");
}

/* The library learns the form of immediates from these local pids and ports. */
static const uint8_t pid_form[] = {131, 88, 119, 1, 'n', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

static uint64_t get32(const uint8_t *at)
{
    return (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 8 | at[3];
}

static void set32(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

int enif_term_to_binary(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, ErlNifBinary *ret)
{
    static uint8_t form[sizeof pid_form];
    if ((t & 0xf) != TAG_PID)
        return 0;
    memcpy(form, pid_form, sizeof form);
    set32(form + 5, t >> 4 & 0x0fffffff);
    set32(form + 9, t >> 32);
    *ret = (ErlNifBinary){.size = sizeof form, .data = form};
    return 1;
}

size_t enif_binary_to_term(UNUSED ErlNifEnv *env, const unsigned char *form, size_t bytes, ERL_NIF_TERM *ret,
                           UNUSED unsigned options)
{
    if (form[1] == 88)
        *ret = pid(get32(form + 5) | get32(form + 9) << 28);
    else if (form[1] == 120)
        *ret = (get32(form + 5) << 32 | get32(form + 9)) << 4 | TAG_PORT;
    else
        *ret = boxed(new_box(BIG, 0, 0));
    return bytes;
}

void enif_release_binary(UNUSED ErlNifBinary *bin)
{
}
ERL_NIF_TERM enif_make_badarg(UNUSED ErlNifEnv *env)
{
    die("badarg");
    return 0;
}
ERL_NIF_TERM enif_make_double(UNUSED ErlNifEnv *env, double value)
{
    return real(value);
}
ERL_NIF_TERM enif_make_int(UNUSED ErlNifEnv *env, int value)
{
    return small(value);
}
ERL_NIF_TERM enif_make_uint(UNUSED ErlNifEnv *env, unsigned value)
{
    return small(value);
}
ERL_NIF_TERM enif_make_ulong(UNUSED ErlNifEnv *env, unsigned long value)
{
    return small((int64_t)value);
}
ERL_NIF_TERM enif_make_long(UNUSED ErlNifEnv *env, long value)
{
    return (long)small(value) >> 4 == value ? small(value) : boxed(new_box(BIG, 0, 0));
}
ERL_NIF_TERM enif_make_ref(UNUSED ErlNifEnv *env)
{
    return boxed(new_box(REF, 0, 0));
}
ERL_NIF_TERM enif_make_new_map(UNUSED ErlNifEnv *env)
{
    return boxed(new_box(MAP, 0, 0));
}

ERL_NIF_TERM enif_make_list_cell(UNUSED ErlNifEnv *env, ERL_NIF_TERM head, ERL_NIF_TERM tail)
{
    struct box *cell = new_box(CELL, 2, 2 * sizeof *cell->words);
    cell->words[0] = head;
    cell->words[1] = tail;
    return (ERL_NIF_TERM)(uintptr_t)cell | TAG_LIST;
}

ERL_NIF_TERM enif_make_list_from_array(ErlNifEnv *env, const ERL_NIF_TERM terms[], unsigned n)
{
    ERL_NIF_TERM list = NIL;
    while (n--)
        list = enif_make_list_cell(env, terms[n], list);
    return list;
}

ERL_NIF_TERM enif_make_list(ErlNifEnv *env, unsigned n, ...)
{
    va_list args;
    va_start(args, n);
    ERL_NIF_TERM list = n ? enif_make_list_cell(env, va_arg(args, ERL_NIF_TERM), NIL) : NIL;
    va_end(args);
    return list;
}

ERL_NIF_TERM enif_make_tuple(UNUSED ErlNifEnv *env, unsigned n, ...)
{
    struct box *box = new_box(TUPLE, n, n * sizeof *box->words);
    va_list args;
    va_start(args, n);
    for (unsigned i = 0; i < n; i++)
        box->words[i] = va_arg(args, ERL_NIF_TERM);
    va_end(args);
    return boxed(box);
}

unsigned char *enif_make_new_binary(UNUSED ErlNifEnv *env, size_t bytes, ERL_NIF_TERM *ret)
{
    struct box *box = new_box(BINARY, bytes, bytes);
    *ret = boxed(box);
    return (unsigned char *)box->words;
}

/* The VM copies short sub-binaries to the heap, where each binary starts at a byte boundary. */
ERL_NIF_TERM enif_make_sub_binary(UNUSED ErlNifEnv *env, ERL_NIF_TERM t, size_t at, size_t bytes)
{
    const struct box *box = box_of(t, SHIFTED) ? box_of(t, SHIFTED) : box_of(t, BINARY);
    if (!box || at + bytes > box->count)
        die("a part that is not within its binary");
    return box->what == SHIFTED && bytes > 64 ? shifted(bytes) : binary(bytes);
}

int enif_compare(ERL_NIF_TERM a, ERL_NIF_TERM b)
{
    ErlNifBinary left, right;
    if (!enif_is_binary(NULL, a) || !enif_is_binary(NULL, b))
        return 0;
    uint64_t before = copied;
    enif_inspect_binary(NULL, a, &left);
    enif_inspect_binary(NULL, b, &right);
    copied = before;
    compared += left.size < right.size ? left.size : right.size;
    return (left.size > right.size) - (left.size < right.size);
}

ErlNifPid *enif_self(UNUSED ErlNifEnv *env, ErlNifPid *ret)
{
    ret->pid = pid(80);
    return ret;
}

static char something;
ErlNifEnv *enif_alloc_env(void)
{
    return (ErlNifEnv *)(void *)&something;
}
ERL_NIF_TERM enif_make_copy(UNUSED ErlNifEnv *env, ERL_NIF_TERM t)
{
    return t;
}
void *enif_alloc(size_t bytes)
{
    return malloc(bytes);
}
void enif_free(void *at)
{
    free(at);
}
void enif_free_env(UNUSED ErlNifEnv *env)
{
}
int enif_consume_timeslice(UNUSED ErlNifEnv *env, UNUSED int percent)
{
    return 0;
}
int enif_is_process_alive(UNUSED ErlNifEnv *env, UNUSED ErlNifPid *process)
{
    return 1;
}
ErlNifTime enif_monotonic_time(UNUSED ErlNifTimeUnit unit)
{
    return 0;
}
ErlNifTime enif_time_offset(UNUSED ErlNifTimeUnit unit)
{
    return 0;
}
int enif_send(UNUSED ErlNifEnv *env, UNUSED const ErlNifPid *to, UNUSED ErlNifEnv *of, UNUSED ERL_NIF_TERM t)
{
    return 0;
}
ErlNifThreadOpts *enif_thread_opts_create(UNUSED char *name)
{
    static ErlNifThreadOpts options;
    return &options;
}
void enif_thread_opts_destroy(UNUSED ErlNifThreadOpts *options)
{
}
int enif_thread_create(UNUSED char *name, UNUSED ErlNifTid *id, UNUSED void *(*run)(void *), UNUSED void *arg,
                       UNUSED ErlNifThreadOpts *options)
{
    return 0;
}
int enif_thread_join(UNUSED ErlNifTid id, UNUSED void **result)
{
    return 0;
}

/* There are no files. The library reads one to learn the system's preferred clock, and works without it. */
int open(UNUSED const char *path, UNUSED int flags, ...);
int open(UNUSED const char *path, UNUSED int flags, ...)
{
    return -1;
}

/* ---- the cases -------------------------------------------------------------------------------------------------- */

#define MOST 4 /* events of a case, which the driver repeats */

static ErlNifEntry *library;

typedef ERL_NIF_TERM function(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

static function *find(const char *name)
{
    for (int i = 0; i < library->num_of_funcs; i++)
        if (strcmp(library->funcs[i].name, name) == 0)
            return library->funcs[i].fptr;
    die(name);
    return NULL;
}

static ERL_NIF_TERM state;

static ERL_NIF_TERM ask(const char *name, ERL_NIF_TERM what)
{
    const ERL_NIF_TERM argv[] = {state, what};
    return find(name)(NULL, 2, argv);
}

/* Decides calls of w:f/2 by their first argument: whether it is less than 100. */
static void decide(bool shown)
{
    enum { SHOWN = 1, HIDDEN = 2 };
    ERL_NIF_TERM step = tuple(7, small(ETW_STEP_LESS), small(0), small(0), small(0), small(shown ? HIDDEN : SHOWN),
                              small(shown ? SHOWN : HIDDEN), small(100));
    const ERL_NIF_TERM argv[] = {state, cons(step, NIL), cons(tuple(3, atom("w"), atom("f"), small(2)), NIL)};
    if (find("program")(NULL, 3, argv) == NIL)
        die("no program");
}

/* Makes calls wait for their results, and passes only calls that took a minute. */
static void wait_long(void)
{
    struct etw_filter_step step = {.what = ETW_FILTER_DUR, .compare = ETW_FILTER_GT, .value = INT64_C(60000000000)};
    ERL_NIF_TERM steps;
    memcpy(enif_make_new_binary(NULL, sizeof step, &steps), &step, sizeof step);
    ask("gate", tuple(3, atom("filter"), steps, NIL));
    ask("gate", atom("hold"));
}

struct event {
    const char *tag, *gate; /* gate: the function that the VM asks first, or NULL */
    /* extra: receiver of a send; value of a return; for a receive the sender, from the match specification; 0: none */
    ERL_NIF_TERM tracee, term, extra;
};

static ERL_NIF_TERM call(const char *module, const char *name, ERL_NIF_TERM args)
{
    return tuple(3, atom(module), atom(name), args);
}

static ERL_NIF_TERM nested(int n)
{
    ERL_NIF_TERM list = NIL;
    for (int i = n; i > 0; i--) {
        ERL_NIF_TERM inner = cons(small(i + 1), cons(cons(small(i + 2), cons(tuple(1, small(i)), NIL)),
                                                     cons(cons(small(i), cons(small(i), NIL)), NIL)));
        list = cons(cons(small(i), inner), list);
    }
    return list;
}

static ERL_NIF_TERM state_map(unsigned n)
{
    struct box *box = new_box(MAP, n, 2 * n * sizeof *box->words);
    for (unsigned i = 0; i < n; i++) {
        box->words[i] = small(i + 1);
        box->words[n + i] = tuple(3, atom("item"), small(i + 1), real(1.5 * i));
    }
    return boxed(box);
}

static unsigned events_of(const char *name, struct event *ret)
{
    ERL_NIF_TERM a = pid(84), b = pid(85);
    if (strcmp(name, "call") == 0) {
        ERL_NIF_TERM third = tuple(3, atom("some"), atom("tuple"), cons(small(1), cons(small(2), cons(small(3), NIL))));
        ret[0] = (struct event){"call", "enabled_call", a, call("w", "f", cons(small(100000), cons(third, NIL))), 0};
        return 1;
    }
    if (strcmp(name, "tallied") == 0) { /* the VM gives the arity, not the arguments */
        ret[0] = (struct event){"call", "enabled_call", a, call("w", "f", small(2)), 0};
        return 1;
    }
    if (strcmp(name, "pair") == 0) {
        ret[0] =
            (struct event){"call", "enabled_call", a,
                           call("w", "f", cons(small(100000), cons(tuple(2, atom("some"), atom("tuple")), NIL))), 0};
        ret[1] = (struct event){"return_from", NULL, a, call("w", "f", small(2)), tuple(2, atom("ok"), small(100000))};
        return 2;
    }
    if (strcmp(name, "message") == 0) {
        ret[0] = (struct event){"send", "enabled_send", a, tuple(3, atom("ping"), a, small(1000)), b};
        ret[1] = (struct event){"receive", "enabled_receive", b, ret[0].term, a};
        ret[2] = (struct event){"send", "enabled_send", b, tuple(2, atom("pong"), small(1000)), a};
        ret[3] = (struct event){"receive", "enabled_receive", a, ret[2].term, b};
        return 4;
    }
    if (strcmp(name, "state") == 0) {
        ERL_NIF_TERM map = state_map(200), from = tuple(2, a, cons(atom("alias"), enif_make_ref(NULL)));
        ERL_NIF_TERM put = tuple(3, atom("put"), small(1000), binary(1024));
        ret[0] = (struct event){"call", "enabled_call", a,
                                call("server", "handle_call", cons(put, cons(from, cons(map, NIL)))), 0};
        ret[1] = (struct event){"return_from", NULL, a, call("server", "handle_call", small(3)),
                                tuple(3, atom("reply"), atom("ok"), map)};
        return 2;
    }
    if (strcmp(name, "large") == 0) {
        ret[0] = (struct event){"call", "enabled_call", a, call("w", "big", cons(nested(600), NIL)), 0};
        return 1;
    }
    if (strcmp(name, "text") == 0) {
        ERL_NIF_TERM args = cons(string("a string of fifty characters, or nearly so many.."), cons(binary(64), NIL));
        ret[0] = (struct event){"call", "enabled_call", a, call("w", "say", args), 0};
        return 1;
    }
    die("no such case");
    return 0;
}

/*
 * An event, prepared for the calls that a VM makes: whether the process is still traced, whether the tracer wants the
 * event, and the event.
 */
struct prepared {
    function *gate;
    ERL_NIF_TERM status[3], argv[5];
};

static struct prepared prepare(const struct event *e)
{
    struct box *options = new_box(MAP, e->extra ? 1 : 0, 2 * sizeof *options->words);
    options->words[0] = atom(strcmp(e->tag, "receive") == 0 ? "match_spec_result" : "extra");
    options->words[1] = e->extra;
    return (struct prepared){
        .gate = e->gate ? find(e->gate) : NULL,
        .status = {atom("trace_status"), state, e->tracee},
        .argv = {atom(e->tag), state, e->tracee, e->term, boxed(options)},
    };
}

static void offer(unsigned long many, const struct event *events, unsigned n)
{
    function *enabled = find("enabled"), *trace = find("trace");
    ERL_NIF_TERM yes = atom("trace");
    struct prepared all[MOST];
    for (unsigned i = 0; i < n; i++)
        all[i] = prepare(&events[i]);
    for (unsigned long i = 0; i < many; i++) {
        struct prepared *p = &all[i % n];
        if (p->gate && (enabled(NULL, 3, p->status) != yes || p->gate(NULL, 3, p->argv) != yes))
            continue;
        trace(NULL, 5, p->argv);
    }
}

/* Lets a filter measure the size of results. Every size passes. */
static void measure(void)
{
    struct etw_filter_step step = {.what = ETW_FILTER_SIZE, .compare = ETW_FILTER_GT, .value = 0};
    ERL_NIF_TERM steps;
    memcpy(enif_make_new_binary(NULL, sizeof step, &steps), &step, sizeof step);
    ask("gate", tuple(3, atom("filter"), steps, NIL));
}

/* Counts by the first element of the second argument, perhaps with a histogram of durations. */
static void count_by(bool durations)
{
    ERL_NIF_TERM key = cons(small(ETW_BY_TERM), cons(small(2), cons(small(1), NIL)));
    ERL_NIF_TERM value = cons(small(ETW_BY_BUCKETS), cons(small(ETW_BY_DUR), NIL));
    while (ask("gate", tuple(4, atom("by"), cons(key, NIL), durations ? cons(value, NIL) : NIL, small(ETW_BY_ROWS))) ==
           atom("more"))
        continue;
}

/* ---- the work for one term --------------------------------------------------------------------------------------- */

#define HUGE_BYTES 10000000
#define WORK_MOST (1 << 17) /* limit of copied and compared bytes for one event; about a tenth of a millisecond */

static ERL_NIF_TERM map_of(ERL_NIF_TERM key, ERL_NIF_TERM value)
{
    struct box *box = new_box(MAP, 1, 2 * sizeof *box->words);
    box->words[0] = key;
    box->words[1] = value;
    return boxed(box);
}

static ERL_NIF_TERM crowd(void)
{
    struct box *box = new_box(TUPLE, 60, 60 * sizeof *box->words);
    for (unsigned i = 0; i < box->count; i++)
        box->words[i] = shifted(HUGE_BYTES);
    return boxed(box);
}

/* Makes a term for each position in which a binary may stand. */
static unsigned positions(ERL_NIF_TERM ret[static 16])
{
    unsigned n = 0;
    ret[n++] = shifted(HUGE_BYTES);
    ret[n++] = tuple(2, shifted(HUGE_BYTES), small(1));
    ret[n++] = tuple(2, small(1), shifted(HUGE_BYTES));
    ret[n++] = map_of(shifted(HUGE_BYTES), small(1));
    ret[n++] = map_of(atom("k"), shifted(HUGE_BYTES));
    ret[n++] = map_of(map_of(shifted(HUGE_BYTES), small(1)), small(1));
    ret[n++] = map_of(cons(shifted(HUGE_BYTES), NIL), small(1));
    ret[n++] = cons(small(1), cons(shifted(HUGE_BYTES), NIL));
    ret[n++] = cons(tuple(2, shifted(HUGE_BYTES), small(1)), shifted(HUGE_BYTES));
    ret[n++] = crowd();
    struct box *named = new_box(MAP, 2, 4 * sizeof *named->words);
    named->words[0] = atom("name"), named->words[1] = atom("value"), named->words[2] = shifted(HUGE_BYTES),
    named->words[3] = small(1);
    ret[n++] = boxed(named);
    return n;
}

static uint64_t work_of(const struct event *e)
{
    size_t before = heap_used;
    struct prepared p = prepare(e);
    uint64_t work = copied + compared;
    find("trace")(NULL, 5, p.argv);
    heap_used = before;
    return copied + compared - work;
}

/* Returns the work of the most expensive event with the term: as an argument, a result, or a message. */
static uint64_t most_work_of(ERL_NIF_TERM t)
{
    const struct event events[] = {
        {"call", NULL, pid(84), call("w", "f", cons(t, cons(t, NIL))), 0},
        {"return_from", NULL, pid(84), call("w", "f", small(2)), t},
        {"send", NULL, pid(84), t, pid(85)},
        {"receive", NULL, pid(85), t, 0},
    };
    uint64_t most = 0;
    for (unsigned i = 0; i < sizeof events / sizeof *events; i++) {
        uint64_t work = work_of(&events[i]);
        most = work > most ? work : most;
    }
    return most;
}

/* In a quick sequence of events the library may copy one large binary, and none after it. */
static void stay_bounded(unsigned long many)
{
    ERL_NIF_TERM terms[16];
    unsigned n = positions(terms), large = 0;
    find("trace")(NULL, 5, prepare(&(struct event){"send", NULL, pid(84), binary(100), pid(85)}).argv);
    for (unsigned long i = 0; i < many; i++) {
        uint64_t work = most_work_of(terms[i % n]);
        if (work > WORK_MOST && (large++ || work > HUGE_BYTES + WORK_MOST))
            die("an event makes too much work");
    }
    if (compared == 0)
        die("no binary was read by steps");
}

/* Drains the rings. Returns the frames of the first section, or NULL if there is no batch. */
static const uint8_t *drained(struct etw_section *ret)
{
    const ERL_NIF_TERM argv[] = {state, small(ETW_MAX_BATCH), binary(0), atom("false")};
    const struct box *result = box_of(find("drain")(NULL, 4, argv), TUPLE), *batch = box_of(result->words[0], BINARY);
    memset(ret, 0, sizeof *ret);
    if (!batch)
        return NULL;
    memcpy(ret, (const uint8_t *)batch->words + sizeof(struct etw_batch), sizeof *ret);
    return (const uint8_t *)batch->words + sizeof(struct etw_batch) + sizeof *ret;
}

/*
 * Checks the single frame after calls that the library only measured. This frame is the first of its ring, so it has
 * its tick and its tracee, and it defines the atom of its term, although the measured calls contain that atom, too.
 */
static void check_first_frame(const uint8_t *at, size_t bytes)
{
    uint64_t tracee;
    uint32_t head;
    if (bytes < 24)
        die("no frame");
    memcpy(&head, at, sizeof head);
    memcpy(&tracee, at + 16, sizeof tracee);
    if (ETW_HEAD_BYTES(head) != bytes || ETW_HEAD_KIND(head) != ETW_SEND ||
        ETW_HEAD_FLAGS(head) != (ETW_F_TICK | ETW_F_TRACEE) || tracee != 84)
        die("the first frame does not tell its tick and its tracee");
    if (!memmem(at, bytes, "some", 4))
        die("the first frame does not define its atom");
}

int main(int argc, char **argv)
{
    struct event events[MOST];
    uint64_t lost = 0;
    if (argc != 4)
        die("usage: FILE.so CASE EVENTS");
    void *file = dlopen(argv[1], RTLD_NOW);
    void *init = file ? dlsym(file, "nif_init") : NULL;
    if (!init)
        die(dlerror());
    ErlNifEntry *(*nif_init)(void);
    memcpy(&nif_init, &init, sizeof init);
    library = nif_init();
    if (library->load(NULL, NULL, binary(0)) != 0)
        die("not loaded");

    bool paused = strcmp(argv[2], "paused") == 0, whole = strcmp(argv[2], "whole") == 0;
    bool shown = strcmp(argv[2], "shown") == 0, hidden = strcmp(argv[2], "hidden") == 0,
         fast = strcmp(argv[2], "fast") == 0;
    bool measured = strcmp(argv[2], "measured") == 0, keyed = strcmp(argv[2], "keyed") == 0,
         key = strcmp(argv[2], "key") == 0, tallied = strcmp(argv[2], "tallied") == 0,
         counted = measured || strcmp(argv[2], "counted") == 0;
    bool bounded = strcmp(argv[2], "bounded") == 0;
    unsigned n = events_of(paused || shown || hidden || bounded || key ? "call"
                           : whole                                     ? "state"
                           : fast || counted || keyed                  ? "pair"
                                                                       : argv[2],
                           events);
    unsigned long many = strtoul(argv[3], NULL, 10);
    ERL_NIF_TERM bytes = small(whole ? 1 << 18 : 256), depth = small(whole ? 64 : 16),
                 items = small(whole ? 1 << 16 : 4096);
    ERL_NIF_TERM options = tuple(9, small(1 << 26), small(4), bytes, depth, items, small(0), small(0),
                                 bounded ? cons(binary(20), cons(binary(5), NIL)) : NIL, small(0));
    const struct box *opened = box_of(find("open")(NULL, 1, &options), TUPLE);
    if (opened->words[0] != atom("ok"))
        die("not open");
    state = opened->words[1];
    ask("gate", atom(shown || hidden ? "late" : "early"));
    ask("gate", atom("plain"));
    ask("kinds", small((1 << 30) - 1)); /* all kinds, but selected one by one, as clients do */
    if (paused)
        ask("gate", atom("closed"));
    if (shown || hidden)
        decide(shown);
    if (fast || counted || keyed || strcmp(argv[2], "pair") == 0)
        ask("gate", atom("returns"));
    if (fast)
        wait_long();
    if (measured)
        measure();
    if (keyed || key)
        count_by(keyed);
    if (counted || tallied)
        ask("gate", tuple(2, atom("tally"), small(10)));
    if (bounded)
        return stay_bounded(many), 0;
    offer(many, events, n);
    if (measured)
        offer(1, &(struct event){"send", NULL, pid(84), atom("some"), pid(85)}, 1);
    struct etw_section section;
    const uint8_t *frames = drained(&section);
    for (int i = 0; i < ETW_LOSSES; i++)
        lost += section.lost[i];
    if (section.seen != (hidden ? 0 : many + measured) || lost != (paused ? many : 0))
        die("the events seen and lost are others");
    if (measured)
        check_first_frame(frames, section.bytes);
    return 0;
}
