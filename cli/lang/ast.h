/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines the tree that the parser builds. Patterns, guards, bodies and `where` share one kind of node because they
 * share the grammar of terms; check decides which nodes are valid where. Nodes live in the arena of the compilation and
 * know their place in the text.
 */
#ifndef ETRACE_AST_H
#define ETRACE_AST_H

#include "spec.h"

enum ast_type {
    A_LIT,    /* value; quoted: an atom in quotes (Erlang) or with a colon (Elixir) */
    A_ANY,    /* _; with `quoted` (also in A_VAR) it stands for the name of a struct: %_{}, %name{} */
    A_VAR,    /* text */
    A_PIN,    /* ^text */
    A_TUPLE,  /* items */
    A_LIST,   /* items, tail or NULL */
    A_MAP,    /* items: key, value, … */
    A_RECORD, /* text, module; items: field (A_LIT atom; A_ANY for `_ = V`), value, …; quoted: in native syntax */
    /* items[0] #text . items[1] (A_LIT atom); items[0] NULL: the index (#rec.field); `quoted`: see A_RECORD. */
    A_RECFIELD,
    A_NATIVE, /* made by check: a native record with that module and name (text); empty text: any native record */
    A_BIN,    /* items: A_SEG */
    A_SEG,    /* items[0] value, items[1] size or NULL; seg */
    A_MATCH,  /* items[0] = items[1] */
    A_OP,     /* op, items */
    A_CALL,   /* module (may be empty), text, items */
    A_DOT,    /* items[0] . text */
    A_INDEX,  /* items[0] [ items[1] ] */
    A_UNIT,   /* a number with a unit, scaled to nanoseconds or bytes; kind */
    A_REGEX,  /* text: PCRE2; only the escapes of its delimiter are resolved */
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
    int unit; /* 0: the default of the type */
    bool is_signed, little, native;
};

struct ast {
    enum ast_type type;
    int op;
    bool quoted, paren;
    bool assigns; /* A_MAP: a key is written with ':=' */
    bool plain;   /* an atom without quotes (Erlang) or an alias of one word (Elixir): the user may mean a variable */
    enum where_kind kind;
    unsigned types;   /* set by check: the TY_ bits of the types that the value may have */
    term_t known;     /* set by check: the value if it is constant, else NULL */
    unsigned depth;   /* depth of this tree; the parser limits it, so that every pass may recurse */
    size_t size;      /* nodes of the tree after each 'in' is expanded; the parser limits it */
    size_t from, len; /* offsets into the whole text */
    struct str text, module;
    size_t called; /* A_CALL: length of the name with its module, as written; 0: check made the node */
    term_t value;
    struct seg seg;
    int64_t bits; /* A_SEG, set by check: number of bits; -1: all the rest */
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
    const struct ast *node; /* the checked call, or the call as written if the action makes no term */
};

struct ast_clause {
    bool has_head;
    bool prefix;       /* the head ends in `...` */
    struct ast *whole; /* dbg's fun(X) and fun([A,B]=X): the variable for the whole argument list, or NULL */
    struct ast **head;
    size_t nhead;
    struct ast *tail; /* dbg's fun([A|T]) */
    struct ast_guard *guards;
    size_t nguards;
    struct ast **body;
    size_t nbody;
    struct ast_act **acts; /* set by check: the actions of the body */
    size_t nacts;
    const struct ast *hides; /* set by check: the action drop or msg(false), or NULL */
    bool always;             /* set by the pass fold: the guards always hold */
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
    bool *arity_given; /* one flag for each selector: the user wrote an arity */
    size_t nselectors;
    struct ast_clause *clauses;
    size_t nclauses;
    bool fun;         /* written as dbg's fun … end: its bodies are compiled literally */
    struct ast *raw;  /* a literal match specification, instead of clauses */
    struct str event; /* the name of the event, without the @ */
    size_t event_from;
    struct ast *where;
    struct ast **keys, **aggregates; /* after `by`; nkeys 0: the probe has no `by` */
    size_t nkeys, naggregates;
    size_t by_from, by_len;
    size_t from, len;
    size_t where_from;
    struct ast_probe *next; /* the next probe of the list */
    /*
     * The first of several alternatives that have patterns of their own, else NULL. The text of an alternative has
     * three parts: the prefix that all alternatives share (`global`), its own selectors and patterns, and the rest
     * after the last alternative, which all share.
     */
    const struct ast_probe *alternatives;
    /* Offsets into the whole text; own_from and own_to enclose the part of this alternative. */
    size_t own_from, own_to, rest_from;
};

/*
 * Converts an offset into the whole text to an offset into the text of the probe, which leaves other alternatives out.
 */
size_t ast_place(const struct ast_probe *p, size_t at);

/* Makes the term of an A_TUPLE, A_LIST or A_MAP of the terms of its parts. */
term_t ast_term(struct arena *a, const struct ast *n, const term_t *items, term_t tail);

bool ast_mentions(const struct ast *n, struct str var); /* returns true if the variable occurs in the tree */

#endif
