/*
 * Text to tokens, for the part of a probe behind its selectors. The surface decides what a quote, a colon and a
 * capital letter mean. A probe ends at a full stop, at the end of the text, or at a newline outside of brackets that is
 * neither behind something unfinished nor in front of something that continues (`when`, `->`, `;`, `where`, `|`).
 */
#ifndef ETRACE_LEX_H
#define ETRACE_LEX_H

#include "comp.h"

enum tok_type {
    TOK_END,   /* of the probe */
    TOK_IDENT, /* text: a word in lower case: an atom of Erlang, a variable of Elixir, a word of ours */
    TOK_VAR,   /* text: Erlang's variables */
    TOK_ALIAS, /* text: Elixir's aliases, without the Elixir. in front */
    TOK_KEY,   /* value: the atom of `key:` (Elixir) */
    TOK_LIT,   /* value; string: a string, which joins its neighbours; suffix: letters that touch a number */
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
    bool spaced; /* white space in front */
    bool quoted, string;
    size_t from, len;
    struct str text, suffix;
    term_t value;
};

struct tokens {
    struct token *items;
    size_t count, cap;
};

/* Reads one probe from *pos on; leaves *pos behind it. The last token is TOK_END. */
bool lex_probe(struct comp *c, size_t *pos, struct tokens *ret);

/* Skips blanks, empty lines, comments of either surface and stray full stops in front of a probe. */
size_t lex_skip(struct str text, size_t pos);

/* An atom's unquoted form, or a quoted one, at `pos`: used by the selectors. False without an error: there is none. */
size_t lex_word(struct str text, size_t pos, bool elixir); /* the length of the word, 0 where there is none */

void tokens_dump(const struct tokens *t, struct buf *b);

/* ---- shared between the files of the lexer ---- */

/* A letter is a digit, too; what is none is no digit of any base. */
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

/* A quoted text with its opening delimiter at *pos, as code points; a raw byte (\xff of Elixir) has QUOTED_BYTE set. */
#define QUOTED_BYTE 0x80000000u
struct quoted {
    uint32_t *points;
    size_t count, cap;
};

enum quoting {
    QUOTE_VERBATIM,
    QUOTE_PLAIN,   /* escapes, but not in a triple-quoted string of Erlang */
    QUOTE_ESCAPES, /* escapes everywhere */
};

bool lex_quoted(struct comp *c, size_t *pos, enum quoting quoting, struct quoted *ret);
bool lex_escape(struct comp *c, size_t *pos, struct quoted *to); /* at the backslash */
bool lex_sigil(struct comp *c, size_t *pos, struct token *ret);
bool lex_date(struct comp *c, char sigil, struct str text, size_t from, size_t len, term_t *ret); /* ~D ~T ~N ~U of Elixir */
bool lex_number(struct comp *c, size_t *pos, struct token *ret);
bool lex_quoted_atom(struct comp *c, size_t *pos, term_t *ret);
bool lex_process_id(struct comp *c, size_t *pos, struct token *ret, bool *ret_found); /* pids, ports, references */
term_t quoted_list(struct comp *c, const struct quoted *q);
term_t quoted_binary(struct comp *c, const struct quoted *q);

#endif
