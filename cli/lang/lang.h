/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the expression language: text in, specs out. It does no I/O, has no globals, and returns the same result for
 * the same input. A list of passes does the work (lang.c), and each can be printed. A failure fills an err with a caret
 * diagnostic and status ERR_USAGE. The specs live in the caller's arena.
 */
#ifndef ETRACE_LANG_H
#define ETRACE_LANG_H

#include "../erlang/etf.h"
#include "../ground/err.h"
#include "spec.h"

#define LANG_MAX_TEXT (64 * 1024)

struct lang_let {
    struct str name;
    term_t value;
};

struct lang_record {
    struct str name;
    /* The module of a native record (OTP 29), whose fields are not known. Empty if the record is a tuple. */
    struct str native;
    const struct str *fields;
    const term_t *defaults; /* the default value of each field; NULL if it is not a literal */
    size_t nfields;
};

/* The result of a lookup of a record that no header defines. */
enum lang_found {
    LANG_FOUND,
    LANG_LATER,  /* the record may exist: check accepts any field, and the specs must be compiled again before use */
    LANG_ABSENT, /* no such record: `why` has the reason, `names` the records that exist */
};

struct lang_lookup {
    struct lang_record record;
    struct str why; /* text of the error; if empty, the error is "unknown record 'x'" */
    const struct str *names;
    size_t nnames;
};

struct lang_options {
    int otp;                   /* OTP release of the node; 0 accepts the features of every release */
    bool unsafe;               /* allow the actions display and set_tcw */
    enum spec_surface surface; /* the surface that is tried first for probes without a selector */
    bool root;                 /* the text is a root (a recording stores the root of a probe as a text) */
    unsigned needs;            /* what filters outside of the text (-e) need: PROPERTY_NEEDS_RETURN, _CALLER */

    struct safe label;  /* label of the specs; borrowed, must outlive them */
    size_t number;      /* number of the first spec; each further spec gets the next number */
    uint32_t most_keys; /* limit for the keys that a node counts; 0: ETW_BY_ROWS */
    const struct lang_let *lets;
    size_t nlets;
    const struct lang_record *records;
    size_t nrecords;

    /*
     * Looks up a record that is not in `records`: in the module of `mod#rec{}`, in the modules of the selectors, or
     * without a module. If the pointer is NULL, there are no such records.
     */
    enum lang_found (*find_record)(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                                   struct arena *a, struct lang_lookup *ret);
    void *find_data;

    /* Output: for each pass, a buffer for its printed result. The array and its elements may be NULL. */
    struct buf *const *dumps;
};

/*
 * The passes of the compiler, in order. lang_compile() ends with LANG_PASS_SPEC, which makes the specs. The later
 * passes depend on a node; `dumps` assumes a node that has every atom.
 */
enum { LANG_PASS_SPEC = 7, LANG_PASSES = 10 };
struct lang_pass {
    const char *name, *doc;
};
const struct lang_pass *lang_pass(size_t i);

bool lang_compile(const struct lang_options *opt, struct str text, struct arena *a, struct spec_list *ret_specs,
                  struct err *e);

/* Parses a literal term, as in --let NAME=TERM. Tries `surface` first, then the other. */
bool lang_term(struct str text, enum spec_surface surface, struct arena *a, term_t *ret_term, struct err *e);

/* Compiles a `where` expression that stands alone, as after -e. It accepts every kind of event. */
bool lang_where(const struct lang_options *opt, struct str text, struct arena *a, const struct where **ret_where,
                struct err *e);

/*
 * Compiles "KEYS: AGGREGATES", which stand alone, as after --by. They accept every kind of event. The text must not
 * contain the word `by` itself.
 */
bool lang_by(const struct lang_options *opt, struct str text, struct arena *a, const struct spec_by **ret_by,
             struct err *e);

/*
 * Reads the -record definitions of a header file, with the default values that are literal terms. It skips macros and
 * types. A file without records gives an empty list.
 */
bool lang_read_hrl(struct str text, struct arena *a, const struct lang_record **ret_records, size_t *ret_count,
                   struct err *e);

/*
 * Appends a record definition as a header file has it to *ret_text. `fields` is the list of fields in a module's debug
 * information. Returns false and appends nothing if the fields are malformed.
 */
bool lang_debug_record(struct str name, struct etf fields, struct buf *ret_text);

/* ---- texts that are typed line by line ---- */

/* Returns true if a bracket or a quote is open at the end of the text, or if the last word or mark needs an operand. */
bool lang_is_open(struct str text);
bool lang_is_blank(struct str text); /* returns true if the text has only white space and comments */
/*
 * Appends the text as one line with the same meaning: with blanks in place of newlines, and without the comments before
 * them. Keeps the comments in a part of the text that the lexer cannot read.
 */
void lang_join_lines(struct str text, struct buf *ret);

/* ---- printing specs ---- */

enum lang_format { LANG_TEXT, LANG_ERL, LANG_JSON };

void lang_explain(const struct spec *s, enum lang_format format, struct buf *b);
void lang_print_selector(const struct selector *s, struct buf *b); /* prints the selector as Erlang */
void lang_print_term(term_t t, struct buf *b); /* prints as file:consult/1 reads, except pids, ports and references */
void lang_print_where(const struct where *w, struct buf *b);

/*
 * Adds the node's name and creation to each pid, port and reference that was written as local (<0.84.0>). They then
 * mean the processes, ports and references of the node that receives the term.
 */
term_t lang_localize(term_t t, struct str node, uint32_t creation, struct arena *a);

#endif
