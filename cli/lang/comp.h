/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares what the passes share while they compile one text. Internal to cli/lang. Functions that report an error
 * return false or NULL, so that a pass may write `return diag(...)`.
 */
#ifndef ETRACE_COMP_H
#define ETRACE_COMP_H

#include "../ground/near.h"
#include "ast.h"
#include "lang.h"

/* A growing array of pointers in the arena. */
struct ptrs {
    void **items;
    size_t count, cap;
};

void ptrs_add(struct ptrs *p, struct arena *a, void *item);

struct comp {
    const struct lang_options *opt;
    struct arena *arena;
    struct str text; /* the whole text; spans are offsets into it */
    struct err *err;
    enum spec_surface surface;
    bool root;            /* the current probe is a root (behind `inside`) */
    bool paren;           /* the root is in parentheses */
    bool by;              /* the text is only `by`, keys and aggregates, without a probe */
    size_t failed_at;     /* offset of the last diagnostic */
    bool cut;             /* the last diagnostic is about a quoted text without an end, which more text may close */
    struct ptrs warnings; /* warnings about the current probe (struct spec_warning) */
};

/* diag() sets the error. diag_note() is optional: it sets or replaces the note that is printed after the carets. */
bool diag(struct comp *c, size_t from, size_t len, const char *fmt, ...) PRINTF_LIKE(4, 5);
bool diag_note(struct comp *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool diag_cut(struct comp *c); /* sets c->cut; returns false */

/* Warns about code that is allowed but surely not intended. `never` means that this code prevents every match. */
void warn(struct comp *c, size_t from, size_t len, bool never, const char *fmt, ...) PRINTF_LIKE(5, 6);

/* The best suggestion so far for an unknown word. */
struct guess {
    struct near near;
    struct str best;
};

void guess_init(struct guess *g, struct str word);
void guess_offer(struct guess *g, struct str name);
/* Sets the note "did you mean 'x'?" if a name is near enough. Returns false. */
bool diag_guess(struct comp *c, const struct guess *g);

static inline struct str str_of(const char *text)
{
    return (struct str){text, __builtin_strlen(text)};
}

#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).len, (s).at

/* Parses a literal term like lang_term(), but only in Erlang's syntax. */
bool erlang_term(struct str text, struct arena *a, term_t *ret_term, struct err *e);

void print_match_spec(term_t t, struct buf *b);

#endif
