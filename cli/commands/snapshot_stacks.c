/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot_stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../erlang/etf_write.h"
#include "../ground/mem.h"
#include "../ground/out.h"
#include "stack_table.h"

#define ANSWER_MS 10000
#define ALL_MS 10000 /* limit for the answers of all nodes together */
#define PAGE 1000    /* limit for the processes that one answer covers */
#define SHARE 50     /* limit for the load on a node, in percent of one core */
#define PATIENCE_MS 300

enum asking { ASKED_NOTHING, ASKED_STACKS, ASKED_NAMES };

struct stacks_node {
    enum asking asking;
    uint32_t id; /* id of the request without an answer */
    char *name;
    int64_t left; /* number of processes that the node has not looked at yet */
};

struct snapshot_stacks {
    struct live_moment moment;
    struct ctx *ctx;
    struct stacks_node nodes[PEERS_MAX];
    unsigned count;
    struct stack_groups groups;
    struct look_funs funs;
    uint64_t silent; /* number of processes that did not answer */
    uint64_t number; /* number of the snapshot */
    char *file;      /* the file for the stacks; NULL: standard error */
    int64_t until;
    bool going;
};

static void forget_stacks(struct snapshot_stacks *s)
{
    for (unsigned i = 0; i < s->count; i++)
        free(s->nodes[i].name);
    memset(s->nodes, 0, sizeof s->nodes);
    stack_groups_release(&s->groups);
    s->groups = (struct stack_groups){0};
    free(s->file);
    s->file = NULL;
    s->count = 0;
    s->silent = 0;
}

/* ---- questions ---- */

/* Warns that the stacks of a node are incomplete, and sends the node no more requests. */
static void stacks_missing(struct snapshot_stacks *s, unsigned node, const char *why)
{
    struct stacks_node *n = &s->nodes[node];

    ctx_warn(s->ctx, "snapshot %" PRIu64 ": the stacks of %s are incomplete: %s", s->number, n->name, why);
    n->asking = ASKED_NOTHING;
}

static void stacks_question(struct snapshot_stacks *s, struct peer *p, struct str request, enum asking what)
{
    struct stacks_node *n = &s->nodes[p->index];
    struct err e;

    n->asking = what;
    if (!session_request(p->session, request, ANSWER_MS, &n->id, &e))
        stacks_missing(s, p->index, e.text);
}

static void stacks_ask_page(struct snapshot_stacks *s, struct peer *p, bool anew)
{
    struct buf b = {0}, all = {0};

    etf_nil(&all);
    look_request(&b, &(struct look_question){
                         .what = "stacks",
                         .who = buf_view(&all),
                         .anew = anew,
                         .most = PAGE,
                         .share = SHARE,
                         .patience_ms = PATIENCE_MS,
                         .pids = STACK_PIDS,
                     });
    stacks_question(s, p, buf_view(&b), ASKED_STACKS);
    buf_release(&all);
    buf_release(&b);
}

static void stacks_ask_names(struct snapshot_stacks *s, struct peer *p)
{
    struct buf b = {0};

    s->nodes[p->index].asking = ASKED_NOTHING;
    if (stack_groups_ask_names(&s->groups, p->index, PATIENCE_MS, &b))
        stacks_question(s, p, buf_view(&b), ASKED_NAMES);
    buf_release(&b);
}

/* ---- the moment ---- */

static bool stacks_begin(void *data, uint64_t number, const char *file)
{
    struct snapshot_stacks *s = data;

    if (s->going) {
        ctx_warn(s->ctx, "no stacks for snapshot %" PRIu64 ": those of snapshot %" PRIu64 " are not complete", number,
                 s->number);
        return false;
    }
    forget_stacks(s);
    s->going = true;
    s->number = number;
    s->file = file ? mem_strndup(file, strlen(file)) : NULL;
    s->until = loop_now() + ALL_MS;
    return true;
}

static void stacks_ask(void *data, struct peer *p)
{
    struct snapshot_stacks *s = data;
    const char *name = peer_name(p);

    if (!s->nodes[p->index].name)
        s->nodes[p->index].name = mem_strndup(name, strlen(name));
    s->count = MAX(s->count, p->index + 1);
    stacks_ask_page(s, p, true);
}

static void stacks_take(struct snapshot_stacks *s, struct peer *p, const struct session_reply *reply)
{
    struct stacks_node *n = &s->nodes[p->index];
    struct look_process one;
    struct look_answer a;
    struct err e;

    if (!reply->ok) {
        session_error(reply, &e);
        stacks_missing(s, p->index, e.text);
    } else if (!look_read(reply->term, &a, &e)) {
        stacks_missing(s, p->index, e.text);
    } else if (n->asking == ASKED_NAMES) {
        n->asking = ASKED_NOTHING;
        stack_groups_named(&s->groups, p->index, a.names); /* if this fails, the table shows pids without names */
    } else if (!stack_groups_add(&s->groups, p->index, &a, 0, look_funs_of(&s->funs, session_node(p->session)), &e)) {
        stacks_missing(s, p->index, e.text);
    } else {
        for (struct look_list list = look_list(a.silent); look_list_next(&list, &one);)
            s->silent++;
        n->left = a.left;
        if (a.left)
            stacks_ask_page(s, p, false);
        else
            stacks_ask_names(s, p);
    }
}

static void stacks_answer(void *data, struct peer *p, const struct session_reply *reply)
{
    struct snapshot_stacks *s = data;
    const struct stacks_node *n = &s->nodes[p->index];

    if (n->asking && n->id == reply->id)
        stacks_take(s, p, reply);
}

static void stacks_lost(void *data, const struct peer *p)
{
    struct snapshot_stacks *s = data;

    if (s->nodes[p->index].asking)
        stacks_missing(s, p->index, "the node was lost");
}

/* ---- output ---- */

static void stacks_tell(struct snapshot_stacks *s)
{
    const char *names[PEERS_MAX];
    struct buf b = {0};
    struct err e;

    for (unsigned i = 0; i < s->count; i++)
        names[i] = s->nodes[i].name ? s->nodes[i].name : "";
    const struct stack_table t = {.groups = &s->groups, .names = names, .nnodes = s->count};
    stack_table_text(&t, &b);
    const bool ok = !s->file || out_write_file(s->file, buf_view(&b), true, &e);
    if (ok)
        ctx_say(s->ctx, "snapshot %" PRIu64 ": the stacks of %" PRIu64 " process%s%s%s", s->number, s->groups.looks,
                PLURAL_ES(s->groups.looks), s->file ? ", " : "", s->file ? s->file : "");
    else
        ctx_warn(s->ctx, "%s", e.text);
    if (ok && !s->file)
        ctx_print(s->ctx, buf_view(&b));
    if (s->silent)
        ctx_warn(s->ctx, "%" PRIu64 " process%s did not answer in time", s->silent, PLURAL_ES(s->silent));
    buf_release(&b);
}

static bool stacks_wait(void *data, bool end)
{
    struct snapshot_stacks *s = data;
    bool waits = false;

    for (unsigned i = 0; i < s->count && s->going; i++) {
        if (s->nodes[i].asking == ASKED_STACKS && (end || loop_now() >= s->until))
            stacks_missing(s, i, end ? "the trace ended" : "the node did not answer in ten seconds");
        waits = waits || (s->nodes[i].asking && !end && loop_now() < s->until);
    }
    if (s->going && !waits) {
        s->going = false;
        stacks_tell(s);
    }
    return s->going;
}

/* ---- the struct ---- */

struct snapshot_stacks *snapshot_stacks_new(struct ctx *ctx)
{
    struct snapshot_stacks *s = mem_zalloc(sizeof(*s));

    s->ctx = ctx;
    s->moment = (struct live_moment){s, stacks_begin, stacks_ask, stacks_answer, stacks_lost, stacks_wait};
    look_funs_init(&s->funs);
    return s;
}

void snapshot_stacks_free(struct snapshot_stacks *s)
{
    if (!s)
        return;
    forget_stacks(s);
    look_funs_release(&s->funs);
    free(s);
}

const struct live_moment *snapshot_stacks_moment(const struct snapshot_stacks *s)
{
    return &s->moment;
}
