/* SPDX-License-Identifier: Apache-2.0 */
/* etrace replay: shows a recording with the same views and filters as a live trace. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../events/ahead.h"
#include "../events/recfile.h"
#include "../events/recmerge.h"
#include "../ground/mem.h"
#include "cmd.h"
#include "recordings.h"
#include "../trace/exprs.h"
#include "../trace/outcome.h"
#include "../trace/assertions.h"
#include "../trace/outputs.h"
#include "../fold/death_choice.h"
#include "../trace/who.h"
#include "../pipeline/recorded_specs.h"

#define IDLE_MS 20
#define BACKLOG_FULL (4u << 20)

struct replay_opts {
    int64_t limit;
    bool all;
    struct texts died;
};

#define ROW(...) OPT_ROW(struct replay_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW('l', "limit", "N", OPT_POSITIVE, limit,
        "stop after N events; a call and its return count once; with --as died, after N exits"),
    ROW(0, "died", "NAME", OPT_TEXTS, died,
        "with --as died, only exits of this process, as etrace died NAME; repeatable"),
    ROW(0, "all", NULL, OPT_FLAG, all, "with --as died, normal exits, too"),
};
static const struct opt_group replay_group = {"What is replayed", rows, ARRAY_LEN(rows)};

/* The recordings as one source, and the last item that was read from the source. */
struct reading {
    struct recordings of;
    struct source *ahead; /* a thread that reads ahead from `of.source`; NULL: there is none */
    enum source_got got;
    struct source_item item;
    struct err err;
};

static void read_next(struct reading *r)
{
    /* Waits for at most IDLE_MS, because a pipe may be slow and the loop must serve signals and outputs meanwhile. */
    r->got = source_next(r->ahead ? r->ahead : r->of.source, &r->item, r->got == SOURCE_NOTHING ? IDLE_MS : 0, &r->err);
}

/* Starts the thread that reads ahead. From now on, only the thread may use the recordings. */
static void begin_ahead(struct reading *r)
{
    if (r->got <= SOURCE_NOTHING)
        r->ahead = ahead_new(r->of.source, r->got == SOURCE_ITEM ? &r->item : NULL);
}

/*
 * Passes r->item and all later items to the pipeline, until the recording ends, the user interrupts, or an output
 * stops. Returns the exit status.
 */
static int feed_pipeline(struct ctx *ctx, struct reading *r, struct pipeline *p, struct outputs *outputs)
{
    struct err e;
    bool closed;

    for (; !ctx->interrupts; read_next(r)) {
        if (r->got == SOURCE_END)
            return 0;
        if (r->got == SOURCE_FAILED) {
            pipeline_cut(p);
            return ctx_fail(ctx, &r->err);
        }
        if (r->got == SOURCE_ITEM) {
            enum pipeline_status status = pipeline_item(p, &r->item, &e);
            if (status == PIPELINE_FAILED)
                return ctx_fail(ctx, &e);
            if (status == PIPELINE_DONE)
                return 0;
        }
        loop_step(&ctx->loop, 0);
        while (outputs_backlog(outputs, BACKLOG_FULL) > BACKLOG_FULL && !ctx->interrupts)
            loop_step(&ctx->loop, -1);
        if (outputs_ended(outputs, &closed, &e))
            return closed ? 0 : ctx_fail(ctx, &e);
    }
    return 0;
}

/*
 * Returns true, with an error, if an output file is also an input. Opening it would empty the recording, or the replay
 * would read its own output without end.
 */
static bool reads_output(const char *path, const struct texts *outputs, struct err *e)
{
    struct stat st, own;

    if (strcmp(path, "-") ? stat(path, &st) : fstat(STDIN_FILENO, &st))
        return false;
    if (!fstat(STDOUT_FILENO, &own) && outputs_same_file(&st, &own)) {
        err_set(e, ERR_USAGE, "standard output goes to the recording that etrace reads");
        return true;
    }
    for (size_t i = 0; i < outputs->count; i++)
        if (!stat(outputs->items[i], &own) && outputs_same_file(&st, &own)) {
            err_set(e, ERR_USAGE, "-o %s is the recording that etrace reads", outputs->items[i]);
            return true;
        }
    return false;
}

static bool read_outputs(const struct texts *paths, const struct texts *outputs, struct err *e)
{
    for (size_t i = 0; i < paths->count; i++)
        if (reads_output(paths->items[i], outputs, e))
            return true;
    return false;
}

static void close_recordings(struct ctx *ctx, struct reading *r)
{
    ahead_close(r->ahead);
    for (size_t i = 0; i < r->of.nfiles; i++) {
        struct recfile_effort effort = recfile_effort(r->of.files[i]);
        ctx_debug(ctx, "recording %zu: %llu bytes read, %llu blocks decompressed", i + 1,
                  (unsigned long long)effort.bytes, (unsigned long long)effort.blocks);
    }
    recordings_close(&r->of);
}

/*
 * Skips to the last checkpoint before --from, so that earlier events need not be read. Does nothing if -o writes a
 * recording, because that recording also needs the batches before --from.
 */
static void skip_to_window(struct reading *r, struct window *w, const struct outputs *outputs)
{
    struct window begun = *w;
    bool stale = true; /* r->item is from before the skip */
    int64_t newest;

    for (size_t i = 0; i < outputs->count; i++)
        if (outputs->views[i].type->flags & SINK_RAW)
            return;
    if (r->got != SOURCE_ITEM || !recordings_begin(&r->of, &begun, &newest))
        return;
    if (!(r->of.nfiles > 1 ? recmerge_seek(r->of.source, newest, &stale) : recfile_seek(r->of.source, newest)))
        return;
    if (stale)
        r->got = SOURCE_NOTHING;
    *w = begun;
}

/* Returns the expressions at the beginning of the recording; NULL: it has none. The caller frees them. */
static struct recorded_specs *first_specs(const struct reading *r)
{
    return r->got == SOURCE_ITEM && r->item.type == SOURCE_SPECS ? recorded_specs_new(r->item.bytes, NULL) : NULL;
}

/* Returns true if the recording was made with probes that count by keys. */
static bool recorded_tables(const struct recorded_specs *specs)
{
    bool counts = false;

    for (size_t i = 0; specs && i < specs->nspecs; i++)
        counts = counts || specs->specs[i]->by;
    return counts;
}

static int replay_recordings(struct ctx *ctx, const struct texts *paths, const struct replay_opts *o,
                             const struct part_opts *part, struct view_opts *view, const struct assert_opts *asserts)
{
    struct what_opts what = {.lets = part->lets, .records = part->records};
    struct texts none = {0};
    struct texts wheres = assertions_texts(&view->wheres, asserts);
    struct exprs exprs;
    struct assertions assertions = {0};
    struct outputs outputs = {0};
    struct pipeline *p = NULL;
    struct reading r = {0};
    struct str request = {"", 0}; /* valid until the next item is read */
    struct window window;
    struct err e;
    int status = 0;

    /*
     * Until the outputs are open, a signal may end the process at once. Searching a large or forged recording can take
     * long.
     */
    ctx_let_die(ctx, true);
    exprs_init(&exprs);
    exprs.find_record = recordings_find_record;
    exprs.find_data = &request;
    exprs.by_text = view->by;
    bool ok = recordings_open(&r.of, paths, &r.err);
    if (ok)
        read_next(&r);
    if (ok && r.got == SOURCE_ITEM && r.item.type == SOURCE_SPECS)
        request = r.item.bytes;
    struct recorded_specs *specs = ok ? first_specs(&r) : NULL;
    view->tables = view->by || recorded_tables(specs);
    ok = ok && r.got != SOURCE_FAILED; /* without a first item, there is nothing to show */
    if (!ok)
        e = r.err;
    ok = ok && outputs_makes_sense(view, &e) && outputs_fit(view, view->tables, &e) &&
         recordings_window(part, paths, view->time == TIME_UTC, &window, &e) &&
         exprs_compile(&exprs, &what, &none, &wheres, 0, &e) &&
         assertions_init(&assertions, asserts, &exprs, view->wheres.count, &e) &&
         assertions_fit(&exprs, view->wheres.count, specs ? specs->specs : NULL, specs && !exprs.by ? specs->nspecs : 0,
                        &e) &&
         !read_outputs(paths, &view->outputs, &e) && outputs_open(&outputs, ctx, view, "text", &e);
    if (ok) {
        skip_to_window(&r, &window, &outputs);
        struct pipeline_options options = outputs_pipeline(&outputs, &exprs, view->wheres.count);
        options.asserts = assertions.asserts;
        options.limit = (uint64_t)o->limit;
        options.window = window;
        p = pipeline_new(&options, &e);
    }
    ctx_let_die(ctx, false);
    if (p) {
        outputs_begin(&outputs);
        begin_ahead(&r);
        status = feed_pipeline(ctx, &r, p, &outputs);
        pipeline_end(p);
        if (!status)
            outcome_rejections(ctx, p);
        status = assertions_status(&assertions, ctx, status);
        status = outputs_flush(&outputs, ctx, status);
    } else {
        status = ctx_fail(ctx, &e);
    }
    pipeline_free(p);
    recorded_specs_free(specs);
    close_recordings(ctx, &r);
    outputs_close(&outputs);
    assertions_release(&assertions);
    texts_release(&wheres);
    exprs_release(&exprs);
    return status;
}

/* Returns false if there is no recording, one has an empty name, or more than one is standard input. */
static bool can_open(const struct texts *paths)
{
    size_t piped = 0;

    for (size_t i = 0; i < paths->count; i++) {
        if (!*paths->items[i])
            return false;
        piped += !strcmp(paths->items[i], "-");
    }
    return paths->count && piped < 2;
}

/* Reads which exits the views of exits show, as `etrace died` does. --limit then counts exits. */
static bool choose_exits(struct replay_opts *o, struct view_opts *view, struct death_choice *ret, struct arena *a,
                         struct err *e)
{
    if (!outputs_shows(view, "text", "exit"))
        return (!o->all && !o->died.count) ||
               err_set(e, ERR_USAGE, "%s needs a view of exits: add --as died", o->all ? "--all" : "--died");
    ret->all = o->all;
    ret->most = (uint64_t)o->limit;
    o->limit = 0;
    view->deaths = ret;
    return who_names(&o->died, "--died", false, a, &ret->names, e);
}

static int cmd_replay_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct replay_opts o = {0};
    struct part_opts part = {0};
    struct view_opts view = VIEW_OPTS_INIT;
    struct assert_opts asserts = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&replay_group, &o},
                             {&part_group, &part},
                             {&view_group, &view},
                             {&assert_group, &asserts},
                             {&talk_group, &talk}};
    struct texts words = {0};
    struct death_choice choice = {0};
    struct arena arena;
    struct err e;
    char **rest;
    int status = 0;

    arena_init(&arena);
    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        if (!choose_exits(&o, &view, &choice, &arena, &e)) {
            status = ctx_fail(ctx, &e);
        } else if (can_open(&words)) {
            status = replay_recordings(ctx, &words, &o, &part, &view, &asserts);
            who_names_warn(ctx, &choice.names, &o.died, "--died ", "exit of");
        } else {
            err_set(&e, ERR_USAGE,
                    words.count > 1 ? "a file name is empty, or standard input is given twice" : "no recording given");
            err_hint(&e, "etrace -o FILE.etr makes one; - is standard input");
            status = ctx_fail(ctx, &e);
        }
    }
    arena_release(&arena);
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const struct opt_group *const groups[] = {&replay_group, &part_group, &view_group,
                                                 &assert_group, &talk_group, NULL};
const struct cmd cmd_replay = {
    .name = "replay",
    .usage = "[OPTIONS] FILE|-...",
    .summary = "Shows recordings",
    .run = cmd_replay_run,
    .groups = groups,
};
