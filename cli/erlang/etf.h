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

#define ETF_MAX_TERMS (1u << 20) /* heads that one reader accepts */

struct etf {
    const unsigned char *at, *end;
    uint32_t terms; /* heads read so far */
    bool failed;
};

enum etf_type {
    ETF_ATOM,   /* text in UTF-8; `latin1`: it came in the old encoding and has bytes above 127 */
    ETF_INT,    /* integer */
    ETF_BIG,    /* text: the magnitude, lowest byte first; negative */
    ETF_FLOAT,  /* real */
    ETF_BIN,    /* text: the bytes; bits: how many bits of the last byte count, 1 to 8 (0: no bytes) */
    ETF_STRING, /* text: a proper list of small integers; no elements follow */
    ETF_NIL,
    ETF_LIST,   /* count elements and a tail follow */
    ETF_TUPLE,  /* count elements follow */
    ETF_MAP,    /* count pairs follow */
    ETF_PID,    /* text: the node's name; id, serial, creation */
    ETF_PORT,   /* text: the node's name; id, creation */
    ETF_REF,    /* text: the node's name; creation, words */
    ETF_EXPORT, /* module, function and arity follow as three terms */
    ETF_FUN,    /* text: the whole encoded fun, not decoded */
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
bool etf_take(struct etf *r, struct etf *ret_term); /* skips one whole term; *ret_term reads that term */

/* Read a term of one type. They return false and set `failed` if the next term has another type. */
bool etf_get_tuple(struct etf *r, size_t arity);
bool etf_get_map(struct etf *r, size_t *ret_pairs);
bool etf_get_list(struct etf *r, size_t *ret_count); /* sets 0 for []; other lists end with a tail: etf_get_nil() */
bool etf_get_nil(struct etf *r);
bool etf_get_atom(struct etf *r, struct raw *ret);
bool etf_get_int(struct etf *r, int64_t *ret);
bool etf_get_bin(struct etf *r, struct raw *ret); /* reads binaries only, no bit strings */
bool etf_get_pid(struct etf *r, struct etf_head *ret);

/* Look at the next term. They neither advance the reader nor set `failed`. */
bool etf_peek(const struct etf *r, struct etf_head *ret);
bool etf_is_atom(const struct etf *r, const char *name);

#endif
