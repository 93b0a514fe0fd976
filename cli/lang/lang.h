/*
 * The expression language: text in, specs out. Pure: no I/O, no globals, the same answer for the same input.
 *
 * The passes, each in its own file: select (the selectors, which decide the surface), lex, parse, then for each probe
 * check and mspec, and where. What a pass made can be dumped through lang_options.dump.
 * A failure fills an err with a caret diagnostic and status ERR_USAGE; the specs live in the caller's arena.
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
    struct str native; /* the module of a native record of OTP 29; empty: a tuple. Nothing else is known of a native record. */
    const struct str *fields;
    const term_t *defaults; /* of each field; NULL where it is no literal term */
    size_t nfields;
};

/* What is known of a record that no header defines. */
enum lang_found {
    LANG_FOUND,
    LANG_LATER,  /* it may exist: any field is taken, and what the specs say of it has no meaning until it is compiled again */
    LANG_ABSENT, /* why, and the names of those that do exist */
};

struct lang_lookup {
    struct lang_record record;
    struct str why; /* empty: "record x is not known" */
    const struct str *names;
    size_t nnames;
};

/* Parts of a call that a filter can read and that the VM reports on request only. */
enum where_needs {
    WHERE_NEEDS_RETURN = 1, /* dur, ret, class, reason: results have to be traced */
    WHERE_NEEDS_CALLER = 2,
};

struct lang_options {
    int otp;        /* release of the target, 0 when it is not known: what any release has is accepted */
    bool unsafe;    /* display and set_tcw may be used */
    enum spec_surface surface; /* for probes that have no selector: tried first */
    unsigned needs;            /* what filters beside the expressions read of calls: lang_where_needs() */

    struct safe label; /* of the specs; borrowed for their life */
    size_t number;    /* of the first spec; the others follow */
    const struct lang_let *lets;
    size_t nlets;
    const struct lang_record *records;
    size_t nrecords;

    /*
     * Asked for records that are not in `records`; the modules are that of `mod#rec{}`, or those of the selectors, or
     * none. Without it they are absent.
     */
    enum lang_found (*find_record)(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                                   struct arena *a, struct lang_lookup *ret);
    void *find_data;

    struct buf *dump_tokens, *dump_ast; /* where to write what the passes made, or NULL */
};

bool lang_compile(const struct lang_options *opt, struct str text, struct arena *a, struct spec_list *ret_specs,
                  struct err *e);

/* A literal term, as behind --let NAME=: both surfaces are tried. */
bool lang_term(struct str text, enum spec_surface surface, struct arena *a, term_t *ret_term, struct err *e);

/* A `where` expression that stands alone, as behind -e. `kind` is the kind of events that it is for, or -1 for any. */
bool lang_where(const struct lang_options *opt, struct str text, struct arena *a, const struct where **ret_where,
                struct err *e);

/* The WHERE_NEEDS_ bits of a compiled filter. */
unsigned lang_where_needs(const struct where *w);

/*
 * The -record definitions of a header file, with those default values that are literal terms. Macros and types are skipped
 * over; a file without records gives none.
 */
bool lang_read_hrl(struct str text, struct arena *a, const struct lang_record **ret_records, size_t *ret_count,
                   struct err *e);

/*
 * The definition of a record as a header file has it, from the list of its fields as a module's debug information has them.
 * Appended to ret_text; false where the fields cannot be read.
 */
bool lang_debug_record(struct str name, struct etf fields, struct buf *ret_text);

/* ---- printing specs ---- */

enum lang_format { LANG_TEXT, LANG_ERL, LANG_JSON };

void lang_explain(const struct spec *s, enum lang_format format, struct buf *b);
void lang_print_term(term_t t, struct buf *b); /* as Erlang text that file:consult/1 reads (but for pids, ports, refs) */
void lang_print_where(const struct where *w, struct buf *b);

/*
 * The same term with the node's name and creation in every pid, port and reference that was written as local
 * (<0.84.0>): they get their meaning on the node that the term is sent to.
 */
term_t lang_localize(term_t t, struct str node, uint32_t creation, struct arena *a);

#endif
