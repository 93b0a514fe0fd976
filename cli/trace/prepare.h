/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings one node from the expressions to an armed trace: a sequence of requests, each sent after the answer to the one
 * before. Nothing here waits, and the nodes are independent of each other.
 *
 *   RECORDS  compiles the expressions for the node's OTP; asks the node for a record that no header defines and
 *            compiles again, until no record is missing
 *   ATOMS    which atoms of the expressions does the node lack?
 *   SELECT   what would be traced?
 *   TRACE    the node arms
 *   DONE     the node traces, or a dry run is complete
 *   REFUSED  the expressions are wrong for this node, or the node refused them
 *
 * A step that has nothing to ask is skipped.
 */
#ifndef ETRACE_PREPARE_H
#define ETRACE_PREPARE_H

#include "exprs.h"
#include "record_lookup.h"

enum prepare_step { PREPARE_RECORDS, PREPARE_ATOMS, PREPARE_SELECT, PREPARE_TRACE, PREPARE_DONE, PREPARE_REFUSED };

struct prepare;

/*
 * Borrows `what` until prepare_free() and copies the texts. A dry run ends before the step TRACE. If the session fails,
 * its handlers report the failure, and the preparation stays in its step.
 */
struct prepare *prepare_new(struct ctx *ctx, struct session *s, const struct what_opts *what, const struct texts *texts,
                            struct exprs_how how);
void prepare_begin(struct prepare *p); /* call once: sends the first request */
void prepare_free(struct prepare *p);  /* accepts NULL */

/* Returns true if the preparation waits for the reply with this id, or for any reply if `reply_id` is 0. */
bool prepare_awaits(const struct prepare *p, uint32_t reply_id);
/* Takes a reply for which prepare_awaits() is true, and sends the next request. */
void prepare_reply(struct prepare *p, const struct session_reply *reply);

enum prepare_step prepare_step(const struct prepare *p);
const struct arm_result *prepare_chosen(const struct prepare *p); /* what will be traced; NULL before TRACE */
const struct arm_result *prepare_armed(const struct prepare *p);  /* what is traced; NULL before DONE or with dry_run */
const struct err *prepare_why(const struct prepare *p);           /* the reason for REFUSED */

#endif
