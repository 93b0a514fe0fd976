/* SPDX-License-Identifier: Apache-2.0 */
#include "outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../events/recfile.h"
#include "../events/recpack.h"
#include "../ground/mem.h"
#include "../ground/near.h"
#include "../ground/tty.h"
#include "../views/fields.h"
#include "habits.h"
#include "together.h"

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

static void ack_output(void *owner)
{
    out_ack(owner);
}

static const struct sink_type *type_by_name(const char *name, struct err *e)
{
    const struct sink_type *type = sink_by_name(name);
    struct near near = near_start(name, strlen(name));

    if (type)
        return type;
    for (const struct sink_type *const *t = sink_types; *t; t++)
        near_try(&near, (*t)->name);
    err_set(e, ERR_USAGE, "unknown view '%s'", name);
    const struct sink_type *meant = habit_view((struct str){name, strlen(name)});
    if (meant || near.best) {
        err_hint(e, "did you mean %s?", meant ? meant->name : near.best);
    } else {
        struct buf list = {0};
        for (const struct sink_type *const *t = sink_types; *t; t++)
            buf_printf(&list, " %s", (*t)->name);
        err_hint(e, "one of:%s", buf_cstr(&list));
        buf_release(&list);
    }
    return NULL;
}

/* Returns the view that shows tables of counted events in the same format; without such a view, `type` itself. */
static const struct sink_type *outputs_table_of(const struct sink_type *type)
{
    static const char *const forms[][2] = {{"text", "table"},
                                           {"json", "tablejson"},
                                           {"csv", "tablecsv"},
                                           {"tsv", "tabletsv"}};

    for (size_t i = 0; type && i < ARRAY_LEN(forms); i++)
        if (!strcmp(type->name, forms[i][0]))
            return sink_by_name(forms[i][1]);
    return type;
}

/* Returns the view that the options name; NULL: none. */
static const struct sink_type *named_view(const struct view_opts *o)
{
    const char *name = o->as ? o->as : o->json ? "json" : o->summary ? "summary" : NULL;

    return name ? sink_by_name(name) : NULL;
}

/*
 * Returns the view of a file; NULL: none. `as` is the view of standard output, or NULL. It decides if several views
 * have the extension. A file with a text extension (.txt, .log) gets the view `as`. So does a file with an unknown
 * extension, if the options name a view.
 */
static const struct sink_type *type_of_file(const struct view_opts *o, const char *path, const struct sink_type *as)
{
    const struct sink_type *type = sink_by_file(path, as);

    if (type ? as && type == sink_by_name("text") : named_view(o) != NULL)
        type = as;
    return o->tables && type != as ? outputs_table_of(type) : type;
}

static void outputs_add(struct outputs *s, struct out *out, const struct sink_type *type, struct look look)
{
    struct view *v = &s->views[s->count];

    if (type->flags & SINK_RAW)
        out_pack(out, &recpack);
    *v = (struct view){.type = type, .look = look, .write = hand_over, .output = out};
    s->outs[s->count] = out;
    s->wakes[s->count] = (struct loop_fd){.fd = out_fd(out), .want_read = true, .ready = ack_output, .owner = out};
    loop_add(s->loop, &s->wakes[s->count]);
    s->count++;
}

/* Opens a recording. With -a, continues an existing one after its last complete block; *ret_append is then true. */
static struct out *open_recording(const char *path, bool append, bool *ret_append, struct err *e)
{
    struct recfile_before before;
    struct buf header = {0};
    int fd = recfile_create(path, append, &before, e);

    if (fd < 0)
        return NULL;
    struct out *o = out_new(fd, true, path);
    *ret_append = before.whole;
    if (before.old)
        recfile_header(&header);
    out_continues(o, before.whole, buf_view(&header));
    buf_release(&header);
    return o;
}

bool outputs_same_file(const struct stat *a, const struct stat *b)
{
    return S_ISREG(a->st_mode) && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * Returns true, with an error, if another output already writes to the file, because the two would overwrite each
 * other.
 */
static bool reject_second_output(const struct outputs *s, const char *path, struct err *e)
{
    struct stat st, own;

    if (stat(path, &own))
        return false;
    for (size_t i = 0; i < s->count; i++) {
        const char *file = s->views[i].look.file;
        if ((file ? stat(file, &st) : fstat(STDOUT_FILENO, &st)) || !outputs_same_file(&st, &own))
            continue;
        err_set(e, ERR_USAGE, file ? "-o %s is given twice" : "standard output already goes to %s", path);
        return true;
    }
    return false;
}

static bool no_view(const char *path, struct err *e)
{
    err_set(e, ERR_USAGE, "no view has the file extension of %s", path);
    err_hint(e, ".etr records, .json is JSON lines, .svg and .html are flame graphs; --as names the view of any other");
    return false;
}

static bool add_file(struct outputs *s, const struct view_opts *o, const struct sink_type *type, const char *path,
                     struct look look, struct err *e)
{
    if (!type)
        return no_view(path, e);
    if (s->count == OUTPUTS_MAX)
        return err_set(e, ERR_USAGE, "at most %d outputs", OUTPUTS_MAX - 1);
    if (o->append && (type->flags & SINK_WHOLE))
        return err_set(e, ERR_USAGE, "-a cannot append to %s: the file is a single document", path);
    if (reject_second_output(s, path, e))
        return false;
    const bool fresh = access(path, F_OK) && errno == ENOENT;
    struct out *out =
        (type->flags & SINK_RAW) ? open_recording(path, o->append, &look.append, e) : out_create(path, o->append, e);
    if (!out)
        return false;
    if (fresh && !o->append) /* with -a another etrace may write to it meanwhile */
        out_is_new(out);
    look.colour = false;
    look.width = 0;
    look.file = path;
    outputs_add(s, out, type, look);
    return true;
}

/*
 * Returns true if a file gets this view, and the view appears only at the end, so that standard output does not need
 * it.
 */
static bool goes_to_a_file(const struct view_opts *o, const struct texts *files, const struct sink_type *type)
{
    for (size_t i = 0; i < files->count && !(type->flags & SINK_LINES); i++)
        if (type_of_file(o, files->items[i], type) == type)
            return true;
    return false;
}

/* Returns true if a file gets a page or a profile. The user then expects no lines on the terminal. */
static bool has_document(const struct view_opts *o, const struct texts *files)
{
    for (size_t i = 0; i < files->count; i++) {
        const struct sink_type *type = type_of_file(o, files->items[i], NULL);
        if (type && !(type->flags & (SINK_LINES | SINK_RAW)))
            return true;
    }
    return false;
}

/*
 * Returns the first view with the flag: of the opened outputs, or of any -o FILE, which another struct outputs may
 * open. `as` is the view of standard output, which a text file shares. NULL: no view has the flag.
 */
static const struct sink_type *find_view(const struct outputs *s, const struct view_opts *o, const struct sink_type *as,
                                         unsigned flag)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->views[i].type->flags & flag)
            return s->views[i].type;
    const struct texts *const names[] = {&o->outputs, &o->numbered};
    for (size_t n = 0; n < ARRAY_LEN(names); n++)
        for (size_t i = 0; i < names[n]->count; i++) {
            const struct sink_type *type = type_of_file(o, names[n]->items[i], as);
            if (type && type->flags & flag)
                return type;
        }
    return NULL;
}

void outputs_split(const struct texts *names, struct texts *ret_plain, struct texts *ret_numbered)
{
    for (size_t i = 0; i < names->count; i++)
        texts_add(strstr(names->items[i], "%n") ? ret_numbered : ret_plain, names->items[i]);
}

bool outputs_require_file(const struct view_opts *o, const char *path, struct err *e)
{
    const struct sink_type *type = type_of_file(o, path, named_view(o));
    const char *slash = strrchr(path, '/');
    char *directory = slash ? mem_strndup(path, (size_t)(slash - path) + 1) : NULL;
    const bool can = !access(directory ? directory : ".", W_OK | X_OK);
    const int why = errno;

    free(directory);
    if (!type)
        return no_view(path, e);
    return can || err_set(e, ERR_USAGE, "%s: %s", path, strerror(why));
}

bool outputs_wait(const struct outputs *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->own && s->outs[i] == s->own)
            return !(s->views[i].type->flags & SINK_LINES);
    return false;
}

bool outputs_shows(const struct view_opts *o, const char *usual, const char *item)
{
    const struct sink_type *type = sink_by_name(o->as ? o->as : usual);

    return type && type->item && !strcmp(type->item, item);
}

void outputs_of_items(struct view_opts *o, const char *item)
{
    const bool json = !o->as && o->json && !o->summary;
    const struct sink_type *type = json ? sink_of_item(item, "json") : o->as ? sink_of_item(item, o->as) : NULL;

    if (type)
        o->as = type->name;
    o->json = o->json && !json;
}

bool outputs_makes_sense(const struct view_opts *o, struct err *e)
{
    return TOGETHER(e, KNOWN(INVERT, o->invert), KNOWN(GREP, o->greps.count), KNOWN(APPEND, o->append),
                    KNOWN(OUTPUT, o->outputs.count));
}

bool outputs_fit(const struct view_opts *o, bool counts, struct err *e)
{
    const struct sink_type *type = o->as ? sink_by_name(o->as) : NULL;

    return TOGETHER(e, KNOWN_TEXT(TABLE, type && type->flags & SINK_ROWS ? o->as : NULL), KNOWN(COUNTS, counts));
}

/* Rejects options that name different views for standard output. */
static bool check_options(const struct view_opts *o, struct err *e)
{
    return TOGETHER(e, KNOWN(AS, o->as), KNOWN(JSON, o->json), KNOWN(SUMMARY, o->summary));
}

/*
 * Rejects options that no view reads. If a view makes one item of several events, also rejects options that select or
 * count single events.
 */
static bool check_look(const struct outputs *s, const struct view_opts *o, const struct sink_type *as, struct err *e)
{
    const struct sink_type *pairs = find_view(s, o, as, SINK_PAIRS);

    return TOGETHER(e, KNOWN(FIELDS, o->fields), KNOWN(FORMAT, o->format), KNOWN(SORT, o->sort && !o->settings),
                    KNOWN(SORT_VIEW, find_view(s, o, as, SINK_SORTS)),
                    KNOWN(FIELDS_VIEW, find_view(s, o, as, SINK_FIELDS)),
                    KNOWN(FORMAT_VIEW, find_view(s, o, as, SINK_FORMAT)), KNOWN_TEXT(PAIRS, pairs ? pairs->item : NULL),
                    KNOWN_TEXT(SELECT, o->wheres.count  ? "-e"
                                       : o->greps.count ? "-g"
                                                        : NULL),
                    KNOWN(BY, o->by));
}

static void copy_greps(struct outputs *s, const struct view_opts *o)
{
    s->greps = mem_zalloc((o->greps.count + 1) * sizeof(*s->greps));
    for (; s->ngreps < o->greps.count; s->ngreps++)
        s->greps[s->ngreps] = (struct grep){.regex = o->greps.items[s->ngreps], .invert = o->invert};
}

/* Returns the display options that all views share. */
static struct look look_of(const struct view_opts *o)
{
    return (struct look){
        .time = (enum time_style)o->time,
        .terms = (enum terms_style)o->terms,
        .fields = o->fields,
        .format = o->format,
        .sort = {o->sort, o->turn},
        .screen = o->screen,
        .servers = o->servers,
        .deaths = o->deaths,
    };
}

static bool add_files(struct outputs *s, const struct view_opts *o, const struct sink_type *type, struct look look,
                      struct err *e)
{
    for (size_t i = 0; i < o->outputs.count; i++)
        if (!add_file(s, o, type_of_file(o, o->outputs.items[i], type), o->outputs.items[i], look, e)) {
            outputs_close(s);
            return false;
        }
    copy_greps(s, o);
    return true;
}

bool outputs_files(struct outputs *s, struct ctx *ctx, const struct view_opts *o, struct err *e)
{
    *s = (struct outputs){.loop = &ctx->loop};
    return add_files(s, o, named_view(o), look_of(o), e);
}

bool outputs_file(struct outputs *s, struct ctx *ctx, const struct view_opts *o, const char *as, const char *path,
                  struct err *e)
{
    const struct sink_type *type = as ? type_by_name(as, e) : type_of_file(o, path, NULL);

    *s = (struct outputs){.loop = &ctx->loop};
    if ((as && !type) || !add_file(s, o, type, path, look_of(o), e))
        return false;
    copy_greps(s, o);
    return true;
}

/* Adds the file of view_opts.record instead of standard output. The caller has created the file. */
static bool add_record(struct outputs *s, const struct view_opts *o, const struct sink_type **ret_type, struct err *e)
{
    const int fd = open(o->record, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return err_set(e, ERR_RUN, "cannot write %s: %s", o->record, strerror(errno));
    if (!out_claim(fd, false, o->record, e)) { /* the lock tells readers that the recording is still being written */
        close(fd);
        return false;
    }
    *ret_type = sink_by_name("record");
    outputs_add(s, out_new(fd, true, "the file for the list"), *ret_type, look_of(o));
    return true;
}

/*
 * Adds standard output, unless the view of one of `files` makes it unnecessary. *ret_type gets the view of standard
 * output.
 */
static bool add_own(struct outputs *s, struct ctx *ctx, const struct view_opts *o, const struct texts *files,
                    const char *default_view, const struct sink_type **ret_type, struct err *e)
{
    const char *name = o->as ? o->as : o->json ? "json" : o->summary ? "summary" : default_view;
    bool tty = tty_is(STDOUT_FILENO);
    struct look look = look_of(o);

    look.colour = tty_colors(STDOUT_FILENO, (enum tty_color)o->color);
    look.width = tty ? tty_columns(STDOUT_FILENO) : 0;
    look.width -= look.width > 1 && o->live;
    *s = (struct outputs){.loop = &ctx->loop, .own = ctx->out};
    if (!check_options(o, e))
        return false;
    if (o->record)
        return add_record(s, o, ret_type, e);
    const struct sink_type *type = type_by_name(name, e);
    if (!type)
        return false;
    if (o->tables && !o->as && !o->summary)
        type = outputs_table_of(type);
    const bool filed = goes_to_a_file(o, files, type) || (tty && !named_view(o) && has_document(o, files));
    if (!filed && (type->flags & SINK_BINARY) && tty)
        return err_set(e, ERR_USAGE, "the view '%s' is not for a terminal: use -o FILE, or a pipe", name);
    if (!filed)
        outputs_add(s, ctx->out, type, look);
    *ret_type = type;
    if (check_look(s, o, type, e))
        return true;
    outputs_close(s);
    return false;
}

bool outputs_here(struct outputs *s, struct ctx *ctx, const struct view_opts *o, const char *default_view,
                  struct err *e)
{
    const struct sink_type *type;
    struct texts none = {0};

    if (!add_own(s, ctx, o, &none, default_view, &type, e))
        return false;
    copy_greps(s, o);
    return true;
}

bool outputs_open(struct outputs *s, struct ctx *ctx, const struct view_opts *o, const char *default_view,
                  struct err *e)
{
    const struct sink_type *type;

    return add_own(s, ctx, o, &o->outputs, default_view, &type, e) && add_files(s, o, type, look_of(o), e);
}

struct pipeline_options outputs_pipeline(const struct outputs *s, const struct exprs *exprs, size_t nwheres)
{
    return (struct pipeline_options){
        .views = s->views,
        .nviews = s->count,
        .greps = s->greps,
        .ngreps = s->ngreps,
        .wheres = exprs->wheres,
        .nwheres = nwheres,
        .by = exprs->by,
    };
}

void outputs_begin(struct outputs *s)
{
    for (size_t i = 0; i < s->count; i++)
        out_begin(s->outs[i]);
}

void outputs_close(struct outputs *s)
{
    for (size_t i = 0; i < s->count; i++) {
        loop_remove(s->loop, &s->wakes[i]);
        if (s->outs[i] != s->own)
            out_free(s->outs[i]);
    }
    free(s->greps);
    *s = (struct outputs){0};
}

bool outputs_all(const struct outputs *s, unsigned flag)
{
    for (size_t i = 0; i < s->count; i++)
        if (!(s->views[i].type->flags & flag))
            return false;
    return true;
}

unsigned outputs_properties(const struct outputs *s)
{
    unsigned uses = 0;

    for (size_t i = 0; i < s->count; i++)
        uses |= fields_uses(s->views[i].look.fields, NULL) | fields_uses(NULL, s->views[i].look.format);
    return uses;
}

static bool has_senders(const struct view *v)
{
    const char *format = v->type->flags & SINK_FORMAT ? v->look.format : NULL,
               *fields = v->type->flags & SINK_FIELDS ? v->look.fields : NULL;

    return format || fields ? fields_uses(fields, format) & PROPERTY_NEEDS_SENDER
                            : !(v->type->flags & (SINK_FIGURES | SINK_TIMES | SINK_ANONYMOUS));
}

bool outputs_has_senders(const struct outputs *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (has_senders(&s->views[i]))
            return true;
    return false;
}

size_t outputs_backlog(const struct outputs *s, size_t enough)
{
    size_t most = 0;

    for (size_t i = 0; i < s->count; i++)
        most = MAX(most, out_backlog(s->outs[i], enough));
    return most;
}

bool outputs_ended(const struct outputs *s, bool *ret_closed, struct err *e)
{
    for (size_t i = 0; i < s->count; i++)
        if (out_failed(s->outs[i], ret_closed, e))
            return true;
    return false;
}

int outputs_flush(struct outputs *s, struct ctx *ctx, int status)
{
    struct err e;
    bool closed;
    int64_t patience = ctx_patience(ctx);

    for (size_t i = 0; i < s->count; i++) {
        if (s->outs[i] == s->own)
            continue;
        out_settle(s->outs[i]);
        while (out_backlog(s->outs[i], 0) && ctx_waits(ctx, &patience))
            loop_step(&ctx->loop, patience);
        if (out_failed(s->outs[i], &closed, &e) && !status)
            status = ctx_fail(ctx, &e);
    }
    return status;
}
