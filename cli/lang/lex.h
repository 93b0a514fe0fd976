/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits text into tokens. One call of lex_probe() makes the tokens of one probe: its selectors, where globs and
 * regular expressions are names (lex_select.c), and then the terms after them. Only the lexer reads characters.
 *
 * The surface decides what quotes, colons and capital letters mean. A probe with selectors has the surface of its first
 * selector: mod:fun is Erlang, Mod.fun and :mod.fun are Elixir. Any other text is read in the surface that the caller
 * prefers, up to the first mark that only one surface has (lex_mark.c). If the mark belongs to the other surface, the
 * lexer starts again in that surface, once.
 *
 * A probe ends at a full stop, at the end of the text, or at a newline outside of brackets. A newline does not end the
 * probe after an incomplete expression or before `when`, `->`, `;`, `where`, `|` and the like.
 *
 * After the word `by` a ':' outside of brackets separates keys and aggregates; it does not make `key:` or `:atom`.
 *
 * The word `inside` also ends a probe. After it comes the root, a probe of its own, possibly in parentheses.
 */
#ifndef ETRACE_LEX_H
#define ETRACE_LEX_H

#include "comp.h"

enum tok_type {
    TOK_END,    /* the end of the probe */
    TOK_IDENT,  /* `text` is a word in lower case: an atom of Erlang, a variable of Elixir, or a keyword */
    TOK_VAR,    /* `text` is a variable of Erlang */
    TOK_ALIAS,  /* `text` is an alias of Elixir, without the prefix "Elixir." */
    TOK_KEY,    /* `value` is the atom of `key:` (Elixir) */
    TOK_LIT,    /* `value` is a literal; adjacent strings make one token */
    TOK_REGEX,  /* `text` is the pattern */
    TOK_PUNCT,  /* `punct` is the punctuation mark */
    TOK_EVENT,  /* `text` is the name after '@' */
    TOK_PREFIX, /* `text` is a word before a probe: local, global, meta, ms, send, recv, receive */
};

/* How a probe begins. The lexer must know this, because selectors and terms have different tokens. */
enum lex_form {
    LEX_CALL,    /* selectors, as in mod:fun */
    LEX_MESSAGE, /* send(…), recv(…) */
    LEX_EVENT,   /* @event */
    LEX_ARROW,   /* To ! Msg */
    LEX_TUPLE,   /* {M, F, A}, or a list of such tuples */
};

enum punct {
#define PUNCT(id, text, surfaces) P_##id,
#include "punct.def"
    PUNCTS,
};

struct token {
    enum tok_type type;
    enum punct punct;
    bool spaced;         /* white space precedes the token */
    bool quoted, string; /* TOK_LIT: an atom in quotes or with a colon; a string */
    bool glob;           /* the token is a name in a selector, with the wildcards * or ? in `text` */
    size_t from, len;
    struct str text, suffix; /* suffix: the letters directly after a number, such as ms */
    term_t value;
};

/* Returns 1 if the token opens a bracket, -1 if it closes a bracket, else 0. */
static inline int token_nests(const struct token *t)
{
    if (t->type != TOK_PUNCT)
        return 0;
    const enum punct p = t->punct;
    return p == P_LPAREN || p == P_LBRACK || p == P_LBRACE || p == P_BIN_OPEN    ? 1
           : p == P_RPAREN || p == P_RBRACK || p == P_RBRACE || p == P_BIN_CLOSE ? -1
                                                                                 : 0;
}

struct tokens {
    struct token *items; /* the last one is TOK_END */
    size_t count, cap;
    enum lex_form form;
    enum spec_surface surface;
    size_t from;
    size_t inside;         /* offset of the word `inside` after the probe; 0 if the probe has no root */
    size_t root;           /* set by lex_root(): offset of the root, or of the '(' before it */
    const struct err *bad; /* the error if the terms could not be split into tokens, else NULL */
};

/* The word in front of the keys by which events are counted. */
#define LEX_BY "by"

#define LEX_INSIDE "inside" /* the word between a probe and its root */
bool lex_is_inside(struct str text, size_t pos);

/*
 * Reads one probe at *pos and moves *pos behind the probe, or to the word `inside`. With c->paren the probe ends at a
 * ')'. A malformed selector is an error at once. A malformed term is stored in ret->bad, so that the parser can first
 * report errors in the selectors before it.
 */
bool lex_probe(struct comp *c, size_t *pos, struct tokens *ret);

/* Reads the root behind the word `inside` at *pos, like lex_probe(). lex_root_ends() reads the ')' of the root. */
bool lex_root(struct comp *c, size_t *pos, struct tokens *ret);
bool lex_root_ends(struct comp *c, size_t *pos, const struct tokens *t);

/* Reads a text that is one term. With `open` the first mark in the text may change the surface c->surface. */
bool lex_term(struct comp *c, bool open, struct tokens *ret);

/* Skips blanks, empty lines, comments of either surface and stray full stops before a probe. */
size_t lex_skip(struct str text, size_t pos);
size_t lex_skip_space(struct str text, size_t pos); /* like lex_skip(), but skips no full stop */

size_t lex_word(struct str text, size_t pos, bool elixir); /* returns the length of the unquoted word, or 0 */

void token_print(const struct token *t, struct buf *b); /* prints kind and value of the token */

/* ---- shared between the files of the lexer ---- */

enum lex_mark { MARK_ERLANG = SPEC_ERLANG, MARK_ELIXIR = SPEC_ELIXIR, MARK_NONE };

struct lexer {
    struct comp *c;
    struct tokens *out;
    size_t pos;
    size_t depth;         /* number of open brackets, and of open fun … end */
    bool probe;           /* the text is a probe, so the word `inside` can end it */
    bool spaced, newline; /* white space, or also a newline, precedes the next token */
    size_t terms;         /* index of the first token after the selectors */
    bool several;         /* a selector may select several modules */
    bool by;              /* the word `by` was read; keys and aggregates follow */
    bool open; /* no mark was read yet, so the surface may still change; the word `inside` does not end the probe now */
    bool beyond;        /* the lexer read past a word `inside` because `open` was set, so the text must be read again */
    enum lex_mark mark; /* the surface of the first mark, or MARK_NONE */
    bool excludes;      /* only selectors and an argument list were read so far, so `- mod` may follow */
};

struct token *lex_add(struct lexer *l, struct token t);
/* Returns the only surface that has the text of the next token here, or MARK_NONE if both surfaces have it. */
enum lex_mark lex_mark(const struct lexer *l);
bool lex_is_id(struct str text, size_t pos); /* returns true at #PID<…> and the like, which is no comment */
/*
 * Reads the tokens up to the end of the probe. After a '|' outside of brackets the selectors of another alternative may
 * follow. Returns false after an error, or at a mark of the other surface; the caller then reads again in that surface.
 */
bool lex_terms(struct lexer *l);
/* Returns true if the text after a newline continues the probe. */
bool lex_continues(struct str text, size_t pos, bool elixir);

bool lex_selects(struct str text, size_t pos); /* returns true if a selector begins at `pos` */
/* Reads selectors, and sets out->surface and l->several. Returns false after an error. */
bool lex_selectors(struct lexer *l);
bool lex_excluded(struct lexer *l);             /* reads the modules after a '-' */
size_t lex_blanks(struct str text, size_t pos); /* skips the blanks on this line */

static inline char lex_peek(struct str text, size_t pos)
{
    return pos < text.len ? text.at[pos] : 0;
}

static inline bool lex_is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

static inline bool lex_is_upper(char ch)
{
    return ch >= 'A' && ch <= 'Z';
}

static inline bool lex_is_blank(char ch)
{
    return ch == ' ' || ch == '\t' || ch == '\r' || ch == '\f' || ch == '\v';
}

/* Returns the value of a digit in a base up to 36. Returns 99, which is above every base, for other characters. */
static inline int digit_of(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    if (ch >= 'a' && ch <= 'z')
        return ch - 'a' + 10;
    if (ch >= 'A' && ch <= 'Z')
        return ch - 'A' + 10;
    return 99;
}

/* The code points of a quoted text. The bit QUOTED_BYTE marks an element that is a raw byte (\xff of Elixir). */
#define QUOTED_BYTE 0x80000000u
struct quoted {
    uint32_t *points;
    size_t count, cap;
};

enum quoting {
    QUOTE_VERBATIM, /* reads no escapes */
    QUOTE_PLAIN,    /* reads escapes, except in a triple-quoted string of Erlang */
    QUOTE_ESCAPES,  /* reads escapes in every string */
};

bool lex_quoted(struct comp *c, size_t *pos, enum quoting quoting, struct quoted *ret);
bool lex_escape(struct comp *c, size_t *pos, struct quoted *to); /* reads the escape whose backslash is at *pos */
bool lex_sigil(struct comp *c, size_t *pos, struct token *ret);
bool lex_date(struct comp *c, char sigil, struct str text, size_t from, size_t len, term_t *ret); /* ~D ~T ~N ~U */
bool lex_number(struct comp *c, size_t *pos, struct token *ret);
bool lex_quoted_atom(struct comp *c, size_t *pos, term_t *ret);
bool lex_process_id(struct comp *c, size_t *pos, struct token *ret, bool *ret_found); /* pids, ports, references */
term_t quoted_list(struct comp *c, const struct quoted *q);
term_t quoted_binary(struct comp *c, const struct quoted *q);

#endif
