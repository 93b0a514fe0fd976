/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Represents an Erlang term as a tree, for terms that this program builds: match specifications and requests to the
 * node. A term from a node never becomes a tree; it stays encoded (nif/etrace_wire.h). Each tree node lives in the
 * arena that it was built in and is immutable afterwards.
 */
#ifndef ETRACE_TERM_H
#define ETRACE_TERM_H

#include "../ground/buf.h"
#include "../ground/mem.h"

enum term_type {
    TERM_ATOM,   /* `text` is the name in UTF-8, without quotes */
    TERM_INT,    /* `integer` is the value */
    TERM_BIG,    /* `text` has the decimal digits, with a leading '-' if negative */
    TERM_FLOAT,  /* `real` is the value */
    TERM_BIN,    /* `text` has the bytes; `bits` is the number of bits in the last byte, 8 for a binary */
    TERM_TUPLE,  /* `items` are the elements */
    TERM_LIST,   /* `items` are the elements; `tail` is NULL for a proper list */
    TERM_MAP,    /* `items` are a key, its value, the next key, and so on */
    TERM_PID,    /* `text` is the node's name; `id`, `serial` and `creation` are set */
    TERM_PORT,   /* `text` is the node's name; `id` and `creation` are set */
    TERM_REF,    /* `text` is the node's name; `creation`, `words` and `nwords` are set */
    TERM_EXPORT, /* fun M:F/A; `items` are two atoms and an integer */
};

struct term {
    enum term_type type;
    unsigned bits;
    /* For a pid, port or reference: the name of its node, or empty for the node that receives the term. */
    struct str text;
    int64_t integer;
    double real;
    const struct term **items;
    size_t count; /* number of items; a map counts keys and values separately */
    const struct term *tail;
    uint64_t id;
    uint32_t serial, creation, words[5], nwords;
};

typedef const struct term *term_t;

term_t term_atom(struct arena *a, const char *name);
term_t term_atom_n(struct arena *a, struct str name);
term_t term_bool(struct arena *a, bool value);
term_t term_int(struct arena *a, int64_t value);
term_t term_float(struct arena *a, double value);
term_t term_bin(struct arena *a, const void *bytes, size_t len);       /* copies the bytes */
term_t term_tuple(struct arena *a, size_t count, const term_t *items); /* copies the pointers */
term_t term_list(struct arena *a, size_t count, const term_t *items, term_t tail_or_null);
term_t term_map(struct arena *a, size_t pairs, const term_t *keys_and_values);

/* The following macros call term_tuple() and term_list() with the items as arguments. */
#define TERM_ITEMS(...)                                                                                                \
    (sizeof((term_t[]){__VA_ARGS__}) / sizeof(term_t)), (term_t[])                                                     \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define TUPLE(a, ...) term_tuple(a, TERM_ITEMS(__VA_ARGS__))
#define LIST(a, ...) term_list(a, TERM_ITEMS(__VA_ARGS__), NULL)

bool term_equal(term_t a, term_t b);
bool term_is_atom(term_t t, const char *name);

/*
 * Encodes a term in the external term format, with the version byte. Asserts that pids, ports and references have a
 * node name.
 */
void term_to_etf(struct buf *b, term_t t);

/* Encodes a term as nif/etrace_wire.h describes, which the printers read. */
void term_to_wire(struct buf *b, term_t t);

#endif
