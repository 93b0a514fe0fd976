/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the events of the scrollback: in the live view, once in another view, or in a view that refreshes in place. */
#include "repl_views.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/screen.h"
#include "../ground/utf8.h"

#define SLICE_MS 8                 /* limit for showing events at once, so that keys are handled */
#define PENDING ((size_t)64 << 10) /* from this many bytes in `pending` on, no events are read */
/* Limit for the bytes that wait in the output for the terminal. The echo of a key must wait behind them. */
#define ON_ITS_WAY ((size_t)24 << 10)
#define LAG_FULL ((size_t)8 << 20) /* when so many bytes of events are unread, the nodes must stop sending */
#define LAG_LOW ((size_t)1 << 20)  /* when only so many bytes of events are unread, the nodes may send again */
#define REDRAW_MS 250
#define CATCH_UP_MS 5000
#define SHOWN_MS 500
#define MEANWHILE ((size_t)128 << 10)

struct repl_views {
    struct repl_base *base;
    struct repl_nodes *nodes;
    struct repl_probes *probes;
    struct repl_files *files;
    struct reel *live;  /* the live view; NULL before repl_views_open() */
    struct buf pending; /* text of views that is not printed yet */
    uint64_t missed;    /* number of events that the live view has skipped, and that were reported to the user */
    bool throttled;     /* etrace has told the nodes to stop sending */
    bool paused;        /* the live view does not read events */
    bool held;          /* `pending` must not be printed now */
    bool screen;        /* a view that refreshes in place covers the terminal */
    struct buf aside;   /* messages that are printed when the view in place ends */
};

static bool repl_views_keep(void *output, struct buf *bytes)
{
    struct repl_views *v = output;

    buf_add(&v->pending, bytes->data, bytes->len);
    buf_clear(bytes);
    return true;
}

static struct reel *open_reel(struct repl_views *v, const struct view_opts *view, const char *file, bool tells,
                              bool from_now, struct err *e)
{
    struct reel_options o = {.view = view,
                             .to = file ? TO_FILE : TO_US,
                             .file = file,
                             .tells = tells,
                             .from_now = from_now,
                             .write = repl_views_keep,
                             .output = v};

    return reel_new(v->base, v->nodes, &o, e);
}

/* ---- the live view ---- */

bool repl_views_open(struct repl_views *v, bool from_now)
{
    struct err e;
    struct reel *next = open_reel(v, &v->base->options.view, NULL, true, from_now, &e);

    if (!next) {
        repl_fail(v->base, &e);
        return false;
    }
    if (v->live)
        pipeline_end(v->live->pipeline);
    reel_free(v->live);
    v->live = next;
    v->missed = 0;
    node_merge_show(repl_nodes_together(v->nodes), next->pipeline);
    repl_probes_collect(v->probes, PROBES_FOR_VIEW, next->exprs.needs);
    return true;
}

void repl_views_revive(struct repl_views *v)
{
    if (v->live->done)
        repl_views_open(v, true);
}

void repl_views_renode(struct repl_views *v)
{
    if (v->live && v->live->nodes != repl_nodes_several(v->nodes))
        repl_views_open(v, true);
}

/*
 * Tells the nodes to stop sending when the live view or the files are LAG_FULL bytes behind, and to send again when
 * they are only LAG_LOW bytes behind. When a session at a terminal ends, looks only at the files, because
 * repl_views_end() drops the events that the live view has not shown.
 */
static void throttle_nodes(struct repl_views *v)
{
    size_t lag = MAX(scroll_ahead(v->live->source), repl_files_behind(v->files));

    if (v->base->line && repl_nodes_are_leaving(v->nodes))
        lag = repl_files_behind(v->files);
    if (v->throttled ? lag > LAG_LOW : lag < LAG_FULL)
        return;
    v->throttled = !v->throttled;
    repl_nodes_together(v->nodes)->blocked = v->throttled;
    peers_pull(repl_nodes_peers(v->nodes), !v->throttled);
}

static void note_status(struct repl_views *v, enum pipeline_status status, const struct err *e)
{
    struct reel *l = v->live;

    if (status == PIPELINE_FAILED)
        repl_fail(v->base, e);
    l->done = status == PIPELINE_FAILED || status == PIPELINE_DONE;
    if (l->done)
        pipeline_flush(l->pipeline); /* prints the last events before any other text */
    if (status == PIPELINE_DONE)
        ctx_say(v->base->ctx, "reached the limit (:limit %lld)", (long long)v->base->options.limit.limit);
    if (l->done)
        repl_probes_stop(v->probes, NULL);
}

/* Writes files and reads new events for some milliseconds. Returns true if there are more events. */
static bool pump_events(struct repl_views *v)
{
    bool filed = repl_files_pump(v->files);
    struct node_merge *merge = repl_nodes_together(v->nodes);
    struct reel *l = v->live;
    int64_t until = loop_now() + SLICE_MS;
    struct source_item item;
    enum source_got got = SOURCE_NOTHING;
    struct err e;

    if (!l || v->paused)
        return filed;
    while (!l->done && v->pending.len < PENDING && loop_now() < until &&
           (got = source_next(l->source, &item, 0, &e)) == SOURCE_ITEM) {
        enum pipeline_status status = pipeline_item(l->pipeline, &item, &e);
        if (item.type == SOURCE_BATCH)
            node_merge_batch(merge, &repl_nodes_peers(v->nodes)->items[item.node]);
        note_status(v, status, &e);
    }
    if (!l->done && !scroll_ahead(l->source))
        note_status(v, reel_keep_order(l, v->base, v->nodes, &e), &e);
    if (!l->done)
        note_status(v, node_merge_step(merge, &e), &e);
    pipeline_flush(l->pipeline);
    if (scroll_missed(l->source) > v->missed) {
        ctx_warn(v->base->ctx, "%llu events were not shown: they came too fast",
                 (unsigned long long)(scroll_missed(l->source) - v->missed));
        v->missed = scroll_missed(l->source);
    }
    throttle_nodes(v);
    return filed || (got == SOURCE_ITEM && v->pending.len < PENDING);
}

/* Prints whole lines, until about ON_ITS_WAY bytes wait in the output for the terminal. */
static void print_pending(struct repl_views *v)
{
    size_t sent = out_backlog(v->base->ctx->out, 0), n = v->pending.len;

    if (!n || v->held || sent >= ON_ITS_WAY)
        return;
    if (n > ON_ITS_WAY) {
        const char *line = memrchr(v->pending.data, '\n', ON_ITS_WAY);
        if (!line)
            line = memchr(v->pending.data, '\n', n);
        n = line ? (size_t)(line - v->pending.data) + 1 : n;
    }
    if (v->base->line)
        editor_above(v->base->line, (struct str){v->pending.data, n});
    else
        out_write(v->base->ctx->out, v->pending.data, n);
    memmove(v->pending.data, v->pending.data + n, v->pending.len - n);
    v->pending.len -= n;
}

int64_t repl_views_serve(struct repl_views *v, int64_t until)
{
    bool more = pump_events(v), printing = v->pending.len;

    print_pending(v);
    more |= printing && !v->pending.len; /* a caller of repl_step() may wait until all pending text is printed */
    if (v->pending.len && !v->held && !out_backlog(v->base->ctx->out, 0))
        more = true;
    int64_t order = v->live && !v->live->done && !v->paused ? node_merge_next(repl_nodes_together(v->nodes)) : -1;
    if (order >= 0)
        until = until < 0 ? order : MIN(until, order);
    return more ? 0 : until;
}

void repl_views_go_on(struct repl_views *v)
{
    if (!v->live || scroll_ahead(v->live->source) < MEANWHILE)
        return;
    repl_views_open(v, true);
    ctx_say(v->base->ctx, "the events since then are captured; :as text shows them");
}

void repl_views_catch_up(struct repl_views *v)
{
    int64_t until = loop_now() + CATCH_UP_MS;
    uint64_t end = scroll_end(v->base->scroll);

    while (v->live && !v->live->done && scroll_place(v->live->source) < end && loop_now() < until &&
           !v->base->ctx->interrupts && !v->base->leaving)
        repl_step(v->base, loop_now() + 10);
}

void repl_views_end(struct repl_views *v)
{
    struct ctx *ctx = v->base->ctx;
    bool hurry = ctx->last_signal && ctx->last_signal != SIGINT;
    int64_t shown_by = v->base->line ? loop_now() + SHOWN_MS : INT64_MAX;

    ctx->interrupts = 0;
    while (!hurry && v->live && !ctx->interrupts && loop_now() < shown_by && (pump_events(v) || v->pending.len))
        repl_step(v->base, loop_now() + 10);
    if (!v->live)
        return;
    pipeline_end(v->live->pipeline);
    v->paused = true;
    while (!hurry && v->pending.len && !ctx->interrupts && loop_now() < shown_by)
        repl_step(v->base, loop_now() + 10);
    if (v->base->line)
        buf_clear(&v->pending); /* otherwise the last messages of the session would wait for this text */
}

/*
 * Pauses the live view until `paused` is reset. First prints the pending text, because it is older than the text that
 * follows.
 */
static void pause_live(struct repl_views *v)
{
    v->paused = true;
    while (v->pending.len && !v->base->ctx->interrupts && !v->base->leaving)
        repl_step(v->base, -1);
}

void repl_views_lend(struct repl_views *v)
{
    pause_live(v);
    v->held = true;
}

void repl_views_return(struct repl_views *v)
{
    v->paused = v->held = false;
    repl_views_go_on(v);
}

/* ---- text ---- */

bool repl_views_pending(const struct repl_views *v)
{
    return v->pending.len;
}

void repl_views_talk(void *views, struct str lines)
{
    struct repl_views *v = views;

    if (v->screen)
        buf_str(&v->aside, lines);
    else if (v->pending.len && !v->held)
        buf_str(&v->pending, lines);
    else
        editor_above(v->base->line, lines);
}

void repl_views_print(struct repl_views *v, struct buf *text)
{
    if (v->base->line)
        editor_above(v->base->line, buf_view(text));
    else
        buf_str(&v->pending, buf_view(text));
    buf_release(text);
}

/* ---- captured events ---- */

/*
 * Reads all events that the scrollback contains now, and serves all other events meanwhile. Returns false if the user
 * has typed Ctrl-C, the session ends, or the view has failed.
 */
static bool catch_up(struct repl_views *v, struct reel *reel, int *ret_status)
{
    uint64_t end = scroll_end(v->base->scroll);
    struct source_item item;
    struct err e;
    bool closed;

    while (scroll_place(reel->source) < end && source_next(reel->source, &item, 0, &e) == SOURCE_ITEM) {
        enum pipeline_status status = pipeline_item(reel->pipeline, &item, &e);
        if (status == PIPELINE_FAILED || outputs_ended(&reel->outputs, &closed, &e)) {
            *ret_status = repl_fail(v->base, &e);
            return false;
        }
        repl_step(v->base, 0);
        while (v->pending.len > PENDING && !v->base->ctx->interrupts)
            repl_step(v->base, -1);
        if (repl_interrupted(v->base) || v->base->leaving)
            return false;
    }
    return true;
}

/* Returns the number of events in the output of the reel, which must have one view. Call it at the end. */
static uint64_t events_written(const struct reel *reel)
{
    const struct totals *t = pipeline_totals(reel->pipeline);

    return t->shown + (reel->outputs.views[0].type->flags & SINK_RAW ? t->filtered : 0);
}

/*
 * Writes the end of the file, waits until the output has written all, and says how many events the file has. Ctrl-C
 * ends the wait, because the file may be a pipe that nobody reads. `whole`: the view has read all events; otherwise the
 * user has typed Ctrl-C already, and the wait is short. Prints an error unless the file is complete, and returns the
 * exit status.
 */
static int end_file(struct repl_views *v, struct reel *reel, const char *file, bool whole)
{
    struct repl_base *b = v->base;
    const int64_t until = whole ? -1 : loop_now() + SHOWN_MS;
    struct err e;

    pipeline_end(reel->pipeline);
    while (outputs_backlog(&reel->outputs, 0) && !b->ctx->interrupts && !b->leaving &&
           (until < 0 || loop_now() < until))
        repl_step(b, until);
    const bool written = !outputs_backlog(&reel->outputs, 0);
    const uint64_t events = events_written(reel);
    if (whole && written) {
        int status = outputs_flush(&reel->outputs, b->ctx, 0);
        if (!status)
            ctx_say(b->ctx, "%s: %" PRIu64 " event%s", file, events, PLURAL(events));
        return status;
    }
    repl_interrupted(b);
    err_set(&e, ERR_RUN, "%s is incomplete: interrupted, it has %s%" PRIu64 " event%s", file, written ? "" : "at most ",
            events, PLURAL(events));
    return repl_fail(b, &e);
}

int repl_views_once(struct repl_views *v, const struct view_opts *view, const char *file)
{
    struct reel *reel;
    struct err e;
    int status = 0;

    reel = open_reel(v, view, file, false, false, &e);
    if (!reel)
        return repl_fail(v->base, &e);
    pause_live(v);
    outputs_begin(&reel->outputs);
    const bool whole = catch_up(v, reel, &status);
    if (whole && scroll_missed(reel->source))
        ctx_warn(v->base->ctx,
                 "%llu events are missing: newer events replaced them before they were read (--scrollback)",
                 (unsigned long long)scroll_missed(reel->source));
    if (file && !status) {
        status = end_file(v, reel, file, whole);
    } else if (whole) {
        pipeline_end(reel->pipeline);
        pause_live(v);
    }
    v->paused = false;
    reel_free(reel);
    return status;
}

/* ---- in place ---- */

static void draw_frame(struct repl_views *v, unsigned rows, unsigned cols)
{
    struct buf b = {0};
    const char *at = v->pending.data, *end = at + v->pending.len;

    buf_puts(&b, "\033[H");
    for (unsigned row = 0; row + 1 < rows; row++) {
        size_t len = at < end ? strcspn(at, "\n") : 0, used = 0;
        const char *line = at;
        while (at < line + len) {
            const char *c = at;
            if (*at == '\033') {
                at += strcspn(at, "m") + 1;
            } else {
                utf8_next(&at, end);
                used += utf8_width(c, (size_t)(at - c));
            }
            if (used <= cols || *c == '\033')
                buf_add(&b, c, (size_t)(at - c));
        }
        at += at < end;
        buf_puts(&b, "\033[K\r\n");
    }
    buf_puts(&b, "q returns\033[K\033[J");
    out_take(v->base->ctx->out, &b);
    buf_release(&b);
    buf_clear(&v->pending);
}

int repl_views_screen(struct repl_views *v, const struct view_opts *view)
{
    struct buf codes = {0};
    struct reel *reel;
    struct err e;
    int status = 0, key;

    reel = open_reel(v, view, NULL, false, false, &e);
    if (!reel)
        return repl_fail(v->base, &e);
    pause_live(v);
    v->held = v->screen = true;
    screen_open(STDIN_FILENO, STDOUT_FILENO, &codes);
    out_take(v->base->ctx->out, &codes);
    for (bool going = true; going;) {
        int64_t next = loop_now() + REDRAW_MS;
        going = catch_up(v, reel, &status);
        /* Counts all events at once: the order of events of different nodes does not matter for a count. */
        for (size_t i = 0; i < repl_nodes_peers(v->nodes)->count; i++)
            pipeline_passed(reel->pipeline, (unsigned)i, INT64_MAX, INT64_MAX, &e);
        buf_clear(&v->pending);
        pipeline_snapshot(reel->pipeline);
        buf_cstr(&v->pending);
        draw_frame(v, editor_height(v->base->line), editor_width(v->base->line));
        do { /* reads keys at least once per refresh */
            repl_step(v->base, going ? next : 0);
            while (going && (key = editor_key(v->base->line)) >= 0) /* after q, the next keys belong to the prompt */
                going = key != 'q' && key != 'Q' && key != 4;
            going = going && !repl_interrupted(v->base) && !v->base->leaving;
        } while (going && loop_now() < next);
    }
    screen_close(&codes);
    out_take(v->base->ctx->out, &codes);
    buf_release(&codes);
    v->paused = v->held = v->screen = false;
    reel_free(reel);
    editor_above(v->base->line, buf_view(&v->aside));
    buf_clear(&v->aside);
    repl_views_go_on(v);
    return status;
}

/* ---- beginning and end ---- */

struct repl_views *repl_views_new(struct repl_base *base, struct repl_nodes *nodes, struct repl_probes *probes,
                                  struct repl_files *files)
{
    struct repl_views *v = mem_zalloc(sizeof(*v));

    v->base = base;
    v->nodes = nodes;
    v->probes = probes;
    v->files = files;
    return v;
}

void repl_views_free(struct repl_views *v)
{
    if (!v)
        return;
    reel_free(v->live);
    buf_release(&v->pending);
    buf_release(&v->aside);
    free(v);
}
