/*
 * What is done for a node before it traces: the expressions are compiled for its OTP and its records, it says how much that is,
 * and where a wildcard may be too much for it, that is measured.
 */
#ifndef ETRACE_PREPARE_H
#define ETRACE_PREPARE_H

#include "asked.h"
#include "question.h"
#include "records.h"

/* Compiles for the node that is asked, so that what it does not have is refused before anything is sent. */
bool prepare_compile(struct asked *asked, struct records *records, const struct what_opts *what, const struct texts *texts,
                     const struct texts *wheres, struct err *e);

/*
 * Appends what arm_request() takes to *ret_asked, and gives in *ret_chosen what would be traced, to be released. Fails with
 * ERR_GUARD when it is refused for its cost.
 */
bool prepare(struct ctx *ctx, struct question *ask, const struct what_opts *what, const struct texts *texts,
             struct asked_how how, struct buf *ret_asked, struct arm_result *ret_chosen, struct err *e);

#endif
