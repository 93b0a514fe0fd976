/* SPDX-License-Identifier: Apache-2.0 */
#include "browse_trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../events/recfile.h"
#include "../ground/mem.h"
#include "../ground/screen.h"
#include "../ground/tty.h"
#include "../trace/together.h"
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
    buf_str(&b->title, buf_view(&b->words));
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
    b->filter = (struct browse_filter){.view = b->view, .part = &b->part, .request = buf_view(&b->request)};
    if (!browse_growth_begin(&b->growth, &b->of, &e) ||
        !browse_filter_set(&b->filter, NULL, &b->of.filter, &none, &e)) {
        ctx_fail(b->ctx, &e);
        return false;
    }
    b->screen = browse_screen_new(b->ctx, &b->of, &b->filter, &b->options);
    browse_screen_follow(b->screen);
    browse_screen_open(b->screen);
    b->open = true;
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
    browse_plain(&line, kept.at, kept.len);
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

bool browse_trace_begin(struct browse_trace *b, struct ctx *ctx, struct view_opts *view, const struct what_opts *what,
                        const struct texts *words, struct err *e)
{
    *b = (struct browse_trace){.ctx = ctx,
                               .view = view,
                               .file = -1,
                               .part = {.lets = what->lets, .records = what->records}};
    b->growth.file.fd = -1;
    if (!check_options(view, e) || !make_file(b, e))
        return false;
    view->record = b->path;
    texts_add(&b->of.paths, b->path);
    b->of.look = (struct look){.colour = tty_colors(STDOUT_FILENO, (enum tty_color)view->color),
                               .terms = (enum terms_style)view->terms};
    for (size_t i = 0; i < words->count; i++)
        buf_printf(&b->words, "%s%s", i ? "  " : "", words->items[i]);
    b->options = (struct browse_options){.title = buf_cstr(&b->words),
                                         .time = (enum time_style)view->time,
                                         .growth = &b->growth};
    b->table = (struct live_table){.data = b,
                                   .interval_ms = FIGURES_MS,
                                   .open = screen_begin,
                                   .draw = screen_draw,
                                   .close = screen_end};
    return true;
}

void browse_trace_end(struct browse_trace *b)
{
    if (!b->ctx)
        return;
    if (b->screen)
        browse_screen_free(b->screen);
    browse_filter_release(&b->filter);
    browse_growth_end(&b->growth);
    free(b->of.places);
    texts_release(&b->of.paths);
    if (b->file >= 0)
        close(b->file);
    buf_release(&b->words);
    buf_release(&b->title);
    buf_release(&b->request);
}
