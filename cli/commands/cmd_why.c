/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace why: shows on one screen what a process is doing, what it waits for, and which processes wait for it.
 *
 * The client looks at the process repeatedly for a short time, and then once more for all details. Meanwhile it traces
 * the messages that the process receives.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/tty.h"
#include "../trace/exprs.h"
#include "../trace/peers.h"
#include "../trace/who.h"
#include "cmd.h"
#include "why_page.h"

#define ANSWER_MS 30000
#define WINDOW_MS 1000
#define SAMPLES 20
#define SAMPLE_LEAST 20 /* least time between two looks, in ms */

struct why_opts {
    int64_t for_ns;
    bool json;
    int color;
};

#define ROW(...) OPT_ROW(struct why_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW('t', "for", "DURATION", OPT_DURATION, for_ns, "how long to look (default 1s)"),
    ROW(0, "json", NULL, OPT_FLAG, json, "print an object `why`"),
    ROW(0, "color", "auto|always|never", OPT_CHOICE, color, "colours (NO_COLOR is honoured)"),
};
static const struct opt_group why_group = {"How it is shown", rows, ARRAY_LEN(rows)};

struct why_run {
    struct ctx *ctx;
    const struct why_opts *o;
    struct peers peers;
    struct look_funs funs;
    struct why_look look;
    struct why_samples samples;
    struct why_senders senders;
    char node[NODE_NAME_MAX + 1];
};

static void why_on_batch(void *data, struct peer *p, const void *batch, size_t len)
{
    (void)p;
    senders_batch(&((struct why_run *)data)->senders, batch, len);
}

static void why_on_reply(void *data, struct peer *p, const struct session_reply *reply)
{
    (void)p;
    senders_reply(&((struct why_run *)data)->senders, reply);
}

static bool why_ask(struct why_run *x, struct peer *p, struct str who, bool whole, struct err *e)
{
    struct buf request = {0}, answer = {0};
    struct etf r;

    why_request(&request, who, !x->look.n, whole);
    bool ok = peer_ask(p, buf_view(&request), ANSWER_MS, &answer, e);
    if (ok) {
        etf_open(&r, answer.data, answer.len);
        ok = why_read(r, &x->look, look_funs_of(&x->funs, session_node(p->session)), e);
        x->look.at = loop_now();
    }
    buf_release(&request);
    buf_release(&answer);
    return ok;
}

/* From now on, names the process by its pid, so that all looks are about the same process. */
static bool why_found(struct why_run *x, struct peer *p, struct buf *who, struct err *e)
{
    const char *pid = x->look.chain[0].process.pid;
    struct texts procs = {.items = &pid, .count = 1};

    buf_clear(who);
    return exprs_whom(&procs, session_node(p->session), who, e);
}

static bool why_watch(struct why_run *x, struct peer *p, const char *target, struct err *e)
{
    struct texts procs = {.items = &target, .count = 1};
    int64_t window = x->o->for_ns ? x->o->for_ns / 1000000 : WINDOW_MS, each = MAX(window / SAMPLES, SAMPLE_LEAST);
    struct buf who = {0};
    bool ok = exprs_whom(&procs, session_node(p->session), &who, e) && why_ask(x, p, buf_view(&who), false, e) &&
              why_found(x, p, &who, e);

    if (ok && !strcmp(x->look.chain[0].answer, "known"))
        senders_begin(&x->senders, x->ctx, &x->peers, p, x->look.chain[0].process.pid);
    ctx_watch_reader(x->ctx);
    int64_t until = loop_now() + window;
    for (int64_t next; ok && (next = MIN(loop_now() + each, until)) < until && !x->ctx->interrupts;) {
        why_sample(&x->samples, &x->look);
        while (loop_now() < next && !x->ctx->interrupts && peers_step(&x->peers, next))
            continue;
        if (!x->ctx->interrupts)
            ok = why_ask(x, p, buf_view(&who), false, e) || x->ctx->interrupts;
    }
    x->ctx->interrupts = 0; /* Ctrl-C only ends the repeated looks */
    ok = ok && why_ask(x, p, buf_view(&who), true, e) && senders_name(&x->senders, p, WHY_PATIENCE_MS, ANSWER_MS, e);
    if (ok)
        why_sample(&x->samples, &x->look);
    buf_release(&who);
    return ok;
}

static void why_print(struct why_run *x, const struct node_opts *node)
{
    struct buf b = {0};
    struct why_page page = {
        .look = &x->look,
        .samples = &x->samples,
        .senders = &x->senders,
        .node = x->node,
        .ssh = node->ssh,
        .named = peers_need_names(&x->peers) ? x->node : NULL,
        .paint.on = tty_colors(STDOUT_FILENO, (enum tty_color)x->o->color) && !x->o->json,
        .columns = tty_is(STDOUT_FILENO) ? tty_columns(STDOUT_FILENO) : 0,
    };
    if (x->o->json)
        why_page_json(&page, &b);
    else
        why_page_text(&page, &b);
    out_take(x->ctx->out, &b);
    buf_release(&b);
}

static bool why_makes_sense(const struct texts *words, struct err *e)
{
    static const char hint[] = "a pid such as '<0.123.0>', a registered name, or {via,Module,Name}";
    struct arena a;
    struct who w;

    if (words->count != 1) {
        err_set(e, ERR_USAGE, words->count ? "why looks at one process" : "no process to look at");
        err_hint(e, "%s", hint);
        return false;
    }
    arena_init(&a);
    bool known = who_parse(words->items[0], &a, &w), one = known && who_is_one(&w);
    arena_release(&a);
    if (!known) {
        err_set(e, ERR_USAGE, "'%s' is neither a pid nor a name", words->items[0]);
        err_hint(e, "%s", hint);
        return false;
    }
    return one || err_set(e, ERR_USAGE, "why looks at one process, and %s may be several", words->items[0]);
}

static bool why_open(struct why_run *x, const struct node_opts *node, struct err *e)
{
    struct peers_handlers handlers = {.data = x, .batch = why_on_batch, .reply = why_on_reply};
    struct session_options session = {.fallback = node->fallback,
                                      .patience_ms = SESSION_QUICK_MS,
                                      .rate = SENDERS_RATE,
                                      .size = 64,
                                      .depth = 2,
                                      .items = 4};

    peers_begin(&x->peers, x->ctx, &handlers);
    if (!peers_open(&x->peers, node, &session, e))
        return false;
    return !peers_several(&x->peers) || err_set(e, ERR_USAGE, "why looks at one node: choose it with -n NODE");
}

static int why_run(struct ctx *ctx, const struct why_opts *o, const struct node_opts *node, const struct texts *words)
{
    struct why_run x = {.ctx = ctx, .o = o};
    struct err e;
    int status = 0;

    look_funs_init(&x.funs);
    senders_init(&x.senders);
    bool ok = why_makes_sense(words, &e) && why_open(&x, node, &e);
    struct peer *p = ok ? peers_next(&x.peers, NULL) : NULL;
    ok = ok && (p || err_set(&e, ERR_NODE, "the node is gone")) && why_watch(&x, p, words->items[0], &e);
    if (ok) {
        snprintf(x.node, sizeof(x.node), "%s", session_node(p->session)->name);
        x.senders.to = loop_now();
        peers_leave(&x.peers); /* waits for the last messages of the trace */
        senders_end(&x.senders);
        x.samples.counted = x.senders.known;
        x.samples.received = (int64_t)x.senders.received;
        why_print(&x, node);
    } else {
        status = ctx_fail(ctx, &e);
    }
    peers_leave(&x.peers);
    peers_close(&x.peers);
    senders_release(&x.senders);
    look_funs_release(&x.funs);
    return status;
}

static int cmd_why_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct why_opts o = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node}, {&why_group, &o}, {&talk_group, &talk}};
    struct texts words = {0};
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status))
        status = why_run(ctx, &o, &node, &words);
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] = "  etrace why shop_stock     why does this process not answer?\n"
                            "  etrace why '<0.123.0>'\n"
                            "\nLooks at one process for a second and prints one screen: what it does, what it\n"
                            "waits for, and what this waits for, who waits for it, its queue, who sends to\n"
                            "it, its memory and work. The first line has the cause, if it is known, such as\n"
                            "a deadlock. The command at the right of a line shows more. why counts the\n"
                            "messages in a short trace of this process, and otherwise only looks.\n";

static const struct opt_group *const groups[] = {&node_group, &why_group, &talk_group, NULL};
const struct cmd cmd_why = {
    .name = "why",
    .usage = "[-n NODE] [OPTIONS] PID|NAME",
    .summary = "Shows what one process does, and what it waits for",
    .about = about,
    .run = cmd_why_run,
    .groups = groups,
};
