/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace top: shows the VM's own counters as a table, which refreshes in place on a terminal.
 *
 * etrace reads the counters of each node at every interval, with one request at a time. It reads them at least every
 * five seconds, because the node only removes entries of its counters during a read. At the end, it reads all counters
 * once more. Requests, screen and keys are in one file, because each of them affects the others. Rows and the table
 * have files of their own.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../erlang/etf_write.h"
#include "../ground/mem.h"
#include "../ground/screen.h"
#include "../ground/tty.h"
#include "../trace/request.h"
#include "../views/line.h"
#include "cmd.h"
#include "refresh.h"
#include "top_table.h"

#define ANSWER_MS 30000
#define WHOLE_MS 60000  /* limit for the final read, even if the nodes make progress */
#define POLL_MOST 5000  /* longest time between two reads */
#define POLL_LEAST 1000 /* shortest time between two reads before OTP 29, where a read stops the schedulers */
#define POLL_LEAST_29 200
#define POLL_FIRST 250  /* longest time before the first read, for a table on a screen */
#define ROWS_MOST 1000  /* limit for the rows of one node */
#define ROWS_SCREEN 200 /* least number of rows to read for a screen */
/* Number of functions from which counting times or words may take half of a node's speed. */
#define COSTLY 1000

struct top_opts {
    struct what_opts what;
    const char *sort;
    int by;
    int64_t for_ns, interval_ns, rows, memory; /* memory: -1 if --memory is not given */
    bool json;
    int as, color; /* as: enum grid_as */
};

#define ROW(...) OPT_ROW(struct top_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW('P', "proc", "WHO", OPT_TEXTS, what.procs,
        "all, existing, new, a pid, or a registered name; repeatable (default all)"),
    ROW(0, "inherit", "none|spawn|first-spawn|link|first-link", OPT_CHOICE, what.inherit,
        "also count processes that these spawn or link to"),
    ROW(0, "by", "function|process", OPT_CHOICE, by, "a row for each function, or for each function and process"),
    OPT_SORT(struct top_opts, sort, TOP_USUAL, &top_columns),
    ROW(0, "rows", "N", OPT_NUMBER, rows, "print at most N rows (default 0: 1000 for each node, which is the maximum)"),
    ROW('t', "for", "DURATION", OPT_DURATION, for_ns, "stop after this time and print one table (10s, 2m)"),
    ROW('i', "interval", "DURATION", OPT_DURATION, interval_ns,
        "time between updates (default 1s, which is the minimum before OTP 29)"),
    ROW(0, "memory", "BYTES", OPT_SIZE, memory,
        "stop when the node's memory has grown by this much (default a quarter, at least 512MB; 0 for no limit)"),
    ROW(0, "json", NULL, OPT_FLAG, json, "one object per line: a `count` for each row, then a `counted` for each node"),
    ROW(0, "as", GRID_AS, OPT_CHOICE, as, "the format: a table (text), --json, or columns for spreadsheets"),
    ROW(0, "color", "auto|always|never", OPT_CHOICE, color, "colours (NO_COLOR is honoured)"),
    ROW('f', "file", "FILE", OPT_TEXTS, what.files, "read selectors from a file; - is standard input"),
    ROW(0, "allow-empty", NULL, OPT_FLAG, what.allow_empty, "continue if nothing matches a selector yet"),
    ROW(0, "dry-run", NULL, OPT_FLAG, what.dry_run, "attach, print what would be counted, and exit"),
};
static const struct opt_group top_group = {"What is counted", rows, ARRAY_LEN(rows)};

enum doing { IDLE, COUNTING, READING, OVER };

struct top_peer {
    enum doing doing;
    bool was_process;   /* the request without an answer asks for figures by process */
    bool again;         /* the counters must be restarted */
    bool untraced;      /* the warning about cleared trace flags was printed */
    bool whole, partly; /* whole: the final read is not complete; partly: it has read some of the figures */
    uint64_t processes;
};

struct top {
    struct ctx *ctx;
    const struct top_opts *o;
    const struct texts *words;
    struct arena arena;
    struct texts texts;
    struct peers peers;
    struct top_peer *states;
    struct top_node *nodes;
    const char **names;
    struct funs funs;
    struct buf *requests; /* the requests that start counting, by node */
    struct refresh refresh;
    unsigned counters;
    bool by_process;
    int64_t interval;
    int64_t next_print; /* loop_now() time of the next table, if there is no screen; INT64_MAX: print only at the end */
    int64_t answered;   /* loop_now() time when any node last made progress */
    int status;
};

/* ---- questions to nodes ---- */

static bool cmd_top_ask(struct top *t, struct peer *p, struct str request, enum doing doing)
{
    uint32_t id;
    struct err e;

    t->states[p->index].doing = doing;
    if (session_request(p->session, request, ANSWER_MS, &id, &e))
        return true;
    peer_fail(p, &e);
    return false;
}

static struct top_table current_table(struct top *t)
{
    return (struct top_table){
        .nodes = t->nodes,
        .names = t->names,
        .count = t->peers.count,
        .sort = {t->o->sort                                       ? t->o->sort
                 : t->counters && !(t->counters & TOP_COUNT_TIME) ? "calls"
                                                                  : TOP_USUAL,
                 &t->refresh.turn},
        .by_process = t->by_process,
        .paint.on = t->refresh.color,
        .window = &t->refresh.window,
        .ssh = t->peers.node->ssh,
        .named = peers_need_names(&t->peers),
    };
}

static void read_request(struct top *t, bool whole, struct buf *b)
{
    const struct top_table x = current_table(t);
    enum top_kept kept;
    size_t most = t->refresh.live ? MIN(refresh_wants(&t->refresh, ROWS_SCREEN), ROWS_MOST) : ROWS_MOST;

    if (!top_table_kept(&x, t->counters, &kept))
        most = ROWS_MOST;
    else if (t->o->rows && !t->refresh.live)
        most = (size_t)MIN(t->o->rows, ROWS_MOST);
    request_begin(b, "read", 4);
    etf_atomz(b, t->by_process ? "process" : "function");
    etf_atomz(b, top_kept_names[kept]);
    etf_int(b, (int64_t)most);
    etf_atomz(b, whole ? "true" : "false");
}

static void poll_nodes(void *data)
{
    struct top *t = data;
    struct buf b = {0};

    read_request(t, false, &b);
    for (size_t i = 0; i < t->peers.count; i++) {
        if (t->states[i].doing != IDLE || !peer_is_there(&t->peers.items[i]))
            continue;
        t->states[i].was_process = t->by_process;
        cmd_top_ask(t, &t->peers.items[i], buf_view(&b), READING);
    }
    buf_release(&b);
}

/* Restarts the counters of the nodes that need it, except nodes that still have to answer a request. */
static void restart_counting(struct top *t)
{
    for (size_t i = 0; i < t->peers.count; i++) {
        struct top_peer *s = &t->states[i];
        if (!s->again || s->doing != IDLE || !peer_is_there(&t->peers.items[i]))
            continue;
        s->again = false;
        cmd_top_ask(t, &t->peers.items[i], buf_view(&t->requests[i]), COUNTING);
    }
}

/* Builds {count, Counters, {arm, …}} for one node. Returns false, with an error, if that is not possible. */
static bool count_request(struct top *t, const struct session_node *node, struct buf *b, struct err *e)
{
    static const char *const names[] = {"call_count", "call_time", "call_memory"};
    struct buf selection = {0};
    struct exprs exprs;
    unsigned counters = 0;
    size_t n = 0;

    exprs_init(&exprs);
    bool ok = request_selection(&selection, &exprs, &t->o->what, &t->texts, node, true, e);
    for (size_t i = 0; i < exprs.count; i++)
        counters |= exprs.specs[i]->counters;
    if (!counters)
        counters = TOP_COUNT_ALL;
    request_begin(b, "count", 2);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        n += counters >> i & 1;
    etf_list(b, n);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (counters >> i & 1)
            etf_atomz(b, names[i]);
    etf_nil(b);
    buf_str(b, buf_view(&selection));
    buf_release(&selection);
    exprs_release(&exprs);
    return ok;
}

/* ---- output ---- */

/* Prints the table. `left`: it is the table that stays on the terminal after the screen is closed. */
static void cmd_top_print(struct top *t, bool title, bool left)
{
    struct top_table x = current_table(t);
    struct buf b = {0};

    t->refresh.window.room = (size_t)t->o->rows;
    if (left) {
        x.columns = t->refresh.columns;
        if (!t->o->rows)
            t->refresh.window.room = t->refresh.lines > 8 ? t->refresh.lines - 8 : 1;
    }
    if (t->o->as != GRID_TEXT) {
        top_table_data(&x, (enum grid_as)t->o->as, &b);
    } else {
        if (title) {
            paint_begin(&x.paint, &b, PAINT_TIME);
            top_table_title(&x, &b);
            paint_end(&x.paint, &b);
            buf_char(&b, '\n');
        }
        top_table_text(&x, &b);
    }
    if (title && !left && t->o->as != GRID_JSON)
        buf_char(&b, '\n');
    out_take(t->ctx->out, &b);
    buf_release(&b);
}

static const char *const help_text[] = {
    "  q            quit; the table stays on the terminal",
    "  s  → ←       sort by the next column; o: the other direction",
    "  ↑ ↓          choose a row; also Page Up and Down, Home, End",
    "  Enter        show all figures of the chosen row, and the commands that show",
    "               more; Esc goes back",
    "  /            show only rows with a text; among the first 1000 of a node",
    "  t            a row for each function, or for each function and process",
    "  p  space     pause the table; counting continues",
    "  r            restart from zero",
    "  h  ?         show this help",
    "",
    "  own time: spent in the function itself, not in functions that it calls; own",
    "  time and words cover the processes of -P only, and calls that have returned",
    "",
    "  costly: times and words of more than 1000 functions may take half of the",
    "  node's speed; '... -> count' counts only calls, and etrace -c --overhead 5%",
    "  limits the cost",
    NULL,
};

static bool is_costly(const struct top_node *n)
{
    return n->functions > COSTLY && n->counters != TOP_COUNT_CALLS;
}

static void top_live_title(void *data, struct buf *to)
{
    struct top *t = data;
    struct top_table x = current_table(t);
    bool costly = false;

    top_table_title(&x, to);
    for (size_t i = 0; i < t->peers.count; i++)
        costly = costly || is_costly(&t->nodes[i]);
    buf_puts(to, costly ? " · costly: see h" : "");
}

static void top_live_rows(void *data, unsigned columns, struct buf *to)
{
    struct top *t = data;
    struct top_table x = current_table(t);

    x.columns = columns;
    if (t->o->rows)
        t->refresh.window.room = MIN(t->refresh.window.room, (size_t)t->o->rows);
    top_table_text(&x, to);
}

static void top_live_details(void *data, unsigned columns, struct buf *to)
{
    struct top *t = data;
    const struct top_table x = current_table(t);

    (void)columns;
    if (!top_table_details(&x, to))
        buf_puts(to, "this row is no longer among the rows that the node sends\n");
}

/* ---- keys ---- */

static void top_on_key(void *data, int key)
{
    struct top *t = data;

    switch (key) {
    case 't':
        t->by_process = !t->by_process;
        t->refresh.paused = false;
        t->refresh.next = 0;
        break;
    case 'r':
        for (size_t i = 0; i < t->peers.count; i++)
            t->states[i].again = true;
        t->refresh.paused = false;
        restart_counting(t);
        break;
    default:
        break;
    }
}

/* ---- answers of nodes ---- */

static void cmd_top_on_failed(void *data, struct peer *p, const struct err *e)
{
    struct top *t = data;

    if (t->states[p->index].doing == OVER)
        return;
    t->states[p->index].doing = OVER;
    t->refresh.dirty = true;
    refresh_fail(&t->refresh, &t->status, e);
}

struct warned {
    struct top *t;
    const char *node;
};

static void on_warning(void *data, struct str text)
{
    struct warned *w = data;

    if (!w->t->refresh.live)
        ctx_warn(w->t->ctx, "%s: warning: %.*s", w->node, (int)text.len, text.at);
}

/* Warns once if another process on the node has cleared our trace flags. */
static void look_for_strangers(struct top *t, size_t i)
{
    static const char text[] = "somebody on the node has untraced processes; their times and words are missing";

    if (t->states[i].untraced || !t->nodes[i].untraced)
        return;
    t->states[i].untraced = true;
    if (t->refresh.live)
        buf_printf(&t->refresh.notes, "%s: %s\n", t->names[i], text);
    else
        ctx_warn(t->ctx, "%s: %s", t->names[i], text);
}

/* Reports the names of -P that now belong to another process, or to none. */
static void look_for_moved(struct top *t, size_t i)
{
    struct buf text = {0};
    struct raw name, pid;

    while (top_node_moved(&t->nodes[i], &name, &pid)) {
        buf_clear(&text);
        print_safe(&text, name);
        buf_puts(&text, pid.len ? LINE_RESTARTED : LINE_EXITED);
        print_safe(&text, pid);
        if (t->refresh.live)
            buf_printf(&t->refresh.notes, "%s: %.*s\n", t->names[i], (int)text.len, text.data);
        else
            ctx_warn(t->ctx, "%s: %.*s", t->names[i], (int)text.len, text.data);
    }
    buf_release(&text);
}

/* Returns the next node after `p` that is in the state; NULL: none. */
static struct peer *top_next(const struct top *t, struct peer *p, enum doing doing)
{
    while ((p = peers_next(&t->peers, p)) && t->states[p->index].doing != doing)
        continue;
    return p;
}

/* Returns true if no connected node still has to answer. */
static bool all_have_answered(const struct top *t)
{
    return !top_next(t, NULL, COUNTING) && !top_next(t, NULL, READING);
}

/* Ends the part of a node that has refused. Unless the table can do without it, ends the command. */
static void top_refused(struct top *t, struct peer *p, struct err *e)
{
    request_empty(t->words, t->names[p->index], e);
    t->states[p->index].doing = OVER;
    t->states[p->index].whole = false;
    if (refresh_refused(&t->refresh, &t->status, p, e))
        t->names[p->index] = NULL; /* the table leaves it out */
    else
        t->refresh.done = true;
}

/* Prints a table at each interval. Waits at most one more interval for nodes that have not answered. */
static void top_print_in_time(struct top *t)
{
    const int64_t now = loop_now();

    if (now < t->next_print || (!all_have_answered(t) && now < t->next_print + t->interval))
        return;
    cmd_top_print(t, true, false);
    t->next_print = MAX(t->next_print + t->interval, now);
}

static void cmd_top_on_reply(void *data, struct peer *p, const struct session_reply *reply)
{
    struct top *t = data;
    struct top_peer *s = &t->states[p->index];
    struct top_node *n = &t->nodes[p->index];
    struct warned warned = {t, t->names[p->index]};
    enum doing was = s->doing;
    struct err e;
    bool ok;

    s->doing = IDLE;
    t->answered = loop_now();
    if (!reply->ok) {
        session_error(reply, &e);
        ok = false;
    } else if (was == COUNTING) {
        s->untraced = false;
        ok = top_node_begun(n, reply->term, &s->processes, on_warning, &warned, &e);
    } else {
        bool unwanted = t->refresh.paused || s->again || s->was_process != t->by_process;
        ok = unwanted || top_node_read(n, p->index, reply->term, &t->funs, &e);
        s->partly = s->whole;
        s->whole = s->whole && n->unread;
        look_for_strangers(t, p->index);
        if (!unwanted && ok)
            look_for_moved(t, p->index);
        if (ok)
            top_print_in_time(t);
    }
    if (t->refresh.live)
        restart_counting(t);
    t->refresh.dirty = true;
    if (!ok)
        top_refused(t, p, &e);
}

static void on_progress(void *data, struct peer *p, int64_t done, int64_t all)
{
    const struct top *t = data;

    if (!t->refresh.live)
        peer_progress(p, done, all);
}

/* ---- phases ---- */

static void say_begun(struct top *t, const struct peer *p)
{
    const struct session_node *node = session_node(p->session);
    const struct top_node *n = &t->nodes[p->index];

    t->counters |= n->counters;
    if (node->otp < 29 && n->counters != TOP_COUNT_CALLS)
        t->interval = MAX(t->interval, POLL_LEAST);
    if (!t->refresh.live)
        ctx_say(t->ctx, "%s · OTP %s · %lld function%s · %llu process%s%s", node->name, node->otp_version,
                (long long)n->functions, PLURAL(n->functions), (unsigned long long)t->states[p->index].processes,
                PLURAL_ES(t->states[p->index].processes),
                t->o->what.dry_run ? " · not counted (--dry-run)" : " · Ctrl-C stops");
    if (!t->refresh.live && is_costly(n))
        ctx_say(t->ctx,
                "times and words of %lld functions may take half of the node's speed: '... -> count' counts only "
                "calls, and etrace -c --overhead 5%% limits the cost",
                (long long)n->functions);
}

static bool report_interrupt(const struct top *t, struct err *e)
{
    const struct peer *p = top_next(t, NULL, COUNTING);

    return err_set(e, ERR_RUN, "%s has not answered yet", t->names[p->index]);
}

/* Attaches to all nodes. Sends the requests that start the counters to all nodes before it waits for answers. */
static bool cmd_top_begin(struct top *t, const struct node_opts *o, struct err *e)
{
    struct peers_handlers handlers = {.data = t,
                                      .reply = cmd_top_on_reply,
                                      .failed = cmd_top_on_failed,
                                      .progress = on_progress};
    struct session_options session = {.fallback = o->fallback, .memory = memory_option(t->o->memory)};

    t->states = mem_zalloc(PEERS_MAX * sizeof(*t->states));
    t->nodes = mem_zalloc(PEERS_MAX * sizeof(*t->nodes));
    t->names = mem_zalloc(PEERS_MAX * sizeof(*t->names));
    t->requests = mem_zalloc(PEERS_MAX * sizeof(*t->requests));
    peers_begin(&t->peers, t->ctx, &handlers);
    t->peers.each = true;
    if (!peers_open(&t->peers, o, &session, e))
        return false;
    for (struct peer *p = NULL; (p = peers_next(&t->peers, p));) {
        t->names[p->index] = session_node(p->session)->name;
        if (count_request(t, session_node(p->session), &t->requests[p->index], e))
            cmd_top_ask(t, p, buf_view(&t->requests[p->index]), COUNTING);
        else
            top_refused(t, p, e);
    }
    while (!all_have_answered(t) && !t->refresh.done && !t->ctx->interrupts && peers_step(&t->peers, -1))
        continue;
    if (t->refresh.done)
        return true;
    if (!all_have_answered(t) && t->ctx->interrupts)
        return report_interrupt(t, e);
    if (!top_next(t, NULL, IDLE))
        refresh_empty(&t->refresh, &t->status);
    for (struct peer *p = NULL; (p = top_next(t, p, IDLE));)
        say_begun(t, p);
    const struct top_table x = current_table(t);
    enum top_kept kept;
    top_table_kept(&x, t->counters, &kept);
    return kept != TOP_MEMORY || t->counters & TOP_COUNT_MEMORY ||
           err_set(e, ERR_NODE, "cannot sort by memory, because memory is not counted");
}

static bool output_ended(struct top *t)
{
    struct err e;
    bool closed;

    if (!out_failed(t->ctx->out, &closed, &e))
        return false;
    if (!closed)
        refresh_fail(&t->refresh, &t->status, &e);
    return true;
}

/* Reads the counters until the end: shows them on the screen, or prints a table at each interval. */
static void top_follow(struct top *t, bool live)
{
    const int64_t now = loop_now(), poll = MIN(t->interval, POLL_MOST);

    t->refresh.until = t->o->for_ns ? now + t->o->for_ns / 1000000 : 0;
    t->refresh.next = now + (live ? MIN(poll, POLL_FIRST) : poll);
    if (live)
        refresh_open(&t->refresh);
    else if (!t->o->for_ns || t->o->interval_ns)
        t->next_print = now + t->interval;
    refresh_loop(&t->refresh, &t->peers, poll, poll_nodes);
    refresh_close(&t->refresh);
    t->next_print = INT64_MAX;
}

/* Sends the request to each idle node whose final read is not complete. Returns true while answers are missing. */
static bool ask_whole(struct top *t, struct str request)
{
    for (size_t i = 0; i < t->peers.count; i++)
        if (peer_is_there(&t->peers.items[i]) && t->states[i].doing == IDLE && t->states[i].whole) {
            t->states[i].was_process = t->by_process;
            cmd_top_ask(t, &t->peers.items[i], request, READING);
        }
    return !all_have_answered(t);
}

/*
 * Waits for the next event of a node. Returns false if no node has made progress for ANSWER_MS, or if the time `end`
 * has come.
 */
static bool await_nodes(struct top *t, int64_t end)
{
    int64_t by = MIN(t->answered + ANSWER_MS, end);

    return loop_now() < by && peers_step(&t->peers, by);
}

/*
 * Reads all figures once more at the end. For each request, a node pauses its counters and reads for half a second.
 * etrace repeats the request until the node has read all figures.
 */
static void read_whole(struct top *t)
{
    int64_t end = (t->answered = loop_now()) + WHOLE_MS;
    struct buf b = {0};

    while (!all_have_answered(t) && await_nodes(t, end))
        ;
    t->refresh.paused = false;
    for (size_t i = 0; i < t->peers.count; i++)
        t->states[i].whole = t->names[i] && t->states[i].doing != OVER;
    read_request(t, true, &b);
    while (ask_whole(t, buf_view(&b)) && await_nodes(t, end))
        ;
    buf_release(&b);
}

/* Warns about figures that are missing in the final table. */
static void tell_missing(struct top *t)
{
    for (size_t i = 0; i < t->peers.count; i++) {
        const struct top_node *n = &t->nodes[i];
        if (t->states[i].whole && t->states[i].partly)
            ctx_warn(t->ctx, "%s: the last figures of %lld function%s could not be read; those shown are older",
                     t->names[i], (long long)n->unread, PLURAL(n->unread));
        else if (t->states[i].whole && !t->status)
            ctx_warn(t->ctx, "%s: the last figures could not be read; those shown are older", t->names[i]);
        if (n->begun)
            ctx_warn(t->ctx,
                     "%s: counting restarted %lld time%s because of too many processes; calls during a restart are "
                     "missing",
                     t->names[i], (long long)n->begun, PLURAL(n->begun));
        if (n->anew)
            ctx_warn(t->ctx,
                     "%s: modules were reloaded or removed %lld time%s; their calls between two updates are missing",
                     t->names[i], (long long)n->anew, PLURAL(n->anew));
    }
}

static int top_run(struct ctx *ctx, const struct top_opts *o, const struct node_opts *node, const struct texts *words)
{
    struct top t = {
        .ctx = ctx,
        .o = o,
        .words = words,
        .next_print = INT64_MAX,
        .by_process = o->by == 1,
        .interval = o->interval_ns ? MAX(o->interval_ns / 1000000, POLL_LEAST_29) : POLL_LEAST,
    };
    struct err e;

    t.refresh = (struct refresh){
        .ctx = ctx,
        .name = "top",
        .keys = "q quit  Enter details  s sort  o order  / filter  t processes  p pause  r restart  h help",
        .details_keys = "q quit  Esc back  ↑↓ scroll  p pause  h help",
        .help = help_text,
        .data = &t,
        .title = top_live_title,
        .rows = top_live_rows,
        .details = top_live_details,
        .key = top_on_key,
        .filters = true,
        .window = {.filter = t.refresh.filter, .room = (size_t)o->rows, .chooses = true},
        .sorts = true,
        .steady = true,
        .color = tty_colors(STDOUT_FILENO, (enum tty_color)o->color),
    };
    funs_init(&t.funs);
    arena_init(&t.arena);
    bool ok = request_check(ctx, &o->what, words, &t.arena, &t.texts, &e) && cmd_top_begin(&t, node, &e);
    if (!ok)
        refresh_fail(&t.refresh, &t.status, &e);
    if (ok && !t.refresh.done && top_next(&t, NULL, IDLE) && !o->what.dry_run) {
        ctx_watch_reader(ctx);
        bool was_live = o->as == GRID_TEXT && screen_can(STDIN_FILENO, STDOUT_FILENO);
        top_follow(&t, was_live);
        read_whole(&t);
        if (!output_ended(&t))
            cmd_top_print(&t, was_live, was_live);
        tell_missing(&t);
    }
    peers_leave(&t.peers);
    for (size_t i = 0; i < t.peers.count && t.nodes; i++) {
        top_node_release(&t.nodes[i]);
        buf_release(&t.requests[i]);
    }
    free(t.states);
    free(t.nodes);
    free(t.names);
    free(t.requests);
    peers_close(&t.peers);
    refresh_release(&t.refresh);
    texts_release(&t.texts);
    arena_release(&t.arena);
    funs_release(&t.funs);
    return t.status;
}

static int cmd_top_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct top_opts o = {.memory = -1};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node}, {&top_group, &o}, {&talk_group, &talk}};
    struct texts words = {0};
    char **rest;
    int status = 0;
    struct err e;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        if (!cmd_format(o.json, &o.as, &e)) {
            status = ctx_fail(ctx, &e);
        } else if (words.count || o.what.files.count) {
            status = top_run(ctx, &o, &node, &words);
        } else {
            err_set(&e, ERR_USAGE, "no functions to count");
            err_hint(&e, "for example etrace top 'app(shop)', etrace top --for 10s 'lists:_'");
            status = ctx_fail(ctx, &e);
        }
    }
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] = "  etrace top 'app(shop)'              a table that refreshes every second\n"
                            "  etrace top --for 10s lists ets      one table\n"
                            "  etrace top --by process 'MyApp.Repo.*/_ -> count, time'\n"
                            "\nThe virtual machine itself counts calls, own time (without called functions)\n"
                            "and words of memory in the processes of -P, and makes no events. On a\n"
                            "terminal: q quit, s sort, / filter, t processes, Enter details, h all keys.\n";

static const struct opt_group *const groups[] = {&node_group, &top_group, &talk_group, NULL};
const struct cmd cmd_top = {
    .name = "top",
    .usage = "[-n NODE] [OPTIONS] SELECTOR...",
    .summary = "Counts calls, own time and memory by function",
    .about = about,
    .run = cmd_top_run,
    .groups = groups,
};
