/*
 * Records that no header defines: their definitions come from the node, out of the debug information of its modules.
 * What was found is kept, and owned, until records_release().
 */
#ifndef ETRACE_RECORDS_H
#define ETRACE_RECORDS_H

#include "../lang/lang.h"
#include "question.h"

struct records {
    struct question *ask;
    struct arena arena;
    struct records_known *known;
    struct err err; /* of a question that the node did not answer; else its status is 0 */
};

void records_init(struct records *r, struct question *ask);
void records_release(struct records *r);

/* For lang_options.find_record, with a struct records as its data. */
enum lang_found records_find(void *data, const struct sel_name *modules, size_t nmodules, struct str name, struct arena *a,
                             struct lang_lookup *ret);

/* The definitions so far, as text of a header file. */
void records_text(const struct records *r, struct buf *ret);

#endif
