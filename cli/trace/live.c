/* SPDX-License-Identifier: Apache-2.0 */
#include "live_state.h"

#include <string.h>
#include <unistd.h>

#include "../ground/tty.h"
#include "child.h"
#include "outcome.h"

/* If an output has this many unwritten bytes, etrace asks the nodes for no more events. */
#define BACKLOG_FULL (8u << 20)
#define BACKLOG_LOW (1u << 20)
/* How long to wait for the last events after --limit was reached, or after the command has ended. */
#define REST_MS 1000

/* ---- ending ---- */

void live_fail(struct live *l, const struct err *e)
{
    int status = ctx_fail(l->ctx, e);

    if (!l->status)
        l->status = status;
}

static const char *const states[] = {"beginning", "running", "leaving"};

void live_move(struct live *l, enum live_state to)
{
    if (l->state >= to)
        return;
    ctx_debug(l->ctx, "the trace: %s -> %s", states[l->state], states[to]);
    l->state = to;
    if (to == LIVE_RUNNING) {
        if (l->o->child)
            child_go(l->o->child);
        if (l->o->limit->for_ns)
            l->until = loop_sooner(l->until, loop_now() + l->o->limit->for_ns / 1000000);
        if (peers_several(&l->sessions.peers))
            ctx_say(l->ctx, "%zu node%s · %s", live_count_armed(l), PLURAL(live_count_armed(l)),
                    l->o->child ? "ends with the command" : "Ctrl-C stops");
    } else {
        l->stopped_at = loop_now();
        live_say_unanswered(l);
        peers_stop(&l->sessions.peers);
    }
}

static void live_stop(struct live *l)
{
    live_move(l, LIVE_LEAVING);
}

void live_stop_with(struct live *l, const struct err *e)
{
    live_fail(l, e);
    live_stop(l);
}

/* ---- what sessions send ---- */

bool live_has_begun(const struct live *l)
{
    return l->begun_at >= 0;
}

#define NOTHING_MS 10000 /* time without an event after which a message explains the silence */

/* Returns true if a terminal shows each event as it comes, and no command, table or recorder explains a silence. */
static bool user_waits(const struct live *l)
{
    return tty_is(STDOUT_FILENO) && !l->o->child && !l->o->what->builtin && !l->own.table && !l->o->limit->ring.on &&
           l->outputs.count && l->outputs.outs[0] == l->outputs.own && l->outputs.views[0].type->flags & SINK_LINES;
}

void live_mark_begun(struct live *l)
{
    if (!live_has_begun(l)) {
        l->begun_at = loop_now();
        l->nothing_at = user_waits(l) ? l->begun_at + NOTHING_MS : -1;
    }
    outputs_begin(&l->outputs);
}

void live_handle_status(struct live *l, enum pipeline_status status, const struct err *e)
{
    switch (status) {
    case PIPELINE_MORE:
        break;
    case PIPELINE_LIMIT:
        if (!l->rests)
            l->until = loop_now() + REST_MS;
        l->rests = true;
        break;
    case PIPELINE_DONE:
        live_stop(l);
        break;
    case PIPELINE_FAILED: /* the pipeline repeats this error from now on; only the first one is reported */
        if (l->state != LIVE_LEAVING)
            live_stop_with(l, e);
        break;
    }
}

static uint64_t batch_seq(const void *batch)
{
    struct etw_batch head;

    memcpy(&head, batch, sizeof head);
    return head.seq;
}

static void live_on_batch(void *data, struct peer *p, const void *batch, size_t len)
{
    struct live *l = data;
    struct err e;

    if (!l->pipeline) /* the trace may end before it has a pipeline, and batches still arrive */
        return;
    l->seq = batch_seq(batch);
    node_merge_batch(&l->merge, p);
    live_handle_status(l, snapshots_batch(&l->snapshots, p->index, (struct str){batch, len}, &e), &e);
    if (!live_has_begun(l) && pipeline_totals(l->merge.pipeline)->seen)
        live_mark_begun(l); /* a meta probe reports events while other probes are still being armed */
}

void live_on_note(void *data, unsigned node, struct str note)
{
    struct live *l = data;
    struct err e;

    live_handle_status(l, snapshots_note(&l->snapshots, node, note, &e), &e);
}

static void live_on_time(void *data, struct peer *p, const struct session_time *time)
{
    node_merge_time(&((struct live *)data)->merge, p, time);
}

/* ---- messages ---- */

static void say_summary(struct live *l)
{
    const struct totals *t = pipeline_totals(l->pipeline);

    for (size_t i = 0; i < t->nnodes && peers_several(&l->sessions.peers); i++)
        outcome_node(l->ctx, &t->nodes[i]);
    if (!l->o->what->builtin)
        matches_warn(&l->matches, l->ctx, l->merge.pipeline,
                     l->o->child ? "compile before you trace: a module that the command compiles is traced up to a "
                                   "second late"
                                 : "");
    if (t->undecided)
        ctx_say(l->ctx,
                "%llu event%s shown because the filter could not decide: terms were cut (--size, --depth, --items keep "
                "more)",
                (unsigned long long)t->undecided, PLURAL(t->undecided));
    outcome_trace(l->ctx, t, live_has_begun(l) ? (l->stopped_at ? l->stopped_at : loop_now()) - l->begun_at : -1,
                  live_session_end(l, t));
    if (l->o->what->builtin)
        return;
    outcome_rejections(l->ctx, l->pipeline);
    if (live_has_begun(l) && l->exprs.count && !live_any_fallback(l))
        matches_say_silent(&l->matches, l->ctx, l->merge.pipeline, t, l->o->what->procs.count, l->o->unmatched);
}

/* Says once that there is no event yet, and which conditions have rejected events. */
static void say_nothing_yet(struct live *l)
{
    if (l->state != LIVE_RUNNING || l->nothing_at < 0 || loop_now() < l->nothing_at)
        return;
    l->nothing_at = -1;
    const struct totals *t = pipeline_totals(l->pipeline);
    if (t->shown)
        return;
    outcome_rejections(l->ctx, l->pipeline);
    ctx_say(l->ctx, "no event yet; Ctrl-C ends the trace and says what matched nothing");
}

/* ---- streaming ---- */

/*
 * Stops asking the nodes for events while an output is full, for example because a pager waits, and resumes at
 * BACKLOG_LOW. Leases are still renewed.
 */
static void throttle_nodes(struct live *l)
{
    const size_t enough = l->merge.blocked ? BACKLOG_LOW : BACKLOG_FULL - 1;
    const size_t backlog =
        MAX(outputs_backlog(&l->outputs, enough), snapshot_files_backlog(l->snapshots.files, enough));

    if (l->state == LIVE_LEAVING || (l->merge.blocked ? backlog > BACKLOG_LOW : backlog < BACKLOG_FULL))
        return;
    l->merge.blocked = !l->merge.blocked;
    peers_pull(&l->sessions.peers, !l->merge.blocked);
}

/* ---- snapshots ---- */

/*
 * If another node has begun a snapshot, or the user requests one, asks each node that has none for a snapshot. Asks the
 * questions of --then at the beginning of a snapshot.
 */
static void look_for_snapshots(struct live *l)
{
    const struct live_moment *m = l->o->moment;
    bool begins;

    if (snapshots_due(&l->snapshots, &begins))
        for (struct peer *p = NULL; (p = peers_next(&l->sessions.peers, p));)
            if (live_is_traced(l, p))
                snapshots_ask(&l->snapshots, p);
    if (begins && l->state == LIVE_RUNNING && snapshots_then(&l->snapshots))
        for (struct peer *p = NULL; (p = peers_next(&l->sessions.peers, p));)
            if (live_is_traced(l, p))
                m->ask(m->data, p);
}

/*
 * Returns true while the command waits for answers to its questions about a snapshot. If the trace is LEAVING, tells
 * the command to stop waiting.
 */
static bool poll_moment(const struct live *l)
{
    const struct live_moment *m = l->o->moment;

    return m && m->waits(m->data, l->state == LIVE_LEAVING);
}

static void live_on_answer(void *data, struct peer *p, const struct session_reply *reply)
{
    struct live *l = data;

    if (l->o->moment)
        l->o->moment->answer(l->o->moment->data, p, reply);
    snapshots_answer(&l->snapshots, p, reply);
}

/*
 * Returns true, with an error, if --on-loss stop applies. live_finish() checks again, because the last losses arrive at
 * the end.
 */
static bool lost_too_much(const struct live *l, struct err *e)
{
    const struct totals *t = pipeline_totals(l->merge.pipeline);

    for (size_t i = 0; l->o->limit->on_loss == 1 && i < ETW_LOSSES; i++)
        if (t->lost[i] && i != ETW_LOST_OVERWRITTEN)
            return !err_set(e, ERR_GUARD,
                            l->state == LIVE_LEAVING ? "events were lost (%s)" : "stopped: events were lost (%s)",
                            event_losses[i]);
    return false;
}

static void look_for_an_end(struct live *l)
{
    struct err e;
    bool closed;

    if (l->o->child && l->o->child->ended && !l->rests) {
        /* Read the last events of the command's node for REST_MS, then leave the node even if it lives on. */
        l->until = loop_sooner(l->until, loop_now() + REST_MS);
        l->rests = true;
    }
    const bool asks = poll_moment(l);
    if (l->pipeline && l->o->limit->ring.when && l->o->limit->ring.snapshots &&
        snapshots_count(&l->snapshots) >= l->o->limit->ring.snapshots && !asks)
        live_stop(l);
    if (l->ctx->interrupts || (l->until >= 0 && loop_now() >= l->until))
        live_stop(l);
    if (l->state != LIVE_LEAVING && outputs_ended(&l->outputs, &closed, &e)) {
        if (!closed)
            live_fail(l, &e);
        l->unread = closed;
        live_stop(l);
    }
    if (l->state != LIVE_LEAVING && l->pipeline && lost_too_much(l, &e))
        live_stop_with(l, &e);
}

static int64_t next_step(const struct live *l)
{
    int64_t next = l->state == LIVE_LEAVING ? -1 : loop_sooner(l->until, live_next_patience(l));

    if (l->snapshots.keeper)
        next = loop_sooner(next, keeper_next(l->snapshots.keeper, !l->merge.blocked));
    if (poll_moment(l))
        next = loop_sooner(next, loop_now() + 1000);
    if (l->redraw.table && l->state == LIVE_RUNNING)
        next = loop_sooner(next, l->redraw.due);
    if (l->state == LIVE_RUNNING)
        next = loop_sooner(next, l->nothing_at);
    if (l->pipeline && l->state == LIVE_RUNNING && pipeline_waits(l->pipeline))
        next = loop_sooner(next, l->ask_at);
    return l->pipeline ? loop_sooner(next, node_merge_next(&l->merge)) : next;
}

/* ---- a table on the screen ---- */

static void look_at_table(struct live *l)
{
    bool fresh;

    if (!l->redraw.table || l->state != LIVE_RUNNING || !live_has_begun(l))
        return;
    if (!redraw_step(&l->redraw, l->pipeline, loop_now() - l->begun_at, &fresh))
        live_stop(l);
    else if (fresh && l->o->what->requests) /* the next table shows the ages of open requests */
        node_merge_ask_all(&l->merge);
}

#define PASSED_MS 250

/* Asks the nodes for their time if a view waits for it: a quiet node sends nothing by itself. */
static void ask_for_time(struct live *l)
{
    if (l->state != LIVE_RUNNING || !l->pipeline || !pipeline_waits(l->pipeline) || loop_now() < l->ask_at)
        return;
    l->ask_at = loop_now() + PASSED_MS;
    node_merge_ask_all(&l->merge);
}

/* Serves the loop once, and then takes every step that has become possible. Returns false if no peer is left. */
static bool live_step(struct live *l)
{
    struct err e;

    if (!peers_step(&l->sessions.peers, next_step(l)))
        return false;
    if (!peers_attaching(&l->sessions.peers))
        ctx_let_die(l->ctx, false);
    live_look_for_records(l);
    if (l->pipeline)
        /* This must come before live_look_at_nodes(), which arms a node once its clock is known. */
        live_handle_status(l, node_merge_step(&l->merge, &e), &e);
    live_look_at_nodes(l);
    live_handle_status(l, snapshots_keep(&l->snapshots, l->state == LIVE_RUNNING, !l->merge.blocked, &e), &e);
    if (live_has_begun(l)) /* if every node refuses the trace, print nothing */
        pipeline_flush(l->pipeline);
    look_at_table(l);
    say_nothing_yet(l);
    ask_for_time(l);
    /* This must come before snapshots_step(), which may end the snapshot: then the other nodes could not be asked. */
    look_for_snapshots(l);
    if (!snapshots_step(&l->snapshots, l->state == LIVE_LEAVING, &e))
        live_stop_with(l, &e);
    look_for_an_end(l);
    throttle_nodes(l);
    return true;
}

/* ---- the command ---- */

static void live_finish(struct live *l)
{
    struct err e;
    bool closed;

    pipeline_end(l->pipeline);
    if (!l->status && lost_too_much(l, &e))
        live_fail(l, &e);
    if (outputs_ended(&l->outputs, &closed, &e) && !closed && !l->status)
        live_fail(l, &e);
    if (tty_is(STDOUT_FILENO)) /* the summary must appear below the events */
        l->status = ctx_flush(l->ctx, l->status);
    say_summary(l);
    l->status = assertions_status(&l->assertions, l->ctx, l->status);
}

/* Takes the batches that the command's node could not send before it ended. */
static void take_leftover(struct live *l)
{
    struct etw_batch head;
    struct str rest;

    if (!l->o->child || !l->pipeline || pipeline_totals(l->pipeline)->complete || !live_has_lost_one(l))
        return;
    for (rest = child_leftover(l->o->child); rest.len >= sizeof head; rest.at += head.bytes, rest.len -= head.bytes) {
        memcpy(&head, rest.at, sizeof head);
        if (head.magic != ETW_BATCH_MAGIC || head.bytes > rest.len || head.bytes < sizeof head || head.seq > l->seq + 1)
            return; /* malformed, or a batch is missing */
        if (head.seq > l->seq)
            live_on_batch(l, &l->sessions.peers.items[0], rest.at, head.bytes);
    }
}

static void live_end(struct live *l)
{
    struct err e;

    take_leftover(l);
    ctx_let_die(l->ctx, false);
    if (l->view.record) /* the command reads the file that was written */
        l->status = outputs_flush(&l->outputs, l->ctx, l->status);
    redraw_close(&l->redraw);
    const bool ran = !l->status && !l->o->what->dry_run;
    if (!l->status && live_none_came(l) && !l->unread) {
        err_set(&e, ERR_NODE, "nothing was traced: etrace could not attach to any node");
        live_fail(l, &e);
    }
    if (!snapshots_end(&l->snapshots, &e) && !l->status)
        live_fail(l, &e);
    poll_moment(l);
    l->status = snapshot_files_end(l->snapshots.files, l->status);
    if (l->pipeline && (live_has_begun(l) || live_has_lost_one(l) || ran))
        live_finish(l);
    l->status = outputs_flush(&l->outputs, l->ctx, l->status);
    l->ctx->takes_snapshots = false;
}

int live_run(struct ctx *ctx, const struct live_options *o, const char *default_view)
{
    struct live l;
    const struct session_set_handlers handlers = {.data = &l,
                                                  .ready = live_on_ready,
                                                  .batch = live_on_batch,
                                                  .chosen = live_on_chosen,
                                                  .armed = live_on_armed,
                                                  .refused = live_on_refused,
                                                  .failed = live_on_failed,
                                                  .time = live_on_time,
                                                  .answer = live_on_answer};
    struct err e;

    live_init(&l, ctx, o, &handlers);
    if (!outputs_makes_sense(o->view, &e) || !live_prepare(&l, default_view, &e))
        live_stop_with(&l, &e);
    while (live_step(&l))
        continue;
    live_end(&l);
    live_release(&l);
    return l.status;
}
