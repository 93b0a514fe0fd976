/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits text into tokens: the part of a probe after its selectors. The surface decides what quotes, colons and capital
 * letters mean. A probe ends at a full stop, at the end of the text, or at a newline outside of brackets. The newline
 * does not end the probe after an incomplete expression or before `when`, `->`, `;`, `where`, `|` and the like.
 */
#ifndef ETRACE_LEX_H
#define ETRACE_LEX_H

#include "comp.h"

enum tok_type {
    TOK_END,   /* the end of the probe */
    TOK_IDENT, /* text: a word in lower case: an atom of Erlang, a variable of Elixir, a keyword */
    TOK_VAR,   /* text: a variable of Erlang */
    TOK_ALIAS, /* text: an alias of Elixir, without the prefix Elixir. */
    TOK_KEY,   /* value: the atom of `key:` (Elixir) */
    TOK_LIT,   /* value; string: adjacent strings are joined; suffix: letters directly after a number */
    TOK_REGEX, /* text */
    TOK_PUNCT, /* punct */
};

enum punct {
#define PUNCT(id, text, surfaces) P_##id,
#include "punct.def"
    PUNCTS,
};

struct token {
    enum tok_type type;
    enum punct punct;
    bool spaced; /* after white space */
    bool quoted, string;
    size_t from, len;
    struct str text, suffix;
    term_t value;
};

struct tokens {
    struct token *items;
    size_t count, cap;
};

/* Reads one probe at *pos and moves *pos behind it. The last token is TOK_END. */
bool lex_probe(struct comp *c, size_t *pos, struct tokens *ret);

/* Skips blanks, empty lines, comments of either surface and stray full stops before a probe. */
size_t lex_skip(struct str text, size_t pos);

size_t lex_word(struct str text, size_t pos, bool elixir); /* length of the unquoted word; 0: none */

void tokens_dump(const struct tokens *t, struct buf *b);

/* ---- shared between the files of the lexer ---- */

/* Letters are digits of higher bases. Every other character gives 99, which is no digit of any base. */
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

/* A quoted text as code points. QUOTED_BYTE marks a raw byte (\xff of Elixir). */
#define QUOTED_BYTE 0x80000000u
struct quoted {
    uint32_t *points;
    size_t count, cap;
};

enum quoting {
    QUOTE_VERBATIM,
    QUOTE_PLAIN,   /* escapes, except in a triple-quoted string of Erlang */
    QUOTE_ESCAPES, /* escapes in every string */
};

bool lex_quoted(struct comp *c, size_t *pos, enum quoting quoting, struct quoted *ret);
bool lex_escape(struct comp *c, size_t *pos, struct quoted *to); /* *pos is at the backslash */
bool lex_sigil(struct comp *c, size_t *pos, struct token *ret);
bool lex_date(struct comp *c, char sigil, struct str text, size_t from, size_t len, term_t *ret); /* ~D ~T ~N ~U */
bool lex_number(struct comp *c, size_t *pos, struct token *ret);
bool lex_quoted_atom(struct comp *c, size_t *pos, term_t *ret);
bool lex_process_id(struct comp *c, size_t *pos, struct token *ret, bool *ret_found); /* pids, ports, references */
term_t quoted_list(struct comp *c, const struct quoted *q);
term_t quoted_binary(struct comp *c, const struct quoted *q);

#endif
