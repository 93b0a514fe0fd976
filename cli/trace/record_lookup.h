/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up records that no header defines. The definitions come from a node, out of the debug information of its
 * modules. struct record_lookup owns what it has found until record_lookup_release().
 *
 * Compiling never waits: an unknown record becomes `wanted`, and the compiler accepts any field of it (LANG_LATER). The
 * caller of record_lookup_compile() asks a node for the wanted record, gives the answer to record_lookup_read() and
 * compiles again, until no record is wanted.
 */
#ifndef ETRACE_RECORD_LOOKUP_H
#define ETRACE_RECORD_LOOKUP_H

#include "../lang/lang.h"
#include "../erlang/etf.h"

struct record_lookup {
    struct arena arena;
    struct record_lookup_known *known;
    struct record_lookup_known *wanted; /* the first unknown record that the last compilation met; NULL: none */
};

void record_lookup_init(struct record_lookup *r);
void record_lookup_release(struct record_lookup *r);

struct exprs;
struct texts;
struct what_opts;

/*
 * Compiles the texts into *exprs for OTP release `otp`, and releases the old content of *exprs. *ret_wanted gets the
 * request for a record that a node must define, or is empty. If it is not empty, the caller must ignore the result,
 * because the missing record may have caused an error.
 */
bool record_lookup_compile(struct record_lookup *r, struct exprs *exprs, const struct what_opts *what,
                           const struct texts *texts, const struct texts *wheres, int otp, struct str *ret_wanted,
                           struct err *e);
/* The lang_options.find_record callback; `data` is a struct record_lookup. */
enum lang_found record_lookup_find(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                                   struct arena *a, struct lang_lookup *ret);
bool record_lookup_read(struct record_lookup *r, struct etf answer, struct err *e);

/* Appends all definitions that were found so far, as the text of a header file. */
void record_lookup_text(const struct record_lookup *r, struct buf *ret);

#endif
