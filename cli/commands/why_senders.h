/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the messages that one process receives, by sender, with a short trace of its own. The node sends at most
 * SENDERS_RATE messages per second and only counts all others.
 */
#ifndef ETRACE_WHY_SENDERS_H
#define ETRACE_WHY_SENDERS_H

#include "../pipeline/pipeline.h"
#include "../trace/exprs.h"
#include "../trace/peers.h"
#include "../trace/prepare.h"
#include "sender_counts.h"

#define SENDERS_RATE 1000

struct why_senders {
    bool known;              /* false: the node did not trace, or some messages have not arrived */
    uint64_t received;       /* number of all messages, including those that the node only counted */
    uint64_t exits;          /* number of {'EXIT', Pid, Reason} messages among them; too low if `hot` */
    bool hot;                /* messages arrived faster than SENDERS_RATE, so the senders are unknown */
    int64_t from, to;        /* loop_now() times of the beginning and the end of the trace */
    struct sender_counts by; /* sorted by senders_end() */
    /* The members below are private. */
    struct pipeline *pipeline;
    struct prepare *prepare;
    struct exprs exprs;
    struct what_opts what;
    struct texts words;
    struct view view;
};

/*
 * Must be called before the session begins, because the pipeline needs every batch. If it fails, `known` stays false.
 */
void senders_init(struct why_senders *s);
void senders_release(struct why_senders *s);

/* Starts the trace and waits until the node traces. `pid` is the process. */
void senders_begin(struct why_senders *s, struct ctx *ctx, struct peers *peers, struct peer *p, const char *pid);

/* Must be called for each batch and each reply of the node. */
void senders_batch(struct why_senders *s, const void *batch, size_t len);
void senders_reply(struct why_senders *s, const struct session_reply *reply);

/* Asks the node for the names of the senders. Returns false, with an error, if that fails. */
bool senders_name(struct why_senders *s, struct peer *p, int patience_ms, int timeout_ms, struct err *e);
void senders_end(struct why_senders *s); /* must be called after the last batch */

#endif
