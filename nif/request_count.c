/* SPDX-License-Identifier: Apache-2.0 */
#include "request_count.h"

#include <string.h>

#include "encode.h"
#include "frame.h"
#include "imm.h"
#include "pages.h"
#include "tick.h"
#include "tracer.h"

#define WAYS 16u /* places of a set; a key has a place in one set */
/* Two tables of open requests. Most of the time the small one has all of them, and stays in the processor's cache. */
#define NEAR_SETS 64u
#define OPEN_SETS (8192u + NEAR_SETS)
#define CALLER_SETS 4096u
#define CALLER_OPEN 7 /* newest requests of a caller; a timeout concerns one of them */
#define SERVER_SETS 256u
#define SPANS 64
#define VARIANTS 32 /* shapes with the same tag; the client keeps fewer, and then only the tag */
#define LATE_MS 500 /* a caller that waits in steps receives its reply within this time */
#define CLEAR_BYTES ((size_t)4 << 20)
#define TERM_BYTES (REQUESTS_SHAPE_BYTES + ENCODE_OVERRUN)
#define TERM_WORDS (REQUESTS_SHAPE_BYTES / 3)
#define SET_WORK 16               /* sets of open requests whose bits cost as much as one row */
#define TAKEN (UINT32_C(1) << 31) /* struct open.held: another request takes the place */

#define ONCE inline __attribute__((always_inline)) /* inlined, because every event of a request needs it */

/* The kinds of keys (keyed.h). A term: u16 bytes, the bytes, the words of its atoms (encoder.h). */
enum key { KEY_TERM = 1, KEY_FUNCTION, KEY_PROCESS, KEY_TASK, KEY_ROW, KEY_ALL };

/* Flags of an open request. */
enum {
    REQUEST_ASKED = 1, /* the caller's side was seen */
    REQUEST_AT_SERVER = 2,
    REQUEST_INFINITE = 4,
    REQUEST_POSTPONED = 8,
    REQUEST_TASK = 16,
    REQUEST_SENT = 32,
    REQUEST_GOT = 64,
    REQUEST_GAVE_UP = 128,
    REQUEST_LATE = 256, /* counted as late */
    REQUEST_DOWN = 512,
    REQUEST_SETTLED = 1024, /* counted */
    REQUEST_WAITED = 2048,  /* its wait is counted */
};

/* Times are ticks; 0: unknown. The owner reads some fields at any time, so all are atomic. */
struct open {
    _Alignas(RING_LINE) _Atomic uint32_t flags, shape, label, row;
    _Atomic uint64_t caller, server; /* words of pids; 0: unknown, or a pid of another node */
    _Atomic uint64_t asked, arrived, begun, sent;
    uint64_t note[KEYED_NOTE]; /* what it waited behind */
    _Atomic uint32_t held;     /* in the large table: how many events use this place now, or TAKEN */
};

struct span {
    uint64_t from, to, last, ticks, times; /* last: when the last callback of the span began */
    uint64_t what;                         /* what() */
};

struct server {
    _Alignas(RING_LINE) _Atomic uint32_t in_use; /* some thread changes this place */
    _Atomic uint32_t label;
    _Atomic uint64_t doing; /* what() of the callback that runs and has not replied; 0: none */
    bool busy;
    uint32_t shape, row;      /* of the last request, and the row for it */
    uint64_t module, request; /* request: the key of the request whose callback runs; 0: none */
    uint64_t replied;         /* when the callback that runs sent its reply; 0: not yet */
    struct span now, spans[SPANS];
    uint32_t count, at; /* a ring; at: the next place */
};

struct caller {
    _Atomic uint32_t newest[CALLER_OPEN], spare; /* places of open requests plus 1, newest first */
};

struct memory {
    _Atomic uint32_t far;                     /* requests in the large table */
    _Atomic uint64_t touched[OPEN_SETS / 64]; /* a bit for each set that a request was ever in */
    _Atomic uint64_t open_keys[OPEN_SETS * WAYS], server_keys[SERVER_SETS * WAYS], caller_keys[CALLER_SETS * WAYS];
    _Atomic uint32_t variants[KEYED_ROWS]; /* of a shape with only the tag: how many shapes have this tag */
    struct open open[OPEN_SETS * WAYS];
    struct server servers[SERVER_SETS * WAYS];
    struct caller callers[CALLER_SETS * WAYS];
};

static struct memory *memory;
static stack_alive_fn *is_alive;
static uint64_t late_ticks;
static uint32_t all_row, task_label;
static struct {
    bool due;
    size_t at;
} clear;

/* The owner's walk over the open requests. */
static struct {
    bool begun, done;
    uint32_t set;
    uint32_t open[KEYED_ROWS], timed_out[KEYED_ROWS];
    uint64_t waiting, first, doing; /* requests that wait; when the first of them came; what its server does */
    uint32_t server;                /* the label of that server */
} walk;

#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)

/* ---- life -------------------------------------------------------------------------------------------------------- */

enum tally_opened request_count_open(stack_alive_fn *alive)
{
    static const uint8_t all[] = {KEY_ALL}, task[] = {KEY_TASK};
    enum tally_opened how = keyed_open();
    if (how != TALLY_OPEN)
        return how;
    if (clear.due && memory && pages_clear(memory, sizeof *memory, &clear.at, CLEAR_BYTES))
        return TALLY_CLEARING;
    if (!memory && !(memory = pages_map(sizeof *memory)))
        return TALLY_NO_MEMORY;
    clear.due = true;
    clear.at = 0;
    is_alive = alive;
    late_ticks = LATE_MS * tick_per_ms();
    all_row = keyed_row(&(struct keyed_key){all, sizeof all, false});
    task_label = keyed_row(&(struct keyed_key){task, sizeof task, false});
    memset(&walk, 0, sizeof walk);
    return TALLY_OPEN;
}

void request_count_unmap(void)
{
    if (memory)
        munmap(memory, sizeof *memory);
    memory = NULL;
    clear.due = false;
    keyed_unmap();
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static uint32_t pair_row(uint32_t label, uint32_t shape)
{
    uint8_t bytes[1 + 8] = {KEY_ROW};
    memcpy(bytes + 1, &label, 4);
    memcpy(bytes + 5, &shape, 4);
    return keyed_row(&(struct keyed_key){bytes, sizeof bytes, false});
}

static uint32_t process_label(uint64_t process)
{
    uint8_t bytes[1 + 8] = {KEY_PROCESS};
    memcpy(bytes + 1, &process, 8);
    return process ? keyed_row(&(struct keyed_key){bytes, sizeof bytes, false}) : KEYED_OTHER;
}

struct term {
    uint8_t bytes[3 + TERM_BYTES + TERM_WORDS * 8];
    uint32_t length;
    bool cut;
};

static uint8_t *term_begin(ErlNifEnv *env, struct lane *lane, struct term *ret, enum key kind)
{
    struct encoder *e = &lane->held;
    e->env = env;
    e->flags = e->word_count = 0;
    ret->bytes[0] = (uint8_t)kind;
    return ret->bytes + 3;
}

static struct keyed_key term_end(struct lane *lane, struct term *t, const uint8_t *end)
{
    const struct encoder *e = &lane->held;
    uint32_t bytes = (uint32_t)(end - t->bytes) - 3, words = e->word_count < TERM_WORDS ? e->word_count : TERM_WORDS;
    t->bytes[1] = (uint8_t)bytes;
    t->bytes[2] = (uint8_t)(bytes >> 8);
    memcpy(t->bytes + 3 + bytes, e->words, words * 8);
    t->length = 3 + bytes + words * 8;
    return (struct keyed_key){t->bytes, t->length, e->flags & ETW_F_CUT};
}

/* A shape that has no row yet. If too many shapes have the same tag, the tag stands for all of them. */
static __attribute__((noinline)) uint32_t new_shape(ErlNifEnv *env, struct lane *lane, ERL_NIF_TERM t,
                                                    const struct keyed_key *whole)
{
    struct term coarse;
    uint8_t *at = term_begin(env, lane, &coarse, KEY_TERM);
    struct keyed_key key = term_end(lane, &coarse, requests_put_shape(&lane->held, at, t, true));
    if (key.length == whole->length && memcmp(key.bytes, whole->bytes, key.length) == 0)
        return keyed_row(whole);
    uint32_t row = keyed_row(&key);
    if (row != KEYED_OTHER && atomic_fetch_add_explicit(&memory->variants[row], 1, memory_order_relaxed) >= VARIANTS)
        return row;
    return keyed_row(whole);
}

static uint32_t shape_of(ErlNifEnv *env, struct lane *lane, ERL_NIF_TERM t)
{
    struct term whole;
    uint8_t *at = term_begin(env, lane, &whole, KEY_TERM);
    struct keyed_key key = term_end(lane, &whole, requests_put_shape(&lane->held, at, t, false));
    uint32_t row = keyed_find(&key);
    return __builtin_expect(row != KEYED_NONE, 1) ? row : new_shape(env, lane, t, &key);
}

/* The function of a task: {M, F, Arity}, or {erlang, apply, [Fun]}. */
static uint32_t function_of(ErlNifEnv *env, struct lane *lane, ERL_NIF_TERM mfa)
{
    struct term t;
    uint8_t *at = term_begin(env, lane, &t, KEY_FUNCTION);
    struct keyed_key key = term_end(lane, &t, requests_put_function(&lane->held, at, mfa));
    return keyed_row(&key);
}

/* ---- open requests ----------------------------------------------------------------------------------------------- */

static ONCE uint32_t set_of(uint64_t key, uint32_t sets)
{
    return (uint32_t)((key >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 40) % sets * WAYS;
}

/* The place of a key in its set; WAYS: none. Acquire: the place was cleared before it got the key. */
static ONCE uint32_t way_of(const _Atomic uint64_t *keys, uint64_t key)
{
    uint32_t way = 0;
    while (way < WAYS && atomic_load_explicit(&keys[way], memory_order_acquire) != key)
        way++;
    return way;
}

static ONCE uint32_t far_set(uint64_t key)
{
    return NEAR_SETS * WAYS + set_of(key, OPEN_SETS - NEAR_SETS);
}

static uint32_t place_of(const struct open *o)
{
    return (uint32_t)(o - memory->open);
}

static ONCE bool is_far(const struct open *o)
{
    return place_of(o) >= NEAR_SETS * WAYS;
}

/* Release: the next request in this place comes after what this event did. */
static ONCE void open_release(struct open *o)
{
    if (is_far(o))
        atomic_fetch_sub_explicit(&o->held, 1, memory_order_release);
}

/* Keeps open_seize() from taking the place until open_release(). False: another request has it, or takes it now. */
static ONCE bool open_hold(struct open *o, uint64_t key)
{
    if (!is_far(o))
        return true;
    /* Acquire: the key is at least as new as what the last release left. */
    bool taken = atomic_fetch_add_explicit(&o->held, 1, memory_order_acquire) & TAKEN;
    if (!taken && atomic_load_explicit(&memory->open_keys[place_of(o)], memory_order_acquire) == key)
        return true;
    open_release(o);
    return false;
}

/* The caller calls open_release(). */
static ONCE struct open *open_find(uint64_t key)
{
    uint32_t set = set_of(key, NEAR_SETS), way = way_of(&memory->open_keys[set], key);
    if (way == WAYS && GET(memory->far)) {
        set = far_set(key);
        way = way_of(&memory->open_keys[set], key);
    }
    return way < WAYS && open_hold(&memory->open[set + way], key) ? &memory->open[set + way] : NULL;
}

static void open_clear(struct open *o)
{
    SET(o->flags, 0), SET(o->shape, 0), SET(o->label, 0), SET(o->row, 0);
    SET(o->caller, 0), SET(o->server, 0);
    SET(o->asked, 0), SET(o->arrived, 0), SET(o->begun, 0), SET(o->sent, 0);
    memset(o->note, 0, sizeof o->note);
}

/* Release: who finds a free place finds it cleared. */
static void open_remove(struct open *o)
{
    open_clear(o);
    if (is_far(o))
        atomic_fetch_sub_explicit(&memory->far, 1, memory_order_relaxed);
    atomic_store_explicit(&memory->open_keys[place_of(o)], 0, memory_order_release);
}

static uint32_t label_of(const struct open *o);
static uint64_t start_of(const struct open *o);
static uint32_t settle_request(struct lane *lane, struct open *o, uint32_t flags);
static bool is_elsewhere(uint32_t flags);

/* The request is without a reply for good: counts it. */
static void leave(struct lane *lane, struct open *o)
{
    uint32_t row = pair_row(label_of(o), GET(o->shape));
    keyed_count(lane, row, REQUEST_COUNT_LEFT, 1);
    if (GET(o->flags) & REQUEST_GAVE_UP)
        keyed_count(lane, row, REQUEST_COUNT_TIMED_OUT, 1);
}

/* Whether no event of this request is to come. Processes that do not live any longer make none. */
static bool needs_no_place(ErlNifEnv *env, const struct open *o)
{
    uint32_t flags = GET(o->flags);
    uint64_t caller = GET(o->caller), server = GET(o->server);
    if (flags & REQUEST_DOWN)
        return true;
    if (flags & REQUEST_SETTLED && flags & REQUEST_GAVE_UP)
        return tick_now() - GET(o->sent) > late_ticks;
    if (flags & REQUEST_ASKED && caller && is_alive(env, caller))
        return false;
    return flags & REQUEST_SETTLED || (server && !is_alive(env, server));
}

/* Begins to take a place in the large table. False: an event uses the place, or the request is over. */
static bool open_seize(struct open *o, uint64_t key)
{
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong_explicit(&o->held, &none, TAKEN, memory_order_acquire, memory_order_relaxed))
        return false;
    if (atomic_load_explicit(&memory->open_keys[place_of(o)], memory_order_acquire) == key)
        return true;
    atomic_fetch_sub_explicit(&o->held, TAKEN, memory_order_release);
    return false;
}

static struct open *seize_dead(ErlNifEnv *env, uint32_t set)
{
    for (uint32_t way = 0; way < WAYS; way++) {
        struct open *o = &memory->open[set + way];
        uint64_t key = atomic_load_explicit(&memory->open_keys[set + way], memory_order_acquire);
        if (key && needs_no_place(env, o) && open_seize(o, key))
            return o;
    }
    return NULL;
}

/* Seizes the oldest request that no event uses. A request without times is about to get its first one. */
static struct open *seize_oldest(uint32_t set)
{
    for (uint32_t tries = 0, tried = 0; tries < WAYS; tries++) {
        uint32_t oldest = WAYS;
        uint64_t key = 0, first = UINT64_MAX;
        for (uint32_t way = 0; way < WAYS; way++) {
            const struct open *o = &memory->open[set + way];
            uint64_t its = atomic_load_explicit(&memory->open_keys[set + way], memory_order_acquire);
            uint64_t start = start_of(o) ? start_of(o) : GET(o->begun);
            if (its && start && start < first && !(tried >> way & 1))
                oldest = way, key = its, first = start;
        }
        if (oldest == WAYS)
            break;
        if (open_seize(&memory->open[set + oldest], key))
            return &memory->open[set + oldest];
        tried |= UINT32_C(1) << oldest;
    }
    return NULL;
}

/* Gives up a request. One that no server has received is not counted as elsewhere, because a server may receive it yet. */
static void give_up(struct lane *lane, struct open *o)
{
    const uint32_t flags = GET(o->flags);
    const bool is_counted = flags & REQUEST_AT_SERVER ? settle_request(lane, o, 0) & REQUEST_SETTLED : is_elsewhere(flags);

    if (!is_counted)
        keyed_count(lane, all_row, 1, 1);
}

/* Takes the place of a request that gets no more events, else gives up the oldest request of the set. */
static __attribute__((noinline)) struct open *open_replace(ErlNifEnv *env, struct lane *lane, uint32_t set, uint64_t key)
{
    struct open *o = seize_dead(env, set);
    if (o) {
        if (!(GET(o->flags) & REQUEST_SETTLED) && GET(o->flags) & REQUEST_AT_SERVER)
            leave(lane, o);
    } else {
        if (!(o = seize_oldest(set)))
            return NULL;
        give_up(lane, o);
    }
    open_clear(o);
    atomic_store_explicit(&memory->open_keys[place_of(o)], key, memory_order_release);
    /* From now on, only the new request holds the place. Others may have tried to, and undo that. */
    atomic_fetch_sub_explicit(&o->held, TAKEN - 1, memory_order_release);
    return o;
}

static struct open *open_take(uint32_t set, uint64_t key)
{
    _Atomic uint64_t *bits = &memory->touched[set / WAYS / 64];
    uint64_t bit = UINT64_C(1) << set / WAYS % 64, none = 0;
    if (!(GET(*bits) & bit))
        atomic_fetch_or_explicit(bits, bit, memory_order_relaxed);
    for (uint32_t way = 0; way < WAYS; way++, none = 0) {
        struct open *o = &memory->open[set + way];
        if (GET(memory->open_keys[set + way]))
            continue;
        /* First hold the place, because any thread can find the key. If TAKEN is set, open_seize() rejects the new key. */
        if (is_far(o))
            atomic_fetch_add_explicit(&o->held, 1, memory_order_relaxed);
        if (atomic_compare_exchange_strong(&memory->open_keys[set + way], &none, key))
            return o;
        open_release(o);
    }
    return NULL;
}

/* NULL: there is no place, because other events use all. The caller calls open_release(). */
static struct open *open_add(ErlNifEnv *env, struct lane *lane, uint64_t key)
{
    struct open *o = open_take(set_of(key, NEAR_SETS), key);
    if (__builtin_expect(o != NULL, 1))
        return o;
    if ((o = open_take(far_set(key), key)))
        atomic_fetch_add_explicit(&memory->far, 1, memory_order_relaxed);
    return o ? o : open_replace(env, lane, far_set(key), key);
}

/* Only the caller may set flags while another event does, and only if its side was seen. */
static ONCE uint32_t flag(struct open *o, uint32_t flags)
{
    uint32_t before = GET(o->flags);
    if (!(before & REQUEST_ASKED)) {
        atomic_store_explicit(&o->flags, before | flags, memory_order_release);
        return before;
    }
    return atomic_fetch_or_explicit(&o->flags, flags, memory_order_acq_rel);
}

/* Whether no traced process has received the request, and its caller does not wait any more. */
static bool is_elsewhere(uint32_t flags)
{
    return !(flags & REQUEST_AT_SERVER) && flags & (REQUEST_GAVE_UP | REQUEST_SETTLED);
}

/* Sets flags that may change is_elsewhere(), and counts that. */
static ONCE uint32_t flag_counted(struct lane *lane, struct open *o, uint32_t flags)
{
    uint32_t before = flag(o, flags);
    int change = is_elsewhere(before | flags) - is_elsewhere(before);
    if (__builtin_expect(change, 0))
        keyed_count(lane, all_row, 0, change);
    return before;
}

static uint64_t pid_word(ErlNifEnv *env, ERL_NIF_TERM pid)
{
    ErlNifPid local;
    if (imm_known)
        return imm_is_pid(pid) ? pid : 0;
    return enif_get_local_pid(env, pid, &local) ? pid : 0;
}

/* ---- callers ----------------------------------------------------------------------------------------------------- */

/* Only the caller's own events change its place, so it has one writer at a time. */
static struct caller *caller_of(uint64_t process)
{
    uint32_t set = set_of(process, CALLER_SETS), way = way_of(&memory->caller_keys[set], process);
    return way < WAYS ? &memory->callers[set + way] : NULL;
}

static struct caller *caller_take(ErlNifEnv *env, uint64_t process)
{
    struct caller *c = caller_of(process);
    uint32_t set = set_of(process, CALLER_SETS);
    for (unsigned pass = 0; !c && pass < 2; pass++)
        for (uint32_t way = 0; way < WAYS && !c; way++) {
            uint64_t before = GET(memory->caller_keys[set + way]);
            if (before && (!pass || is_alive(env, before)))
                continue;
            if (!atomic_compare_exchange_strong(&memory->caller_keys[set + way], &before, process))
                continue;
            c = &memory->callers[set + way];
            for (unsigned i = 0; i < CALLER_OPEN; i++)
                SET(c->newest[i], 0);
        }
    return c;
}

/* Without a place, a timeout of this caller is not seen. */
static void caller_asks(ErlNifEnv *env, uint64_t process, const struct open *o)
{
    struct caller *c = caller_take(env, process);
    for (unsigned i = CALLER_OPEN - 1; c && i; i--)
        SET(c->newest[i], GET(c->newest[i - 1]));
    if (c)
        SET(c->newest[0], place_of(o) + 1);
}

static void caller_forgets(uint64_t process, const struct open *o)
{
    struct caller *c = caller_of(process);
    unsigned kept = 0;
    for (unsigned i = 0; c && i < CALLER_OPEN; i++) {
        uint32_t place = GET(c->newest[i]);
        if (place && place != place_of(o) + 1)
            SET(c->newest[kept++], place);
    }
    if (!c)
        return;
    for (unsigned i = kept; i < CALLER_OPEN; i++)
        SET(c->newest[i], 0);
    if (!kept)
        atomic_store_explicit(&memory->caller_keys[c - memory->callers], 0, memory_order_release);
}

/* The newest request that a process may have given up. The caller calls open_release(). */
static struct open *caller_waits(uint64_t process)
{
    struct caller *c = caller_of(process);
    for (unsigned i = 0; c && i < CALLER_OPEN && GET(c->newest[i]); i++) {
        struct open *o = &memory->open[(GET(c->newest[i]) - 1) % (OPEN_SETS * WAYS)];
        uint64_t key = atomic_load_explicit(&memory->open_keys[place_of(o)], memory_order_acquire);
        if (!key || !open_hold(o, key))
            continue;
        uint32_t flags = GET(o->flags);
        if (GET(o->caller) == process && flags & REQUEST_ASKED &&
            !(flags & (REQUEST_INFINITE | REQUEST_GOT | REQUEST_GAVE_UP)))
            return o;
        open_release(o);
    }
    return NULL;
}

/* ---- servers ----------------------------------------------------------------------------------------------------- */

static uint64_t what(enum requests_work work, bool statem, uint32_t shape)
{
    return (uint64_t)work | (uint64_t)statem << 8 | (uint64_t)shape << 32;
}

static bool server_lock(struct server *s)
{
    return !atomic_exchange_explicit(&s->in_use, 1, memory_order_acquire);
}

static void server_unlock(struct server *s)
{
    atomic_store_explicit(&s->in_use, 0, memory_order_release);
}

/* Finds the place of a process. The caller unlocks it. NULL: there is none, or another thread is taking it. */
static struct server *server_find(uint64_t process)
{
    uint32_t set = set_of(process, SERVER_SETS), way = way_of(&memory->server_keys[set], process);
    struct server *s = way < WAYS ? &memory->servers[set + way] : NULL;
    if (!s || !server_lock(s))
        return NULL;
    if (GET(memory->server_keys[set + way]) == process)
        return s;
    server_unlock(s);
    return NULL;
}

/* Takes a free place, else that of a dead process, else that of one which runs no callback. */
static __attribute__((noinline)) struct server *server_take(ErlNifEnv *env, uint64_t process)
{
    uint32_t set = set_of(process, SERVER_SETS);
    for (unsigned pass = 0; pass < 3; pass++)
        for (uint32_t way = 0; way < WAYS; way++) {
            struct server *s = &memory->servers[set + way];
            uint64_t before = GET(memory->server_keys[set + way]);
            if ((before && (!pass || (pass == 1 && is_alive(env, before)))) || !server_lock(s))
                continue;
            if (GET(memory->server_keys[set + way]) != before || (pass == 2 && s->busy)) {
                server_unlock(s);
                continue;
            }
            SET(s->label, 0), SET(s->doing, 0);
            s->busy = false;
            s->module = s->request = s->replied = 0;
            s->count = s->at = s->row = 0;
            atomic_store_explicit(&memory->server_keys[set + way], process, memory_order_release);
            return s;
        }
    return NULL;
}

/* The label of a server that need not be ours to change. 0: its module is not known. */
static uint32_t server_label(uint64_t process)
{
    uint32_t set = set_of(process, SERVER_SETS), way = way_of(&memory->server_keys[set], process);
    return way < WAYS ? GET(memory->servers[set + way].label) : 0;
}

static uint32_t label_of(const struct open *o)
{
    uint32_t label = GET(o->label);
    uint64_t server = GET(o->server);
    if (!label && server)
        label = server_label(server);
    return label || !server ? label : process_label(server);
}

/* Adds what the server did until now. Equal work in a row is one span. */
static void server_did(struct server *s, uint64_t now)
{
    struct span *last = &s->spans[(s->at + SPANS - 1) % SPANS], *span = &s->now;
    span->to = now;
    span->times = 1;
    span->ticks = now > span->from ? now - span->from : 0;
    if (s->count && last->what == span->what) {
        last->times++;
        last->ticks += span->ticks;
        last->to = now;
        last->last = span->from;
        return;
    }
    s->spans[s->at] = *span;
    s->at = (s->at + 1) % SPANS;
    s->count += s->count < SPANS;
}

/* The part of a span after `from`. Callbacks before the last one are taken as evenly spread. */
static struct span span_since(const struct span *span, uint64_t from)
{
    struct span part = *span;
    if (from >= span->last) {
        uint64_t since = from > span->from ? from : span->from;
        part.times = 1;
        part.ticks = span->to > since ? span->to - since : 0;
    } else if (span->from < from && span->to > span->from) {
        double share = (double)(span->to - from) / (double)(span->to - span->from);
        part.ticks = (uint64_t)((double)part.ticks * share);
        part.times = (uint64_t)((double)part.times * share + 0.5);
        part.times = part.times ? part.times : 1;
    }
    return part;
}

/* Writes the note of a wait: the callbacks that took most of the time since `from`. */
static void waited_behind(const struct server *s, uint64_t from, uint64_t note[static KEYED_NOTE])
{
    struct span sums[SPANS], *most = NULL;
    unsigned n = 0;
    uint64_t all = 0;
    for (unsigned i = 1; i <= s->count; i++) {
        const struct span *span = &s->spans[(s->at + SPANS - i) % SPANS];
        if (span->to <= from)
            break;
        struct span part = span_since(span, from);
        unsigned k = 0;
        while (k < n && sums[k].what != part.what)
            k++;
        if (k == n)
            sums[n++] = (struct span){.what = part.what};
        sums[k].times += part.times;
        sums[k].ticks += part.ticks;
        all += part.ticks;
        if (sums[k].ticks && (!most || sums[k].ticks > most->ticks))
            most = &sums[k];
    }
    note[0] = most ? most->what : 0;
    note[1] = most ? most->times : 0;
    note[2] = most ? tally_ns(0, most->ticks) : 0;
    note[3] = tally_ns(0, all);
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* Another processor's clock may be a little behind. Then `to` is less than `from`, and no time has passed. */
static void add_between(struct lane *lane, uint32_t row, unsigned which, uint64_t from, uint64_t to)
{
    if (from && to)
        keyed_value(lane, row, which, (int64_t)tally_ns(from, to));
}

/* The begin of the wait. A busy server notices a message late, so the time of the send is the better one. */
static uint64_t start_of(const struct open *o)
{
    uint64_t asked = GET(o->asked);
    return asked ? asked : GET(o->arrived);
}

static void count_wait(struct lane *lane, uint32_t row, uint64_t start, uint64_t begun, uint64_t note[static KEYED_NOTE])
{
    if (!start || !begun)
        return;
    uint64_t waited = tally_ns(start, begun);
    keyed_value(lane, row, 0, (int64_t)waited);
    keyed_note(lane, row, waited, note);
}

/*
 * Counts the wait of a request that has begun, although it may never have a reply. A state machine may postpone it again.
 * If its row is not known yet, settle_request() counts the wait.
 */
static void wait_is_over(struct lane *lane, struct open *o)
{
    uint32_t row = GET(o->row);
    if (!row || flag(o, REQUEST_WAITED) & REQUEST_WAITED)
        return;
    count_wait(lane, row, start_of(o), GET(o->begun), o->note);
}

/*
 * Counts a request, unless another event has. Flags: what this event adds. Returns the flags before. The figures are
 * read before the flag is set, because the caller's thread may remove the request after that.
 */
static uint32_t settle_request(struct lane *lane, struct open *o, uint32_t flags)
{
    uint64_t start = start_of(o), begun = GET(o->begun), sent = flags & REQUEST_SENT ? GET(o->sent) : 0, note[KEYED_NOTE];
    uint32_t row = GET(o->row);
    if (!row)
        SET(o->row, row = pair_row(label_of(o), GET(o->shape)));
    memcpy(note, o->note, sizeof note);
    uint32_t before = flag_counted(lane, o, flags | REQUEST_SETTLED), now = before | flags;
    if (before & REQUEST_SETTLED || !(now & REQUEST_AT_SERVER))
        return before;
    bool timed_out = now & REQUEST_GAVE_UP && !(now & REQUEST_GOT);
    keyed_count(lane, row, REQUEST_COUNT_CALLS, 1);
    if (now & (REQUEST_ASKED | REQUEST_GOT | REQUEST_GAVE_UP | REQUEST_DOWN))
        keyed_count(lane, row, REQUEST_COUNT_CALLERS, 1);
    if (timed_out)
        keyed_count(lane, row, REQUEST_COUNT_TIMED_OUT, 1);
    if (timed_out && sent) {
        keyed_count(lane, row, REQUEST_COUNT_LATE, 1);
        flag(o, REQUEST_LATE);
    }
    if (now & REQUEST_DOWN)
        keyed_count(lane, row, REQUEST_COUNT_DOWN, 1);
    add_between(lane, row, 1, begun, sent);
    if (before & REQUEST_WAITED)
        return before;
    note[0] |= (uint64_t) !!(now & REQUEST_POSTPONED) << 16;
    count_wait(lane, row, start, begun, note);
    return before;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* The caller calls open_release(). */
static struct open *open_get(ErlNifEnv *env, struct lane *lane, uint64_t key, const struct requests_read *from)
{
    struct open *o = open_find(key);
    if (o)
        return o;
    o = open_add(env, lane, key);
    if (o)
        SET(o->flags, from->alias || from->message == REQUESTS_TASK ? 0 : REQUEST_INFINITE);
    return o;
}

static void asked(ErlNifEnv *env, struct lane *lane, uint64_t process, const struct requests_read *read, uint64_t tick)
{
    struct open *o = open_get(env, lane, requests_key(read->ref), read);
    if (!o)
        return;
    SET(o->asked, tick);
    SET(o->caller, process);
    flag(o, REQUEST_ASKED);
    if (!(GET(o->flags) & REQUEST_INFINITE))
        caller_asks(env, process, o);
    open_release(o);
}

static void arrived(ErlNifEnv *env, struct lane *lane, uint64_t process, const struct requests_read *read, uint64_t tick)
{
    struct open *o = open_get(env, lane, requests_key(read->ref), read);
    if (!o) {
        keyed_count(lane, all_row, 1, 1);
        return;
    }
    bool task = read->message == REQUESTS_TASK;
    SET(o->arrived, tick);
    if (!GET(o->caller))
        SET(o->caller, pid_word(env, task ? read->elements[0] : read->pid));
    if (!GET(o->server))
        SET(o->server, process);
    if (!GET(o->shape))
        SET(o->shape, task ? function_of(env, lane, read->elements[4]) : shape_of(env, lane, read->elements[2]));
    if (task) { /* the process waited for nothing else, so it begins at once */
        SET(o->begun, tick);
        SET(o->label, task_label);
        SET(o->row, pair_row(task_label, GET(o->shape)));
    }
    flag_counted(lane, o, REQUEST_AT_SERVER | (task ? REQUEST_TASK : 0));
    if (task)
        wait_is_over(lane, o);
    open_release(o);
}

static void reply_sent(struct lane *lane, uint64_t process, struct open *o, uint64_t key, uint64_t tick)
{
    uint64_t server = GET(o->server);
    uint32_t more = REQUEST_SENT;
    SET(o->sent, tick);
    if (!server) {
        SET(o->server, process);
        more |= REQUEST_AT_SERVER;
    } else if (server == process && !(GET(o->flags) & REQUEST_TASK)) {
        struct server *s = server_find(process);
        if (s && s->request == key) {
            s->replied = tick;
            SET(s->doing, 0);
        }
        if (s)
            server_unlock(s);
    }
    uint32_t before = settle_request(lane, o, more);
    if (!(before & (REQUEST_ASKED | REQUEST_GOT | REQUEST_GAVE_UP | REQUEST_DOWN)))
        open_remove(o);
}

static void replied(struct lane *lane, uint64_t process, const struct requests_read *read, uint64_t tick)
{
    uint64_t key = requests_key(read->ref);
    struct open *o = open_find(key);
    if (!o)
        return;
    if (!(GET(o->flags) & REQUEST_SENT))
        reply_sent(lane, process, o, key, tick);
    open_release(o);
}

static void reply_got(struct lane *lane, uint64_t process, const struct requests_read *read, uint64_t tick)
{
    struct open *o = open_find(requests_key(read->ref));
    if (!o)
        return;
    uint64_t sent = GET(o->sent);
    uint32_t before = settle_request(lane, o, REQUEST_GOT), row = GET(o->row);
    if (before & REQUEST_SETTLED) {
        if (before & REQUEST_GAVE_UP)
            keyed_count(lane, row, REQUEST_COUNT_TIMED_OUT, -1);
        if (before & REQUEST_LATE)
            keyed_count(lane, row, REQUEST_COUNT_LATE, -1);
        add_between(lane, row, 2, sent, tick);
    }
    caller_forgets(process, o);
    open_remove(o);
    open_release(o);
}

static void went_down(struct lane *lane, uint64_t process, const struct requests_read *read)
{
    struct open *o = open_find(requests_key(read->ref));
    if (!o)
        return;
    uint32_t before = settle_request(lane, o, REQUEST_DOWN);
    caller_forgets(process, o);
    /* The server has died with the request, but another process may be replying now, and uses the place. */
    if (before & REQUEST_SENT || !(before & REQUEST_AT_SERVER))
        open_remove(o);
    open_release(o);
}

static void gave_up(struct lane *lane, uint64_t process)
{
    struct open *o = caller_waits(process);
    if (!o)
        return;
    if (flag_counted(lane, o, REQUEST_GAVE_UP) & REQUEST_SETTLED)
        keyed_count(lane, GET(o->row), REQUEST_COUNT_TIMED_OUT, 1);
    open_release(o);
}

void request_count_message(ErlNifEnv *env, struct lane *lane, ERL_NIF_TERM process, const struct requests_read *read,
                           bool sends)
{
    uint64_t tick = tick_now();
    tally_begin(lane);
    tally_seen(lane);
    switch (read->message) {
    case REQUESTS_CALL:
    case REQUESTS_TASK:
        sends ? asked(env, lane, process, read, tick) : arrived(env, lane, process, read, tick);
        break;
    case REQUESTS_REPLY:
        sends ? replied(lane, process, read, tick) : reply_got(lane, process, read, tick);
        break;
    case REQUESTS_DOWN:
        if (!sends)
            went_down(lane, process, read);
        break;
    case REQUESTS_TIMEOUT:
        if (!sends)
            gave_up(lane, process);
        break;
    case REQUESTS_OTHER:
        break;
    }
    tally_end(lane);
}

/* ---- callbacks --------------------------------------------------------------------------------------------------- */

/* The callback of a request begins. Ours: this process received the request. */
static void wait_ends(struct lane *lane, struct open *o, struct server *s, const struct requests_callback *c, bool ours,
                      uint64_t tick)
{
    uint32_t flags = GET(o->flags), shape = GET(o->shape);
    if (flags & REQUEST_SETTLED)
        return;
    if (s && ours && GET(s->label)) {
        if (s->shape != shape || !s->row) {
            s->shape = shape;
            s->row = pair_row(GET(s->label), shape);
        }
        SET(o->label, GET(s->label));
        SET(o->row, s->row);
    }
    if (c->statem && GET(o->begun))
        flag(o, REQUEST_POSTPONED);
    SET(o->begun, tick);
    uint64_t start = start_of(o);
    if (start && s)
        waited_behind(s, start, o->note);
    if (!(flags & REQUEST_AT_SERVER))
        flag_counted(lane, o, REQUEST_AT_SERVER);
    if (!c->statem)
        wait_is_over(lane, o);
}

/* Returns the shape of the request. */
static uint32_t request_begins(ErlNifEnv *env, struct lane *lane, uint64_t process, struct server *s,
                               const struct requests_callback *c, uint64_t tick)
{
    uint64_t key = requests_key(c->from.ref);
    struct open *o = open_get(env, lane, key, &c->from);
    if (!o)
        return shape_of(env, lane, c->message);
    if (!GET(o->caller))
        SET(o->caller, pid_word(env, c->from.pid));
    if (!GET(o->server))
        SET(o->server, process);
    uint32_t shape = GET(o->shape);
    if (!shape)
        SET(o->shape, shape = shape_of(env, lane, c->message));
    bool ours = GET(o->server) == process;
    if (s)
        s->request = ours ? key : 0;
    wait_ends(lane, o, s, c, ours, tick);
    open_release(o);
    return shape;
}

static void set_module(ErlNifEnv *env, struct lane *lane, struct server *s, ERL_NIF_TERM module)
{
    if (!module || s->module == module)
        return;
    struct term t;
    uint8_t *at = term_begin(env, lane, &t, KEY_TERM);
    struct keyed_key key = term_end(lane, &t, requests_put_shape(&lane->held, at, module, false));
    s->module = module;
    s->row = 0;
    SET(s->label, keyed_row(&key));
}

static void callback_begins(ErlNifEnv *env, struct lane *lane, uint64_t process, const struct requests_callback *c,
                            uint64_t tick)
{
    struct server *s = server_find(process);
    uint32_t shape = 0;
    if (!s)
        s = server_take(env, process);
    if (s) {
        if (s->busy && s->replied)
            server_did(s, s->replied);
        s->replied = s->request = 0;
        s->busy = false;
        set_module(env, lane, s, c->module);
    }
    if (c->work == REQUESTS_WORK_CALL && c->from.ref)
        shape = request_begins(env, lane, process, s, c, tick);
    else if (c->message)
        shape = shape_of(env, lane, c->message);
    if (!s)
        return;
    s->busy = true;
    s->now = (struct span){.from = tick, .last = tick, .what = what(c->work, c->statem, shape)};
    SET(s->doing, s->now.what);
    server_unlock(s);
}

static void callback_ends(uint64_t process, uint64_t tick)
{
    struct server *s = server_find(process);
    if (s && s->busy) {
        server_did(s, tick);
        s->busy = false;
        s->replied = s->request = 0;
        SET(s->doing, 0);
    }
    if (s)
        server_unlock(s);
}

void request_count_call(ErlNifEnv *env, struct lane *lane, ERL_NIF_TERM process, const struct stack_function *f,
                        ERL_NIF_TERM args)
{
    struct requests_callback c;
    uint64_t tick = tick_now();
    tally_begin(lane);
    tally_seen(lane);
    if (requests_read_callback(env, f->module, f->name, f->arity, args, &c)) {
        if (c.work != REQUESTS_WORK_NONE)
            callback_begins(env, lane, process, &c, tick);
        else
            callback_ends(process, tick);
    }
    tally_end(lane);
}

/* ---- the drain --------------------------------------------------------------------------------------------------- */

static void walk_request(const struct open *o)
{
    uint32_t flags = GET(o->flags);
    if (flags & REQUEST_SETTLED || !(flags & REQUEST_AT_SERVER))
        return;
    uint32_t row = pair_row(label_of(o), GET(o->shape));
    walk.open[row]++;
    walk.timed_out[row] += !!(flags & REQUEST_GAVE_UP);
    uint64_t start = start_of(o), server = GET(o->server);
    if (GET(o->begun) || !server)
        return;
    walk.waiting++;
    if (walk.first && walk.first <= start)
        return;
    uint32_t set = set_of(server, SERVER_SETS), way = way_of(&memory->server_keys[set], server);
    walk.first = start;
    walk.server = label_of(o);
    walk.doing = way < WAYS ? GET(memory->servers[set + way].doing) : 0;
}

/* Looks at the open requests. False: *work is used up. */
static bool walk_on(int64_t *work)
{
    if (!walk.begun) {
        memset(&walk, 0, sizeof walk);
        walk.begun = true;
        keyed_begin_round();
    }
    for (; walk.set<OPEN_SETS && * work> 0; walk.set++) {
        *work -= walk.set % SET_WORK == 0;
        if (!(GET(memory->touched[walk.set / 64]) >> walk.set % 64 & 1))
            continue;
        for (uint32_t way = 0; way < WAYS; way++)
            if (atomic_load_explicit(&memory->open_keys[walk.set * WAYS + way], memory_order_acquire)) {
                walk_request(&memory->open[walk.set * WAYS + way]);
                --*work;
            }
    }
    if (walk.set < OPEN_SETS)
        return false;
    if (!walk.done) {
        uint32_t rows = keyed_rows(); /* the figures of the others have no memory yet */
        for (uint32_t row = 0; row < rows; row++) {
            keyed_gauge(row, 0, walk.open[row]);
            keyed_gauge(row, 1, walk.timed_out[row]);
        }
        keyed_gauge(all_row, 0, (int64_t)walk.waiting);
        keyed_gauge(all_row, 1, (int64_t)walk.doing);
        *work -= KEYED_ROWS / 16;
    }
    walk.done = true;
    return true;
}

/*
 * Puts the term of a key. The owner's frames define each atom anew. [] means that there is none: a shape is ETW_T_ELIDED,
 * but never [].
 */
static uint8_t *put_named(ErlNifEnv *env, uint8_t *at, uint32_t row)
{
    static struct encoder e;
    struct keyed_key key = keyed_key_of(row);
    if (key.length == 1 && key.bytes[0] == KEY_TASK)
        return put8(at, 1);
    if (key.length == 9 && key.bytes[0] == KEY_PROCESS) {
        uint64_t word;
        memcpy(&word, key.bytes + 1, 8);
        return put64(put8(at, ETW_T_PID), tracer_tracee_data(env, word));
    }
    if (key.length < 3 || key.bytes[0] > KEY_FUNCTION)
        return put8(at, ETW_T_NIL);
    uint64_t words[TERM_WORDS];
    uint32_t bytes = key.bytes[1] | (uint32_t)key.bytes[2] << 8, count = (key.length - 3 - bytes) / 8;
    if (3 + bytes > key.length || count > TERM_WORDS)
        return put8(at, ETW_T_NIL);
    memcpy(words, key.bytes + 3 + bytes, count * 8);
    struct encode_held held = {.words = words, .terms = key.bytes + 3, .bytes = bytes, .word_count = (uint16_t)count};
    e.env = env;
    return encode_apart(&e, at, at + REQUEST_COUNT_BYTES / 4, &held);
}

static bool has_kind(uint32_t row, enum key kind)
{
    struct keyed_key key = keyed_key_of(row);
    return key.length && key.bytes[0] == kind;
}

/*
 * {Kind, Server, Shape, Behind}: kind 0 for the requests of a row, 1 for tasks, 2 for what concerns all rows. The server of
 * kind 2 is that of the request that has waited longest.
 */
static uint8_t *put_whose(ErlNifEnv *env, uint8_t *at, const struct keyed_growth *g)
{
    struct keyed_key key = keyed_key_of(g->row);
    bool all = g->row == all_row;
    uint32_t label = all ? walk.server : 0, shape = 0;
    if (key.length == 9 && key.bytes[0] == KEY_ROW) {
        memcpy(&label, key.bytes + 1, 4);
        memcpy(&shape, key.bytes + 5, 4);
    }
    at = put8(put8(at, ETW_T_TUPLE0 + 4), all ? 2 : has_kind(shape, KEY_FUNCTION));
    at = put_named(env, put_named(env, at, label), shape);
    return put_named(env, at, (uint32_t)((all ? walk.doing : g->by.note[0]) >> 32));
}

enum tally_took request_count_take(ErlNifEnv *env, int64_t *work, uint8_t *ret_bytes, size_t *ret_length)
{
    static struct etw_bucket buckets[KEYED_VALUES * ETW_BUCKETS];
    struct keyed_growth g;
    if (!walk_on(work))
        return TALLY_PAUSE;
    enum tally_took took;
    while ((took = keyed_take(work, &g, buckets)) == TALLY_TOOK && g.row != all_row && g.row != KEYED_OTHER &&
           !has_kind(g.row, KEY_ROW))
        continue;
    if (took == TALLY_END)
        walk.begun = false;
    if (took != TALLY_TOOK)
        return took;
    if (g.row == all_row)
        g.by.note[0] = walk.doing;
    uint8_t *at = keyed_put(put_whose(env, ret_bytes, &g), &g, buckets);
    *ret_length = (size_t)(at - ret_bytes);
    return took;
}
