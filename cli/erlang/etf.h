/*
 * Reading the external term format from bytes that nobody vouches for.
 *
 * A reader goes over the terms head by head: etf_next() gives the head of the next term, and the elements of a
 * container follow as terms of their own (a list of n elements: n terms and its tail; a map of n pairs: 2n terms). There
 * is no recursion and no allocation; every length is checked against what is left, and a container that announces more
 * elements than there are bytes is refused at its head. After a failure the reader stays failed, so a caller may read a
 * whole structure and look once. What is returned points into the bytes.
 */
#ifndef ETRACE_ETF_H
#define ETRACE_ETF_H

#include "../ground/macros.h"

#define ETF_MAX_TERMS (1u << 20) /* heads that one reader looks at */

struct etf {
    const unsigned char *at, *end;
    uint32_t terms; /* heads seen so far */
    bool failed;
};

enum etf_type {
    ETF_ATOM,  /* text in UTF-8; `latin1` when it came in the old encoding and has bytes above 127 */
    ETF_INT,   /* integer */
    ETF_BIG,   /* text: the magnitude, lowest byte first; negative */
    ETF_FLOAT, /* real */
    ETF_BIN,   /* text: the bytes; bits of the last one that count: 1 to 8 (0: there is none) */
    ETF_STRING, /* text: a proper list of small integers, without elements that follow */
    ETF_NIL,
    ETF_LIST,  /* count elements and a tail follow */
    ETF_TUPLE, /* count elements follow */
    ETF_MAP,   /* count pairs follow */
    ETF_PID,   /* text: the node's name; id, serial, creation */
    ETF_PORT,  /* text: the node's name; id, creation */
    ETF_REF,   /* text: the node's name; creation, words */
    ETF_EXPORT, /* module, function and arity follow as three terms */
    ETF_FUN,    /* text: all of it, unread */
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

void etf_open(struct etf *r, const void *bytes, size_t len);           /* one term without the 131 */
bool etf_open_version(struct etf *r, const void *bytes, size_t len);   /* checks and skips the 131 */
bool etf_done(const struct etf *r);                                    /* not failed, and nothing is left */

bool etf_next(struct etf *r, struct etf_head *ret);
bool etf_skip(struct etf *r);                        /* one whole term */
bool etf_take(struct etf *r, struct etf *ret_term);  /* the same, and a reader of that term */

/* The next term must be of that type; false and failed otherwise. */
bool etf_get_tuple(struct etf *r, size_t arity);
bool etf_get_map(struct etf *r, size_t *ret_pairs);
bool etf_get_list(struct etf *r, size_t *ret_count); /* [] is 0; the tail of a longer one is read with etf_get_nil() */
bool etf_get_nil(struct etf *r);
bool etf_get_atom(struct etf *r, struct raw *ret);
bool etf_get_int(struct etf *r, int64_t *ret);
bool etf_get_bin(struct etf *r, struct raw *ret); /* whole bytes only */
bool etf_get_pid(struct etf *r, struct etf_head *ret);

/* Looks without moving: whether the next term is this atom, and which type it has. */
bool etf_peek(const struct etf *r, struct etf_head *ret);
bool etf_is_atom(const struct etf *r, const char *name);

#endif
