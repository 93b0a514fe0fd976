/*
 * How a node gets from what is asked for to what it traces: one request after the other, each sent when the one before was
 * answered. Nothing here waits, and each node goes its way by itself.
 *
 *   RECORDS  the expressions are compiled for the node's OTP; it is asked for a record that no header defines, and they are
 *            compiled again, until nothing is wanted
 *   ATOMS    which atoms of the expressions does it lack?
 *   SELECT   what would be traced?
 *   COUNT    wildcards only: how often are these functions called? That may be too much
 *   TRACE    it arms
 *   DONE     it traces, or a dry run has come to its end
 *   REFUSED  the expressions are wrong for this node, or it has refused
 *
 * A step is passed over where it has nothing to ask.
 */
#ifndef ETRACE_PREPARE_H
#define ETRACE_PREPARE_H

#include "asked.h"
#include "records.h"

enum prepare_step { PREPARE_RECORDS, PREPARE_ATOMS, PREPARE_SELECT, PREPARE_COUNT, PREPARE_TRACE, PREPARE_DONE, PREPARE_REFUSED };

struct prepare;

/*
 * `what` is borrowed until it is freed, the texts are copied. With dry_run it ends before TRACE. A session that fails has said why
 * to who serves it: then nothing more happens here.
 */
struct prepare *prepare_new(struct ctx *ctx, struct session *s, const struct what_opts *what, const struct texts *texts, struct asked_how how);
void prepare_begin(struct prepare *p); /* once: sends the first request */
void prepare_free(struct prepare *p); /* NULL is fine */

bool prepare_awaits(const struct prepare *p, uint32_t reply_id); /* 0: any */
void prepare_reply(struct prepare *p, const struct session_reply *reply); /* one that it awaits; sends the next request */

enum prepare_step prepare_step(const struct prepare *p);
const struct arm_result *prepare_chosen(const struct prepare *p); /* what is going to be traced, from TRACE on; NULL before */
const struct arm_result *prepare_armed(const struct prepare *p);  /* DONE, but for a dry run; else NULL */
const struct err *prepare_why(const struct prepare *p);           /* REFUSED */

#endif
