/*
 * Looks up records that no header defines. The definitions come from a node, out of the debug information of its
 * modules. struct records owns what it has found until records_release().
 *
 * Compiling never waits: an unknown record is noted as wanted and accepts any field (LANG_LATER). The caller of
 * records_compile() asks a node for it, gives the answer to records_read() and compiles again, until nothing is wanted.
 */
#ifndef ETRACE_RECORDS_H
#define ETRACE_RECORDS_H

#include "../lang/lang.h"
#include "../erlang/etf.h"

struct records {
    struct arena arena;
    struct records_known *known;
    struct records_known *wanted; /* the first one that no node was asked for; NULL: none */
};

void records_init(struct records *r);
void records_release(struct records *r);

struct asked;
struct texts;
struct what_opts;

/*
 * Compiles into *asked for that OTP release and releases its old content. *ret_wanted is a request for a node, or
 * empty. If it is not empty, the caller must ignore the result: the missing record may be the cause of an error.
 */
bool records_compile(struct records *r, struct asked *asked, const struct what_opts *what, const struct texts *texts,
                     const struct texts *wheres, int otp, struct str *ret_wanted, struct err *e);
/* The lang_options.find_record callback; `data` is a struct records. */
enum lang_found records_find(void *data, const struct sel_name *modules, size_t nmodules, struct str name, struct arena *a,
                             struct lang_lookup *ret);
bool records_read(struct records *r, struct etf answer, struct err *e);

/* Appends the definitions so far as the text of a header file. */
void records_text(const struct records *r, struct buf *ret);

#endif
