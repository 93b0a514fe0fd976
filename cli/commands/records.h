/*
 * Records that no header defines: their definitions come from the node, out of the debug information of its modules.
 * What was found is kept, and owned, until records_release().
 *
 * Compiling never waits: a record that is not known yet is noted as wanted and may have any field (LANG_LATER). The caller of
 * records_compile() asks a node for it, gives the answer to records_read(), and compiles again, until nothing is wanted.
 */
#ifndef ETRACE_RECORDS_H
#define ETRACE_RECORDS_H

#include "../lang/lang.h"
#include "../erlang/etf.h"

struct records {
    struct arena arena;
    struct records_known *known;
    struct records_known *wanted; /* the first that no node has been asked for; NULL: none */
};

void records_init(struct records *r);
void records_release(struct records *r);

struct asked;
struct texts;
struct what_opts;

/*
 * Compiles into *asked, whose old content it releases, for that OTP release. *ret_wanted is a request for a node, or empty; where it is
 * not empty the result has no meaning yet, whatever is returned: the record may be what makes an expression wrong.
 */
bool records_compile(struct records *r, struct asked *asked, const struct what_opts *what, const struct texts *texts,
                     const struct texts *wheres, int otp, struct str *ret_wanted, struct err *e);
/* For lang_options.find_record, with a struct records as its data. */
enum lang_found records_find(void *data, const struct sel_name *modules, size_t nmodules, struct str name, struct arena *a,
                             struct lang_lookup *ret);
bool records_read(struct records *r, struct etf answer, struct err *e);

/* The definitions so far, as text of a header file. */
void records_text(const struct records *r, struct buf *ret);

#endif
