/* SPDX-License-Identifier: Apache-2.0 */
#include "ctx.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/screen.h"
#include "../ground/tty.h"
#include "../ground/utf8.h"
#include "child.h"

/* A second signal within this time is ignored: timeout(1) signals the process and then its process group. */
#define AT_ONCE_MS 100

/* How long ctx_release() waits for standard error: the terminal may be stopped, or the reader of a pipe slow. */
#define WORDS_MS 5000

#define ERASE_LINE "\r\033[K"

static void words_on(void *owner)
{
    struct ctx *c = owner;

    talk_on(&c->words);
    if (!c->words.waiting.len)
        loop_remove(&c->loop, &c->words_fd);
}

static void write_words(struct ctx *c, struct str lines)
{
    bool waited = c->words.waiting.len;

    talk_say(&c->words, lines);
    if (waited || !c->words.waiting.len)
        return;
    c->words_fd = (struct loop_fd){.fd = c->words.fd, .want_write = true, .ready = words_on, .owner = c};
    loop_add(&c->loop, &c->words_fd);
}

void ctx_progress_end(struct ctx *c)
{
    if (c->progress)
        write_words(c, STR(ERASE_LINE));
    c->progress = false;
}

/*
 * Writes the line with one write, so that lines of several processes do not mix. While ctx_keep() is on, keeps the line
 * instead. If `talk` is set, passes the line to it instead.
 */
static void say_line(struct ctx *c, struct buf *line)
{
    struct buf raw = {0};

    if (line->len)
        ctx_progress_end(c);
    for (size_t i = 0; c->raw_talk && i < line->len; i++) {
        if (line->data[i] == '\n')
            buf_char(&raw, '\r');
        buf_char(&raw, line->data[i]);
    }
    if (c->keeps) {
        buf_str(&c->kept, buf_view(line));
    } else if (line->len && c->talk) {
        c->talk(c->talk_data, buf_view(line));
    } else if (line->len) {
        write_words(c, buf_view(c->raw_talk ? &raw : line));
    }
    buf_release(&raw);
    buf_release(line);
}

/* Begins a new line. Before it, completes the line that ctx_begin() has begun. */
static struct buf new_line(struct ctx *c)
{
    struct buf line = {0};

    if (c->begun && !c->shown)
        buf_str(&line, buf_view(&c->line));
    if (c->begun)
        buf_char(&line, '\n');
    c->begun = false;
    return line;
}

static void ctx_on_signal(void *owner, int signal)
{
    struct ctx *c = owner;

    if (signal == SIGUSR1 && c->takes_snapshots) {
        c->snapshots++;
        return;
    }
    if (c->on_signal) {
        c->on_signal(c->signal_data, signal, c->loop.from_kernel);
        return;
    }
    c->last_signal = signal;
    if (c->interrupts && loop_now() - c->interrupted < AT_ONCE_MS)
        return;
    c->interrupted = loop_now();
    if (++c->interrupts > 1) {
        screen_panic();
        child_panic();
        /* The second signal ends the program at once; the nodes clean up when the connections close. */
        _exit(128 + signal);
    }
}

void ctx_init(struct ctx *c)
{
    const char *debug = getenv("ETRACE_DEBUG");

    *c = (struct ctx){.color_talk = tty_colors(STDERR_FILENO, COLOR_AUTO),
                      .debug = debug && *debug,
                      .debug_wire = debug && !strcmp(debug, "wire")};
    loop_init(&c->loop);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write over the file size limit then fails like any other write */
    loop_watch_signals(&c->loop, ctx_on_signal, c);
    talk_init(&c->words);
    c->out = out_new(STDOUT_FILENO, false, "standard output");
}

static void on_reader(void *owner)
{
    struct ctx *c = owner;
    struct err e;
    bool closed = false;

    out_ack(c->out);
    if (!out_failed(c->out, &closed, &e))
        return;
    loop_remove(&c->loop, &c->reader);
    c->interrupts += closed;
}

void ctx_watch_reader(struct ctx *c)
{
    c->reader = (struct loop_fd){.fd = out_fd(c->out), .want_read = true, .ready = on_reader, .owner = c};
    loop_add(&c->loop, &c->reader);
}

void ctx_pass_signals(struct ctx *c, void (*take)(void *data, int signal, bool from_kernel), void *data)
{
    c->on_signal = take;
    c->signal_data = data;
}

void ctx_let_die(struct ctx *c, bool on)
{
    if (c->may_die == on || (on && c->leaves))
        return;
    c->may_die = on;
    loop_let_die(on);
}

void ctx_keep(struct ctx *c, bool on)
{
    c->keeps = on;
    if (!on)
        say_line(c, &c->kept);
}

void ctx_release(struct ctx *c)
{
    ctx_keep(c, false);
    ctx_progress_end(c);
    struct buf line = new_line(c);

    say_line(c, &line);
    int64_t patience = loop_sooner(ctx_patience(c), loop_now() + WORDS_MS);
    while (c->words.waiting.len && ctx_waits(c, &patience))
        loop_step(&c->loop, patience);
    loop_remove(&c->loop, &c->words_fd);
    talk_release(&c->words);
    buf_release(&c->line);
    out_free(c->out);
    loop_release(&c->loop);
}

void ctx_share_terminal(struct ctx *c)
{
    c->raw_talk = tty_is(STDERR_FILENO);
    if (tty_is(STDOUT_FILENO))
        out_raw(c->out);
}

static void PRINTF_LIKE(3, 0) say(struct ctx *c, const char *end, const char *fmt, va_list args)
{
    struct buf line = new_line(c);
    char text[1024];

    vsnprintf(text, sizeof(text), fmt, args);
    utf8_make_safe(text);
    buf_printf(&line, "etrace: %s%s", text, end);
    say_line(c, &line);
}

void ctx_print(struct ctx *c, struct str lines)
{
    struct buf text = new_line(c);

    buf_str(&text, lines);
    say_line(c, &text);
}

void ctx_say(struct ctx *c, const char *fmt, ...)
{
    va_list args;

    if (c->quiet > 0)
        return;
    va_start(args, fmt);
    say(c, "\n", fmt, args);
    va_end(args);
}

void ctx_begin(struct ctx *c, const char *fmt, ...)
{
    struct buf before = new_line(c);
    char text[1024];
    va_list args;

    say_line(c, &before);
    if (c->quiet > 0)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    utf8_make_safe(text);
    buf_clear(&c->line);
    buf_printf(&c->line, "etrace: %s", text);
    c->begun = true;
    c->shown = false;
}

void ctx_show(struct ctx *c)
{
    struct buf line = {0};

    if (!c->begun || c->shown)
        return;
    buf_str(&line, buf_view(&c->line));
    say_line(c, &line);
    c->shown = true;
}

void ctx_end(struct ctx *c, const char *more)
{
    struct buf line = {0};

    if (!c->begun) {
        ctx_say(c, "%s", more);
        return;
    }
    if (!c->shown)
        buf_str(&line, buf_view(&c->line));
    buf_printf(&line, " · %s\n", more);
    say_line(c, &line);
    c->begun = false;
}

void ctx_warn(struct ctx *c, const char *fmt, ...)
{
    va_list args;

    if (c->quiet > 1)
        return;
    va_start(args, fmt);
    say(c, "\n", fmt, args);
    va_end(args);
}

void ctx_debug(struct ctx *c, const char *fmt, ...)
{
    va_list args;

    if (!c->debug)
        return;
    va_start(args, fmt);
    say(c, "\n", fmt, args);
    va_end(args);
}

void ctx_progress(struct ctx *c, const char *fmt, ...)
{
    struct buf line = {0};
    char text[200];
    va_list args;

    if (c->quiet > 0 || c->talk || c->words.waiting.len || !tty_is(STDERR_FILENO))
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    utf8_make_safe(text);
    buf_puts(&line, ERASE_LINE);
    if (c->begun)
        buf_str(&line, buf_view(&c->line));
    buf_printf(&line, "%s%s", c->begun ? " · " : "etrace: ", text);
    write_words(c, buf_view(&line));
    buf_release(&line);
    c->progress = true;
    c->shown = false; /* ERASE_LINE has also erased the begun line */
}

static void put_carets(struct buf *b, const struct err *e, bool color)
{
    size_t line = strlen(e->line), from = MIN(e->from, line), end = MIN(from + e->len, line);
    size_t wide = utf8_width(e->line + from, end - from);

    buf_printf(b, "  %s\n  %*s%s", e->line, (int)utf8_width(e->line, from), "", color ? "\033[1;31m" : "");
    for (size_t i = 0; i < MAX(wide, 1); i++)
        buf_char(b, '^');
    buf_puts(b, color ? "\033[m" : "");
    if (e->note[0])
        buf_printf(b, " %s", e->note);
    buf_char(b, '\n');
}

void ctx_put_error(const struct err *e, bool color, struct buf *to)
{
    buf_printf(to, "%setrace: %s%s\n", color ? "\033[1m" : "", e->text, color ? "\033[m" : "");
    if (e->line[0])
        put_carets(to, e, color);
    if (e->hint[0])
        buf_printf(to, "hint: %s\n", e->hint);
}

int ctx_fail(struct ctx *c, const struct err *e)
{
    struct buf line = new_line(c);

    ctx_put_error(e, c->color_talk, &line);
    say_line(c, &line);
    return e->status ? (int)e->status : ERR_RUN;
}

int64_t ctx_patience(const struct ctx *c)
{
    return c->interrupts && c->last_signal != SIGINT ? loop_now() + 2000 : -1;
}

bool ctx_waits(const struct ctx *c, int64_t *patience)
{
    if (*patience < 0)
        *patience = ctx_patience(c);
    return *patience < 0 || loop_now() < *patience;
}

static void ack_written(void *owner)
{
    out_ack(owner);
}

int ctx_flush(struct ctx *c, int status)
{
    struct err e;
    bool closed = false;
    struct loop_fd wake = {.fd = out_fd(c->out), .want_read = true, .ready = ack_written, .owner = c->out};

    int64_t patience = ctx_patience(c);
    loop_add(&c->loop, &wake);
    out_settle(c->out);
    while (out_backlog(c->out, 0) && !out_failed(c->out, &closed, &e) && ctx_waits(c, &patience))
        loop_step(&c->loop, patience);
    loop_remove(&c->loop, &wake);
    if (out_failed(c->out, &closed, &e) && !closed && !status)
        return ctx_fail(c, &e);
    return status;
}
