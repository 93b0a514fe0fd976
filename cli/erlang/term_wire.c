/* SPDX-License-Identifier: Apache-2.0 */
/* Checks, walks and copies encoded terms. It does not print them; term_print.c does. */
#include "term_wire.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "../ground/utf8.h"
#include "term_print.h"

#define ATOM_BYTES 1020 /* 255 characters of four bytes */
#define PAD 16          /* readable bytes after the text of an atom: the printer copies 16 bytes at once */

/* ---- the table of atoms ---- */

void wire_atoms_release(struct wire_atoms *t)
{
    for (uint32_t i = 0; i < t->cap; i++)
        free((char *)t->table[i].erl);
    free(t->table);
    *t = (struct wire_atoms){0};
}

static void grow_atoms(struct wire_atoms *t, unsigned id)
{
    uint32_t cap = t->cap ? t->cap : 64;

    if (id < t->cap)
        return;
    while (cap <= id)
        cap *= 2;
    t->table = mem_realloc(t->table, cap * sizeof(*t->table));
    memset(t->table + t->cap, 0, (cap - t->cap) * sizeof(*t->table));
    t->bytes += (cap - t->cap) * sizeof(*t->table);
    t->cap = cap;
}

/* Appends a name, with each invalid byte replaced by U+FFFD, so that all names in the table are valid UTF-8. */
static void add_valid(struct buf *b, const char *name, size_t len)
{
    const char *end = name + len;

    while (name < end) {
        const char *from = name;
        if (utf8_next(&name, end) == UTF8_BAD)
            buf_utf8(b, 0xfffd);
        else
            buf_add(b, from, (size_t)(name - from));
    }
}

void wire_atoms_define(struct wire_atoms *t, unsigned id, const char *name, size_t len)
{
    struct buf b = {0};

    grow_atoms(t, id);
    struct wire_atom *a = &t->table[id];
    if (a->erl) {
        t->bytes -= (size_t)a->erl_len + a->raw_len + PAD;
        free((char *)a->erl);
    }
    erlang_print_atom(&b, raw_bytes(name, len));
    a->erl_len = (uint16_t)b.len;
    if (b.len == len && !memcmp(b.data, name, len)) {
        a->raw_len = a->erl_len;
    } else {
        add_valid(&b, name, len);
        a->raw_len = (uint16_t)(b.len - a->erl_len);
    }
    memset(buf_room(&b, PAD), 0, PAD);
    a->erl = b.data;
    a->raw = b.data + (b.len - a->raw_len);
    t->bytes += (size_t)a->erl_len + a->raw_len + PAD;
}

/* ---- single tokens: a leaf, or the head of a container ---- */

enum { VARIABLE = 0xff };

/* The number of bytes of a token with this tag: 0 for an unknown tag, VARIABLE if the token has a length field. */
static const uint8_t token_bytes[256] = {
    [0x00 ... 0x7f] = 1,
    [ETW_T_INT16] = 3,
    [ETW_T_INT32] = 5,
    [ETW_T_INT64] = 9,
    [ETW_T_BIGPOS] = VARIABLE,
    [ETW_T_BIGNEG] = VARIABLE,
    [ETW_T_FLOAT] = 9,
    [ETW_T_ATOM] = 3,
    [ETW_T_ATOMDEF] = VARIABLE,
    [ETW_T_ATOMTEXT] = VARIABLE,
    [ETW_T_PID] = 9,
    [ETW_T_PORT] = 9,
    [ETW_T_TEXT] = VARIABLE,
    [ETW_T_NIL] = 1,
    [ETW_T_LIST] = 1,
    [ETW_T_END] = 1,
    [ETW_T_TAIL] = 1,
    [ETW_T_TUPLE] = 5,
    [ETW_T_MAP] = 5,
    [ETW_T_BIN] = VARIABLE,
    [ETW_T_BITS] = VARIABLE,
    [ETW_T_CUT] = 1,
    [ETW_T_ELIDED] = 1,
    [ETW_T_REDACTED] = 1,
    [ETW_T_STRING] = VARIABLE,
    [ETW_T_TUPLE0... ETW_T_TUPLE0 + 31] = 1,
};

static size_t variable_head(uint8_t tag)
{
    switch (tag) {
    case ETW_T_ATOMDEF:
        return 5;
    case ETW_T_TEXT:
        return 4;
    case ETW_T_BIN:
        return 13;
    case ETW_T_BITS:
        return 14;
    default:
        return 3; /* BIGPOS BIGNEG ATOMTEXT STRING */
    }
}

static size_t variable_body(const uint8_t *at)
{
    switch (*at) {
    case ETW_T_ATOMDEF:
        return wire_u16(at + 3);
    case ETW_T_TEXT:
        return wire_u16(at + 2);
    case ETW_T_BIN:
        return wire_u32(at + 9);
    case ETW_T_BITS:
        return wire_u32(at + 10);
    default:
        return wire_u16(at + 1);
    }
}

static const uint8_t *token_end(const uint8_t *at)
{
    uint8_t n = token_bytes[*at];

    return likely(n != VARIABLE) ? at + n : at + variable_head(*at) + variable_body(at);
}

const uint8_t *wire_token(const uint8_t *at)
{
    return token_end(at);
}

/* ---- checking ---- */

/* Checks a token of variable length. Returns NULL and sets *why if it is malformed. */
static const uint8_t *check_variable(struct wire_atoms *t, const uint8_t *at, const uint8_t *end,
                                     enum wire_found *found, const char **why)
{
    size_t left = (size_t)(end - at), head = variable_head(*at);

    *why = "a term is longer than its frame";
    if (left < head || left - head < variable_body(at))
        return NULL;
    size_t body = variable_body(at);
    switch (*at) {
    case ETW_T_ATOMDEF: {
        unsigned id = wire_u16(at + 1);
        if (*why = "an atom's id out of range", id >= ETW_ATOMS)
            return NULL;
        if (*why = "an atom of more than 255 characters", body > ATOM_BYTES)
            return NULL;
        grow_atoms(t, id);
        if (t->table[id].seen == t->frame)
            *found = WIRE_CONFLICT;
        else
            *found = MAX(*found, WIRE_DEFINES);
        t->table[id].seen = t->frame;
        break;
    }
    case ETW_T_ATOMTEXT:
        if (*why = "an atom of more than 255 characters", body > ATOM_BYTES)
            return NULL;
        break;
    case ETW_T_BIN:
    case ETW_T_BITS: {
        bool bits = *at == ETW_T_BITS;
        uint64_t size = wire_u64(at + (bits ? 2 : 1));
        if (*why = "more bytes of a binary than it has", body > size)
            return NULL;
        if (*why = "a bit string with a wrong number of bits", bits && (at[1] < 1 || at[1] > 7 || !size))
            return NULL;
        break;
    }
    default:
        break;
    }
    return at + head + body;
}

/*
 * The count from which wire_check() counts down in a list, because a list ends with a token and not after a number of
 * elements. The count stays above IN_LIST / 2, by which IS_LIST() recognizes a list.
 */
#define IN_LIST (UINT64_C(1) << 63)
#define IS_LIST(want) ((want) > IN_LIST / 2)

enum wire_found wire_check(struct wire_atoms *t, const uint8_t *at, const uint8_t *end, unsigned terms,
                           const uint8_t **ret_end, const char **why)
{
    uint64_t outer[WIRE_DEPTH], *around = outer; /* `want` of the enclosing containers; `around` is the free end */
    uint64_t want = terms, count;                /* want: the number of terms missing in the current container */
    enum wire_found found = WIRE_OK;
    const uint8_t *behind;

    if (!terms) {
        *ret_end = at;
        return WIRE_OK;
    }
    for (;;) {
        if (unlikely(at >= end)) {
            *why = "a term is missing";
            goto bad;
        }
        uint8_t tag = *at;
        if (tag < 0x80) {
            at++;
            goto done;
        }
        if (tag >= ETW_T_TUPLE0 && tag < ETW_T_TUPLE0 + 32) {
            count = tag - ETW_T_TUPLE0;
            behind = at + 1;
            goto container;
        }
        uint8_t n = token_bytes[tag];
        if (n == VARIABLE) {
            const uint8_t *next = check_variable(t, at, end, &found, why);
            if (unlikely(!next))
                goto bad;
            at = next;
            goto done;
        }
        if (unlikely((size_t)(end - at) < n)) {
            *why = "a term is longer than its frame";
            goto bad;
        }
        behind = at + n;
        if (tag == ETW_T_ATOM) {
            unsigned id = wire_u16(at + 1);
            if (unlikely(id >= t->cap || (!t->table[id].erl && t->table[id].seen != t->frame))) {
                *why = "an atom that was not defined";
                goto bad;
            }
            t->table[id].seen = t->frame;
            at = behind;
            goto done;
        }
        switch (tag) {
        case ETW_T_LIST:
            count = IN_LIST;
            goto container;
        case ETW_T_TUPLE:
            count = wire_u32(at + 1);
            goto container;
        case ETW_T_MAP:
            count = UINT64_C(2) * wire_u32(at + 1);
            goto container;
        case ETW_T_END:
            if (unlikely(!IS_LIST(want))) {
                *why = "the end of a list outside of one";
                goto bad;
            }
            want = *--around;
            break;
        case ETW_T_TAIL:
            if (unlikely(!IS_LIST(want))) {
                *why = "the tail of a list outside of one";
                goto bad;
            }
            at = behind;
            want = 1;
            continue;
        case ETW_T_CUT:
            if (unlikely(around == outer)) {
                *why = "a cut outside of a container";
                goto bad;
            }
            want = *--around;
            break;
        default:
            if (unlikely(!n)) {
                *why = "no term begins with this byte";
                goto bad;
            }
            break;
        }
        at = behind;
        goto done;

    container:
        if (unlikely(around == outer + WIRE_DEPTH - 1)) {
            *why = "terms are nested too deep";
            goto bad;
        }
        at = behind;
        if (count) {
            *around++ = want;
            want = count;
            continue;
        }
    done: /* a term is complete; if it is the last one of its container, the container is complete, too */
        while (--want == 0) {
            if (around == outer) {
                *ret_end = at;
                return found;
            }
            want = *--around;
        }
    }
bad:
    *ret_end = at;
    return WIRE_BAD;
}

void wire_define(struct wire_atoms *t, const uint8_t *at, const uint8_t *end)
{
    for (; at < end; at = token_end(at))
        if (*at == ETW_T_ATOMDEF)
            wire_atoms_define(t, wire_u16(at + 1), (const char *)at + 5, wire_u16(at + 3));
}

/* ---- copying ---- */

static void add_atom(struct buf *to, struct str raw)
{
    char *p = buf_room(to, 3 + raw.len);
    uint16_t len = (uint16_t)raw.len;

    p[0] = (char)ETW_T_ATOMTEXT;
    memcpy(p + 1, &len, sizeof(len));
    memcpy(p + 3, raw.at, raw.len);
    to->len += 3 + raw.len;
}

static bool copy_resolved(struct buf *to, const struct wire_atoms *t, struct wire_atoms *define, struct wire w,
                          size_t max)
{
    size_t start = to->len;
    const uint8_t *run = w.at; /* the bytes from `run` to `at` are not copied yet, and will be copied unchanged */

    for (const uint8_t *at = w.at, *next; at < w.end; at = next) {
        next = token_end(at);
        if (*at != ETW_T_ATOM && *at != ETW_T_ATOMDEF)
            continue;
        buf_add(to, run, (size_t)(at - run));
        run = next;
        if (*at == ETW_T_ATOMDEF) {
            if (define)
                wire_atoms_define(define, wire_u16(at + 1), (const char *)at + 5, wire_u16(at + 3));
            add_atom(to, (struct str){(const char *)at + 5, wire_u16(at + 3)});
        } else {
            const struct wire_atom *a = &t->table[wire_u16(at + 1)];
            add_atom(to, (struct str){a->raw, a->raw_len});
        }
        if (to->len - start > max)
            return false;
    }
    buf_add(to, run, (size_t)(w.end - run));
    return to->len - start <= max;
}

bool wire_resolve(struct buf *to, struct wire_atoms *t, struct wire terms, size_t max)
{
    return copy_resolved(to, t, t, terms, max);
}

bool wire_copy(struct buf *to, const struct term_env *env, struct wire terms, size_t max)
{
    return copy_resolved(to, env->atoms, NULL, terms, max);
}

/* Matches {Mark, Binary}. Sets *ret_name to the name in the binary, and *ret_end to the byte after the tuple. */
static bool read_marked(const struct term_env *env, const uint8_t *at, const char *mark, struct raw *ret_name,
                        const uint8_t **ret_end)
{
    uint64_t size;

    if (*at != ETW_T_TUPLE0 + 2 || !wire_is_atom(env, at + 1, mark))
        return false;
    at = token_end(at + 1);
    *ret_end = token_end(at);
    return wire_bin(at, ret_name, &size) && size == ret_name->len && size <= 1020;
}

bool wire_unmark(struct buf *to, const struct term_env *env, const uint8_t *at, const char *mark)
{
    const uint8_t *run = at, *end = wire_skip(at), *behind;
    const size_t start = to->len;
    struct raw name;

    while (at < end) {
        if (!read_marked(env, at, mark, &name, &behind)) {
            at = token_end(at);
            continue;
        }
        buf_add(to, run, (size_t)(at - run));
        add_atom(to, raw_view(name));
        run = at = behind;
    }
    if (to->len > start)
        buf_add(to, run, (size_t)(end - run));
    return to->len > start;
}

/* ---- reading checked terms ---- */

const uint8_t *wire_skip(const uint8_t *at)
{
    uint64_t left[WIRE_DEPTH + 1];
    unsigned depth = 0;

    left[0] = 1;
    for (;;) {
        uint8_t tag = *at;
        uint64_t count = 0;
        at = token_end(at);
        if (tag >= ETW_T_TUPLE0 && tag < ETW_T_TUPLE0 + 32)
            count = tag - ETW_T_TUPLE0;
        else if (tag == ETW_T_TUPLE)
            count = wire_u32(at - 4);
        else if (tag == ETW_T_MAP)
            count = wire_u32(at - 4) * UINT64_C(2);
        else if (tag == ETW_T_LIST)
            count = IN_LIST;
        else if (tag == ETW_T_END || tag == ETW_T_CUT)
            depth--;
        else if (tag == ETW_T_TAIL) {
            left[depth] = 1;
            continue;
        }
        if (count) {
            left[++depth] = count;
            continue;
        }
        while (--left[depth] == 0) {
            if (!depth)
                return at;
            depth--;
        }
    }
}

void wire_atom_text(const struct term_env *env, const uint8_t *at, struct raw *ret_raw)
{
    if (*at == ETW_T_ATOM) {
        const struct wire_atom *a = &env->atoms->table[wire_u16(at + 1)];
        *ret_raw = raw_bytes(a->raw, a->raw_len);
    } else if (*at == ETW_T_ATOMDEF) {
        *ret_raw = raw_bytes(at + 5, wire_u16(at + 3));
    } else {
        *ret_raw = raw_bytes(at + 3, wire_u16(at + 1));
    }
}

bool wire_atom(const struct term_env *env, const uint8_t *at, struct raw *ret_raw)
{
    if (!wire_is_atom_tag(*at))
        return false;
    wire_atom_text(env, at, ret_raw);
    return true;
}

bool wire_is_atom(const struct term_env *env, const uint8_t *at, const char *name)
{
    struct raw text;

    return wire_atom(env, at, &text) && raw_is(text, name);
}

bool wire_int(const uint8_t *at, int64_t *ret)
{
    switch (*at) {
    case 0x00 ... 0x7f:
        *ret = *at;
        return true;
    case ETW_T_INT16:
        *ret = (int16_t)wire_u16(at + 1);
        return true;
    case ETW_T_INT32:
        *ret = (int32_t)wire_u32(at + 1);
        return true;
    case ETW_T_INT64:
        *ret = (int64_t)wire_u64(at + 1);
        return true;
    default:
        return false;
    }
}

bool wire_pid(const uint8_t *at, uint64_t *ret_tracee)
{
    if (*at != ETW_T_PID && *at != ETW_T_PORT)
        return false;
    *ret_tracee = wire_u64(at + 1) | (*at == ETW_T_PORT ? ETW_TRACEE_PORT : 0);
    return true;
}

bool wire_bin(const uint8_t *at, struct raw *ret_bytes, uint64_t *ret_size)
{
    if (*at != ETW_T_BIN)
        return false;
    *ret_size = wire_u64(at + 1);
    *ret_bytes = raw_bytes(at + 13, wire_u32(at + 9));
    return true;
}

/* Returns the number of elements before a cut, at most `count`. */
static int64_t count_elements(const uint8_t *at, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, at = wire_skip(at))
        if (*at == ETW_T_CUT)
            return (int64_t)i;
    return (int64_t)count;
}

int64_t wire_tuple(const uint8_t *at, uint32_t *ret_arity, const uint8_t **ret_first)
{
    if (*at >= ETW_T_TUPLE0 && *at < ETW_T_TUPLE0 + 32) {
        *ret_arity = *at - ETW_T_TUPLE0;
        *ret_first = at + 1;
    } else if (*at == ETW_T_TUPLE) {
        *ret_arity = wire_u32(at + 1);
        *ret_first = at + 5;
    } else {
        return -1;
    }
    return count_elements(*ret_first, *ret_arity);
}

int64_t wire_map(const uint8_t *at, uint32_t *ret_pairs, const uint8_t **ret_first)
{
    if (*at != ETW_T_MAP)
        return -1;
    *ret_pairs = wire_u32(at + 1);
    *ret_first = at + 5;
    return count_elements(*ret_first, UINT64_C(2) * *ret_pairs) / 2;
}

bool wire_list(const uint8_t **at)
{
    static const uint8_t nothing = ETW_T_END;

    if (**at == ETW_T_LIST)
        ++*at;
    else if (**at == ETW_T_NIL)
        *at = &nothing;
    else
        return false;
    return true;
}

const uint8_t *wire_list_next(const uint8_t **at)
{
    const uint8_t *element = *at;

    if (*element == ETW_T_END || *element == ETW_T_TAIL || *element == ETW_T_CUT)
        return NULL;
    *at = wire_skip(element);
    return element;
}
