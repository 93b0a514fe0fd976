/* SPDX-License-Identifier: Apache-2.0 */
#include "why_senders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../erlang/term_print.h"

/* ---- from events to counts ---- */

#define EXIT_MARK "!"

/* Returns true for a message {'EXIT', Pid, Reason}. */
static bool is_exit(const struct event *e)
{
    const uint8_t *first;
    uint32_t arity;

    return e->terms.at && wire_tuple(e->terms.at, &arity, &first) > 0 && arity == 3 &&
           wire_is_atom(&e->env, first, "EXIT");
}

/* Writes the pid of the sender, NUL-terminated. Writes a mark before it if the message is an exit signal. */
static void senders_event(struct sink *sink, const struct event *e)
{
    uint64_t id;

    if (e->kind != ETW_RECEIVE)
        return;
    if (is_exit(e))
        buf_add(sink->out, EXIT_MARK, sizeof(EXIT_MARK));
    if (!e->sender || !wire_pid(e->sender, &id))
        return;
    printer_erlang.term(sink->out, &e->env, e->sender);
    buf_char(sink->out, 0);
}

static const struct sink_type senders_view = {
    .name = "senders",
    .about = "",
    .flags = SINK_LINES | SINK_ALONE,
    .size = sizeof(struct sink),
    .event = senders_event,
};

static void senders_add(struct why_senders *s, const char *pid)
{
    struct look_process sender = {0};

    snprintf(sender.pid, sizeof(sender.pid), "%s", pid);
    sender_counts_add(&s->by, &sender);
}

static bool senders_take(void *output, struct buf *bytes)
{
    const char *at = bytes->data, *end = at + bytes->len;

    for (; at < end; at += strlen(at) + 1)
        if (!strcmp(at, EXIT_MARK))
            ((struct why_senders *)output)->exits++;
        else
            senders_add(output, at);
    bytes->len = 0;
    return true;
}

/* ---- the trace ---- */

void senders_init(struct why_senders *s)
{
    struct pipeline_options options = {.views = &s->view, .nviews = 1};
    const struct texts none = {0};
    struct err e;

    *s = (struct why_senders){.what = {.builtin = true},
                              .view = {.type = &senders_view, .write = senders_take, .output = s}};
    exprs_init(&s->exprs);
    texts_add(&s->words, SENDERS_PROBE);
    if (!exprs_compile(&s->exprs, &s->what, &s->words, &none, 0, &e))
        return;
    options.specs = s->exprs.specs;
    options.nspecs = s->exprs.count;
    s->pipeline = pipeline_new(&options, &e);
}

void senders_release(struct why_senders *s)
{
    prepare_free(s->prepare);
    pipeline_free(s->pipeline);
    exprs_release(&s->exprs);
    texts_release(&s->what.procs);
    texts_release(&s->words);
}

void senders_begin(struct why_senders *s, struct ctx *ctx, struct peers *peers, struct peer *p, const char *pid)
{
    /* Does not trace with the fallback tracer: it is a process, and the node would send it every message completely. */
    if (!s->pipeline || session_node(p->session)->fallback)
        return;
    texts_add(&s->what.procs, pid);
    s->prepare = prepare_new(ctx, p->session, &s->what, &s->words, (struct exprs_how){0});
    prepare_begin(s->prepare);
    while (prepare_step(s->prepare) < PREPARE_DONE && !ctx->interrupts && peers_step(peers, -1))
        continue;
    s->known = prepare_step(s->prepare) == PREPARE_DONE;
    s->from = s->to = loop_now();
}

void senders_batch(struct why_senders *s, const void *batch, size_t len)
{
    struct err e;

    if (s->pipeline && pipeline_batch(s->pipeline, 0, (struct str){batch, len}, &e) == PIPELINE_FAILED)
        s->known = false;
}

void senders_reply(struct why_senders *s, const struct session_reply *reply)
{
    if (s->prepare && prepare_awaits(s->prepare, reply->id))
        prepare_reply(s->prepare, reply);
}

static bool senders_take_names(struct why_senders *s, struct etf term)
{
    struct look_list list = look_list(term);
    struct look_process one;

    while (look_list_next(&list, &one))
        sender_counts_name(&s->by, &one);
    return list.ok;
}

bool senders_name(struct why_senders *s, struct peer *p, int patience_ms, int timeout_ms, struct err *e)
{
    struct buf pids = {0}, request = {0}, answer = {0};
    struct look_answer a;
    struct etf r;

    if (!s->known)
        return true;
    pipeline_flush(s->pipeline);
    if (!s->by.n)
        return true;
    for (size_t i = 0; i < s->by.n; i++)
        look_names_add(&pids, s->by.items[i].process.pid);
    look_names_request(&request, &pids, s->by.n, patience_ms);
    bool ok = peer_ask(p, buf_view(&request), timeout_ms, &answer, e);
    if (ok) {
        etf_open(&r, answer.data, answer.len);
        ok = look_read(r, &a, e) &&
             (senders_take_names(s, a.names) || err_set(e, ERR_RUN, "the node's answer about names is malformed"));
    }
    buf_release(&pids);
    buf_release(&request);
    buf_release(&answer);
    return ok;
}

void senders_end(struct why_senders *s)
{
    uint64_t lost = 0;

    if (!s->known)
        return;
    pipeline_end(s->pipeline);
    const struct totals *t = pipeline_totals(s->pipeline);
    for (size_t i = 0; i < ETW_LOSSES; i++)
        lost += t->lost[i];
    s->known = t->complete;
    s->hot = lost > 0;
    s->received = t->seen;
    sender_counts_sort(&s->by);
}
