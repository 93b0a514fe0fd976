/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot_files.h"

#include <stdlib.h>
#include <string.h>

#include "../events/scroll.h"
#include "../ground/mem.h"
#include "../ground/number.h"
#include "snapshot_command.h"
#include "snapshot_round.h"

/* Limit for the bytes of events that wait for the files of an earlier snapshot. */
#define WAITING_MOST ((size_t)64 << 20)

struct snapshot_files {
    struct snapshot_files_options o;
    struct view_opts view; /* a copy of the options; its `outputs` are the names of the current files, which it owns */
    struct scroll *scroll;
    struct source *reader;
    struct snapshot_command *command, *trace; /* NULL: none */
    char *node;                               /* name of a traced node, for the programs; NULL: unknown */
    struct snapshot_round round;
    uint64_t count;  /* number of snapshots that have ended */
    uint64_t number; /* number of the last snapshot that has files */
    bool due;        /* a snapshot has ended, and its files are not complete yet */
    /*
     * `pipeline`: fills the files of a snapshot; NULL: no files are open. `ended`: the files are complete, and the
     * threads of the outputs write them.
     */
    struct pipeline *pipeline;
    struct outputs outputs;
    bool opened, ended;
};

/* ---- names ---- */

static char *numbered_name(const char *pattern, uint64_t number)
{
    struct buf b = {0};

    snapshot_put_numbered(&b, (struct str){pattern, strlen(pattern)}, number);
    char *name = mem_strndup(b.data, b.len);
    buf_release(&b);
    return name;
}

static void forget_names(struct snapshot_files *f)
{
    for (size_t i = 0; i < f->view.outputs.count; i++)
        free((char *)f->view.outputs.items[i]);
    texts_release(&f->view.outputs);
}

static void make_names(struct snapshot_files *f, uint64_t number)
{
    const struct texts *patterns = &f->o.view->outputs;

    forget_names(f);
    for (size_t i = 0; i < patterns->count; i++)
        texts_add(&f->view.outputs, numbered_name(patterns->items[i], number));
}

/*
 * Returns the name of a further file in the directory of the first file: with `end` for the extension, crash-2.etr
 * becomes crash-2.stacks.txt. NULL: snapshots have no files.
 */
static char *name_beside(const struct snapshot_files *f, const char *end)
{
    const struct texts *patterns = &f->o.view->outputs;
    struct buf b = {0};

    if (!patterns->count)
        return NULL;
    char *name = numbered_name(patterns->items[0], snapshot_files_number(f));
    buf_add(&b, name, strlen(name) - sink_extension_length(name));
    buf_puts(&b, end);
    free(name);
    name = mem_strndup(b.data, b.len);
    buf_release(&b);
    return name;
}

/* ---- files ---- */

static void release_files(struct snapshot_files *f)
{
    pipeline_free(f->pipeline);
    f->pipeline = NULL;
    if (f->opened)
        outputs_close(&f->outputs);
    f->opened = f->ended = false;
}

static bool open_files(struct snapshot_files *f, struct err *e)
{
    make_names(f, ++f->number);
    if (!outputs_files(&f->outputs, f->o.ctx, &f->view, e))
        return false;
    f->opened = true;
    struct pipeline_options options = outputs_pipeline(&f->outputs, f->o.exprs, f->o.nwheres);
    options.specs = f->o.exprs->specs;
    options.nspecs = f->o.exprs->count;
    f->pipeline = pipeline_new(&options, e);
    if (!f->pipeline)
        return false;
    outputs_begin(&f->outputs);
    f->o.announce(f->o.data, f->pipeline);
    return true;
}

/* Writes the batches and notes that the nodes have sent to the files, and releases their memory. */
static bool fill_files(struct snapshot_files *f, struct err *e)
{
    struct source_item item;
    enum pipeline_status status = PIPELINE_MORE;

    while (status != PIPELINE_FAILED && source_next(f->reader, &item, 0, e) == SOURCE_ITEM)
        status = pipeline_item(f->pipeline, &item, e);
    scroll_clear(f->scroll, scroll_place(f->reader));
    pipeline_flush(f->pipeline);
    return status != PIPELINE_FAILED;
}

static void complete_files(struct snapshot_files *f)
{
    const uint64_t missed = scroll_missed(f->reader);

    f->due = false;
    if (missed)
        ctx_warn(f->o.ctx, "%llu events are not in the files of snapshot %llu: they came too fast",
                 (unsigned long long)missed, (unsigned long long)f->number);
    pipeline_end(f->pipeline);
    f->ended = true;
    source_close(f->reader);
    f->reader = scroll_read(f->scroll, true);
}

/* Reports that the files are written, and runs the command of --then. */
static void tell_files(struct snapshot_files *f)
{
    const struct totals *t = pipeline_totals(f->pipeline);
    struct scroll_snapshots now;
    struct buf b = {0};

    scroll_snapshots(f->scroll, &now);
    buf_printf(&b, "snapshot %llu: %llu event%s, ", (unsigned long long)f->number, (unsigned long long)t->shown,
               PLURAL(t->shown));
    buf_puts(&b, "reaches back ");
    if (now.reach_us < 0) {
        buf_puts(&b, f->number > 1 ? "to the snapshot before" : "to the beginning");
    } else {
        print_duration(&b, MIN(now.reach_us, INT64_MAX / 1000) * 1000);
    }
    for (size_t i = 0; i < f->view.outputs.count; i++)
        buf_printf(&b, ", %s", f->view.outputs.items[i]);
    ctx_say(f->o.ctx, "%s", buf_cstr(&b));
    buf_release(&b);
    snapshot_command_run(f->command, f->number, f->view.outputs.items[0], f->node);
}

/* Reports and closes the files once they are written. Returns false, with an error, if writing failed. */
static bool look_at_writers(struct snapshot_files *f, struct err *e)
{
    bool closed;

    if (outputs_ended(&f->outputs, &closed, e) && !closed)
        return false;
    if (!f->ended || outputs_backlog(&f->outputs, 0))
        return true;
    tell_files(f);
    release_files(f);
    return true;
}

/* ---- snapshots of several nodes ---- */

static void look_at_snapshots(struct snapshot_files *f, bool last)
{
    if (!snapshot_round_update(&f->round) || last || !snapshot_round_ends(&f->round))
        return;
    f->due = true;
    f->count++;
}

void snapshot_files_asked(struct snapshot_files *f, unsigned node, bool begins)
{
    if (f)
        snapshot_round_asked(&f->round, node, begins);
}

bool snapshot_files_begins(struct snapshot_files *f)
{
    return f && snapshot_round_begins(&f->round);
}

bool snapshot_files_lacks(const struct snapshot_files *f, unsigned node)
{
    return snapshot_round_lacks(&f->round, node);
}

/*
 * Returns the number of the snapshot whose files are open, or else of the next one. If the user requests a snapshot,
 * its files are open before the snapshot begins. `due`: the next number belongs to a snapshot that has ended and still
 * waits for its files.
 */
uint64_t snapshot_files_number(const struct snapshot_files *f)
{
    if (!f->o.view->outputs.count)
        return f->count + 1;
    return f->pipeline && !f->ended ? f->number : f->number + 1 + f->due;
}

char *snapshot_files_stacks(const struct snapshot_files *f)
{
    return name_beside(f, ".stacks.txt");
}

void snapshot_files_trace(struct snapshot_files *f)
{
    char *file = name_beside(f, ".then.etr");

    snapshot_command_run(f->trace, snapshot_files_number(f), file, f->node);
    free(file);
}

void snapshot_files_names_node(struct snapshot_files *f, const char *node)
{
    if (f && !f->node)
        f->node = mem_strndup(node, strlen(node));
}

uint64_t snapshot_files_count(const struct snapshot_files *f)
{
    return f->count;
}

/* ---- the trace ---- */

struct snapshot_files *snapshot_files_new(const struct snapshot_files_options *o, struct err *e)
{
    struct snapshot_files *f = mem_zalloc(sizeof(*f));

    f->o = *o;
    f->view = *o->view;
    f->view.outputs = (struct texts){0};
    f->scroll = scroll_new(WAITING_MOST);
    scroll_of_recorders(f->scroll, SCROLL_ONE_BY_ONE);
    snapshot_round_init(&f->round, f->scroll);
    f->reader = scroll_read(f->scroll, true);
    f->command = snapshot_command_exec(o->ctx, &o->limit->ring.then);
    f->trace = snapshot_command_trace(o->ctx, &o->limit->ring.then, o->node, o->limit);
    make_names(f, 1);
    for (size_t i = 0; i < f->view.outputs.count; i++)
        if (!outputs_require_file(&f->view, f->view.outputs.items[i], e)) {
            snapshot_files_free(f);
            return NULL;
        }
    return f;
}

void snapshot_files_free(struct snapshot_files *f)
{
    if (!f)
        return;
    release_files(f);
    snapshot_command_free(f->command);
    snapshot_command_free(f->trace);
    free(f->node);
    source_close(f->reader);
    scroll_free(f->scroll);
    forget_names(f);
    free(f);
}

bool snapshot_files_batch(struct snapshot_files *f, unsigned node, struct str bytes, struct err *e)
{
    return !f || scroll_batch(f->scroll, node, bytes, e);
}

void snapshot_files_note(struct snapshot_files *f, unsigned node, struct str bytes)
{
    if (f)
        scroll_note(f->scroll, node, bytes);
}

bool snapshot_files_step(struct snapshot_files *f, bool last, struct err *e)
{
    if (!f || (f->pipeline && !look_at_writers(f, e)))
        return !f;
    look_at_snapshots(f, last);
    if (!f->o.view->outputs.count) {
        scroll_clear(f->scroll, scroll_end(f->scroll));
        if (f->due)
            snapshot_command_run(f->command, f->count, NULL, f->node);
        f->due = false;
        return true;
    }
    if (f->ended || (!f->round.going && !f->due))
        return true;
    if ((!f->pipeline && !open_files(f, e)) || !fill_files(f, e))
        return false;
    if (f->due)
        complete_files(f);
    return true;
}

size_t snapshot_files_backlog(const struct snapshot_files *f, size_t enough)
{
    return f && f->opened ? outputs_backlog(&f->outputs, enough) : 0;
}

int snapshot_files_end(struct snapshot_files *f, int status)
{
    struct err e;

    if (!f)
        return status;
    scroll_end_runs(f->scroll);
    for (int i = 0; i < 2; i++) { /* first complete the files that are open, then those of a later snapshot */
        if (!snapshot_files_step(f, true, &e))
            return status ? status : ctx_fail(f->o.ctx, &e);
        if (!f->pipeline)
            continue;
        if (!f->ended) {
            complete_files(f);
            f->round.going = false;
        }
        status = outputs_flush(&f->outputs, f->o.ctx, status);
        if (!outputs_backlog(&f->outputs, 0))
            tell_files(f);
        release_files(f);
    }
    if (f->round.going && !f->o.view->outputs.count)
        snapshot_command_run(f->command, f->count + 1, NULL, f->node);
    snapshot_command_wait(f->command);
    snapshot_command_wait(f->trace);
    return status;
}
