/* SPDX-License-Identifier: Apache-2.0 */
#include "by.h"

#include <string.h>

#include "frame.h"
#include "gate.h"
#include "imm.h"
#include "owed.h"
#include "secret.h"
#include "tick.h"
#include "tracer.h"

#define KEY_BYTES 2048u               /* the most bytes of a key's encoded terms */
#define VALUE_MOST (INT64_C(1) << 54) /* bound of a value and of a lane's sum, so that the sum of all lanes fits */
#define KEY_MEAN 256u                 /* reserved bytes for each key; a key without room counts in ROWS_OTHER */
#define GROUPS_MEAN 16u /* groups of buckets reserved for each row of a lane; an event without room is sent */
#define HEAD 10         /* bytes of a key before its terms: their length (u16) and the tracee (u64) */
#define WORDS ((ROWS_KEY_MOST - HEAD) / 8) /* the most atoms of a key */

/* A part of a key, or a value: a term at a place (enum etw_by_place), or an element in that term. */
struct part {
    uint8_t what, deep;                /* what: enum etw_by; deep: the length of `path` */
    bool buckets;                      /* the value has a histogram */
    bool late;                         /* known only when the call has its result */
    uint16_t place, path[ETW_BY_DEEP]; /* path: the numbers of the elements, from the outermost tuple inward */
};

static struct {
    struct part keys[ETW_BY_KEYS], values[ETW_BY_VALUES];
    unsigned nkeys, nvalues, args; /* args: the highest number of an argument that a key or a value reads */
    unsigned n_early;              /* the first n_early keys are known at the call, the rest with the result */
    bool waits;                    /* a key or a value comes with the result */
    unsigned early, late;          /* bit sets of `values`. early: known at the call; late: known with the result */
} by;

/* Where find_part() looks: in a call or a message (`event`), or in the result of a call (`end`). */
struct source {
    const struct stack_function *function;
    ERL_NIF_TERM process;
    const struct by_event *event; /* NULL for a result */
    const struct by_result *end;  /* NULL for a call or a message */
    /* Only for a result: what get_words() found for the early keys at the call. NULL: it found no words for them. */
    const uint64_t *early;
    uint64_t ns; /* the duration of the call */
};

static ERL_NIF_TERM atom_call, atom_cast, atom_struct;

/* ---- the request ------------------------------------------------------------------------------------------------- */

/* Reads [What, Place, Element, ...]. Returns false if the list is malformed. */
static bool get_part(ErlNifEnv *env, ERL_NIF_TERM list, struct part *ret)
{
    ERL_NIF_TERM head;
    unsigned numbers[2 + ETW_BY_DEEP] = {0}, n = 0;
    for (; enif_get_list_cell(env, list, &head, &list); n++)
        if (n == 2 + ETW_BY_DEEP || !enif_get_uint(env, head, &numbers[n]) || numbers[n] > UINT16_MAX)
            return false;
    if (n < 2 || numbers[0] >= ETW_BY_WHATS || numbers[1] >= ETW_BY_PLACES)
        return false;
    *ret = (struct part){.what = (uint8_t)numbers[0], .place = (uint16_t)numbers[1], .deep = (uint8_t)(n - 2)};
    ret->buckets = ret->what == ETW_BY_BUCKETS;
    ret->late = etw_by_is_late(ret->place);
    for (unsigned i = 2; i < n; i++)
        ret->path[i - 2] = (uint16_t)numbers[i];
    if (ret->place < ETW_BY_RET && ret->place > by.args)
        by.args = ret->place;
    by.waits |= ret->late;
    return true;
}

static bool get_parts(ErlNifEnv *env, ERL_NIF_TERM list, struct part *parts, unsigned most, unsigned *ret_count)
{
    ERL_NIF_TERM head;
    unsigned n = 0;
    for (; enif_get_list_cell(env, list, &head, &list); n++)
        if (n == most || !get_part(env, head, &parts[n]))
            return false;
    *ret_count = n;
    return enif_is_empty_list(env, list);
}

bool by_set(ErlNifEnv *env, ERL_NIF_TERM keys, ERL_NIF_TERM values)
{
    rows_forget(&tally_rows);
    by.args = by.n_early = 0;
    by.waits = false;
    atom_call = enif_make_atom(env, "$gen_call");
    atom_cast = enif_make_atom(env, "$gen_cast");
    atom_struct = enif_make_atom(env, "__struct__");
    if (!get_parts(env, keys, by.keys, ETW_BY_KEYS, &by.nkeys) ||
        !get_parts(env, values, by.values, ETW_BY_VALUES, &by.nvalues))
        return false;
    by.early = by.late = 0;
    for (unsigned i = 0; i < by.nvalues; i++)
        *(by.values[i].late ? &by.late : &by.early) |= 1u << i;
    while (by.n_early < by.nkeys && !by.keys[by.n_early].late)
        by.n_early++;
    for (unsigned i = by.n_early; i < by.nkeys; i++)
        if (!by.keys[i].late)
            return false;
    return true;
}

struct rows_room by_room(uint32_t keys)
{
    const uint32_t count = 1 + (keys < ETW_BY_ROWS_MOST ? keys : ETW_BY_ROWS_MOST);
    /* Even for a few keys, reserve room for ETW_BY_ROWS keys of mean length: a few keys may be long. */
    const uint32_t mean = count > ETW_BY_ROWS ? count : 1 + ETW_BY_ROWS;
    return (struct rows_room){.counts = ROWS_COUNTS,
                              .values = ROWS_VALUES,
                              .rows = count,
                              .key_bytes = mean * KEY_MEAN,
                              .groups = (size_t)mean * GROUPS_MEAN};
}

/* ---- the key of a call ------------------------------------------------------------------------------------------- */

static enum etw_kind kind_of(const struct source *s)
{
    return s->event ? s->event->kind : ETW_CALL;
}

static ERL_NIF_TERM term_of_result(unsigned place, const struct by_result *r)
{
    return place == ETW_BY_RET ? r->value : place == ETW_BY_CLASS ? r->class : place == ETW_BY_REASON ? r->reason : 0;
}

/* Returns the term at the place of a part, or 0 if there is no such term. */
static ERL_NIF_TERM term_at(const struct part *p, const struct source *s)
{
    const struct by_event *b = s->event;
    if (b && p->place && p->place <= b->count) /* arguments have lower numbers than all other places */
        return b->args[p->place - 1];
    if (p->place == ETW_BY_MODULE)
        return s->function->module;
    if (p->place == ETW_BY_FUNCTION)
        return s->function->name;
    if (!b)
        return term_of_result(p->place, s->end);
    if (p->what == ETW_BY_RESULT)
        return b->result;
    if (p->place == ETW_BY_MSG)
        return b->message;
    return p->place == ETW_BY_TO ? b->to : 0;
}

enum found { FOUND, FOUND_NOTHING, FOUND_SECRET };

/*
 * Finds the term of a part, as the client would find it in an encoded event. The client sees no secrets, so a secret
 * term is not returned.
 */
static enum found find_part(struct encoder *e, const struct part *p, const struct source *s, ERL_NIF_TERM *ret)
{
    const ERL_NIF_TERM *elements;
    int arity;
    if (s->early && !p->late) /* `p` is a key: a result has no use for early values */
        return (*ret = s->early[p - by.keys]) ? FOUND : FOUND_NOTHING;
    if (!(*ret = term_at(p, s)))
        return FOUND_NOTHING;
    for (unsigned i = 0; i < p->deep; i++) {
        if (!enif_get_tuple(e->env, *ret, &arity, &elements) || p->path[i] > arity || !p->path[i])
            return FOUND_NOTHING;
        if (arity == 2 && p->path[i] == 2 && secret_names && encode_names_secret(e, elements[0]))
            return FOUND_SECRET;
        *ret = elements[p->path[i] - 1];
    }
    return FOUND;
}

/*
 * Puts the simplest term that has the same tag as `t`. No function of the VM tells a bit string from a native record,
 * but comparing with [] does, in bounded time: only bit strings are greater. A record is put as the text "#", which the
 * client takes for a record.
 */
static uint8_t *put_simplest(struct encoder *e, uint8_t *at, ERL_NIF_TERM t)
{
    const ERL_NIF_TERM *elements;
    ERL_NIF_TERM module;
    double real;
    int arity;
    if (enif_is_atom(e->env, t))
        return encode_term(e, at, 8, t);
    if (enif_get_tuple(e->env, t, &arity, &elements)) {
        if (!arity || !enif_is_atom(e->env, elements[0]))
            return put8(at, ETW_T_TUPLE0);
        return encode_term(e, put8(at, ETW_T_TUPLE0 + 1), 8, elements[0]);
    }
    if (enif_is_map(e->env, t)) {
        bool is_struct = enif_get_map_value(e->env, t, atom_struct, &module) && enif_is_atom(e->env, module);
        at = put32(put8(at, ETW_T_MAP), is_struct);
        return is_struct ? encode_term(e, encode_term(e, at, 8, atom_struct), 8, module) : at;
    }
    if (enif_is_list(e->env, t))
        return put8(at, ETW_T_NIL);
    if (enif_is_number(e->env, t))
        return enif_get_double(e->env, t, &real) ? put64(put8(at, ETW_T_FLOAT), 0) : put8(at, 0);
    if (enif_is_binary(e->env, t))
        return put32(put64(put8(at, ETW_T_BIN), 0), 0);
    if (enif_is_pid(e->env, t))
        return put64(put8(at, ETW_T_PID), 0);
    if (enif_is_port(e->env, t))
        return put64(put8(at, ETW_T_PORT), 0);
    if (enif_is_ref(e->env, t))
        return put16(put8(put8(at, ETW_T_TEXT), ETW_TEXT_REF), 0);
    if (enif_is_fun(e->env, t))
        return put16(put8(put8(at, ETW_T_TEXT), ETW_TEXT_FUN), 0);
    if (enif_compare(t, imm_nil) > 0)
        return put32(put64(put8(put8(at, ETW_T_BITS), 1), 1), 0);
    return put8(put16(put8(put8(at, ETW_T_TEXT), ETW_TEXT_OTHER), 1), '#');
}

/*
 * Puts a term with the same tag as `t`. For a call or a cast of a gen_server, the client takes the tag of the request
 * in it. So this puts a cast whose request has that tag.
 */
static uint8_t *put_tag(struct encoder *e, uint8_t *at, ERL_NIF_TERM t)
{
    const ERL_NIF_TERM *elements;
    int arity;
    if (!enif_get_tuple(e->env, t, &arity, &elements) || arity < 2 || arity > 3 ||
        elements[0] != (arity == 3 ? atom_call : atom_cast))
        return put_simplest(e, at, t);
    return put_simplest(e, encode_term(e, put8(at, ETW_T_TUPLE0 + 2), 8, atom_cast), elements[arity - 1]);
}

/*
 * Puts {Term} for the term of a part, or {} if the event has no such term. Cuts the term after *left bytes, and
 * subtracts its bytes from *left.
 */
static uint8_t *put_part(struct encoder *e, uint8_t *at, const struct part *p, const struct source *s, uint32_t *left)
{
    ERL_NIF_TERM t;
    const struct stack_function *f = s->function;
    if (p->what == ETW_BY_ARITY)
        return encode_term(e, put8(at, ETW_T_TUPLE0 + 1), 8, enif_make_uint(e->env, f->arity));
    if (p->what == ETW_BY_KIND)
        return encode_term(e, put8(at, ETW_T_TUPLE0 + 1), 8, enif_make_uint(e->env, kind_of(s)));
    if (p->what == ETW_BY_MFA) {
        at = put8(put8(at, ETW_T_TUPLE0 + 1), ETW_T_TUPLE0 + 3);
        at = encode_term(e, encode_term(e, at, 8, f->module), 8, f->name);
        return encode_term(e, at, 8, enif_make_uint(e->env, f->arity));
    }
    enum found found = find_part(e, p, s, &t);
    if (found == FOUND_NOTHING)
        return put8(at, ETW_T_TUPLE0);
    at = put8(at, ETW_T_TUPLE0 + 1);
    if (found == FOUND_SECRET)
        return put8(at, ETW_T_REDACTED);
    if (p->what == ETW_BY_TAG)
        return put_tag(e, at, t);
    uint8_t *behind = encode_term(e, at, e->limits.bytes < *left ? e->limits.bytes : *left, t);
    *left -= (uint32_t)(behind - at) < *left ? (uint32_t)(behind - at) : *left;
    return behind;
}

/* A key that is being built: its head, then its terms up to `at`. finish_key() adds the atoms behind the terms. */
struct making {
    uint8_t bytes[HEAD + KEY_BYTES + ENCODE_OVERRUN + ROWS_KEY_MOST], *at;
    uint64_t tracee;
};

/*
 * Begins a key that has no terms yet, and sets the encoder's tick to the current time. Does not clear the bytes,
 * because that would cost more than building most keys.
 */
static void begin_terms(struct encoder *e, struct making *m)
{
    e->tick = tick_now();
    m->at = m->bytes + HEAD;
    m->tracee = 0;
}

/* Adds the parts `first` to `end` - 1. Returns false if the key is too long for a row. */
static bool add_parts(struct encoder *e, struct making *m, unsigned first, unsigned end, const struct source *s)
{
    uint8_t *most = m->bytes + HEAD + KEY_BYTES;
    for (unsigned i = first; i < end; i++) {
        uint32_t left = (uint32_t)(most - m->at), room = left;
        if (by.keys[i].what == ETW_BY_TRACEE)
            m->tracee = s->process;
        m->at = put_part(e, m->at, &by.keys[i], s, &left);
        if (m->at > most || (e->flags & ETW_F_CUT && room < e->limits.bytes))
            return false;
    }
    return e->word_count <= WORDS && (size_t)(m->at - m->bytes) + e->word_count * sizeof *e->words <= ROWS_KEY_MOST;
}

static struct rows_key finish_key(struct encoder *e, struct making *m)
{
    size_t words = e->word_count * sizeof *e->words;
    put64(put16(m->bytes, (unsigned)(m->at - m->bytes - HEAD)), m->tracee);
    memcpy(m->at, e->words, words);
    return (struct rows_key){m->bytes, (uint32_t)((size_t)(m->at - m->bytes) + words), e->flags & ETW_F_CUT};
}

/*
 * Gets the raw terms of the first `count` parts of the key; 0 if the event has no such term. Returns false if a term is
 * secret or not an immediate (imm.h), because then the raw term does not identify the value.
 */
static ALWAYS bool get_words(struct encoder *e, const struct source *s, unsigned count, uint64_t *ret)
{
    ERL_NIF_TERM t;
    if (!imm_known)
        return false;
    for (unsigned i = 0; i < count; i++) {
        const struct part *p = &by.keys[i];
        ret[i] = 0;
        /* the remaining kinds of parts follow from the function, which rows_is_recent() compares, too */
        if (p->what > ETW_BY_TAG && p->what != ETW_BY_RESULT) {
            if (p->what == ETW_BY_TRACEE)
                ret[i] = s->process;
            else if (p->what == ETW_BY_KIND)
                ret[i] = kind_of(s);
            continue;
        }
        enum found found = find_part(e, p, s, &t);
        if (found == FOUND_SECRET || (found == FOUND && !imm_is_value(t)))
            return false;
        if (found == FOUND)
            ret[i] = t;
    }
    return true;
}

/* Encodes a key and finds its row. Returns ROWS_NONE if the key is too long for a row. */
static __attribute__((noinline)) uint32_t encoded_row(struct encoder *e, const struct source *s)
{
    struct making m;
    begin_terms(e, &m);
    if (!add_parts(e, &m, 0, by.nkeys, s))
        return ROWS_NONE;
    const struct rows_key key = finish_key(e, &m);
    return rows_find(rows_memory(&tally_rows), &key);
}

/*
 * Finds the row of a key, first among the lane's recent rows. An immediate term (imm.h) has the same encoding each
 * time, so a recent key of immediate terms need not be encoded again.
 */
static ALWAYS uint32_t row_of_key(struct lane *lane, struct encoder *e, const struct source *s)
{
    uint32_t epoch = rows_epoch(&tally_rows);
    uint64_t words[ETW_BY_KEYS];
    if (!get_words(e, s, by.nkeys, words))
        return encoded_row(e, s);
    struct rows_recent *r = rows_recent(rows_memory(&tally_rows), lane, s->function, words, by.nkeys);
    if (__builtin_expect(rows_is_recent(r, epoch, s->function, words, by.nkeys), 1))
        return r->row;
    uint32_t row = encoded_row(e, s);
    if (row != ROWS_NONE && row != ROWS_OTHER) {
        *r = (struct rows_recent){.epoch = epoch, .row = row, .function = *s->function};
        memcpy(r->words, words, by.nkeys * sizeof *words);
    }
    return row;
}

/* ---- the figures of a call --------------------------------------------------------------------------------------- */

/*
 * The values of a call. known: the set of values that have been read. are: those among them that are integers. Values
 * outside of `known` come with the result, or were counted at the call.
 */
struct numbers {
    unsigned known, are;
    int64_t values[ETW_BY_VALUES];
};

static unsigned lowest_bit(unsigned set)
{
    return (unsigned)__builtin_ctz(set);
}

/* Reads the values in the bit set `set`. Returns false if a row cannot hold one of them. */
static bool get_numbers(struct encoder *e, unsigned set, const struct source *s, struct numbers *ret)
{
    ERL_NIF_TERM t;
    ErlNifSInt64 value;
    bool fits = true;
    ret->known |= set;
    for (; set; set &= set - 1) {
        unsigned i = lowest_bit(set);
        const struct part *p = &by.values[i];
        if (p->place == ETW_BY_DUR)
            value = (int64_t)s->ns;
        else if (find_part(e, p, s, &t) != FOUND)
            continue;
        else if (!enif_get_int64(e->env, t, &value)) {
            fits &= !enif_is_number(e->env, t); /* a float, or an integer of more than 64 bits */
            continue;
        }
        ret->are |= 1u << i;
        ret->values[i] = value;
        fits &=
            p->buckets ? value >= 0 && value < (int64_t)ETW_BUCKETS_MOST : value < VALUE_MOST && value > -VALUE_MOST;
    }
    return fits;
}

static bool row_takes(const struct rows_place *p, const struct numbers *numbers)
{
    for (unsigned set = numbers->are; set; set &= set - 1)
        if (!rows_takes(p, lowest_bit(set), VALUE_MOST))
            return false;
    return true;
}

static void count_values(const struct rows_place *p, bool calls, const struct numbers *numbers)
{
    rows_count(p, calls ? TALLY_EVENTS : TALLY_BESIDE, 1);
    for (unsigned set = numbers->are; set; set &= set - 1)
        rows_value(p, lowest_bit(set), numbers->values[lowest_bit(set)]);
    for (unsigned set = numbers->known & ~numbers->are; set; set &= set - 1)
        rows_count(p, TALLY_SKIPPED + lowest_bit(set), 1);
}

static bool is_late_key(void)
{
    return by.n_early < by.nkeys;
}

static struct encoder *begin_key(ErlNifEnv *env, struct lane *lane)
{
    struct encoder *e = &lane->held;
    e->env = env;
    e->flags = e->word_count = 0;
    return e;
}

/* ---- calls that wait for their results --------------------------------------------------------------------------- */

/*
 * A call on a stack keeps what its result needs. If its verdict is VERDICT_SHOWS, the call is counted already, and
 * stack_call.words is its row. If it is TALLY_WHOLE or VERDICT_WAITS, the call is counted with its result, and only if
 * the filter then shows it. Such a call has this struct in the bytes beside it. If `plain` is not set, the atoms and
 * the terms of its key follow.
 */
struct late {
    uint16_t terms, words;       /* bytes of the terms; number of the atoms */
    bool plain;                  /* get_words() has found the words of all early keys, so they are not encoded */
    uint64_t early[ETW_BY_KEYS]; /* these words */
    uint64_t tracee;
    struct numbers numbers; /* values that are known at the call */
};

_Static_assert(ETW_BY_ROWS_MOST <= UINT16_MAX, "a row fits stack_call.words");

/* Returns true if the key, a value or the filter needs the results of calls. */
static bool reads_results(void)
{
    return by.waits || verdict_is_set();
}

static bool awaits_result(const struct by_event *b)
{
    return b->returns && reads_results();
}

/* Pushes a call that is counted in this row. Returns false if the stack has no room. */
static bool push_row(const struct encoder *e, const struct by_event *b, uint32_t row)
{
    const struct stack_call call = {.function = b->function,
                                    .tick = tick_now(),
                                    .verdict = VERDICT_SHOWS,
                                    .words = (uint16_t)row};
    return stack_push(e->env, b->process, &call);
}

static bool push_late(const struct encoder *e, const struct by_event *b, const struct late *l, const uint8_t *terms,
                      int verdict)
{
    const uint32_t words = l->words * (uint32_t)sizeof *e->words;
    const struct stack_call call = {.function = b->function,
                                    .tick = e->tick,
                                    .verdict = (uint8_t)verdict,
                                    .flags = (uint8_t)e->flags,
                                    .bytes = (uint32_t)sizeof *l + words + l->terms};
    struct stack_call *place = stack_push(e->env, b->process, &call);
    if (!place)
        return false;
    uint8_t *at = stack_beside(place);
    memcpy(at, l, sizeof *l);
    memcpy(at + sizeof *l, e->words, words);
    memcpy(at + sizeof *l + words, terms, l->terms);
    return true;
}

void by_lost(ErlNifEnv *env, const struct by_event *b, enum etw_loss why)
{
    const struct stack_call call = {.function = b->function, .verdict = TALLY_LOST, .flags = (uint8_t)why};
    if (awaits_result(b))
        stack_push(env, b->process, &call);
}

/* Notes on the stack that the caller sends the call, so that its result is sent, too. Returns false for by_event(). */
static bool push_sent(ErlNifEnv *env, const struct by_event *b)
{
    if (awaits_result(b))
        stack_push(env, b->process, &(struct stack_call){.function = b->function, .verdict = TALLY_SENT});
    return false;
}

/* Adds to a count of the row ROWS_OTHER, as a change of its own. */
static void add_alone(struct lane *lane, unsigned which, int more)
{
    tally_begin(lane);
    tally_add(lane, which, more);
    tally_end(lane);
}

/*
 * Counts an event as seen, in a row, or in ROWS_OTHER if `p` is NULL. Adds `open` to the number of calls whose keys
 * wait for their results.
 */
static void count_seen(struct lane *lane, const struct rows_place *p, bool calls, const struct numbers *numbers,
                       int open)
{
    tally_begin(lane);
    if (p)
        count_values(p, calls, numbers);
    else
        tally_add(lane, TALLY_BESIDE, 1);
    if (open)
        tally_add(lane, TALLY_OPEN, open);
    ring_count_seen(&lane->ring);
    tally_end(lane);
}

/*
 * Pushes a call that is counted with its result. decided: the filter shows the call. Returns false if the caller must
 * send the call instead.
 */
static __attribute__((noinline)) bool call_of_result(struct lane *lane, struct encoder *e, const struct by_event *b,
                                                     const struct source *s, const struct numbers *numbers,
                                                     bool decided)
{
    struct making m;
    struct late late = {.numbers = *numbers};
    begin_terms(e, &m);
    late.plain = get_words(e, s, by.n_early, late.early);
    if (!late.plain && !add_parts(e, &m, 0, by.n_early, s))
        return push_sent(e->env, b);
    late.terms = (uint16_t)(m.at - m.bytes - HEAD);
    late.words = (uint16_t)e->word_count;
    late.tracee = m.tracee;
    if (b->returns && !push_late(e, b, &late, m.bytes + HEAD, decided ? TALLY_WHOLE : VERDICT_WAITS))
        return false;
    if (decided)
        count_seen(lane, NULL, false, NULL, 1);
    else
        tally_hide(lane, 0);
    return true;
}

bool by_event(ErlNifEnv *env, struct lane *lane, const struct by_event *b)
{
    struct numbers numbers = {0};
    const struct source s = {.function = &b->function, .process = b->process, .event = b};
    struct encoder *e = begin_key(env, lane);
    const enum verdict verdict = verdict_call(0, b->returns);
    if (verdict == VERDICT_HIDES) {
        if (awaits_result(b) &&
            !stack_push(env, b->process, &(struct stack_call){.function = b->function, .verdict = VERDICT_HIDES}))
            return false;
        tally_hide(lane, 0);
        return true;
    }
    if ((b->bare && by.args) || (by.early && !get_numbers(e, by.early, &s, &numbers)))
        return push_sent(env, b);
    if (is_late_key() || verdict == VERDICT_WAITS)
        return call_of_result(lane, e, b, &s, &numbers, verdict == VERDICT_SHOWS);
    uint32_t row = row_of_key(lane, e, &s);
    if (row == ROWS_NONE)
        return push_sent(env, b);
    const struct rows_place p = tally_place(lane, row);
    if (!row_takes(&p, &numbers))
        return push_sent(env, b);
    if (awaits_result(b) && !push_row(e, b, row))
        return false;
    count_seen(lane, &p, true, &numbers, 0);
    return true;
}

void by_endless(const struct by_event *b)
{
    struct stack *s;
    while (reads_results() && stack_drop(b->process, &b->function, &s))
        stack_rest(s);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Puts {Value} if the value was read (struct numbers), else {}. */
static uint8_t *put_one_value(struct encoder *e, uint8_t *at, unsigned which, const struct numbers *n,
                              const struct source *s)
{
    ERL_NIF_TERM t;
    const struct part *p = &by.values[which];
    if (!(n->known >> which & 1))
        return put8(at, ETW_T_TUPLE0);
    at = put8(at, ETW_T_TUPLE0 + 1);
    if (n->are >> which & 1)
        return put64(put8(at, ETW_T_INT64), (uint64_t)n->values[which]);
    if (!p->late || find_part(e, p, s, &t) != FOUND)
        return put8(at, ETW_T_NIL); /* the value is not an integer */
    return encode_term(e, at, 16, t);
}

/*
 * A result that is sent as a frame because no row can hold it. early: the encoded parts of the key that were known at
 * the call; empty if the row is ROWS_OTHER.
 */
struct one {
    const struct source *source;
    const struct numbers *numbers;
    struct encode_held early;
    uint32_t flags;
    bool calls; /* the frame also counts the call */
};

static void put_one(ErlNifEnv *env, struct lane *lane, const struct one *o)
{
    struct encoder *e = &lane->encoder;
    struct ring *ring = &lane->ring;
    uint64_t tracee = tracer_tracee(env, lane, o->source->process);
    const bool has_key = o->early.bytes || o->calls;
    ring_busy(ring);
    struct frame frame = frame_begin(ring, tick_now(), tracee);
    uint32_t left = e->limits.bytes;
    e->env = env;
    e->tick = frame.tick;
    e->flags = frame.flags | o->flags;
    uint8_t *at = put8(put8(frame.next, ETW_T_TUPLE0 + 1 + (has_key ? by.nkeys : 0)), ETW_ROW_BY_ONE);
    if (o->early.bytes)
        at = encode_anew(e, at, frame.at + ring->need - e->limits.bytes - ENCODE_OVERRUN, &o->early);
    for (unsigned i = o->source->early ? 0 : by.n_early; i < by.nkeys; i++)
        at = put_part(e, at, &by.keys[i], o->source, &left);
    at = put8(put8(at, ETW_T_TUPLE0 + 1 + by.nvalues), o->calls);
    for (unsigned i = 0; i < by.nvalues; i++)
        at = put_one_value(e, at, i, o->numbers, o->source);
    frame.flags = e->flags;
    frame_close(ring, frame, at, ETW_ROW);
    ring_rest(ring);
}

static void send_one(ErlNifEnv *env, struct lane *lane, uint32_t rules, const struct one *o)
{
    if (!gate_admits_waited(rules, 1))
        ring_lose(&lane->ring, ETW_LOST_RATE);
    else if (gate_has_room_for_new(lane)) {
        tally_begin(lane);
        put_one(env, lane, o);
        tally_add(lane, TALLY_BESIDE, 1);
        ring_count_seen(&lane->ring);
        tally_end(lane);
    }
}

/*
 * Points *ret to the terms of a key, and copies the key's atoms to `words`, because they are not aligned in the key.
 * Returns false if the key has no terms: it is the key of a function (tally.c).
 */
static bool hold_key(const struct rows_key *key, uint64_t words[static WORDS], struct encode_held *ret)
{
    uint32_t bytes = key->length < HEAD ? 0 : key->bytes[0] | (uint32_t)key->bytes[1] << 8;
    uint32_t count = key->length < HEAD + bytes ? 0 : (key->length - HEAD - bytes) / 8;
    *ret = (struct encode_held){.bare = true};
    if (!bytes || key->length < HEAD + bytes || count > WORDS)
        return false;
    memcpy(words, key->bytes + HEAD + bytes, count * sizeof *words);
    *ret = (struct encode_held){.words = words,
                                .terms = key->bytes + HEAD,
                                .bytes = bytes,
                                .word_count = (uint16_t)count,
                                .bare = true};
    return true;
}

/*
 * Adds the values of a result to the row in which its call was counted. Sends the values if the row cannot hold them.
 */
static void count_in_row(ErlNifEnv *env, struct lane *lane, uint32_t rules, const struct source *s, uint32_t row)
{
    struct numbers numbers = {0};
    struct encoder *e = &lane->held;
    uint64_t words[WORDS];
    const struct rows_place p = tally_place(lane, row);
    e->env = env;
    if (get_numbers(e, by.late, s, &numbers) && row_takes(&p, &numbers)) {
        count_seen(lane, &p, false, &numbers, 0);
        return;
    }
    const struct rows_key key = rows_key_of(rows_memory(&tally_rows), row);
    struct one one = {.source = s, .numbers = &numbers};
    hold_key(&key, words, &one.early);
    send_one(env, lane, rules, &one);
}

/* Completes a key whose first parts were encoded at the call, and finds its row. */
static uint32_t completed_row(struct encoder *e, const struct source *s, const struct stack_call *call,
                              const struct late *late, const struct encode_held *early)
{
    struct making m;
    memcpy(e->words, early->words, late->words * sizeof *e->words);
    begin_terms(e, &m);
    memcpy(m.at, early->terms, late->terms);
    m.at += late->terms;
    m.tracee = late->tracee;
    e->word_count = late->words;
    e->flags = call->flags;
    if (!add_parts(e, &m, by.n_early, by.nkeys, s))
        return ROWS_NONE;
    const struct rows_key key = finish_key(e, &m);
    return rows_find(rows_memory(&tally_rows), &key);
}

/* Counts a call together with its result. Sends both in one frame if no row can hold them. */
static __attribute__((noinline)) void count_whole(ErlNifEnv *env, struct lane *lane, uint32_t rules, struct source *s,
                                                  struct stack_call *call, struct late *late)
{
    struct encoder *e = begin_key(env, lane);
    const uint64_t *words = (const uint64_t *)(const void *)(stack_beside(call) + sizeof *late);
    const struct encode_held early = {.words = words,
                                      .terms = (const uint8_t *)(words + late->words),
                                      .bytes = late->terms,
                                      .word_count = late->words,
                                      .bare = true};
    uint32_t row = ROWS_NONE;
    s->early = late->plain ? late->early : NULL;
    if (get_numbers(e, by.late, s, &late->numbers))
        row = late->plain ? row_of_key(lane, e, s) : completed_row(e, s, call, late, &early);
    const struct rows_place p = tally_place(lane, row == ROWS_NONE ? ROWS_OTHER : row);
    if (row != ROWS_NONE && row_takes(&p, &late->numbers)) {
        count_seen(lane, &p, true, &late->numbers, call->verdict == TALLY_WHOLE ? -1 : 0);
        return;
    }
    const struct one one = {.source = s,
                            .numbers = &late->numbers,
                            .flags = call->flags,
                            .early = early,
                            .calls = true};
    if (call->verdict == TALLY_WHOLE)
        add_alone(lane, TALLY_OPEN, -1);
    send_one(env, lane, rules, &one);
}

/* Counts a call as shown that tally_hide() has counted as hidden. */
static void show_hidden(struct lane *lane)
{
    tally_begin(lane);
    tally_add(lane, TALLY_FILTERED, -1);
    tally_add(lane, TALLY_BESIDE, 1);
    tally_end(lane);
}

/* Counts a call that waited for its result, unless the filter now hides the call. */
static void count_late(ErlNifEnv *env, struct lane *lane, uint32_t rules, struct source *s, struct stack_call *call)
{
    struct late late;
    memcpy(&late, stack_beside(call), sizeof late);
    if (call->verdict == VERDICT_WAITS && !verdict_result(0, s->ns, &s->end->end)) {
        tally_hide(lane, 0);
        return;
    }
    if (call->verdict == VERDICT_WAITS)
        show_hidden(lane);
    count_whole(env, lane, rules, s, call, &late);
}

/* Returns true if by_result() can count the result of this call, so that the caller need not send the result. */
static bool is_known(const struct stack_call *call)
{
    if (!call || call->verdict == TALLY_SENT)
        return false;
    return call->sure || call->verdict == VERDICT_HIDES || call->verdict == TALLY_LOST;
}

/* Counts the result of a call. Returns false if the bytes beside the call do not have its key and values. */
static bool count_result(ErlNifEnv *env, struct lane *lane, uint32_t rules, const struct by_result *r,
                         struct stack_call *call)
{
    struct source s = {.function = &r->function, .process = r->process, .end = r};
    if (call->verdict == TALLY_LOST) {
        ring_lose(&lane->ring, (enum etw_loss)call->flags);
        return true;
    }
    if (call->verdict == VERDICT_HIDES) {
        tally_hide(lane, 0);
        return true;
    }
    s.ns = tally_ns(call->tick, tick_now());
    if (call->verdict == VERDICT_SHOWS)
        count_in_row(env, lane, rules, &s, call->words < rows_capacity(&tally_rows) ? call->words : ROWS_OTHER);
    else if (call->bytes >= sizeof(struct late))
        count_late(env, lane, rules, &s, call);
    else
        return false;
    return true;
}

bool by_result(ErlNifEnv *env, struct lane *lane, uint32_t rules, const struct by_result *r)
{
    struct stack *stack = NULL;
    struct stack_call *call = reads_results() ? stack_pop(r->process, &r->function, &stack) : NULL;
    const bool counted = is_known(call) && count_result(env, lane, rules, r, call);
    if (stack)
        stack_rest(stack);
    return counted;
}

/* ---- the drain --------------------------------------------------------------------------------------------------- */

/* Defines each atom, because the owner's frames do not rely on earlier frames. */
uint8_t *by_put_key(ErlNifEnv *env, uint8_t *at, uint32_t row, uint64_t *ret_tracee)
{
    static struct encoder e;
    uint64_t words[WORDS], tracee;
    struct encode_held held;
    const struct rows_key key = rows_key_of(rows_memory(&tally_rows), row);
    *ret_tracee = 0;
    if (!hold_key(&key, words, &held))
        return put8(put8(at, ETW_T_TUPLE0 + 1), ETW_ROW_BY);
    memcpy(&tracee, key.bytes + 2, sizeof tracee);
    if (tracee)
        *ret_tracee = tracer_tracee_data(env, tracee);
    e.env = env;
    at = put8(put8(at, ETW_T_TUPLE0 + 1 + by.nkeys), ETW_ROW_BY);
    return encode_apart(&e, at, at + BY_BYTES, &held);
}
