/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the external term format from untrusted bytes. It builds no terms and allocates no memory.
 *
 * A caller reads head by head. etf_next() returns the head of the next term, and the elements of a container follow as
 * terms of their own: n terms and a tail for a list of n elements, 2n terms for a map of n pairs. The reader does not
 * recurse. It checks every length against the remaining bytes, and it rejects a container at its head if the announced
 * elements cannot fit. After a failure the reader stays failed, so a caller may read a whole structure and check
 * `failed` once at the end. Returned text points into the caller's bytes.
 */
#ifndef ETRACE_ETF_H
#define ETRACE_ETF_H

#include "../ground/macros.h"

#define ETF_MAX_TERMS (1u << 20) /* limit for the heads that one reader reads */

struct etf {
    const unsigned char *at, *end;
    uint32_t terms; /* the number of heads that were read */
    bool failed;
};

/* The types of terms. Each comment says what the members of struct etf_head contain, or which terms follow the head. */
enum etf_type {
    ETF_ATOM,   /* `text` is the name; `latin1` is set if the name is in Latin-1 and not ASCII, else it is in UTF-8 */
    ETF_INT,    /* `integer` is the value */
    ETF_BIG,    /* `text` is the magnitude with the lowest byte first, and `negative` the sign */
    ETF_FLOAT,  /* `real` is the value */
    ETF_BIN,    /* `text` has the bytes; `bits` is the number of bits in the last byte, 1 to 8, or 0 without a byte */
    ETF_STRING, /* `text` has the elements of a proper list of small integers; no terms follow for them */
    ETF_NIL,
    ETF_LIST,   /* `count` elements and a tail follow */
    ETF_TUPLE,  /* `count` elements follow */
    ETF_MAP,    /* `count` pairs follow */
    ETF_PID,    /* `text` is the node's name; `id`, `serial` and `creation` are set */
    ETF_PORT,   /* `text` is the node's name; `id` and `creation` are set */
    ETF_REF,    /* `text` is the node's name; `creation`, `words` and `nwords` are set */
    ETF_EXPORT, /* module, function and arity follow as three terms */
    ETF_FUN,    /* `text` is the whole fun, still encoded */
};

struct etf_head {
    enum etf_type type;
    struct raw text;
    int64_t integer;
    double real;
    size_t count;
    uint64_t id;
    uint32_t serial, creation, words[5], nwords;
    unsigned bits;
    bool negative, latin1;
};

void etf_open(struct etf *r, const void *bytes, size_t len);         /* reads one term without the version byte 131 */
bool etf_open_version(struct etf *r, const void *bytes, size_t len); /* checks and skips the version byte */
bool etf_done(const struct etf *r); /* returns true if the reader has not failed and no bytes are left */

bool etf_next(struct etf *r, struct etf_head *ret);
bool etf_skip(struct etf *r);                       /* skips one whole term */
bool etf_take(struct etf *r, struct etf *ret_term); /* skips one whole term; *ret_term is a new reader of that term */

/* The following functions read a term of one type. They return false and set `failed` if the type is different. */
bool etf_get_tuple(struct etf *r, size_t arity);
bool etf_get_map(struct etf *r, size_t *ret_pairs);
bool etf_get_list(struct etf *r, size_t *ret_count); /* sets 0 for []; other lists end with a tail: etf_get_nil() */
bool etf_get_nil(struct etf *r);
bool etf_get_atom(struct etf *r, struct raw *ret);
bool etf_get_int(struct etf *r, int64_t *ret);
bool etf_get_bin(struct etf *r, struct raw *ret); /* reads binaries only, no bit strings */
bool etf_get_pid(struct etf *r, struct etf_head *ret);

/* The following functions look at the next term. They neither advance the reader nor set `failed`. */
bool etf_peek(const struct etf *r, struct etf_head *ret);
bool etf_is_atom(const struct etf *r, const char *name);

#endif
