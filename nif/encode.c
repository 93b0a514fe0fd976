/* SPDX-License-Identifier: Apache-2.0 */
#include "encode.h"

#include <stdatomic.h>
#include <string.h>

#include "frame.h"
#include "imm.h"
#include "secret.h"
#include "spell.h"
#include "tick.h"

#define ATOM_BYTES 1020
#define BIG_BYTES 256
#define COPIED_MOST (64 * 1024) /* bytes of binaries that a thread reads before it examines one (examine_binary()) */

/* Terms that live until encode_unload(). */
static ErlNifEnv *bounds_env;
static ERL_NIF_TERM big_most, big_least;
static ERL_NIF_TERM pair_value[2], pair_names[4]; /* keys of maps such as #{name => …, value => …} */

/*
 * Every encoding function writes at `at` and returns the end of its output. No new item begins at `end` or later.
 * depth: the levels of containers that are still allowed. These values are arguments and not fields of the encoder: a
 * store through a byte pointer may alias any memory, so the compiler would reload fields.
 */
static uint8_t *write_list(struct encoder *e, uint8_t *at, uint8_t *end, ERL_NIF_TERM t, uint32_t depth);
static uint8_t *write_boxed(struct encoder *e, uint8_t *at, uint8_t *end, ERL_NIF_TERM t, uint32_t depth);

static uint8_t *write_cut(struct encoder *e, uint8_t *at, enum etw_tag how)
{
    e->flags |= ETW_F_CUT;
    return put8(at, how);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Writes a tag and up to seven bytes with one store of eight bytes. The next item overwrites the excess. */
static inline uint8_t *put_tagged(uint8_t *at, enum etw_tag tag, uint64_t value, unsigned bytes)
{
    put64(at, (uint64_t)tag | value << 8);
    return at + 1 + bytes;
}

static inline uint8_t *write_int32(uint8_t *at, int64_t value)
{
    if (value == (int16_t)value)
        return put_tagged(at, ETW_T_INT16, (uint64_t)value, 2);
    return put_tagged(at, ETW_T_INT32, (uint64_t)value, 4);
}

static uint8_t *write_integer(uint8_t *at, int64_t value)
{
    if (value >= 0 && value < 128)
        return put8(at, (unsigned)value);
    if (value == (int32_t)value)
        return write_int32(at, value);
    return put64(put8(at, ETW_T_INT64), (uint64_t)value);
}

/* Writes the atom's name at `at`, which needs ATOM_BYTES + 1 bytes of room, and returns its length. */
static unsigned copy_atom_name(ErlNifEnv *env, ERL_NIF_TERM atom, uint8_t *at)
{
    int n = enif_get_atom(env, atom, (char *)at, ATOM_BYTES + 1, ENCODING_UTF8);
    return n > 0 ? (unsigned)n - 1 : 0;
}

static uint8_t *write_atom(struct encoder *e, uint8_t *at, ERL_NIF_TERM t)
{
    unsigned id = intern_atom(t);
    if (e->names.atoms[id] == t)
        return put_tagged(at, ETW_T_ATOM, id, 2);
    if (e->words) {
        if (e->word_count < ENCODER_WORDS)
            e->words[e->word_count] = t;
        return put_tagged(at, ETW_T_ATOM, e->word_count++, 2);
    }
    e->names.atoms[id] = t;
    unsigned bytes = copy_atom_name(e->env, t, at + 5);
    intern_mark(&e->names, id, secret_names && secret_named(at + 5, bytes));
    secret_hide_text(at + 5, at + 5 + bytes);
    return put16(put16(put8(at, ETW_T_ATOMDEF), id), bytes) + bytes;
}

static uint8_t *write_text(uint8_t *at, enum etw_text what, const char *string, size_t bytes)
{
    at = put16(put8(put8(at, ETW_T_TEXT), what), bytes);
    memcpy(at, string, bytes);
    return at + bytes;
}

/*
 * enif_inspect_binary() copies the whole binary, however large, if its data does not start at a byte boundary. No
 * function of the VM tells where the data starts, or how large a binary is. The encoder finds that out in bounded time,
 * in *steps*: a binary has more than N bytes if it compares greater than its own first N bytes. A binary of fewer than
 * STEPS bytes may be inspected. The encoder inspects the first STEPS bytes of a larger binary twice. If the two
 * addresses differ, the VM has copied the bytes, so the data does not start at a byte boundary.
 *
 * Steps take a few microseconds, which is too much for every binary. The encoder of a thread uses them for one event in
 * a period of STEPS_REST. When steps find a binary that begins inside a byte, all threads use steps for all binaries
 * until the session ends.
 */
#define STEPS 65
#define STEPS_MOST (32 * STEPS) /* the most steps for one event */
#define STEPS_REST 1000         /* in units of tick_slack(): about ten milliseconds */

static _Atomic bool careful;
static uint64_t steps_rest;

static bool has_more_than(ErlNifEnv *env, ERL_NIF_TERM t, size_t bytes)
{
    return enif_compare(t, enif_make_sub_binary(env, t, 0, bytes)) > 0;
}

/* Returns true if enif_inspect_binary() copies this binary. The binary must have at least STEPS bytes. */
static bool is_copied(ErlNifEnv *env, ERL_NIF_TERM t, ErlNifBinary *ret_begin)
{
    ErlNifBinary again;
    ERL_NIF_TERM begin = enif_make_sub_binary(env, t, 0, STEPS);
    return enif_inspect_binary(env, begin, ret_begin) && enif_inspect_binary(env, begin, &again) &&
           ret_begin->data != again.data;
}

static __attribute__((noinline)) void examine_binary(struct encoder *e, ERL_NIF_TERM t, size_t bytes)
{
    ErlNifBinary begin;
    e->copied = 0;
    if (bytes >= STEPS && is_copied(e->env, t, &begin))
        atomic_store_explicit(&careful, true, memory_order_relaxed);
}

static uint8_t *write_whole_binary(struct encoder *e, uint8_t *at, const uint8_t *end, ERL_NIF_TERM t,
                                   const ErlNifBinary *bin)
{
    size_t n = bin->size, room = at + 13 < end ? (size_t)(end - at) - 13 : 0;
    e->copied += n < COPIED_MOST ? (uint32_t)n : COPIED_MOST;
    if (e->copied >= COPIED_MOST)
        examine_binary(e, t, n);
    if (n > room) {
        n = room;
        e->flags |= ETW_F_CUT;
    }
    at = put32(put64(put8(at, ETW_T_BIN), bin->size), n);
    memcpy(at, bin->data, n);
    n < bin->size ? secret_hide_begun(at, at + n) : secret_hide_text(at, at + n);
    return at + n;
}

static bool has_steps(struct encoder *e)
{
    if (e->stepped != e->tick)
        e->stepped = e->tick, e->steps = 0;
    return e->steps < STEPS_MOST;
}

/* Counts the bytes of a binary by steps, up to STEPS. */
static size_t count_bytes(struct encoder *e, ERL_NIF_TERM t)
{
    size_t n = 0;
    while (n < STEPS && has_more_than(e->env, t, n))
        n++;
    e->steps += (uint32_t)n + 1;
    return n;
}

static __attribute__((noinline)) uint8_t *write_binary_by_steps(struct encoder *e, uint8_t *at, const uint8_t *end,
                                                                ERL_NIF_TERM t)
{
    ErlNifBinary bin;
    if (!enif_is_binary(e->env, t))
        return NULL;
    if (has_steps(e)) {
        if (count_bytes(e, t) == STEPS && is_copied(e->env, t, &bin)) {
            atomic_store_explicit(&careful, true, memory_order_relaxed);
            return spell_begun(e, at, bin.data, bin.size);
        }
    } else if (atomic_load_explicit(&careful, memory_order_relaxed)) {
        return spell_begun(e, at, NULL, 0);
    }
    return enif_inspect_binary(e->env, t, &bin) ? write_whole_binary(e, at, end, t, &bin) : NULL;
}

/* Writes a binary. Returns NULL if the term is not a binary. */
static uint8_t *write_binary(struct encoder *e, uint8_t *at, const uint8_t *end, ERL_NIF_TERM t)
{
    ErlNifBinary bin;
    uint64_t since = e->tick - e->stepped;
    if (__builtin_expect(since > steps_rest || since == 0 || atomic_load_explicit(&careful, memory_order_relaxed), 0))
        return write_binary_by_steps(e, at, end, t);
    return enif_inspect_binary(e->env, t, &bin) ? write_whole_binary(e, at, end, t, &bin) : NULL;
}

/* Writes an integer that does not fit int64_t. Its external term format has the magnitude, lowest byte first. */
static uint8_t *write_big(struct encoder *e, uint8_t *at, ERL_NIF_TERM t)
{
    ErlNifBinary bin;
    ErlNifUInt64 magnitude;
    if (enif_get_uint64(e->env, t, &magnitude))
        return put64(put16(put8(at, ETW_T_BIGPOS), 8), magnitude);
    bool negative = enif_compare(t, big_least) < 0;
    if (negative || enif_compare(t, big_most) > 0) {
        e->flags |= ETW_F_CUT;
        return negative ? write_text(at, ETW_TEXT_BIG, "-...", 4) : write_text(at, ETW_TEXT_BIG, "...", 3);
    }
    if (!enif_term_to_binary(e->env, t, &bin))
        return write_cut(e, at, ETW_T_ELIDED);
    if (bin.size > 4 && bin.data[1] == 110 && (size_t)bin.data[2] + 4 == bin.size) {
        at = put16(put8(at, bin.data[3] ? ETW_T_BIGNEG : ETW_T_BIGPOS), bin.data[2]);
        memcpy(at, bin.data + 4, bin.data[2]);
        at += bin.data[2];
    } else {
        at = write_cut(e, at, ETW_T_ELIDED);
    }
    enif_release_binary(&bin);
    return at;
}

/* ---- containers -------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) uint8_t *write_immediate(struct encoder *e, uint8_t *at, ERL_NIF_TERM t)
{
    if (imm_is_small(t))
        return write_integer(at, imm_small(t));
    if (imm_is_pid(t))
        return put64(put8(at, ETW_T_PID), imm_pid(t));
    if (imm_is_atom(t))
        return write_atom(e, at, t);
    if (imm_is_port(t))
        return put64(put8(at, ETW_T_PORT), imm_port(t));
    return t == imm_nil ? put8(at, ETW_T_NIL) : write_cut(e, at, ETW_T_ELIDED);
}

/*
 * Encodes the most frequent terms in at most five bytes: small integers of 32 bits, and atoms that the ring knows.
 * Returns NULL for any other term.
 */
static ALWAYS uint8_t *write_short_term(const struct encoder *e, uint8_t *at, ERL_NIF_TERM t)
{
    if (imm_natural(t) < imm_bytes)
        return put8(at, (unsigned)imm_natural(t));
    uint32_t kind = (uint32_t)t & imm_kinds;
    if (kind == (IMM_ATOM & 0xf))
        return e->names.atoms[intern_atom(t)] == t ? put_tagged(at, ETW_T_ATOM, intern_atom(t), 2) : NULL;
    if (kind == IMM_SMALL && imm_small(t) == (int32_t)imm_small(t))
        return write_int32(at, imm_small(t));
    return NULL;
}

/* Encodes a term that write_short_term() rejects. The tag bits only select which test comes first; it may fail. */
static ALWAYS uint8_t *write_long_term(struct encoder *e, uint8_t *at, uint8_t *end, ERL_NIF_TERM t, uint32_t depth)
{
    uint32_t tag = (uint32_t)t & imm_tags;
    if (tag == 1)
        return write_list(e, at, end, t, depth);
    return tag == 3 ? write_immediate(e, at, t) : write_boxed(e, at, end, t, depth);
}

static ALWAYS uint8_t *write_term(struct encoder *e, uint8_t *at, uint8_t *end, ERL_NIF_TERM t, uint32_t depth)
{
    uint8_t *behind = write_short_term(e, at, t);
    return behind ? behind : write_long_term(e, at, end, t, depth);
}

static bool is_secret_string(struct encoder *e, ERL_NIF_TERM list)
{
    uint8_t bytes[SECRET_NAME_BYTES];
    unsigned count = 0, c;
    ERL_NIF_TERM head;
    for (; enif_get_list_cell(e->env, list, &head, &list); bytes[count++] = (uint8_t)c)
        if (count == sizeof bytes || !enif_get_uint(e->env, head, &c) || c > 255)
            return false;
    return secret_named(bytes, count);
}

/* Returns the size of an encoded binary, or UINT64_MAX if the encoded term is not a binary. */
static uint64_t binary_bytes(const uint8_t *encoded)
{
    uint64_t bytes;
    memcpy(&bytes, encoded + 1, sizeof bytes);
    return *encoded == ETW_T_BIN ? bytes : UINT64_MAX;
}

/*
 * Returns true if a binary names a secret. Reads the key and not its encoded bytes, because the encoder may have cut
 * them.
 */
static bool is_secret_binary(struct encoder *e, ERL_NIF_TERM key, const uint8_t *encoded)
{
    ErlNifBinary bin;
    return binary_bytes(encoded) <= SECRET_NAME_BYTES && enif_inspect_binary(e->env, key, &bin) &&
           secret_named(bin.data, bin.size);
}

/*
 * A cache of atoms that are not the name of a secret key. An atom never changes its name, so an entry is valid until
 * the secrets change.
 */
static _Atomic uint64_t harmless[ETW_ATOMS];

static bool is_secret_atom(const struct encoder *e, ERL_NIF_TERM key)
{
    _Atomic uint64_t *known = &harmless[intern_atom(key)];
    uint8_t text[ATOM_BYTES + 1];
    if (atomic_load_explicit(known, memory_order_relaxed) == key)
        return false;
    if (secret_named(text, copy_atom_name(e->env, key, text)))
        return true;
    atomic_store_explicit(known, key, memory_order_relaxed);
    return false;
}

/*
 * Returns true if the value of this key must be redacted. Compares names, not atoms, because the node may create the
 * atom after the secrets were set. If the ring knows the atom, write_atom() has compared its name already.
 */
static bool is_secret(struct encoder *e, ERL_NIF_TERM key, const uint8_t *encoded)
{
    if (e->names.atoms[intern_atom(key)] == key)
        return intern_marked(&e->names, intern_atom(key));
    if (enif_is_atom(e->env, key))
        return is_secret_atom(e, key);
    if (imm_known && imm_is_value(key))
        return false;
    if (imm_known ? imm_is_list(key) : enif_is_list(e->env, key))
        return is_secret_string(e, key);
    return is_secret_binary(e, key, encoded);
}

static bool is_value_key(ERL_NIF_TERM key, const uint8_t *encoded)
{
    return key == pair_value[0] || (binary_bytes(encoded) == 5 && enif_is_identical(key, pair_value[1]));
}

/* Returns true if a term names a secret. A binary is not encoded yet, so steps find out whether it is short. */
static bool is_secret_name(struct encoder *e, ERL_NIF_TERM t)
{
    ErlNifBinary bin;
    if (enif_is_atom(e->env, t))
        return is_secret_atom(e, t);
    if (enif_is_list(e->env, t))
        return is_secret_string(e, t);
    return enif_is_binary(e->env, t) && has_steps(e) && count_bytes(e, t) < STEPS &&
           enif_inspect_binary(e->env, t, &bin) && secret_named(bin.data, bin.size);
}

/*
 * Returns true if one pair of a map names a secret whose value is in another pair: #{name => password, value => …}.
 */
static __attribute__((noinline)) bool names_a_secret(struct encoder *e, ERL_NIF_TERM map)
{
    ERL_NIF_TERM named;
    for (unsigned i = 0; i < sizeof pair_names / sizeof *pair_names; i++)
        if (enif_get_map_value(e->env, map, pair_names[i], &named) && is_secret_name(e, named))
            return true;
    return false;
}

static ALWAYS uint8_t *end_list(uint8_t *from, uint8_t *at)
{
    secret_hide_text(from, at);
    return put8(at, ETW_T_END);
}

/* Encodes the elements of a list. Unlike write_list(), checks the limit of items. */
static __attribute__((noinline)) uint8_t *write_cells_with_care(struct encoder *e, uint8_t *at, uint8_t *end,
                                                                ERL_NIF_TERM t, uint32_t depth)
{
    ERL_NIF_TERM head;
    uint8_t *from = at;
    for (uint32_t items = e->limits.items; enif_get_list_cell(e->env, t, &head, &t); items--) {
        if (at >= end || items == 0) {
            secret_hide_begun(from, at);
            return write_cut(e, at, ETW_T_CUT);
        }
        at = write_term(e, at, end, head, depth);
        if (t == imm_nil)
            return end_list(from, at);
    }
    return at < end ? write_term(e, put8(at, ETW_T_TAIL), end, t, depth) : write_cut(e, at, ETW_T_CUT);
}

static __attribute__((noinline)) uint8_t *write_list(struct encoder *e, uint8_t *at, uint8_t *end, ERL_NIF_TERM t,
                                                     uint32_t depth)
{
    ERL_NIF_TERM head;
    if (depth == 0)
        return write_cut(e, at, ETW_T_ELIDED);
    at = put8(at, ETW_T_LIST);
    if (end - at > (int64_t)e->limits.items)
        return write_cells_with_care(e, at, end, t, depth - 1);
    uint8_t *from = at;
    while (enif_get_list_cell(e->env, t, &head, &t)) {
        if (at >= end) {
            secret_hide_begun(from, at);
            return write_cut(e, at, ETW_T_CUT);
        }
        at = write_term(e, at, end, head, depth - 1);
        if (t == imm_nil)
            return end_list(from, at);
    }
    return at < end ? write_term(e, put8(at, ETW_T_TAIL), end, t, depth - 1) : write_cut(e, at, ETW_T_CUT);
}

/*
 * Encodes the elements of a tuple. Unlike write_tuple(), allows for tuples that do not fit or that exceed the limit of
 * items, and for pairs with a secret.
 */
static __attribute__((noinline)) uint8_t *write_elements_with_care(struct encoder *e, uint8_t *at, uint8_t *end,
                                                                   const ERL_NIF_TERM *elements, size_t arity,
                                                                   uint32_t depth)
{
    size_t many = arity < e->limits.items ? arity : e->limits.items, keep = 0;
    if (at + many * 16 < end) {
        keep = 8;
        end -= 8 * many;
    }
    const ERL_NIF_TERM *key = secret_names && arity == 2 ? elements : NULL;
    for (const ERL_NIF_TERM *each = elements, *behind = elements + many; each < behind; each++) {
        end += keep;
        if (at >= end)
            return write_cut(e, at, ETW_T_CUT);
        uint8_t *encoded = at;
        at = write_term(e, at, end, *each, depth);
        if (each == key && is_secret(e, *key, encoded))
            return put8(at, ETW_T_REDACTED);
    }
    return many < arity ? write_cut(e, at, ETW_T_CUT) : at;
}

/*
 * Encodes a tuple. If there is room for all elements, reserves eight bytes for each further element, so that a large
 * element does not cut off the elements after it. A short term takes less than eight bytes, so the room is checked
 * again only after longer terms.
 */
static ALWAYS uint8_t *write_tuple(struct encoder *e, uint8_t *at, uint8_t *end, const ERL_NIF_TERM *each, size_t arity,
                                   uint32_t depth)
{
    at = arity < 32 ? put8(at, ETW_T_TUPLE0 + (unsigned)arity) : put_tagged(at, ETW_T_TUPLE, arity, 4);
    if (arity > e->limits.items || at + 16 * arity >= end || (arity == 2 && secret_names))
        return write_elements_with_care(e, at, end, each, arity, depth);
    for (const ERL_NIF_TERM *behind = each + arity; each < behind;) {
        ERL_NIF_TERM t = *each++;
        uint8_t *next = write_short_term(e, at, t);
        if (!next) {
            next = write_long_term(e, at, end - 8 * (behind - each), t, depth);
            if (each < behind && next >= end - 8 * (behind - each - 1))
                return write_cut(e, next, ETW_T_CUT);
        }
        at = next;
    }
    return at;
}

static __attribute__((noinline)) uint8_t *write_map(struct encoder *e, uint8_t *at, uint8_t *end, ERL_NIF_TERM t,
                                                    size_t pairs, uint32_t depth)
{
    ErlNifMapIterator each;
    ERL_NIF_TERM key, value;
    uint32_t items = e->limits.items;
    at = put_tagged(at, ETW_T_MAP, pairs, 4);
    if (pairs == 0)
        return at;
    if (at >= end || !enif_map_iterator_create(e->env, t, &each, ERL_NIF_MAP_ITERATOR_FIRST))
        return write_cut(e, at, ETW_T_CUT);
    while (enif_map_iterator_get_pair(e->env, &each, &key, &value)) {
        if (at >= end || items-- == 0) {
            at = write_cut(e, at, ETW_T_CUT);
            break;
        }
        uint8_t *encoded = at;
        at = write_term(e, at, end, key, depth);
        if (secret_names && (is_secret(e, key, encoded) || (is_value_key(key, encoded) && names_a_secret(e, t)))) {
            at = put8(at, ETW_T_REDACTED);
        } else if (at >= end) {
            at = write_cut(e, at, ETW_T_CUT);
            break;
        } else {
            at = write_term(e, at, end, value, depth);
        }
        if (--pairs == 0)
            break;
        enif_map_iterator_next(e->env, &each);
    }
    enif_map_iterator_destroy(e->env, &each);
    return at;
}

/* ---- any term ---------------------------------------------------------------------------------------------------- */

/*
 * Encodes lists and immediate terms without reading their tag bits, for the case that imm_known is false. Returns NULL
 * for any other term.
 */
static uint8_t *write_term_by_asking(struct encoder *e, uint8_t *at, uint8_t *end, ERL_NIF_TERM t, uint32_t depth)
{
    ErlNifSInt64 value;
    ErlNifPid pid;
    ErlNifPort port;
    if (t == imm_nil)
        return put8(at, ETW_T_NIL);
    if (enif_is_list(e->env, t))
        return write_list(e, at, end, t, depth);
    if (enif_is_atom(e->env, t))
        return write_atom(e, at, t);
    if (enif_get_int64(e->env, t, &value))
        return write_integer(at, value);
    if (enif_get_local_pid(e->env, t, &pid))
        return put64(put8(at, ETW_T_PID), imm_ask_tracee(e->env, t));
    if (enif_get_local_port(e->env, t, &port))
        return put64(put8(at, ETW_T_PORT), imm_ask_tracee(e->env, t) & ~ETW_TRACEE_PORT);
    return NULL;
}

static __attribute__((noinline)) uint8_t *write_other_term(struct encoder *e, uint8_t *at, uint8_t *end, ERL_NIF_TERM t,
                                                           uint32_t depth)
{
    ErlNifSInt64 wide;
    size_t pairs;
    uint8_t *behind = imm_known ? NULL : write_term_by_asking(e, at, end, t, depth);
    if (behind)
        return behind;
    if (enif_get_map_size(e->env, t, &pairs))
        return depth ? write_map(e, at, end, t, pairs, depth - 1) : write_cut(e, at, ETW_T_ELIDED);
    if ((behind = write_binary(e, at, end, t)))
        return behind;
    if (enif_is_ref(e->env, t))
        return spell_term(e, at, end, ETW_TEXT_REF, t);
    if (enif_get_int64(e->env, t, &wide))
        return write_integer(at, wide);
    if (enif_is_number(e->env, t))
        return write_big(e, at, t);
    if (enif_is_fun(e->env, t))
        return spell_term(e, at, end, ETW_TEXT_FUN, t);
    if (enif_is_pid(e->env, t))
        return spell_term(e, at, end, ETW_TEXT_PID, t);
    if (enif_is_port(e->env, t))
        return spell_term(e, at, end, ETW_TEXT_PORT, t);
    return spell_other(e, at, end, t);
}

static __attribute__((noinline)) uint8_t *write_boxed(struct encoder *e, uint8_t *at, uint8_t *end, ERL_NIF_TERM t,
                                                      uint32_t depth)
{
    const ERL_NIF_TERM *elements;
    double real;
    int arity;
    if (!enif_get_tuple(e->env, t, &arity, &elements)) {
        if (!enif_get_double(e->env, t, &real))
            return write_other_term(e, at, end, t, depth);
        uint64_t bits;
        memcpy(&bits, &real, sizeof bits);
        return put64(put8(at, ETW_T_FLOAT), bits);
    }
    return depth ? write_tuple(e, at, end, elements, (unsigned)arity, depth - 1) : write_cut(e, at, ETW_T_ELIDED);
}

static __attribute__((noinline)) uint8_t *write_terms_with_care(struct encoder *e, uint8_t *at, uint8_t *end,
                                                                const ERL_NIF_TERM *each, const ERL_NIF_TERM *behind,
                                                                size_t keep)
{
    while (each < behind) {
        ERL_NIF_TERM t = *each++;
        uint8_t *before = end - keep * (size_t)(behind - each);
        at = at < before ? write_term(e, at, before, t, e->limits.depth) : write_cut(e, at, ETW_T_ELIDED);
    }
    return at;
}

/* Encodes terms like the elements of a tuple, except that each term that finds no room becomes ETW_T_ELIDED. */
static ALWAYS uint8_t *write_terms(struct encoder *e, uint8_t *at, uint32_t bytes, const ERL_NIF_TERM *each,
                                   size_t many)
{
    const ERL_NIF_TERM *behind = each + many;
    uint8_t *end = at + bytes;
    if (bytes <= many * 32)
        return write_terms_with_care(e, at, end, each, behind, 0);
    while (each < behind) {
        ERL_NIF_TERM t = *each++;
        uint8_t *next = write_short_term(e, at, t);
        if (!next) {
            next = write_long_term(e, at, end - 16 * (behind - each), t, e->limits.depth);
            if (each < behind && next >= end - 16 * (behind - each - 1))
                return write_terms_with_care(e, next, end, each, behind, 16);
        }
        at = next;
    }
    return at;
}

static __attribute__((noinline)) uint8_t *write_new_function(struct encoder *e, uint8_t *at, unsigned id,
                                                             ERL_NIF_TERM module, ERL_NIF_TERM function, unsigned arity)
{
    if (!enif_is_atom(e->env, module) || !enif_is_atom(e->env, function))
        return put8(put16(at, ETW_NO_FUNCTION), arity);
    e->names.functions[id] = (struct intern_function){module, function};
    uint8_t *lengths = put8(put16(at, id | ETW_DEF), arity);
    unsigned first = copy_atom_name(e->env, module, lengths + 4),
             second = copy_atom_name(e->env, function, lengths + 4 + first);
    put16(put16(lengths, first), second);
    return lengths + 4 + first + second;
}

static ALWAYS uint8_t *write_function(struct encoder *e, uint8_t *at, ERL_NIF_TERM module, ERL_NIF_TERM name,
                                      unsigned arity)
{
    unsigned id = intern_function(module, name);
    const struct intern_function *known = &e->names.functions[id];
    if (__builtin_expect(known->module != module || known->name != name, 0))
        return write_new_function(e, at, id, module, name, arity);
    put32(at, id | arity << 16); /* writes one byte too many, which the next item overwrites */
    return at + 3;
}

bool encode_names_secret(struct encoder *e, ERL_NIF_TERM key)
{
    return is_secret_name(e, key);
}

uint8_t *encode_term(struct encoder *e, uint8_t *at, uint32_t bytes, ERL_NIF_TERM t)
{
    uint8_t *behind = bytes ? write_term(e, at, at + bytes, t, e->limits.depth) : write_cut(e, at, ETW_T_ELIDED);
    secret_hide(at, behind);
    return behind;
}

uint8_t *encode_terms(struct encoder *e, uint8_t *at, uint32_t bytes, const ERL_NIF_TERM *each, unsigned many)
{
    uint8_t *behind = write_terms(e, at, bytes, each, many);
    secret_hide(at, behind);
    return behind;
}

static uint8_t *write_no_function(uint8_t *at)
{
    return put8(put16(at, ETW_NO_FUNCTION), 0);
}

uint8_t *encode_function(struct encoder *e, uint8_t *at, ERL_NIF_TERM t)
{
    const ERL_NIF_TERM *mfa;
    unsigned arity;
    if (!encode_is_function(e->env, t, &mfa) || !enif_get_uint(e->env, mfa[2], &arity))
        return write_no_function(at);
    return write_function(e, at, mfa[0], mfa[1], arity);
}

uint8_t *encode_function_fields(struct encoder *e, uint8_t *at, ERL_NIF_TERM module, ERL_NIF_TERM name, uint32_t arity)
{
    return __builtin_expect(arity & ENCODE_NO_FUNCTION, 0) ? write_no_function(at)
                                                           : write_function(e, at, module, name, arity);
}

uint8_t *encode_call_fields(struct encoder *e, uint8_t *at, ERL_NIF_TERM module, ERL_NIF_TERM name, uint32_t arity,
                            const ERL_NIF_TERM *args)
{
    if (__builtin_expect(arity > ENCODE_ARGS, 0)) {
        e->flags |= arity & ENCODE_BARE ? ETW_F_ARITY : 0;
        return encode_function_fields(e, at, module, name, arity & ~(uint32_t)ENCODE_BARE);
    }
    at = write_function(e, at, module, name, arity);
    uint8_t *behind = write_terms(e, at, e->limits.bytes, args, arity);
    secret_hide(at, behind);
    return behind;
}

/* ---- encode held terms again for a ring -------------------------------------------------------------------------- */

/*
 * Returns the number of bytes of an item after its tag. Returns `left` or more if the item is not complete in `left`
 * bytes.
 */
static size_t payload_bytes(const uint8_t *at, size_t left)
{
    static const struct {
        /* fixed: bytes after the tag in each item. length_at, length_size: the field with the number of further bytes.
         */
        uint8_t fixed, length_at, length_size;
    } forms[] = {
        [ETW_T_INT16 & 0x3f] = {2, 0, 0},  [ETW_T_INT32 & 0x3f] = {4, 0, 0},
        [ETW_T_INT64 & 0x3f] = {8, 0, 0},  [ETW_T_BIGPOS & 0x3f] = {2, 0, 2},
        [ETW_T_BIGNEG & 0x3f] = {2, 0, 2}, [ETW_T_FLOAT & 0x3f] = {8, 0, 0},
        [ETW_T_ATOM & 0x3f] = {2, 0, 0},   [ETW_T_PID & 0x3f] = {8, 0, 0},
        [ETW_T_PORT & 0x3f] = {8, 0, 0},   [ETW_T_TEXT & 0x3f] = {3, 1, 2},
        [ETW_T_TUPLE & 0x3f] = {4, 0, 0},  [ETW_T_MAP & 0x3f] = {4, 0, 0},
        [ETW_T_BIN & 0x3f] = {12, 8, 4},   [ETW_T_BITS & 0x3f] = {13, 9, 4},
        [ETW_T_STRING & 0x3f] = {2, 0, 2}, [0x3f] = {0, 0, 0},
    };
    unsigned tag = *at;
    if (tag < 0x80 || tag >= ETW_T_TUPLE0)
        return 0;
    uint32_t length = 0;
    size_t fixed = forms[tag & 0x3f].fixed;
    if (fixed < left)
        memcpy(&length, at + 1 + forms[tag & 0x3f].length_at, forms[tag & 0x3f].length_size);
    return fixed + length;
}

/* Copies held terms, and replaces the index of each atom with its id in the ring. apart: define every atom. */
static uint8_t *write_terms_anew(struct encoder *e, uint8_t *at, const uint8_t *end, const struct encode_held *held,
                                 bool apart)
{
    const uint8_t *from = held->terms, *behind = from + held->bytes, *copied = from;
    while (from < behind) {
        const uint8_t *tag = from;
        size_t left = (size_t)(behind - from), bytes = payload_bytes(from, left);
        if (bytes >= left)
            break;
        from += 1 + bytes;
        if (*tag != ETW_T_ATOM)
            continue;
        memcpy(at, copied, (size_t)(tag - copied));
        at += tag - copied;
        copied = from;
        unsigned index = tag[1] | (unsigned)tag[2] << 8;
        uint64_t word = index < held->word_count ? held->words[index] : imm_nil;
        if (apart)
            e->names.atoms[intern_atom(word)] = 0;
        bool known = e->names.atoms[intern_atom(word)] == word;
        if (word == imm_nil || (!known && end - at < behind - from + ATOM_BYTES + 8))
            at = write_cut(e, at, ETW_T_ELIDED);
        else
            at = write_atom(e, at, word);
    }
    memcpy(at, copied, (size_t)(behind - copied));
    return at + (behind - copied);
}

uint8_t *encode_anew(struct encoder *e, uint8_t *at, const uint8_t *end, const struct encode_held *held)
{
    uint8_t *began = at;
    if (!held->bare)
        at = write_function(e, at, held->module, held->name, held->arity);
    at = write_terms_anew(e, at, end, held, false);
    secret_hide(began, at); /* write_atom() may have written names that contain the cookie */
    return at;
}

uint8_t *encode_apart(struct encoder *e, uint8_t *at, const uint8_t *end, const struct encode_held *held)
{
    uint8_t *behind = write_terms_anew(e, at, end, held, true);
    secret_hide(at, behind);
    return behind;
}

/* ---- load and rules ---------------------------------------------------------------------------------------------- */

static bool make_bound(bool negative, ERL_NIF_TERM *ret_bound)
{
    /* SMALL_BIG_EXT with the most bytes that its length field allows */
    uint8_t form[4 + BIG_BYTES - 1] = {131, 110, BIG_BYTES - 1, negative};
    memset(form + 4, 0xff, BIG_BYTES - 1);
    return enif_binary_to_term(bounds_env, form, sizeof form, ret_bound, 0) == sizeof form;
}

static ERL_NIF_TERM make_binary(const char *text)
{
    ERL_NIF_TERM t;
    size_t bytes = strlen(text);
    memcpy(enif_make_new_binary(bounds_env, bytes, &t), text, bytes);
    return t;
}

bool encode_load(ErlNifEnv *env)
{
    bounds_env = enif_alloc_env();
    if (!bounds_env || !make_bound(false, &big_most) || !make_bound(true, &big_least))
        return false;
    pair_value[0] = enif_make_atom(env, "value"), pair_value[1] = make_binary("value");
    pair_names[0] = enif_make_atom(env, "name"), pair_names[1] = make_binary("name");
    pair_names[2] = enif_make_atom(env, "key"), pair_names[3] = make_binary("key");
    return true;
}

void encode_unload(void)
{
    if (bounds_env)
        enif_free_env(bounds_env);
    bounds_env = NULL;
}

bool encode_redact(ErlNifEnv *env, ERL_NIF_TERM keys)
{
    ERL_NIF_TERM head;
    ErlNifBinary bin;
    secret_none();
    steps_rest = STEPS_REST * tick_slack();
    atomic_store_explicit(&careful, false, memory_order_relaxed);
    for (unsigned i = 0; i < ETW_ATOMS; i++)
        atomic_store_explicit(&harmless[i], 0, memory_order_relaxed);
    if (enif_get_list_cell(env, keys, &head, &keys) && enif_inspect_binary(env, head, &bin))
        secret_set_cookie(bin.data, bin.size);
    while (enif_get_list_cell(env, keys, &head, &keys))
        if (!enif_inspect_binary(env, head, &bin) || !secret_add(bin.data, bin.size))
            return false;
    return enif_is_empty_list(env, keys);
}
