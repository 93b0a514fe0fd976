/* etrace repl: begins and ends, reads lines, and waits: the one place where it does. */
#include "repl.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/tty.h"
#include "../ground/utf8.h"

#define PROMPT "etrace> "
#define GOES_ON "   ...> "
#define LEAVE_MS 5000
#define SHOWN_MS 500
#define LEASE_MS 10000 /* the owner's */
#define ON_THEIR_WAY_MS 60 /* events of probes that were stopped */
#define LINE_MAX_BYTES LANG_MAX_TEXT

struct repl_opts {
    int64_t scrollback;
};

#define ROW(letter, name, arg, type, field, help) {letter, name, arg, type, offsetof(struct repl_opts, field), help}
static const struct opt rows[] = {
    ROW(0, "scrollback", "SIZE", OPT_SIZE, scrollback, "memory for what was seen (default 64MB); the oldest is dropped"),
};
static const struct opt_group repl_group = {"The session", rows, ARRAY_LEN(rows)};

/* ---- serving ---- */

static void step(void *data, int64_t until)
{
    struct repl *r = data;
    bool more = repl_pump(r), printing = r->pending.len;

    repl_print(r);
    more |= printing && !r->pending.len; /* that may be what is waited for */
    if (r->pending.len && !r->held && !out_backlog(r->base.ctx->out, 0))
        more = true;
    int64_t order = r->live && !r->live->done && !r->paused ? together_next(&r->together) : -1;
    if (order >= 0)
        until = until < 0 ? order : MIN(until, order);
    loop_step(&r->base.ctx->loop, more ? 0 : until);
}

/* Ctrl-C is ours; the other signals want us gone. */
static void on_signal(void *owner, int signal)
{
    struct repl *r = owner;

    r->base.ctx->interrupts++;
    r->base.ctx->last_signal = signal;
    r->base.leaving = r->base.leaving || signal != SIGINT;
}

static void talk_above(void *data, struct str lines)
{
    struct repl *r = data;

    if (r->screen)
        buf_str(&r->aside, lines);
    else if (r->pending.len && !r->held)
        buf_str(&r->pending, lines); /* behind the events that it is about */
    else
        line_above(r->base.line, lines);
}

/* ---- lines ---- */

static void run_line(struct repl *r, char *line)
{
    char *at = line;

    buf_clear(&r->typed);
    buf_puts(&r->typed, line);
    r->typed_at = line;
    while (*at == ' ' || *at == '\t')
        at++;
    if (!*at || *at == '%')
        return;
    if (*at == ':') {
        int status = repl_word(r, at + 1);
        if (status && !r->base.status)
            r->base.status = status;
    } else {
        repl_probe(r, line);
    }
}

/* ---- at a terminal ---- */

static void serve(void *data)
{
    repl_step(data, -1);
}

/* A first Ctrl-C stops the probes; where nothing is traced it says how to leave. A second one leaves. */
static bool stops(void *data)
{
    struct repl *r = data;

    if (r->base.leaving)
        return true;
    if (!repl_interrupted(&r->base))
        return false;
    if (r->idle_interrupt) {
        r->base.leaving = true;
        return true;
    }
    r->idle_interrupt = true;
    if (r->armed || r->pending.len) {
        size_t n = repl_running(r);
        repl_stop(r, NULL);
        repl_show_go_on(r);
        if (n) {
            r->stopped = loop_now() + ON_THEIR_WAY_MS;
            repl_wake(&r->base);
        }
        return false;
    }
    if (!line_is_empty(r->base.line))
        return true;
    ctx_say(r->base.ctx, "Ctrl-C again or Ctrl-D leaves");
    return false;
}

static void complete(void *data, struct str before)
{
    repl_complete(data, before);
}

static void typed(void *data)
{
    ((struct repl *)data)->idle_interrupt = false;
}

/* Who was stopped for longer than the lease has lost the sessions, and wants them back. */
static void resumed(void *data, int64_t stopped_ms)
{
    struct repl *r = data;

    if (stopped_ms < LEASE_MS - 1000)
        return;
    for (size_t i = 0; i < r->run.peers.count; i++)
        r->nodes[i].wanted = loop_now() + LEASE_MS;
    ctx_say(r->base.ctx, "stopped for %lld seconds: the nodes end what is silent for %d", (long long)(stopped_ms / 1000), LEASE_MS / 1000);
    repl_wake(&r->base);
}

/* An expression goes on while something is open, until an empty line. */
static bool goes_on(struct str text, bool empty)
{
    size_t first = 0;

    while (first < text.len && (text.at[first] == ' ' || text.at[first] == '\t'))
        first++;
    return first < text.len && text.at[first] != ':' && text.at[first] != '%' && !empty && text.len < LINE_MAX_BYTES &&
           repl_is_open(text);
}

static void at_terminal(struct repl *r)
{
    struct buf piece = {0}, *line = &r->so_far;

    while (!r->base.leaving) {
        enum line_got got = line_read(r->base.line, line->len ? GOES_ON : PROMPT, &piece);
        if (got == LINE_END) {
            if (!line_fits())
                ctx_say(r->base.ctx, "the terminal says that it has %u columns and %u rows now: no line can be typed there",
                        line_width(r->base.line), line_height(r->base.line));
            break;
        }
        if (got == LINE_STOPPED) {
            buf_clear(line);
            continue;
        }
        if (line->len)
            buf_char(line, '\n');
        buf_str(line, buf_view(&piece));
        if (goes_on(buf_view(line), !piece.len))
            continue;
        buf_cstr(line);
        repl_history_add(&r->history, buf_view(line));
        run_line(r, line->data);
        buf_clear(line);
    }
    buf_release(&piece);
}

/* ---- from a pipe, a file, or a terminal that cannot move its cursor ---- */

struct script {
    struct loop_fd fd;
    struct buf in;
    bool end;
};

static void script_ready(void *owner)
{
    struct script *s = owner;
    ssize_t n = read(STDIN_FILENO, buf_room(&s->in, 4096), 4096);

    if (n > 0)
        s->in.len += (size_t)n;
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        s->end = true;
}

/* False: there are no more. */
static bool next_line(struct repl *r, struct script *s, struct buf *line)
{
    for (;;) {
        char *end = s->in.len ? memchr(s->in.data, '\n', s->in.len) : NULL;
        if (end || (s->end && s->in.len)) {
            size_t n = end ? (size_t)(end - s->in.data) : s->in.len, taken = end ? n + 1 : n;
            struct str text = {s->in.data, n - (n && s->in.data[n - 1] == '\r')};
            buf_str(line, line->len ? text : utf8_unmarked(text));
            memmove(s->in.data, s->in.data + taken, s->in.len - taken);
            s->in.len -= taken;
            return true;
        }
        if (s->end || r->base.leaving)
            return false;
        s->fd.want_read = s->in.len < LINE_MAX_BYTES; /* a line longer than that is no expression */
        s->end = s->end || !s->fd.want_read;
        repl_step(&r->base, -1);
        s->fd.want_read = false;
        if (repl_interrupted(&r->base)) {
            r->base.leaving = !r->armed;
            if (r->armed) {
                repl_stop(r, NULL);
                ctx_say(r->base.ctx, "stopped; :start goes on, Ctrl-C again or Ctrl-D leaves");
            }
        }
    }
}

static void prompt(bool asked, const char *text)
{
    ssize_t n = asked ? write(STDERR_FILENO, text, strlen(text)) : 0;
    (void)n;
}

/* What stands behind a NUL would not be seen. */
static void run_piece(struct repl *r, struct buf *line)
{
    struct err e;

    buf_cstr(line);
    if (strlen(line->data) < line->len) {
        err_set(&e, ERR_USAGE, "a line of the script has a NUL in it");
        repl_fail(&r->base, &e);
    } else {
        run_line(r, line->data);
    }
    buf_clear(line);
}

static void from_script(struct repl *r)
{
    struct script s = {.fd = {.fd = STDIN_FILENO, .ready = script_ready, .owner = &s}};
    struct buf line = {0};
    bool asked = tty_is(STDIN_FILENO);

    loop_add(&r->base.ctx->loop, &s.fd);
    prompt(asked, PROMPT);
    while (!r->base.leaving) {
        size_t before = line.len;
        if (line.len)
            buf_char(&line, '\n');
        if (!next_line(r, &s, &line))
            break;
        if (goes_on(buf_view(&line), before && line.len <= before + 1)) {
            prompt(asked, GOES_ON);
            continue;
        }
        repl_catch_up(r);
        run_piece(r, &line);
        while (repl_arming(r) && !r->base.leaving && !repl_interrupted(&r->base))
            repl_step(&r->base, -1);
        prompt(asked && !r->base.leaving, PROMPT);
    }
    if (line.len && !r->base.leaving)
        run_piece(r, &line);
    loop_remove(&r->base.ctx->loop, &s.fd);
    buf_release(&s.in);
    buf_release(&line);
}

/* ---- beginning and end ---- */

/* Nodes that are named must be there; without a name it begins with the only local node, or with none. */
static bool attach_all(struct repl *r, struct err *e)
{
    const char *otherwise = getenv("ETRACE_NODE");
    bool named = r->base.options.node.nodes.count || r->base.options.node.os_pid || (otherwise && *otherwise);

    if (!r->base.options.node.nodes.count && !repl_attach(r, otherwise && *otherwise ? otherwise : NULL, named ? WISH_TYPED : WISH_DEFAULT, e))
        return false;
    for (size_t i = 0; i < r->base.options.node.nodes.count; i++)
        if (!repl_attach(r, r->base.options.node.nodes.items[i], WISH_TYPED, e))
            return false;
    while (repl_attaching(r) && !r->base.leaving && !repl_interrupted(&r->base))
        repl_step(&r->base, -1);
    /* A person at the prompt sees who is not there. */
    return !repl_attaching(r) || line_possible() || err_set(e, ERR_RUN, "interrupted before every node was attached to");
}

/* What is still on the nodes comes, is shown, and nothing is left there. */
static void leave(struct repl *r)
{
    int64_t by = loop_now() + LEAVE_MS, next;

    peers_pull(&r->run.peers, true);
    peers_stop(&r->run.peers);
    r->base.options.reattach = false;
    while (loop_now() < by && peers_tick(&r->run.peers, &next))
        repl_step(&r->base, MIN(by, next));
    bool hurry = r->base.ctx->last_signal && r->base.ctx->last_signal != SIGINT;
    int64_t shown_by = r->base.line ? loop_now() + SHOWN_MS : INT64_MAX; /* a person who leaves does not want to watch */
    r->base.ctx->interrupts = 0;
    while (!hurry && r->live && !r->base.ctx->interrupts && loop_now() < shown_by && (repl_pump(r) || r->pending.len))
        repl_step(&r->base, loop_now() + 10);
    if (r->live) {
        pipeline_end(r->live->pipeline);
        r->paused = true;
        while (!hurry && r->pending.len && !r->base.ctx->interrupts && loop_now() < shown_by)
            repl_step(&r->base, loop_now() + 10);
    }
    repl_files_end(r);
}

static void talk_totals(struct repl *r)
{
    struct scroll_counts c;

    scroll_counts(r->base.scroll, &c);
    ctx_say(r->base.ctx, "%llu event%s seen · %s", (unsigned long long)c.seen, PLURAL(c.seen),
            peers_gone(&r->run.peers) ? "every session destroyed" : "some session ended by its node");
}

static int session(struct repl *r, const struct repl_opts *o)
{
    struct line_host host = {.data = r, .serve = serve, .stops = stops, .complete = complete, .typed = typed, .resumed = resumed};
    struct err e;
    bool ok = true;

    arena_init(&r->base.options.arena);
    r->base.options.reattach = r->base.options.node.reattach;
    r->base.ctx->loop.on_signal = on_signal;
    r->base.ctx->loop.signal_owner = r;
    r->base.scroll = scroll_new((size_t)MAX(o->scrollback, 1 << 20));
    repl_begin(r);
    ok = asked_pipes(r->base.ctx, &r->base.options.what, &r->base.options.arena, &e) && attach_all(r, &e);
    if (!ok)
        repl_fail(&r->base, &e);
    ok = ok && (!r->base.status || repl_has_all(r)); /* every node that is named is there */
    ok = ok && repl_show_live(r, true) && (repl_files_open(r, &e) || (repl_fail(&r->base, &e), false));
    r->base.ctx->leaves = true; /* the terminal's modes, and files that have no end */
    if (ok && line_possible()) {
        r->base.line = line_new(&r->base.ctx->loop, r->base.ctx->out, &host, &e);
        ok = r->base.line || (repl_fail(&r->base, &e), false);
        if (r->base.line) {
            r->base.ctx->talk = talk_above;
            r->base.ctx->talk_data = r;
            repl_history_open(&r->history, r->base.line);
            ctx_say(r->base.ctx, "an expression is traced, :help explains, Ctrl-D leaves");
        }
    }
    if (ok && r->base.line)
        at_terminal(r);
    else if (ok)
        from_script(r);
    if (!ok && !r->base.status)
        r->base.status = ERR_NODE;
    leave(r);
    if (ok)
        talk_totals(r);
    r->base.ctx->talk = NULL;
    bool person = r->base.line != NULL;
    line_free(r->base.line);
    return person && ok ? 0 : r->base.status; /* a person has seen and corrected every mistake */
}

static void release(struct repl *r)
{
    loop_stop(&r->base.ctx->loop, &r->base.timer);
    run_close(&r->run);
    reel_free(r->live);
    reel_free(r->files);
    scroll_free(r->base.scroll);
    repl_names_forget(r);
    repl_release(r);
    texts_release(&r->base.options.what.pipes);
    buf_release(&r->pending);
    buf_release(&r->so_far);
    buf_release(&r->typed);
    buf_release(&r->aside);
    buf_release(&r->counts);
    repl_history_close(&r->history);
    arena_release(&r->base.options.arena);
}

static int run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct repl r = {.base = {
        .ctx = ctx,
        .options = {.node = NODE_OPTS_INIT, .what = WHAT_OPTS_INIT, .limit = LIMIT_OPTS_INIT, .view = VIEW_OPTS_INIT},
        .serve = step, .serve_data = &r,
    }};
    struct repl_opts o = {.scrollback = 64 << 20};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &r.base.options.node}, {&what_group, &r.base.options.what}, {&limit_group, &r.base.options.limit},
                             {&view_group, &r.base.options.view}, {&repl_group, &o}, {&talk_group, &talk}};
    struct texts words = {0};
    struct err e;
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        if (words.count) {
            err_set(&e, ERR_USAGE, "expressions are typed in the session, not given to it: '%s'", words.items[0]);
            err_hint(&e, "etrace repl -n NODE");
            status = ctx_fail(ctx, &e);
        } else if (r.base.options.node.cluster) {
            err_set(&e, ERR_USAGE, "the interactive mode attaches to nodes by their names; --cluster has no place there");
            err_hint(&e, "-n NODE, repeated, or :attach NODE in it");
            status = ctx_fail(ctx, &e);
        } else {
            status = session(&r, &o);
            release(&r);
        }
    }
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] =
    "Lines are expressions, which are traced until they are dropped, or :commands;\n"
    ":help lists them. Standard input may be a pipe: its lines are done in their\n"
    "order, and the status is that of the first that failed.\n";

static const struct opt_group *const groups[] = {&node_group, &what_group, &limit_group, &view_group, &repl_group, &talk_group, NULL};
const struct cmd cmd_repl = {"repl", "[-n NODE]... [OPTIONS]", "The interactive mode: one place to stay in", about, run, groups};
