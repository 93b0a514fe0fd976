#include "show.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../events/recfile.h"
#include "../ground/mem.h"
#include "../ground/near.h"
#include "../ground/tty.h"

static bool hand_over(void *output, struct buf *bytes)
{
    struct err e;
    bool closed;

    if (out_failed(output, &closed, &e)) {
        buf_clear(bytes);
        return false;
    }
    out_take(output, bytes);
    return true;
}

static void woken(void *owner)
{
    out_ack(owner);
}

static const struct sink_type *choose(const char *name, struct err *e)
{
    const struct sink_type *type = sink_by_name(name);
    struct near near = near_start(name, strlen(name));

    if (type)
        return type;
    for (const struct sink_type *const *t = sink_types; *t; t++)
        near_try(&near, (*t)->name);
    err_set(e, ERR_USAGE, "there is no view '%s'", name);
    if (near.best) {
        err_hint(e, "did you mean %s?", near.best);
    } else {
        char list[200] = "";
        for (const struct sink_type *const *t = sink_types; *t; t++) {
            strncat(list, t == sink_types ? "" : " ", sizeof(list) - strlen(list) - 1);
            strncat(list, (*t)->name, sizeof(list) - strlen(list) - 1);
        }
        err_hint(e, "one of: %s", list);
    }
    return NULL;
}

static void add(struct show *s, struct out *out, const struct sink_type *type, struct look look)
{
    struct view *v = &s->views[s->count];

    *v = (struct view){.type = type, .look = look, .write = hand_over, .output = out};
    s->outs[s->count] = out;
    s->wakes[s->count] = (struct loop_fd){.fd = out_fd(out), .want_read = true, .ready = woken, .owner = out};
    loop_add(s->loop, &s->wakes[s->count]);
    s->count++;
}

/* A recording is continued behind its last whole block. */
static struct out *recording(const char *path, bool append, bool *ret_append, struct err *e)
{
    bool fresh;
    int fd = recfile_create(path, append, &fresh, e);

    *ret_append = fd >= 0 && !fresh;
    return fd < 0 ? NULL : out_new(fd, true, path);
}

static bool add_file(struct show *s, const struct view_opts *o, const struct sink_type *type, const char *path, struct look look,
                     struct err *e)
{
    if (!type) {
        err_set(e, ERR_USAGE, "no view writes a file like %s", path);
        err_hint(e, ".etr records, .json and .ndjson are JSON lines, .txt is text");
        return false;
    }
    if (s->count == SHOW_MAX)
        return err_set(e, ERR_USAGE, "at most %d outputs", SHOW_MAX - 1);
    struct out *out = (type->flags & SINK_RAW) ? recording(path, o->append, &look.append, e) : out_create(path, o->append, e);
    if (!out)
        return false;
    look.colour = false;
    look.width = 0;
    add(s, out, type, look);
    return true;
}

static void add_greps(struct show *s, const struct view_opts *o)
{
    s->greps = mem_zalloc((o->greps.count + 1) * sizeof(*s->greps));
    for (; s->ngreps < o->greps.count; s->ngreps++)
        s->greps[s->ngreps] = (struct grep){.regex = o->greps.items[s->ngreps], .invert = o->invert};
}

static enum time_style times(const struct view_opts *o)
{
    return o->utc ? TIME_UTC : o->relative ? TIME_RELATIVE : o->delta ? TIME_DELTA : TIME_LOCAL;
}

bool show_file(struct show *s, struct ctx *ctx, const struct view_opts *o, const char *as, const char *path, bool nodes,
               struct err *e)
{
    const struct sink_type *type = as ? choose(as, e) : sink_by_file(path);

    *s = (struct show){.loop = &ctx->loop, .file_only = true};
    if ((as && !type) || !add_file(s, o, type, path, (struct look){.time = times(o), .nodes = nodes}, e))
        return false;
    add_greps(s, o);
    return true;
}

bool show_open(struct show *s, struct ctx *ctx, const struct view_opts *o, const char *default_view, bool nodes,
               struct err *e)
{
    const char *name = o->as ? o->as : o->json ? "json" : o->summary ? "summary" : default_view;
    bool tty = tty_is(STDOUT_FILENO);
    struct look look = {
        .time = times(o),
        .colour = tty_colors(STDOUT_FILENO, (enum tty_color)o->color),
        .nodes = nodes,
        .width = tty ? tty_columns(STDOUT_FILENO) : 0,
    };

    *s = (struct show){.loop = &ctx->loop};
    if (o->utc + o->relative + o->delta > 1)
        return err_set(e, ERR_USAGE, "--utc, --relative and --delta exclude each other");
    if ((o->as != NULL) + o->json + o->summary > 1)
        return err_set(e, ERR_USAGE, "standard output shows one view: --as, --json and -c exclude each other");
    const struct sink_type *type = choose(name, e);
    if (!type)
        return false;
    if ((type->flags & SINK_BINARY) && tty)
        return err_set(e, ERR_USAGE, "the view '%s' is not for a terminal: use -o FILE, or a pipe", name);
    add(s, ctx->out, type, look);
    for (size_t i = 0; i < o->outputs.count; i++)
        if (!add_file(s, o, sink_by_file(o->outputs.items[i]), o->outputs.items[i], look, e)) {
            show_close(s);
            return false;
        }
    add_greps(s, o);
    return true;
}

void show_close(struct show *s)
{
    for (size_t i = 0; i < s->count; i++) {
        loop_remove(s->loop, &s->wakes[i]);
        if (i > 0 || s->file_only)
            out_free(s->outs[i]);
    }
    free(s->greps);
    *s = (struct show){0};
}

size_t show_backlog(const struct show *s)
{
    size_t most = 0;

    for (size_t i = 0; i < s->count; i++)
        most = MAX(most, out_backlog(s->outs[i]));
    return most;
}

bool show_ended(const struct show *s, bool *ret_closed, struct err *e)
{
    for (size_t i = 0; i < s->count; i++)
        if (out_failed(s->outs[i], ret_closed, e))
            return true;
    return false;
}

int show_flush(struct show *s, struct ctx *ctx, int status)
{
    struct err e;
    bool closed;
    int64_t patience = ctx_patience(ctx);

    for (size_t i = s->file_only ? 0 : 1; i < s->count; i++) {
        while (out_backlog(s->outs[i]) && ctx_waits(patience))
            loop_step(&ctx->loop, patience);
        if (out_failed(s->outs[i], &closed, &e) && !status)
            status = ctx_fail(ctx, &e);
    }
    return status;
}
