/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines the tree that the parser builds. Patterns, guards, bodies and `where` share one kind of node because they
 * share the grammar of terms; check decides which nodes are valid where. Nodes live in the arena of the compilation and
 * know their place in the text.
 */
#ifndef ETRACE_AST_H
#define ETRACE_AST_H

#include "spec.h"

/* The types of nodes. Each comment says what the members of struct ast contain in a node of this type. */
enum ast_type {
    A_LIT,   /* `value` is the literal; `quoted` marks an atom in quotes (Erlang) or with a colon (Elixir) */
    A_ANY,   /* `_`; `quoted` marks the name of a struct in a pattern, as in %_{} */
    A_VAR,   /* `text` is the name of the variable; `quoted` marks the name of a struct, as in %name{} */
    A_PIN,   /* `text` is the name behind the ^ */
    A_TUPLE, /* `items` are the elements */
    A_LIST,  /* `items` are the elements; `tail` is NULL for a proper list */
    A_MAP,   /* `items` are a key, its value, the next key, and so on */
    /*
     * #module:text{Field = Value}. `items` are a field (an A_LIT, or A_ANY for `_ = V`), its value, the next field, and
     * so on. In A_RECORD and A_RECFIELD `quoted` marks the syntax of native records.
     */
    A_RECORD,
    A_RECFIELD, /* items[0]#text.items[1]; if items[0] is NULL, the index #text.items[1]; items[1] is an A_LIT */
    A_NATIVE,   /* made by check: a native record named module:text, or any native record if `text` is empty */
    A_BIN,      /* `items` are the segments, of type A_SEG */
    A_SEG,      /* items[0] is the value, items[1] the size or NULL; `seg` has the rest */
    A_MATCH,    /* items[0] = items[1] */
    A_OP,       /* `op` is the operator, `items` are its operands */
    A_CALL,     /* module:text(items); `module` may be empty */
    A_DOT,      /* items[0].text */
    A_INDEX,    /* items[0][items[1]] */
    A_UNIT,     /* `value` is a number as written, and `text` its unit */
    A_REGEX,    /* `text` is the PCRE2 pattern; only the escapes of its delimiter are resolved */
};

/* Operators: the functions of match specifications, and a few operators that are only syntax. */
enum ast_op {
    OP_CONCAT = FN_COUNT, /* ++ */
    OP_BINCAT,            /* <> */
    OP_IN,
    OP_NOT_IN,
    OP_RANGE,  /* first..last, optionally a third item: the step */
    OP_LIKE,   /* =~ */
    OP_UNLIKE, /* !~ */
};

enum seg_type { SEG_DEFAULT, SEG_INTEGER, SEG_FLOAT, SEG_BINARY, SEG_BITS, SEG_UTF8, SEG_UTF16, SEG_UTF32 };

struct seg {
    enum seg_type type;
    int unit; /* the unit of the segment; 0 stands for the default of its type */
    bool is_signed, little, native;
};

struct ast {
    enum ast_type type;
    int op;
    bool quoted, paren;
    bool assigns;   /* A_MAP: the user wrote a key with ':=' */
    bool plain;     /* an atom without quotes (Erlang), or an alias of one word (Elixir), may be meant as a variable */
    unsigned types; /* set by check: the TY_ bits of the types that the value may have */
    term_t known;   /* set by check: the value if it is constant, else NULL */
    unsigned depth; /* depth of this tree; the parser limits it, so that every pass may recurse */
    size_t size;    /* nodes of the tree with every 'in' expanded; the parser limits this number */
    size_t from, len; /* offsets into the whole text */
    struct str text, module;
    size_t called; /* A_CALL: length of the name and its module as written; 0 in a node that check made */
    term_t value;
    struct seg seg;
    int64_t bits; /* A_SEG, set by check: number of bits of the segment; -1 for the rest of the binary */
    struct ast **items;
    size_t count;
    struct ast *tail;
};

/* One guard sequence of a clause. A clause matches if all tests of at least one of its sequences hold. */
struct ast_guard {
    struct ast **tests;
    size_t count;
    size_t from, len;
};

/* One action of a body, as check leaves it. */
struct ast_act {
    int action;             /* enum action of actions.h; ACTION_NONE in dbg's fun */
    const struct ast *node; /* the checked call; if the action makes no term, the call as the parser left it */
};

struct ast_clause {
    bool has_head;
    bool prefix;       /* the head ends in `...` */
    struct ast *whole; /* X of dbg's fun(X) and fun([A,B]=X): the variable for the whole argument list; else NULL */
    struct ast **head;
    size_t nhead;
    struct ast *tail; /* T of dbg's fun([A|T]); else NULL */
    struct ast_guard *guards;
    size_t nguards;
    struct ast **body;
    size_t nbody;
    struct ast_act **acts; /* set by check: the actions of the body */
    size_t nacts;
    const struct ast *hides; /* set by check: the action drop or msg(false), or NULL */
    bool always;             /* set by the pass fold: the guards hold for every event */
    size_t from, len, head_from, head_len;
};

enum ast_shape {
    SHAPE_CALL,
    SHAPE_SEND,
    SHAPE_RECV,
    SHAPE_EVENT,
};

struct ast_probe {
    enum ast_shape shape;
    enum spec_surface surface;
    enum spec_scope scope;
    struct selector *selectors;
    bool *arity_given; /* for each selector, whether the user wrote an arity */
    size_t nselectors;
    struct ast_clause *clauses;
    size_t nclauses;
    bool fun;         /* the clauses were written as dbg's fun … end, so their bodies are compiled literally */
    struct ast *raw;  /* the literal match specification that the user wrote instead of clauses, or NULL */
    struct str event; /* the name of the event, without the @ */
    size_t event_from;
    struct ast *where;
    struct ast **keys, **aggregates; /* the expressions after `by`; nkeys is 0 if the probe has no `by` */
    size_t nkeys, naggregates;
    size_t by_from, by_len;
    size_t from, len;
    size_t where_from;
    struct ast_probe *next; /* the next probe of the list */
    /*
     * If several alternatives have patterns of their own, each becomes a probe, and this is the probe of the first one;
     * else NULL. The text of such a probe has three parts: a prefix that all alternatives share (such as `global`), the
     * selectors and patterns of this alternative, and the text after the last alternative, which all share.
     */
    const struct ast_probe *alternatives;
    /* Offsets into the whole text: this alternative is from own_from to own_to; the shared end begins at rest_from. */
    size_t own_from, own_to, rest_from;
};

/*
 * Converts an offset into the whole text to an offset into the text of the probe, which does not contain the other
 * alternatives.
 */
size_t ast_place(const struct ast_probe *p, size_t at);

/* Makes the term of an A_TUPLE, A_LIST or A_MAP of the terms of its parts. */
term_t ast_term(struct arena *a, const struct ast *n, const term_t *items, term_t tail);

bool ast_mentions(const struct ast *n, struct str var); /* returns true if the variable occurs in the tree */

#endif
