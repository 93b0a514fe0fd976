/* SPDX-License-Identifier: Apache-2.0 */
/* Implements etrace repl: creates the parts of the session, reads lines, and runs the loop while the session waits. */
#include "repl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/tty.h"
#include "../ground/utf8.h"
#include "repl_complete.h"
#include "repl_history.h"
#include "repl_syntax.h"
#include "repl_words.h"

#define PROMPT "etrace> "
#define GOES_ON "   ...> "
#define LEASE_MS 10000 /* a node ends the session of a client that sends nothing for this time */
#define LINE_MAX_BYTES LANG_MAX_TEXT

struct repl_opts {
    int64_t scrollback;
};

#define ROW(...) OPT_ROW(struct repl_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW(0, "scrollback", "SIZE", OPT_SIZE, scrollback,
        "memory for past events (default 64MB); the oldest are discarded"),
};
static const struct opt_group repl_group = {"The session", rows, ARRAY_LEN(rows)};

struct repl {
    struct repl_base base;
    struct repl_parts parts;
    struct repl_words *words;
    struct repl_complete *complete;
    struct repl_history history;
    struct buf so_far;   /* the first lines of an expression that continues on the next line */
    bool idle_interrupt; /* the last input was Ctrl-C, with no key after it */
};

/* ---- serving ---- */

static void step_loop(void *data, int64_t until)
{
    struct repl *r = data;

    loop_step(&r->base.ctx->loop, repl_views_serve(r->parts.views, until));
}

static void repl_on_time(void *owner)
{
    struct repl *r = owner;
    int64_t next = repl_nodes_tick(r->parts.nodes);

    repl_probes_arm_due(r->parts.probes);
    repl_recorder_tick(r->parts.recorder);
    next = loop_sooner(next, repl_nodes_retry(r->parts.nodes));
    next = loop_sooner(next, repl_probes_tick(r->parts.probes));
    r->base.timer.due = loop_sooner(loop_now() + 1000, next);
}

/* Handles SIGINT by counting it in ctx->interrupts, which ends waits. Any other signal ends the session. */
static void repl_on_signal(void *owner, int signal)
{
    struct repl *r = owner;

    r->base.ctx->interrupts++;
    r->base.ctx->last_signal = signal;
    r->base.leaving = r->base.leaving || signal != SIGINT;
}

/* ---- handlers of the nodes ---- */

static void repl_on_ready(void *data, struct peer *p)
{
    struct repl *r = data;

    repl_probes_on_ready(r->parts.probes, p);
    repl_views_renode(r->parts.views);
}

static void repl_on_armed(void *data, struct peer *p, const struct arm_result *result)
{
    repl_probes_on_armed(((struct repl *)data)->parts.probes, p, result);
}

static void repl_on_refused(void *data, struct peer *p, const struct err *e)
{
    repl_probes_on_refused(((struct repl *)data)->parts.probes, p, e);
}

static void repl_on_answer(void *data, const struct peer *p, const struct session_reply *reply)
{
    struct repl *r = data;

    if (!repl_recorder_on_answer(r->parts.recorder, p, reply))
        repl_complete_on_answer(r->complete, reply);
}

/* ---- at a terminal ---- */

static void repl_serve(void *data)
{
    step_loop(data, -1);
}

/*
 * Handles Ctrl-C. The first Ctrl-C stops the probes if any are traced, or if their events are not all printed;
 * otherwise it discards the line; if the line is empty, it prints how to leave. A second Ctrl-C without a key in
 * between ends the session. Returns true if editor_read() must return.
 */
static bool handle_interrupt(void *data)
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
    if (repl_probes_armed(r->parts.probes) || repl_views_pending(r->parts.views)) {
        size_t n = probe_list_running(repl_probes_list(r->parts.probes));
        repl_probes_stop(r->parts.probes, NULL);
        repl_views_go_on(r->parts.views);
        if (n)
            repl_probes_say_stopped(r->parts.probes);
        return false;
    }
    if (!editor_is_empty(r->base.line))
        return true;
    ctx_say(r->base.ctx, "Ctrl-C again or Ctrl-D leaves");
    return false;
}

static void complete_word(void *data, struct str before)
{
    struct repl *r = data;

    repl_complete(r->complete, buf_view(&r->so_far), before);
}

static void forget_interrupt(void *data)
{
    ((struct repl *)data)->idle_interrupt = false;
}

/*
 * Attaches again to lost nodes if the process was stopped for about LEASE_MS or longer: the nodes have then ended their
 * sessions.
 */
static void attach_again(void *data, int64_t stopped_ms)
{
    struct repl *r = data;

    if (stopped_ms < LEASE_MS - 1000)
        return;
    repl_nodes_expect(r->parts.nodes, loop_now() + LEASE_MS);
    ctx_say(r->base.ctx,
            "etrace was stopped for %lld seconds; a node ends the session of a client that is silent for %d",
            (long long)(stopped_ms / 1000), LEASE_MS / 1000);
    repl_wake(&r->base);
}

/* Returns true if an expression continues on the next line. `empty`: the last line is empty, which ends it anyway. */
static bool goes_on(struct str text, bool empty)
{
    return !empty && text.len < LINE_MAX_BYTES && !repl_is_command(text) && repl_is_open(text);
}

static void at_terminal(struct repl *r)
{
    struct buf piece = {0}, *line = &r->so_far;

    while (!r->base.leaving) {
        enum editor_got got = editor_read(r->base.line, line->len ? GOES_ON : PROMPT, &piece);
        if (got == EDITOR_END) {
            if (!editor_fits())
                ctx_say(r->base.ctx, "the terminal reports %u columns and %u rows: no line can be typed in this size",
                        editor_width(r->base.line), editor_height(r->base.line));
            break;
        }
        if (got == EDITOR_STOPPED) {
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
        repl_words_run(r->words, line->data);
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

/*
 * Waits for the next line of the script and appends it to `line`. Ctrl-C stops the probes; if nothing is traced, it
 * ends the session. Returns false if there are no more lines, or if the session ends.
 */
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
        /* stops reading at a longer line, because no expression is so long */
        s->fd.want_read = s->in.len < LINE_MAX_BYTES;
        s->end = s->end || !s->fd.want_read;
        repl_step(&r->base, -1);
        s->fd.want_read = false;
        if (repl_interrupted(&r->base)) {
            r->base.leaving = !repl_probes_armed(r->parts.probes);
            if (!r->base.leaving) {
                repl_probes_stop(r->parts.probes, NULL);
                ctx_say(r->base.ctx, "stopped; :start resumes, Ctrl-C again or Ctrl-D leaves");
            }
        }
    }
}

static void write_prompt(bool asked, const char *text)
{
    ssize_t n = asked ? write(STDERR_FILENO, text, strlen(text)) : 0;
    (void)n;
}

/* Runs the line. Rejects a NUL in it, because the text after the NUL would be ignored. */
static void run_piece(struct repl *r, struct buf *line)
{
    struct err e;

    buf_cstr(line);
    if (strlen(line->data) < line->len) {
        err_set(&e, ERR_USAGE, "a line of the script has a NUL in it");
        repl_fail(&r->base, &e);
    } else {
        repl_words_run(r->words, line->data);
    }
    buf_clear(line);
}

static void from_script(struct repl *r)
{
    struct script s = {.fd = {.fd = STDIN_FILENO, .ready = script_ready, .owner = &s}};
    struct buf line = {0};
    bool asked = tty_is(STDIN_FILENO);

    loop_add(&r->base.ctx->loop, &s.fd);
    write_prompt(asked, PROMPT);
    while (!r->base.leaving) {
        size_t before = line.len;
        if (line.len)
            buf_char(&line, '\n');
        if (!next_line(r, &s, &line))
            break;
        if (goes_on(buf_view(&line), before && line.len <= before + 1)) {
            write_prompt(asked, GOES_ON);
            continue;
        }
        repl_views_catch_up(r->parts.views);
        run_piece(r, &line);
        while (repl_probes_arming(r->parts.probes) && !r->base.leaving && !repl_interrupted(&r->base))
            repl_step(&r->base, -1);
        write_prompt(asked && !r->base.leaving, PROMPT);
    }
    if (line.len && !r->base.leaving)
        run_piece(r, &line);
    loop_remove(&r->base.ctx->loop, &s.fd);
    buf_release(&s.in);
    buf_release(&line);
}

/* ---- beginning and end ---- */

/*
 * Attaches to every node that the options name, or else to the only node of this host, if there is just one.
 * repl_begin() fails if a named node cannot be reached.
 */
static bool attach_all(struct repl *r, struct err *e)
{
    const struct node_opts *o = &r->base.options.node;
    struct repl_nodes *nodes = r->parts.nodes;
    const char *otherwise = target_default(o);
    bool named = o->nodes.count || o->os_pid || otherwise;

    if (!o->nodes.count && !repl_nodes_attach(nodes, otherwise, named ? WISH_TYPED : WISH_DEFAULT, e))
        return false;
    for (size_t i = 0; i < o->nodes.count; i++)
        if (!repl_nodes_attach(nodes, o->nodes.items[i], WISH_TYPED, e))
            return false;
    while (repl_nodes_attaching(nodes) && !r->base.leaving && !repl_interrupted(&r->base))
        repl_step(&r->base, -1);
    /* For a script, a missing node is an error. A user at the prompt sees which nodes are missing. */
    return !repl_nodes_attaching(nodes) || editor_possible() ||
           err_set(e, ERR_RUN, "interrupted before all nodes were attached");
}

/* Ends the sessions on the nodes, after it has shown their last events. */
static void repl_leave(struct repl *r)
{
    repl_nodes_leave(r->parts.nodes);
    repl_views_end(r->parts.views);
    repl_files_end(r->parts.files);
}

static void talk_totals(struct repl *r)
{
    struct scroll_counts c;
    char overwritten[48] = "";

    scroll_counts(r->base.scroll, &c);
    if (c.overwritten)
        snprintf(overwritten, sizeof(overwritten), " · %llu overwritten", (unsigned long long)c.overwritten);
    ctx_say(r->base.ctx, "%llu event%s seen%s · %s", (unsigned long long)c.seen, PLURAL(c.seen), overwritten,
            peers_gone(repl_nodes_peers(r->parts.nodes)) ? "nothing is left on the nodes"
                                                         : "a node ended its session itself");
}

static void make_parts(struct repl *r, int64_t scrollback)
{
    struct repl_base *b = &r->base;
    struct repl_parts *p = &r->parts;
    struct repl_nodes_handlers handlers = {.data = r,
                                           .ready = repl_on_ready,
                                           .armed = repl_on_armed,
                                           .refused = repl_on_refused,
                                           .answer = repl_on_answer};

    arena_init(&b->options.arena);
    b->serve = step_loop;
    b->serve_data = r;
    b->scroll = scroll_new((size_t)MAX(scrollback, 1 << 20));
    p->base = b;
    p->nodes = repl_nodes_new(b, &handlers);
    p->probes = repl_probes_new(b, p->nodes);
    p->recorder = repl_recorder_new(b, p->nodes, p->probes);
    p->files = repl_files_new(b, p->nodes);
    p->views = repl_views_new(b, p->nodes, p->probes, p->files);
    r->words = repl_words_new(p);
    r->complete = repl_complete_new(b, p->nodes, p->probes);
    b->timer = (struct loop_timer){.due = 0, .run = repl_on_time, .owner = r};
    loop_start(&b->ctx->loop, &b->timer);
    b->ctx->loop.on_signal = repl_on_signal;
    b->ctx->loop.signal_owner = r;
}

static void free_parts(struct repl *r)
{
    loop_stop(&r->base.ctx->loop, &r->base.timer);
    repl_nodes_free(r->parts.nodes);
    repl_views_free(r->parts.views);
    repl_files_free(r->parts.files);
    scroll_free(r->base.scroll);
    repl_complete_free(r->complete);
    repl_words_free(r->words);
    repl_recorder_free(r->parts.recorder);
    repl_probes_free(r->parts.probes);
    texts_release(&r->base.options.what.pipes);
    buf_release(&r->so_far);
    repl_history_close(&r->history);
    arena_release(&r->base.options.arena);
}

/* Opens the editor. Returns false, with an error, if the terminal cannot be used. */
static bool begin_typing(struct repl *r, struct err *e)
{
    struct editor_host host = {.data = r,
                               .serve = repl_serve,
                               .stops = handle_interrupt,
                               .complete = complete_word,
                               .typed = forget_interrupt,
                               .resumed = attach_again};
    struct ctx *ctx = r->base.ctx;

    r->base.line = editor_new(&ctx->loop, ctx->out, &host, e);
    if (!r->base.line)
        return false;
    ctx->talk = repl_views_talk;
    ctx->talk_data = r->parts.views;
    repl_history_open(&r->history, r->base.line);
    ctx_say(ctx, "type an expression to trace it; :help for help, Ctrl-D to leave");
    return true;
}

static bool repl_begin(struct repl *r, struct err *e)
{
    struct repl_base *b = &r->base;

    if (!exprs_pipes(b->ctx, &b->options.what, &b->options.arena, e) || !repl_recorder_open(r->parts.recorder, e) ||
        !attach_all(r, e)) {
        repl_fail(b, e);
        return false;
    }
    if (b->status && !repl_nodes_has_all(r->parts.nodes)) /* a node that the options name is missing */
        return false;
    if (!repl_views_open(r->parts.views, true))
        return false;
    /* If -o continues a long recording, etrace must read it first. Until then, a signal may end the program at once. */
    ctx_let_die(b->ctx, true);
    bool ok = repl_files_open(r->parts.files, e);
    ctx_let_die(b->ctx, false);
    ok = ok && repl_recorder_begin(r->parts.recorder, e);
    if (!ok)
        repl_fail(b, e);
    return ok;
}

static int run_session(struct repl *r)
{
    struct repl_base *b = &r->base;
    struct err e;
    bool ok = repl_begin(r, &e);

    b->ctx->leaves = true; /* an exit without cleanup would leave the terminal in raw modes and the files incomplete */
    if (ok && editor_possible())
        ok = begin_typing(r, &e) || (repl_fail(b, &e), false);
    if (ok && b->line)
        at_terminal(r);
    else if (ok)
        from_script(r);
    if (!ok && !b->status)
        b->status = ERR_NODE;
    repl_leave(r);
    if (ok)
        talk_totals(r);
    b->ctx->talk = NULL;
    bool person = b->line != NULL;
    editor_free(b->line);
    /* Only a script gets the status of errors. A user at the prompt has seen them already. */
    return person && ok ? 0 : b->status;
}

/*
 * Returns true, with an error, if an option is set that only etrace trace has (snapshot_group). etrace repl parses
 * these options only to report this error.
 */
static bool refuses_snapshots(const struct recorder_opts *o, struct err *e)
{
    const struct recorder_opts unset = RECORDER_OPTS_INIT;

    return (o->then.count && repl_recorder_refuses("then", e)) ||
           (o->snapshots != unset.snapshots && repl_recorder_refuses("snapshots", e)) ||
           (o->within_ns != unset.within_ns && repl_recorder_refuses("snapshot-within", e)) ||
           (o->then_for_ns != unset.then_for_ns && repl_recorder_refuses("then-for", e));
}

static int repl_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct repl r = {.base = {
                         .ctx = ctx,
                         .options = {.node = NODE_OPTS_INIT,
                                     .what = WHAT_OPTS_INIT,
                                     .limit = LIMIT_OPTS_INIT,
                                     .recorder = RECORDER_OPTS_INIT,
                                     .view = {.settings = true}},
                     }};
    struct repl_opts o = {.scrollback = 64 << 20};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &r.base.options.node},
                             {&what_group, &r.base.options.what},
                             {&limit_group, &r.base.options.limit},
                             {&recorder_group, &r.base.options.recorder},
                             {&snapshot_group, &r.base.options.recorder},
                             {&view_group, &r.base.options.view},
                             {&repl_group, &o},
                             {&talk_group, &talk}};
    struct texts words = {0};
    struct err e;
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        if (words.count) {
            err_set(&e, ERR_USAGE, "repl takes no expressions as arguments: '%s'", words.items[0]);
            err_hint(&e, "start etrace repl -n NODE, and type the expression there");
            status = ctx_fail(ctx, &e);
        } else if (refuses_snapshots(&r.base.options.recorder, &e)) {
            status = ctx_fail(ctx, &e);
        } else if (r.base.options.node.cluster) {
            err_set(&e, ERR_USAGE, "--cluster is not allowed in the interactive mode, which attaches to nodes by name");
            err_hint(&e, "repeat -n NODE, or type :attach NODE");
            status = ctx_fail(ctx, &e);
        } else if (r.base.options.node.cookie_file && !strcmp(r.base.options.node.cookie_file, "-")) {
            err_set(&e, ERR_USAGE,
                    "--cookie-file - is not allowed in the interactive mode, which reads standard input itself");
            err_hint(&e, "--cookie-file FILE, or $RELEASE_COOKIE");
            status = ctx_fail(ctx, &e);
        } else {
            make_parts(&r, o.scrollback);
            status = run_session(&r);
            free_parts(&r);
        }
    }
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] = "A line is an expression, which is traced until you drop it, or a :command; :help\n"
                            "lists the commands. Standard input may be a pipe: etrace executes its lines in\n"
                            "order, and exits with the status of the first line that failed.\n";

static const struct opt_group *const groups[] = {&node_group, &what_group, &limit_group, &recorder_group,
                                                 &view_group, &repl_group, &talk_group,  NULL};
const struct cmd cmd_repl = {
    .name = "repl",
    .usage = "[-n NODE]... [OPTIONS]",
    .summary = "Starts the interactive mode",
    .about = about,
    .run = repl_run,
    .groups = groups,
};
