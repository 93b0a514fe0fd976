/*
 * What the passes share while one text is compiled. Floor-internal: nothing outside cli/lang includes it.
 * The functions that report return false or NULL, so that a pass may say `return diag(...)`.
 */
#ifndef ETRACE_COMP_H
#define ETRACE_COMP_H

#include "../ground/near.h"
#include "ast.h"
#include "lang.h"

/* A growing run of pointers in the arena. */
struct ptrs {
    void **items;
    size_t count, cap;
};

void ptrs_add(struct ptrs *p, struct arena *a, void *item);

struct comp {
    const struct lang_options *opt;
    struct arena *arena;
    struct str text; /* all of it; spans are offsets into it */
    struct err *err;
    enum spec_surface surface;
    size_t failed_at; /* the place of the last diagnostic */
    struct ptrs warnings; /* struct spec_warning, of the probe at hand */
};

/* The note stands behind the carets; diag_note() replaces it and may be left out. */
bool diag(struct comp *c, size_t from, size_t len, const char *fmt, ...) PRINTF_LIKE(4, 5);
bool diag_note(struct comp *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Something that is allowed but surely not meant; `never` says that nothing can ever match. */
void warn(struct comp *c, size_t from, size_t len, bool never, const char *fmt, ...) PRINTF_LIKE(5, 6);

/* The best of the names offered so far for a word that is not known. */
struct guess {
    struct near near;
    struct str best;
};

void guess_init(struct guess *g, struct str word);
void guess_offer(struct guess *g, struct str name);
/* Puts "did you mean 'x'?" behind the carets when there is something near enough; returns false. */
bool diag_guess(struct comp *c, const struct guess *g);

static inline struct str str_of(const char *text)
{
    return (struct str){text, __builtin_strlen(text)};
}

#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).len, (s).at

/* lang_term(), but Erlang alone. */
bool erlang_term(struct str text, struct arena *a, term_t *ret_term, struct err *e);

void print_match_spec(term_t t, struct buf *b);

#endif
