/* SPDX-License-Identifier: Apache-2.0 */
#include "browse_trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../events/recfile.h"
#include "../ground/command_line.h"
#include "../ground/mem.h"
#include "../ground/screen.h"
#include "../ground/tty.h"
#include "../trace/together.h"
#include "../views/grid.h"
#include "browse_draw.h"

#define FILE_MOST ((uint64_t)1 << 30) /* limit for the disk space of the file, in bytes */
#define FILE_KEEP (FILE_MOST / 8 * 7) /* bytes that remain when the oldest events are freed */
#define FILE_HEAD ((uint64_t)1 << 20) /* bytes at the beginning that remain, because they contain the request */
#define FIGURES_MS 1000               /* interval between two updates of the counts in the title */

/* ---- the file ---- */

/* Creates a file without a name in a directory. Returns -1 if this fails. */
static int make_unnamed(const char *directory)
{
    char path[4096];
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || snprintf(path, sizeof(path), "%s/etrace-XXXXXX", directory) >= (int)sizeof(path))
        return fd;
    fd = mkostemp(path, O_CLOEXEC); /* fallback for file systems without O_TMPFILE */
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* Creates the file, preferably not in /tmp, which may be in memory. */
static bool make_file(struct browse_trace *b, struct err *e)
{
    const char *given = getenv("TMPDIR");
    const char *const directories[] = {given && *given ? given : "/var/tmp", "/var/tmp", "/tmp"};

    for (size_t i = 0; i < ARRAY_LEN(directories) && b->file < 0; i++)
        b->file = make_unnamed(directories[i]);
    if (b->file < 0) {
        err_set(e, ERR_RUN, "cannot make a file for the list in %s", directories[0]);
        err_hint(e, "TMPDIR names the directory");
        return false;
    }
    snprintf(b->path, sizeof(b->path), "/proc/self/fd/%d", b->file);
    return true;
}

/*
 * Frees the disk space of the oldest segments when the file reaches its limit. Keeps one segment before the first one
 * that the list shows, because a reader of a segment may begin at the checkpoint before it.
 */
static void free_oldest(struct browse_trace *b)
{
    struct browse_recording *of = &b->of;
    size_t first = of->first;

    if (of->bytes - b->freed <= FILE_MOST || b->full)
        return;
    while (first + 1 < of->segments && of->bytes - of->places[first] > FILE_KEEP)
        first++;
    const uint64_t until = first > 1 ? of->places[first - 2] : 0;
    b->full = until <= FILE_HEAD || fallocate(b->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)FILE_HEAD,
                                              (off_t)(until - FILE_HEAD));
    if (b->full)
        return;
    of->first = first;
    b->freed = until;
}

/* ---- the screen ---- */

static void put_title(struct browse_trace *b)
{
    const struct totals *t = b->table.totals;
    uint64_t lost = 0;

    buf_clear(&b->title);
    buf_str(&b->title, buf_view(&b->probes));
    if (t) {
        buf_puts(&b->title, " · ");
        browse_draw_number(&b->title, t->seen);
        buf_puts(&b->title, " events");
        for (size_t i = 0; i < ETW_LOSSES; i++)
            lost += t->lost[i];
    }
    if (lost) {
        buf_puts(&b->title, " · ");
        browse_draw_number(&b->title, lost);
        buf_puts(&b->title, " lost");
    }
    if (b->freed)
        buf_puts(&b->title, " · the list has the last 1 GB");
    browse_screen_title(b->screen, buf_cstr(&b->title));
}

/* Reads the request at the beginning of the file. Returns false if the file has no complete block yet. */
static bool read_request(struct browse_trace *b)
{
    struct source_item item;
    struct err ignored;
    struct source *s = recfile_open(b->path, &ignored);
    bool ok = false;

    if (!s)
        return false;
    recfile_bound(s, (uint64_t)lseek(b->file, 0, SEEK_END));
    if (source_next(s, &item, 0, &ignored) == SOURCE_ITEM) {
        ok = true;
        if (item.type == SOURCE_SPECS)
            buf_str(&b->request, item.bytes);
    }
    source_close(s);
    return ok;
}

/* Opens the screen when the file has its first block. Returns true if the screen is open. */
static bool begin_screen(struct browse_trace *b)
{
    struct browse_filter none;
    struct err e;

    if (b->screen || !read_request(b))
        return b->screen;
    b->filter = (struct browse_filter){.view = b->set.view, .part = &b->part, .request = buf_view(&b->request)};
    if (!browse_growth_begin(&b->growth, &b->of, &e) ||
        !browse_filter_set(&b->filter, NULL, &b->of.filter, &none, &e)) {
        ctx_fail(b->ctx, &e);
        return false;
    }
    b->screen = browse_screen_new(b->ctx, &b->of, &b->filter, &b->options);
    browse_screen_follow(b->screen);
    if (b->refused)
        browse_screen_say(b->screen, "that cannot be traced; the end shows why");
    browse_screen_open(b->screen);
    b->open = true;
    b->refined = b->refused = false;
    put_title(b);
    return true;
}

static void close_screen(struct browse_trace *b)
{
    if (b->open)
        browse_screen_close(b->screen);
    b->open = false;
}

static void turn_came(void *owner)
{
    ((struct browse_trace *)owner)->timer.due = -1; /* screen_draw() sets the next time */
}

static void screen_begin(void *data)
{
    struct browse_trace *b = data;

    b->timer = (struct loop_timer){.due = loop_now(), .run = turn_came, .owner = b};
    loop_start(&b->ctx->loop, &b->timer);
}

/*
 * Draws the screen. When the user leaves the screen, closes it at once, because the nodes may need time to end. Returns
 * false if the trace must end.
 */
static bool screen_draw(void *data, bool fresh)
{
    struct browse_trace *b = data;

    if (!begin_screen(b)) {
        b->timer.due = loop_now() + 20;
        return true;
    }
    if (fresh)
        put_title(b);
    b->timer.due = MAX(browse_screen_turn(b->screen), loop_now());
    free_oldest(b);
    if (browse_screen_done(b->screen))
        close_screen(b);
    return b->open && !b->full;
}

/*
 * Shows a note that the trace has ended. Adds the last of the messages that are kept until the screen is closed,
 * because it tells the reason.
 */
static void say_end(struct browse_trace *b)
{
    static const struct str name = STR("etrace: ");
    struct buf text = {0}, line = {0};
    struct str kept = buf_view(&b->ctx->kept);

    buf_puts(&text, b->full ? "the trace has ended, because its file has 1 GB" : "the trace has ended");
    kept.len -= kept.len && kept.at[kept.len - 1] == '\n';
    for (const char *end; (end = memchr(kept.at, '\n', kept.len));)
        kept = (struct str){end + 1, kept.len - (size_t)(end + 1 - kept.at)};
    grid_plain(&line, kept);
    const size_t begin = line.len >= name.len && !memcmp(line.data, name.at, name.len) ? name.len : 0;
    if (line.len)
        buf_printf(&text, " · %s", buf_cstr(&line) + begin);
    browse_screen_note(b->screen, buf_cstr(&text));
    buf_release(&text);
    buf_release(&line);
}

/* After the trace has ended by itself, shows the list until the user leaves the screen. */
static void show_rest(struct browse_trace *b)
{
    say_end(b);
    put_title(b);
    while (!browse_screen_done(b->screen)) {
        const int64_t next = browse_screen_turn(b->screen);
        if (!browse_screen_done(b->screen))
            loop_step(&b->ctx->loop, next);
    }
    close_screen(b);
}

/* Closes the screen, and prints the last lines, so that they stay on the terminal. */
static void screen_end(void *data)
{
    struct browse_trace *b = data;
    struct buf last = {0};

    loop_stop(&b->ctx->loop, &b->timer);
    if (!b->screen)
        return;
    if (b->open)
        show_rest(b);
    browse_screen_last(b->screen, &last);
    out_take(b->ctx->out, &last);
    buf_release(&last);
    ctx_flush(b->ctx, 0); /* prints the lines before the messages that were kept */
}

/* ---- other probes ---- */

static void probes_release(struct browse_probes *p)
{
    texts_release(&p->words);
    texts_release(&p->files);
    texts_release(&p->procs);
    texts_release(&p->wheres);
    texts_release(&p->nodes);
}

/* Exchanges the settings of the trace and the probes. */
static void probes_swap(struct browse_settings *set, struct browse_probes *p)
{
    const struct browse_probes new = *p;

    p->words = *set->words;
    p->files = set->what->files;
    p->procs = set->what->procs;
    p->wheres = set->view->wheres;
    p->nodes = set->node->nodes;
    p->cluster = set->node->cluster;
    *set->words = new.words;
    set->what->files = new.files;
    set->what->procs = new.procs;
    set->view->wheres = new.wheres;
    set->node->nodes = new.nodes;
    set->node->cluster = new.cluster;
}

static void probes_drop(struct browse_trace *b)
{
    struct browse_probes *p = b->before;

    b->before = p->before;
    probes_release(p);
    free(p);
}

static void texts_copy(struct texts *to, const struct texts *from)
{
    for (size_t i = 0; i < from->count; i++)
        texts_add(to, from->items[i]);
}

/*
 * Reports whether another trace can follow with the same options. If not, *ret_why is the reason. The next trace would
 * overwrite the files of -o, and conditions on a whole trace would see only a part of it.
 */
static bool can_change(const struct browse_trace *b, const char **ret_why)
{
    const struct browse_settings *set = &b->set;
    const char *cookie = set->node->cookie_file;

    *ret_why = set->view->outputs.count                                   ? "with -o, the probes cannot change"
               : set->asserts->expects.count || set->asserts->fails.count ? "with --expect or --fail-on, the probes "
                                                                            "cannot change"
               : cookie && !strcmp(cookie, "-") ? "the cookie from standard input is not kept, so "
                                                  "the probes cannot change"
                                                : NULL;
    return !*ret_why;
}

/* Appends a copy of the text that lives as long as the list. */
static void texts_keep(struct browse_trace *b, struct texts *to, const struct buf *text)
{
    texts_add(to, arena_strndup(&b->arena, text->data, text->len));
}

/*
 * Makes the settings those of the probe. The options that select events stay, except that a probe of one process has no
 * other process and no other node.
 */
static bool refine_trace(void *data, struct again *found, enum again_probe probe, const char **ret_why)
{
    struct browse_trace *b = data;
    const bool of_process = probe == AGAIN_PROCESS;
    struct browse_probes *p;
    struct texts words = {0};

    if (!can_change(b, ret_why))
        return false;
    p = mem_zalloc(sizeof(*p));
    again_expressions(found, &words);
    for (size_t i = 0; i < words.count; i++)
        texts_add(&p->words, arena_strndup(&b->arena, words.items[i], strlen(words.items[i])));
    texts_release(&words);
    texts_copy(&p->wheres, &b->set.view->wheres);
    if (probe == AGAIN_SLOWER)
        texts_keep(b, &p->wheres, &found->slower);
    if (of_process)
        texts_keep(b, &p->procs, &found->process);
    else
        texts_copy(&p->procs, &b->set.what->procs);
    const bool of_node = of_process && found->node.len && (b->set.node->cluster || b->set.node->nodes.count > 1);
    if (of_node)
        texts_keep(b, &p->nodes, &found->node);
    else
        texts_copy(&p->nodes, &b->set.node->nodes);
    p->cluster = b->set.node->cluster && !of_node;
    p->before = b->before;
    b->before = p;
    b->changed = b->refined = true;
    probes_swap(&b->set, p);
    return true;
}

static bool widen_trace(void *data, const char **ret_why)
{
    struct browse_trace *b = data;

    if (!b->before) {
        *ret_why = "nothing else was traced before";
        return false;
    }
    probes_swap(&b->set, b->before);
    probes_drop(b);
    b->changed = true;
    b->refined = false;
    return true;
}

/* ---- the trace ---- */

static bool check_options(const struct view_opts *view, struct err *e)
{
    const char *other = view->as        ? "--as"
                        : view->json    ? "--json"
                        : view->summary ? "-c"
                        : view->by      ? "--by"
                        : view->fields  ? "--fields"
                        : view->format  ? "--format"
                        : view->sort    ? "--sort"
                                        : NULL;

    if (!TOGETHER(e, KNOWN(BROWSE, true), KNOWN_TEXT(OTHER_VIEW, other)))
        return false;
    if (screen_can(STDIN_FILENO, STDOUT_FILENO))
        return true;
    return err_set(e, ERR_USAGE, "--browse needs a terminal; without it, the events are lines of text");
}

/* Describes the probes for the title. */
static void put_probes(struct browse_trace *b)
{
    const struct browse_settings *set = &b->set;
    struct command_line c = {0};

    buf_clear(&b->probes);
    for (size_t i = 0; i < set->words->count; i++)
        buf_printf(&b->probes, "%s%s", i ? "  " : "", set->words->items[i]);
    for (size_t i = 0; i < set->what->procs.count; i++) {
        command_line_add(&c, "  -P");
        command_line_word(&c, set->what->procs.items[i]);
    }
    for (size_t i = 0; i < set->view->wheres.count; i++) {
        command_line_add(&c, "  -e");
        command_line_word(&c, set->view->wheres.items[i]);
    }
    buf_puts(&b->probes, command_line_text(&c));
    command_line_release(&c);
}

/* Creates the file of the recording, and fills in the options of its list. */
static bool begin_list(struct browse_trace *b, struct err *e)
{
    struct view_opts *view = b->set.view;

    if (!make_file(b, e))
        return false;
    view->record = b->path;
    texts_add(&b->of.paths, b->path);
    b->of.look = (struct look){.colour = tty_colors(STDOUT_FILENO, (enum tty_color)view->color),
                               .terms = (enum terms_style)view->terms};
    put_probes(b);
    b->options = (struct browse_options){.title = buf_cstr(&b->probes),
                                         .time = (enum time_style)view->time,
                                         .growth = &b->growth,
                                         .data = b,
                                         .refine = refine_trace,
                                         .widen = widen_trace};
    return true;
}

static void end_list(struct browse_trace *b)
{
    if (b->screen)
        browse_screen_free(b->screen);
    browse_filter_release(&b->filter);
    browse_growth_end(&b->growth);
    free(b->of.places);
    texts_release(&b->of.paths);
    if (b->file >= 0)
        close(b->file);
    buf_release(&b->request);
    b->screen = NULL;
    b->file = b->growth.file.fd = -1;
    b->of = (struct browse_recording){0};
    b->filter = (struct browse_filter){0};
    b->freed = 0;
    b->full = false;
}

bool browse_trace_begin(struct browse_trace *b, struct ctx *ctx, const struct browse_settings *set, struct err *e)
{
    *b = (struct browse_trace){.ctx = ctx,
                               .set = *set,
                               .file = -1,
                               .part = {.lets = set->what->lets, .records = set->what->records}};
    arena_init(&b->arena);
    b->growth.file.fd = -1;
    b->table = (struct live_table){.data = b,
                                   .interval_ms = FIGURES_MS,
                                   .open = screen_begin,
                                   .draw = screen_draw,
                                   .close = screen_end};
    return check_options(set->view, e) && begin_list(b, e);
}

bool browse_trace_again(struct browse_trace *b, int *status)
{
    const char *ignored;
    struct err e;

    if (!b->ctx)
        return false;
    if (*status && b->refined) { /* the trace has not begun */
        b->refused = widen_trace(b, &ignored);
        *status = 0;
    }
    if (!b->changed || *status)
        return false;
    b->changed = false;
    end_list(b);
    if (begin_list(b, &e))
        return true;
    *status = ctx_fail(b->ctx, &e);
    return false;
}

void browse_trace_end(struct browse_trace *b)
{
    if (!b->ctx)
        return;
    end_list(b);
    while (b->before)
        probes_drop(b);
    arena_release(&b->arena);
    buf_release(&b->probes);
    buf_release(&b->title);
}
