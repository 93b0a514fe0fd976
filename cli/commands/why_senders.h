/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the messages that one process receives, by their senders, in a short trace of its own. The node sends at most
 * SENDERS_RATE messages a second and counts the others.
 */
#ifndef ETRACE_WHY_SENDERS_H
#define ETRACE_WHY_SENDERS_H

#include "../pipeline/pipeline.h"
#include "../trace/exprs.h"
#include "../trace/peers.h"
#include "../trace/prepare.h"
#include "look.h"

#define SENDERS_RATE 1000
#define SENDERS_MOST 100

struct why_senders {
    bool known;        /* false: the node has not traced, or not all messages have arrived */
    uint64_t received; /* number of all messages, also of those that the node only counted */
    uint64_t exits;    /* messages {'EXIT', Pid, Reason} among them; incomplete if `hot` */
    bool hot;          /* messages came faster than SENDERS_RATE, so their senders are unknown */
    int64_t from, to;  /* loop_now() times */
    struct why_sender {
        struct look_process process;
        uint64_t count;
    } items[SENDERS_MOST]; /* after senders_end() the most frequent first */
    size_t count;
    /* The members below are private. */
    struct pipeline *pipeline;
    struct prepare *prepare;
    struct exprs exprs;
    struct what_opts what;
    struct texts words;
    struct view view;
};

/*
 * Call it before the session begins, because the pipeline needs every batch. After a failure the senders are unknown.
 */
void senders_init(struct why_senders *s);
void senders_release(struct why_senders *s);

/* Begins the trace and waits until the node traces. `pid` names the process. */
void senders_begin(struct why_senders *s, struct ctx *ctx, struct peers *peers, struct peer *p, const char *pid);

/* Handlers for the peers. */
void senders_batch(struct why_senders *s, const void *batch, size_t len);
void senders_reply(struct why_senders *s, const struct session_reply *reply);

/* Asks for the names of the senders so far. */
bool senders_name(struct why_senders *s, struct peer *p, int patience_ms, int timeout_ms, struct err *e);
void senders_end(struct why_senders *s); /* after the node's last batch */

#endif
