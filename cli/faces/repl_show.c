/* Views of the scrollback: the one that goes on as events come, others of what is there, and one in place. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/utf8.h"
#include "repl.h"

#define SLICE_MS 8                 /* of showing, before keys are looked at again */
#define PENDING ((size_t)64 << 10) /* text that waits for the terminal */
#define ON_ITS_WAY ((size_t)24 << 10) /* what the terminal is given ahead: an echo stands behind it */
#define LAG_FULL ((size_t)8 << 20) /* unshown events at which no more is asked from the nodes */
#define LAG_LOW ((size_t)1 << 20)
#define REDRAW_MS 250
#define CATCH_UP_MS 5000
#define MEANWHILE ((size_t)128 << 10)

static bool keep(void *output, struct buf *bytes)
{
    struct repl *r = output;

    buf_add(&r->pending, bytes->data, bytes->len);
    buf_clear(bytes);
    return true;
}

static void on_notice(void *ctx, const struct event_node *node, struct str text)
{
    ctx_warn(ctx, "%.*s: %.*s", (int)node->name.len, node->name.at, (int)text.len, text.at);
}

enum reel_to { TO_US, TO_FILES /* of -o */, TO_FILE };

static bool open_show(struct repl *r, struct show *s, const struct view_opts *view, enum reel_to to, const char *file, struct err *e)
{
    return to == TO_FILE    ? show_file(s, r->base.ctx, view, view->as, file, e)
           : to == TO_FILES ? show_files(s, r->base.ctx, view, e)
                            : show_here(s, r->base.ctx, view, "text", e);
}

/* `file`: there, in the view view->as or of its extension. */
static struct reel *reel_new(struct repl *r, const struct view_opts *view, enum reel_to to, const char *file, bool from_now, struct err *e)
{
    struct reel *reel = mem_zalloc(sizeof(*reel));
    struct texts none = {0};

    asked_init(&reel->asked);
    reel->nodes = repl_several(r);
    bool ok = asked_compile(&reel->asked, &r->base.options.what, &none, &view->wheres, 0, e) &&
              open_show(r, &reel->show, view, to, file, e);
    for (size_t i = 0; ok && i < reel->show.count; i++)
        reel->show.views[i].look.nodes = reel->nodes;
    if (ok && to == TO_US) {
        reel->show.views[0].write = keep;
        reel->show.views[0].output = r;
    }
    if (ok) {
        struct pipeline_options options = {
            .views = reel->show.views, .nviews = reel->show.count,
            .greps = reel->show.greps, .ngreps = reel->show.ngreps,
            .wheres = reel->asked.wheres, .nwheres = reel->asked.nwheres,
            .limit = from_now && to == TO_US ? (uint64_t)r->base.options.limit.limit : 0,
            .notice = on_notice, .ctx = r->base.ctx,
        };
        reel->pipeline = pipeline_new(&options, e);
        ok = reel->pipeline != NULL;
    }
    if (!ok) {
        reel_free(reel);
        return NULL;
    }
    reel->source = scroll_read(r->base.scroll, from_now);
    return reel;
}

void reel_free(struct reel *reel)
{
    if (!reel)
        return;
    source_close(reel->source);
    pipeline_free(reel->pipeline);
    if (reel->show.loop)
        show_close(&reel->show);
    asked_release(&reel->asked);
    free(reel);
}

/* ---- as events come ---- */

/* The probes collect what the filters read. */
static void collect_for(struct repl *r, unsigned needs)
{
    if (r->base.options.what.needs == needs)
        return;
    r->base.options.what.needs = needs;
    if (r->armed)
        repl_arm(r);
}

bool repl_show_live(struct repl *r, bool from_now)
{
    struct err e;
    struct reel *next = reel_new(r, &r->base.options.view, TO_US, NULL, from_now, &e);

    if (!next) {
        repl_fail(&r->base, &e);
        return false;
    }
    if (r->live)
        pipeline_end(r->live->pipeline);
    reel_free(r->live);
    r->live = next;
    r->missed = 0;
    together_show(&r->together, next->pipeline);
    collect_for(r, next->asked.needs);
    return true;
}

/* A file that cannot be written is not behind. */
static size_t behind(const struct reel *reel)
{
    return reel && !reel->done ? scroll_ahead(reel->source) : 0;
}

/* Nothing more is asked for while the terminal or a file is far behind, as if it were a pager that waits. */
static void throttle(struct repl *r)
{
    size_t lag = MAX(scroll_ahead(r->live->source), behind(r->files));

    if (r->throttled ? lag > LAG_LOW : lag < LAG_FULL)
        return;
    r->throttled = !r->throttled;
    r->together.blocked = r->throttled;
    peers_pull(&r->run.peers, !r->throttled);
}

/* It has read all there is: the nodes may have said that nothing older comes, where they had nothing to show. */
static enum pipeline_status keep_order(struct repl *r, struct reel *l, struct err *e)
{
    enum pipeline_status status = PIPELINE_MORE;
    int64_t mono, wall;

    for (size_t i = 0; repl_several(r) && i < r->run.peers.count; i++) {
        if (!scroll_passed(r->base.scroll, (unsigned)i, &mono, &wall) || r->run.peers.items[i].state != PEER_UP)
            mono = wall = INT64_MAX;
        status = MAX(status, pipeline_passed(l->pipeline, (unsigned)i, mono, wall, e));
    }
    return status;
}

static void took(struct repl *r, struct reel *l, enum pipeline_status status, const struct err *e)
{
    if (status == PIPELINE_FAILED)
        repl_fail(&r->base, e);
    l->done = status == PIPELINE_FAILED || status == PIPELINE_DONE;
    if (l->done)
        pipeline_flush(l->pipeline); /* what is said stands behind it */
    if (status == PIPELINE_DONE)
        ctx_say(r->base.ctx, "the limit is reached (:limit %lld)", (long long)r->base.options.limit.limit);
    if (l->done)
        repl_stop(r, NULL);
}

/* ---- into files ---- */

/* Some of what came; whether there is more, and room for it. */
static bool pump_files(struct repl *r)
{
    struct reel *l = r->files;
    int64_t until = loop_now() + SLICE_MS;
    enum pipeline_status status = PIPELINE_MORE;
    struct source_item item;
    struct err e;
    bool room = true, closed;

    if (!l || l->done)
        return false;
    while (status == PIPELINE_MORE && loop_now() < until && (room = show_backlog(&l->show, LAG_LOW) <= LAG_LOW) &&
           source_next(l->source, &item, 0, &e) == SOURCE_ITEM)
        status = pipeline_item(l->pipeline, &item, &e);
    if (status == PIPELINE_MORE && !scroll_ahead(l->source))
        status = keep_order(r, l, &e);
    pipeline_flush(l->pipeline);
    bool ended = show_ended(&l->show, &closed, &e);
    l->done = ended || status != PIPELINE_MORE;
    if ((ended && !closed) || status == PIPELINE_FAILED)
        repl_fail(&r->base, &e);
    return !l->done && room && scroll_ahead(l->source);
}

bool repl_files_open(struct repl *r, struct err *e)
{
    struct reel *next = r->base.options.view.outputs.count ? reel_new(r, &r->base.options.view, TO_FILES, NULL, true, e) : NULL;

    if (r->base.options.view.outputs.count && !next)
        return false;
    repl_files_end(r);
    r->files = next;
    if (next)
        show_begin(&next->show);
    return true;
}

/* A pipe may be one that nobody reads: a Ctrl-C that comes meanwhile gives it up. */
bool repl_files_catch_up(struct repl *r)
{
    const struct reel *l = r->files;
    int64_t patience = ctx_patience(r->base.ctx);
    int asked = r->base.ctx->interrupts;
    uint64_t end = scroll_end(r->base.scroll);

    while (l && !l->done && scroll_place(l->source) < end && r->base.ctx->interrupts == asked && ctx_waits(r->base.ctx, &patience))
        loop_step(&r->base.ctx->loop, pump_files(r) ? 0 : patience);
    return !l || l->done || scroll_place(l->source) >= end;
}

void repl_files_end(struct repl *r)
{
    struct reel *l = r->files;
    int asked = r->base.ctx->interrupts;
    struct err e;

    if (!l)
        return;
    bool whole = repl_files_catch_up(r);
    int64_t patience = ctx_patience(r->base.ctx);
    uint64_t missed = l->done ? 0 : scroll_missed(l->source);
    if (missed)
        ctx_warn(r->base.ctx, "%llu events are not in the files: they came too fast", (unsigned long long)missed);
    pipeline_end(l->pipeline);
    while (show_backlog(&l->show, 0) && r->base.ctx->interrupts == asked && ctx_waits(r->base.ctx, &patience))
        loop_step(&r->base.ctx->loop, patience);
    if (whole && !show_backlog(&l->show, 0)) {
        r->base.status = show_flush(&l->show, r->base.ctx, r->base.status);
    } else {
        repl_interrupted(&r->base);
        err_set(&e, ERR_RUN, "the files are not whole: it was interrupted");
        repl_fail(&r->base, &e);
    }
    r->files = NULL;
    reel_free(l);
}

bool repl_pump(struct repl *r)
{
    bool filed = pump_files(r);
    struct reel *l = r->live;
    int64_t until = loop_now() + SLICE_MS;
    struct source_item item;
    enum source_got got = SOURCE_NOTHING;
    struct err e;

    if (!l || r->paused)
        return filed;
    while (!l->done && r->pending.len < PENDING && loop_now() < until && (got = source_next(l->source, &item, 0, &e)) == SOURCE_ITEM) {
        enum pipeline_status status = pipeline_item(l->pipeline, &item, &e);
        if (item.type == SOURCE_BATCH)
            together_batch(&r->together, &r->run.peers.items[item.node]);
        took(r, l, status, &e);
    }
    if (!l->done && !scroll_ahead(l->source))
        took(r, l, keep_order(r, l, &e), &e);
    if (!l->done)
        took(r, l, together_step(&r->together, &e), &e);
    pipeline_flush(l->pipeline);
    if (scroll_missed(l->source) > r->missed) {
        ctx_warn(r->base.ctx, "%llu events were not shown: they came too fast", (unsigned long long)(scroll_missed(l->source) - r->missed));
        r->missed = scroll_missed(l->source);
    }
    throttle(r);
    return filed || (got == SOURCE_ITEM && r->pending.len < PENDING);
}

/* After something that took its time: what came meanwhile is captured, and nobody wants to see it run past. */
void repl_show_go_on(struct repl *r)
{
    if (!r->live || scroll_ahead(r->live->source) < MEANWHILE)
        return;
    repl_show_live(r, true);
    ctx_say(r->base.ctx, "what came meanwhile is captured; :as text shows it");
}

/* Whole lines, and no more than the terminal takes in a moment. */
void repl_print(struct repl *r)
{
    size_t sent = out_backlog(r->base.ctx->out, 0), n = r->pending.len;

    if (!n || r->held || sent >= ON_ITS_WAY)
        return;
    if (n > ON_ITS_WAY) {
        const char *line = memrchr(r->pending.data, '\n', ON_ITS_WAY);
        if (!line)
            line = memchr(r->pending.data, '\n', n);
        n = line ? (size_t)(line - r->pending.data) + 1 : n;
    }
    if (r->base.line)
        line_above(r->base.line, (struct str){r->pending.data, n});
    else
        out_write(r->base.ctx->out, r->pending.data, n);
    memmove(r->pending.data, r->pending.data + n, r->pending.len - n);
    r->pending.len -= n;
}

/* ---- of what is there ---- */

/* Reads to the end of what there is now, serving everything meanwhile. False: it was interrupted, or failed. */
static bool catch_up(struct repl *r, struct reel *reel, int *ret_status)
{
    uint64_t end = scroll_end(r->base.scroll);
    struct source_item item;
    struct err e;
    bool closed;

    while (scroll_place(reel->source) < end && source_next(reel->source, &item, 0, &e) == SOURCE_ITEM) {
        enum pipeline_status status = pipeline_item(reel->pipeline, &item, &e);
        if (status == PIPELINE_FAILED || show_ended(&reel->show, &closed, &e)) {
            *ret_status = repl_fail(&r->base, &e);
            return false;
        }
        repl_step(&r->base, 0);
        while (r->pending.len > PENDING && !r->base.ctx->interrupts)
            repl_step(&r->base, -1);
        if (repl_interrupted(&r->base) || r->base.leaving)
            return false;
    }
    return true;
}

void repl_catch_up(struct repl *r)
{
    int64_t until = loop_now() + CATCH_UP_MS;
    uint64_t end = scroll_end(r->base.scroll);

    while (r->live && !r->live->done && scroll_place(r->live->source) < end && loop_now() < until && !r->base.ctx->interrupts && !r->base.leaving)
        repl_step(&r->base, loop_now() + 10);
}

/* What is on its way to the terminal comes before what follows; what comes meanwhile stays in the scrollback. */
void repl_pause(struct repl *r)
{
    r->paused = true;
    while (r->pending.len && !r->base.ctx->interrupts && !r->base.leaving)
        repl_step(&r->base, -1);
}

int repl_show_once(struct repl *r, const struct view_opts *view, const char *file)
{
    struct reel *reel;
    struct err e;
    int status = 0;

    reel = reel_new(r, view, file ? TO_FILE : TO_US, file, false, &e);
    if (!reel)
        return repl_fail(&r->base, &e);
    repl_pause(r);
    show_begin(&reel->show);
    if (catch_up(r, reel, &status)) {
        if (scroll_missed(reel->source))
            ctx_warn(r->base.ctx, "%llu events are not in it: others that came meanwhile took their place (--scrollback)",
                     (unsigned long long)scroll_missed(reel->source));
        pipeline_end(reel->pipeline);
        repl_pause(r);
        status = show_flush(&reel->show, r->base.ctx, status);
    }
    r->paused = false;
    reel_free(reel);
    return status;
}

/* ---- in place ---- */

static void frame(struct repl *r, unsigned rows, unsigned cols)
{
    struct buf b = {0};
    const char *at = r->pending.data, *end = at + r->pending.len;

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
    out_take(r->base.ctx->out, &b);
    buf_release(&b);
    buf_clear(&r->pending);
}

int repl_show_screen(struct repl *r, const struct view_opts *view)
{
    struct reel *reel;
    struct err e;
    int status = 0, key;

    reel = reel_new(r, view, TO_US, NULL, false, &e);
    if (!reel)
        return repl_fail(&r->base, &e);
    repl_pause(r);
    r->held = r->screen = true;
    out_write(r->base.ctx->out, "\033[?1049h\033[?25l", 14);
    for (bool going = true; going;) {
        int64_t next = loop_now() + REDRAW_MS;
        going = catch_up(r, reel, &status);
        for (size_t i = 0; i < r->run.peers.count; i++) /* what is counted need not wait for its place */
            pipeline_passed(reel->pipeline, (unsigned)i, INT64_MAX, INT64_MAX, &e);
        buf_clear(&r->pending);
        pipeline_snapshot(reel->pipeline);
        buf_cstr(&r->pending);
        frame(r, line_height(r->base.line), line_width(r->base.line));
        do { /* keys are read, however much there was */
            repl_step(&r->base, going ? next : 0);
            while (going && (key = line_key(r->base.line)) >= 0) /* what is typed behind them is for the prompt */
                going = key != 'q' && key != 'Q' && key != 4;
            going = going && !repl_interrupted(&r->base) && !r->base.leaving;
        } while (going && loop_now() < next);
    }
    out_write(r->base.ctx->out, "\033[?25h\033[?1049l", 14);
    r->paused = r->held = r->screen = false;
    reel_free(reel);
    line_above(r->base.line, buf_view(&r->aside));
    buf_clear(&r->aside);
    repl_show_go_on(r);
    return status;
}
