/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace ps: lists the processes that have the longest queues, the most memory, binaries or reductions, or the largest
 * growth of one of these. On a terminal, the table refreshes in place.
 *
 * The client sends each node one request at a time, and each answer covers a part of the processes, until the node has
 * looked at all of them. The last answer has the details of the processes that are first in the order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/json.h"
#include "../ground/mem.h"
#include "../ground/screen.h"
#include "../ground/tty.h"
#include "../trace/exprs.h"
#include "../trace/peers.h"
#include "chosen.h"
#include "cmd.h"
#include "ps_rows.h"
#include "refresh.h"
#include "why_watch.h"

#define ANSWER_MS 30000
#define PAGE 20000 /* limit for the processes that one answer covers */
#define SHARE 50   /* percent of one core that a look may use */
#define PATIENCE_MS 300
#define INTERVAL_MS 2000
#define INTERVAL_LEAST 500
#define ROWS 20
#define ROWS_MOST 1000
#define SILENT_MOST 50

struct ps_opts {
    struct texts procs;
    int64_t for_ns, interval_ns, rows, share;
    const char *sort;
    int as, color; /* as: enum grid_as */
    bool growth, json, once;
};

#define ROW(...) OPT_ROW(struct ps_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW('P', "proc", "WHO", OPT_TEXTS, procs,
        "only these: a pid, a registered name, app(NAME), initial(M:F/A); repeatable (default all)"),
    OPT_SORT(struct ps_opts, sort, PS_USUAL, &ps_columns),
    ROW('t', "for", "DURATION", OPT_DURATION, for_ns,
        "look twice, with this time between (10s), and sort by the growth"),
    ROW('i', "interval", "DURATION", OPT_DURATION, interval_ns, "time between updates on a terminal (default 2s)"),
    ROW(0, "rows", "N", OPT_NUMBER, rows,
        "print at most N processes (default 20; 0: 1000 for each node, which is the maximum)"),
    ROW(0, "overhead", "PERCENT", OPT_PERCENT, share, "the share of one core that looking may take (default 50%)"),
    ROW('1', "once", NULL, OPT_FLAG, once, "print the table once, on a terminal too"),
    ROW(0, "json", NULL, OPT_FLAG, json,
        "one object per line: a `process` for each row, then a `processes` for each node"),
    ROW(0, "as", GRID_AS, OPT_CHOICE, as, "the format: a table (text), --json, or columns for spreadsheets"),
    ROW(0, "color", "auto|always|never", OPT_CHOICE, color, "colours (NO_COLOR is honoured)"),
};
static const struct opt_group ps_group = {"What is listed", rows, ARRAY_LEN(rows)};

/*
 * The state of a node. PS_RESTING: it has no question to answer. PS_WATCHING: it was asked about one process. PS_OVER:
 * it was lost or has refused, so etrace does not look at it again.
 */
enum ps_doing { PS_RESTING, PS_LOOKING, PS_WATCHING, PS_OVER };

struct ps_peer {
    enum ps_doing doing;
    struct buf who;
    int64_t left;   /* number of processes that the current look has not reached */
    uint64_t round; /* number of the look that the node has begun last */
};

struct ps_run {
    struct ctx *ctx;
    const struct ps_opts *o;
    const struct node_opts *given;
    struct peers peers;
    struct ps_peer *states;
    struct ps_node *nodes;
    const char **names;
    struct look_funs funs;
    enum ps_figure kept; /* in the last request: the nodes send the rows with the largest values of it */
    bool chosen_there;   /* the first rows of the table are among the first rows that the nodes send */
    bool growth;
    struct refresh refresh;
    struct why_watch watch; /* the process whose details are open */
    bool watches, again;    /* watches: `watch` has a process; again: a look is due when no node has to answer */
    char trace_pid[32];     /* pid of the process to trace after the table is closed; "": none */
    unsigned trace_node;
    uint64_t round;
    int64_t begun; /* loop_now() time when the current look began */
    int status;
};

/* Returns true if there is a node to look at again. */
static bool ps_can_look(const struct ps_run *x)
{
    for (struct peer *p = NULL; (p = peers_next(&x->peers, p));)
        if (x->states[p->index].doing != PS_OVER)
            return true;
    return false;
}

static bool ps_knows_any(const struct ps_run *x)
{
    for (size_t i = 0; i < x->peers.count; i++)
        if (x->nodes[i].known)
            return true;
    return false;
}

static void ps_forget_all(struct ps_run *x)
{
    for (size_t i = 0; i < x->peers.count; i++)
        ps_node_forget(&x->nodes[i]);
}

/*
 * Ends the looks at a node. Drops its processes, because the table is about now. Only a screen without a further node
 * keeps them, for the table that stays on the terminal.
 */
static void ps_lose(struct ps_run *x, const struct peer *p)
{
    x->states[p->index].doing = PS_OVER;
    x->refresh.dirty = true;
    if (!x->refresh.live || ps_can_look(x))
        ps_node_forget(&x->nodes[p->index]);
    else
        x->refresh.done = true;
}

static void ps_on_failed(void *data, struct peer *p, const struct err *e)
{
    struct ps_run *x = data;

    if (x->states[p->index].doing == PS_OVER)
        return;
    ps_lose(x, p);
    refresh_fail(&x->refresh, &x->status, e);
}

/* ---- questions and answers ---- */

/* Returns the limit for the rows that the options set, however many fit on the terminal; 0: none. */
static size_t ps_most(const struct ps_opts *o)
{
    return o->rows < 0 ? ROWS : (size_t)o->rows;
}

static void ps_ask(struct ps_run *x, struct peer *p)
{
    struct ps_peer *s = &x->states[p->index];
    struct buf b = {0};
    uint32_t id;
    struct err e;
    size_t most = ps_most(x->o) ? ps_most(x->o) : ROWS_MOST;

    if (x->refresh.live && x->o->rows < 0)
        most = MIN(refresh_wants(&x->refresh, ROWS), ROWS_MOST);
    /* Other rows than the first ones may match the filter, or be first in another order. */
    if (!x->chosen_there || x->refresh.filter[0])
        most = ROWS_MOST;

    if (s->round != x->round)
        s->left = 0;
    look_request(&b, &(struct look_question){
                         .what = "processes",
                         .who = buf_view(&s->who),
                         .anew = !s->left,
                         .most = PAGE,
                         .share = x->o->share ? MAX((int)(x->o->share / 100), 1) : SHARE,
                         .patience_ms = PATIENCE_MS,
                         .sort = ps_figures[x->kept],
                         .growth = x->growth,
                         .rows = most,
                     });
    if (!s->left)
        x->nodes[p->index].nsilent = 0;
    s->round = x->round;
    s->doing = PS_LOOKING;
    if (!session_request(p->session, buf_view(&b), ANSWER_MS, &id, &e))
        peer_fail(p, &e);
    buf_release(&b);
}

static bool ps_take_silent(struct ps_node *n, struct etf term)
{
    struct look_list list = look_list(term);
    struct look_process one;

    while (look_list_next(&list, &one)) {
        if (n->nsilent == SILENT_MOST)
            continue;
        n->silent = mem_grow(n->silent, &n->silent_cap, n->nsilent + 1, sizeof(*n->silent));
        n->silent[n->nsilent++] = one;
    }
    return list.ok;
}

static int64_t ps_left(const struct ps_run *x)
{
    int64_t left = 0;

    for (size_t i = 0; i < x->peers.count; i++)
        left += x->states[i].doing == PS_OVER ? 0 : x->states[i].left;
    return left;
}

static bool ps_is_looking(const struct ps_run *x)
{
    for (struct peer *p = NULL; (p = peers_next(&x->peers, p));)
        if (x->states[p->index].doing != PS_RESTING && x->states[p->index].doing != PS_OVER)
            return true;
    return false;
}

/* Takes a part of a look at all processes, and asks for the next part. */
static bool ps_take_look(struct ps_run *x, struct peer *p, struct etf answer, struct err *e)
{
    struct ps_peer *s = &x->states[p->index];
    struct look_answer a;

    s->left = 0;
    if (!look_read(answer, &a, e))
        return false;
    if (!ps_take_silent(&x->nodes[p->index], a.silent))
        return err_set(e, ERR_RUN, "the node's answer about its processes is malformed");
    if (a.left && !x->refresh.opened) {
        s->left = a.left;
        if (!x->refresh.live)
            look_progress(x->ctx, x->begun, ps_left(x));
        ps_ask(x, p);
    }
    return a.left || x->refresh.paused || x->refresh.opened ||
           ps_node_read(&x->nodes[p->index], p->index, &a, look_funs_of(&x->funs, session_node(p->session)), e);
}

/* Takes the answer about the process whose details are open. Ignores it if the user has opened other details since. */
static bool ps_take_watched(struct ps_run *x, struct peer *p, struct etf answer, struct err *e)
{
    return !x->watch.waits || why_watch_answer(&x->watch, answer, look_funs_of(&x->funs, session_node(p->session)), e);
}

static void ps_on_reply(void *data, struct peer *p, const struct session_reply *reply)
{
    struct ps_run *x = data;
    struct ps_peer *s = &x->states[p->index];
    const enum ps_doing was = s->doing;
    struct err e;
    bool ok = reply->ok;

    s->doing = PS_RESTING;
    if (!ok) {
        session_error(reply, &e);
    } else if (was == PS_WATCHING) {
        ok = ps_take_watched(x, p, reply->term, &e);
    } else {
        ok = ps_take_look(x, p, reply->term, &e);
    }
    x->refresh.dirty = true;
    if (!ok) {
        ps_lose(x, p);
        refresh_refused(&x->refresh, &x->status, p, &e);
    }
    if (x->again && !ps_is_looking(x)) {
        x->again = false;
        x->refresh.next = 0;
    }
}

static struct ps_table ps_table_of(struct ps_run *x)
{
    return (struct ps_table){
        .nodes = x->nodes,
        .names = x->names,
        .count = x->peers.count,
        .sort = {x->o->sort ? x->o->sort : PS_USUAL, &x->refresh.turn},
        .kept = x->kept,
        .growth = x->growth,
        .paint.on = x->refresh.color,
        .columns = tty_is(STDOUT_FILENO) ? tty_columns(STDOUT_FILENO) : 0,
        .window = &x->refresh.window,
    };
}

static void ps_begin_look(struct ps_run *x)
{
    const struct ps_table t = ps_table_of(x);

    x->chosen_there = ps_table_figure(&t, &x->kept);
    x->round++;
    x->begun = loop_now();
    for (struct peer *p = NULL; (p = peers_next(&x->peers, p));)
        if (x->states[p->index].doing == PS_RESTING)
            ps_ask(x, p);
}

/* Fails for the nodes that a signal has kept from answering. */
static void ps_stopped(struct ps_run *x)
{
    struct err e;

    for (struct peer *p = NULL; (p = peers_next(&x->peers, p));) {
        if (x->states[p->index].doing != PS_LOOKING)
            continue;
        ps_lose(x, p);
        if (look_stopped(x->ctx, x->names[p->index], &e))
            refresh_fail(&x->refresh, &x->status, &e);
    }
}

/*
 * Looks once at all processes of all nodes. Nodes that do not answer to the end are left out of the table. Returns true
 * if there is a node to look at again, and no signal has come.
 */
static bool ps_look(struct ps_run *x)
{
    ps_begin_look(x);
    while (ps_is_looking(x) && !x->ctx->interrupts && peers_step(&x->peers, -1))
        continue;
    ctx_progress_end(x->ctx);
    ps_stopped(x);
    return !x->ctx->interrupts && ps_can_look(x);
}

/* ---- output ---- */

static void ps_print(struct ps_run *x)
{
    struct ps_table t = ps_table_of(x);
    struct buf b = {0};

    x->refresh.window.room = ps_most(x->o);
    if (x->o->as != GRID_TEXT)
        ps_table_data(&t, (enum grid_as)x->o->as, &b);
    else
        ps_table_text(&t, &b);
    out_take(x->ctx->out, &b);
    if (x->o->as == GRID_TEXT) {
        ps_table_title(&t, &b);
        ctx_say(x->ctx, "%s", buf_cstr(&b));
    }
    buf_release(&b);
}

static const char *const help_text[] = {
    "  q          quit; the table stays on the terminal",
    "  s  → ←     sort by the next column; o: the other direction",
    "  g          sort by growth since the last update, or by size",
    "  ↑ ↓        choose a process; also Page Up and Down, Home, End",
    "  Enter      show what the chosen process does, as etrace why; Esc goes back",
    "  t          leave, and trace the messages of the chosen process",
    "  /          show only rows with a text; among the first 1000 of a node",
    "  p  space   pause",
    "  h  ?       show this help",
    "",
    "  holds: where most of the process's memory is",
    NULL,
};

static void ps_live_title(void *data, struct buf *to)
{
    struct ps_table t = ps_table_of(data);

    ps_table_title(&t, to);
}

static void ps_live_rows(void *data, unsigned columns, struct buf *to)
{
    struct ps_run *x = data;
    struct ps_table t = ps_table_of(x);

    t.columns = columns;
    if (x->o->rows > 0)
        x->refresh.window.room = MIN(x->refresh.window.room, (size_t)x->o->rows);
    ps_table_text(&t, to);
}

/* Watches the chosen process, unless that is the one that is watched. */
static bool ps_watch_chosen(struct ps_run *x)
{
    struct ps_table t = ps_table_of(x);
    const struct ps_row *row = ps_table_chosen(&t);
    const struct peer *p = row ? &x->peers.items[row->node] : NULL;
    struct err e;

    if (!p || !peer_is_there(p) ||
        (x->watches && row->node == x->watch.node && !strcmp(row->process.pid, x->watch.process.pid)))
        return x->watches;
    x->watches = why_watch_begin(&x->watch, &row->process, row->node, session_node(p->session), &e);
    return x->watches;
}

static void ps_live_details(void *data, unsigned columns, struct buf *to)
{
    struct ps_run *x = data;
    struct why_page page = {.ssh = x->given->ssh, .paint.on = x->refresh.color, .columns = columns};

    if (!ps_watch_chosen(x))
        return;
    page.node = x->names[x->watch.node];
    page.named = peers_need_names(&x->peers) ? page.node : NULL;
    why_watch_text(&x->watch, &page, to);
}

/* ---- keys ---- */

static void choose_to_trace(struct ps_run *x)
{
    struct ps_table t = ps_table_of(x);
    const struct ps_row *row = ps_table_chosen(&t);

    if (!row)
        return;
    memcpy(x->trace_pid, row->process.pid, sizeof(x->trace_pid));
    x->trace_node = row->node;
    x->refresh.done = true;
}

static void ps_ask_watched(struct ps_run *x)
{
    struct peer *p = &x->peers.items[x->watch.node];
    struct buf b = {0};
    uint32_t id;
    struct err e;

    if (!peer_is_there(p))
        return;
    x->states[p->index].doing = PS_WATCHING;
    why_watch_request(&x->watch, &b);
    if (!session_request(p->session, buf_view(&b), ANSWER_MS, &id, &e))
        peer_fail(p, &e);
    buf_release(&b);
}

/* Looks at what the screen shows, or does so when the nodes have answered the last question. */
static void ps_look_again(void *data)
{
    struct ps_run *x = data;

    x->again = ps_is_looking(x);
    if (x->again)
        return;
    if (x->refresh.opened && ps_watch_chosen(x))
        ps_ask_watched(x);
    else
        ps_begin_look(x);
}

static void ps_on_key(void *data, int key)
{
    struct ps_run *x = data;

    switch (key) {
    case 'g':
        x->growth = !x->growth;
        x->refresh.next = 0;
        break;
    case 't':
        choose_to_trace(x);
        break;
    default:
        break;
    }
}

/* ---- the command ---- */

static bool ps_makes_sense(const struct ps_opts *o, struct err *e)
{
    for (size_t i = 0; i < o->procs.count; i++)
        if (!strcmp(o->procs.items[i], "new"))
            return err_set(e, ERR_USAGE, "-P new selects processes that do not exist yet, so there is nothing to list");
    if (o->rows > ROWS_MOST)
        return err_set(e, ERR_USAGE, "--rows %lld: a node reports at most %d processes", (long long)o->rows, ROWS_MOST);
    return true;
}

static bool ps_open(struct ps_run *x, const struct node_opts *node, struct err *e)
{
    struct peers_handlers handlers = {.data = x, .reply = ps_on_reply, .failed = ps_on_failed};
    const struct session_options session = SESSION_QUESTIONS;

    peers_begin(&x->peers, x->ctx, &handlers);
    x->peers.each = true;
    if (!peers_open(&x->peers, node, &session, e))
        return false;
    for (struct peer *p = NULL; (p = peers_next(&x->peers, p));) {
        x->names[p->index] = session_node(p->session)->name;
        x->nodes[p->index].since_us = -1;
        if (!exprs_whom(&x->o->procs, session_node(p->session), &x->states[p->index].who, e))
            return false;
    }
    return true;
}

static void ps_wait(struct ps_run *x, int64_t until)
{
    while (loop_now() < until && !x->ctx->interrupts && peers_step(&x->peers, until))
        continue;
}

static void ps_do(struct ps_run *x)
{
    bool can_live = x->o->as == GRID_TEXT && !x->o->once && !x->o->for_ns && screen_can(STDIN_FILENO, STDOUT_FILENO);

    const bool goes_on = ps_look(x);

    if (x->o->for_ns && goes_on) {
        ps_wait(x, loop_now() + x->o->for_ns / 1000000);
        x->growth = true;
        x->ctx->interrupts = 0; /* the Ctrl-C that ended the wait must not end the command */
        ps_look(x);
    } else if (x->o->for_ns) {
        ps_forget_all(x); /* one look shows no growth */
    } else if (can_live && goes_on) {
        int64_t interval = x->o->interval_ns ? MAX(x->o->interval_ns / 1000000, INTERVAL_LEAST) : INTERVAL_MS;
        refresh_run(&x->refresh, &x->peers, interval, ps_look_again);
    }
    if (!ps_knows_any(x))
        refresh_empty(&x->refresh, &x->status);
    else if (!x->trace_pid[0])
        ps_print(x);
}

static int ps_run(struct ctx *ctx, const struct ps_opts *o, const struct node_opts *node)
{
    struct ps_run x = {
        .ctx = ctx,
        .o = o,
        .given = node,
        .states = mem_zalloc(PEERS_MAX * sizeof(struct ps_peer)),
        .nodes = mem_zalloc(PEERS_MAX * sizeof(struct ps_node)),
        .names = mem_zalloc(PEERS_MAX * sizeof(char *)),
    };
    struct chosen_node chosen;
    struct err e;

    x.refresh = (struct refresh){
        .ctx = ctx,
        .name = "ps",
        .keys = "q quit  Enter details  t trace  s sort  o order  g growth  / filter  p pause  h help",
        .details_keys = "q quit  Esc back  ↑↓ scroll  t trace  p pause  h help",
        .help = help_text,
        .data = &x,
        .title = ps_live_title,
        .rows = ps_live_rows,
        .details = ps_live_details,
        .details_ask = true,
        .key = ps_on_key,
        .window = {.filter = x.refresh.filter, .room = ps_most(o), .chooses = true},
        .filters = true,
        .sorts = true,
        .color = tty_colors(STDOUT_FILENO, (enum tty_color)o->color),
    };
    look_funs_init(&x.funs);
    if (ps_makes_sense(o, &e) && ps_open(&x, node, &e)) {
        ctx_watch_reader(ctx);
        ps_do(&x);
    } else {
        refresh_fail(&x.refresh, &x.status, &e);
    }
    if (x.trace_pid[0])
        chosen_node(&chosen, &x.peers, x.trace_node);
    peers_leave(&x.peers);
    peers_close(&x.peers);
    for (size_t i = 0; i < PEERS_MAX; i++) {
        buf_release(&x.states[i].who);
        ps_node_release(&x.nodes[i]);
    }
    free(x.states);
    free(x.nodes);
    free(x.names);
    look_funs_release(&x.funs);
    why_watch_release(&x.watch);
    refresh_release(&x.refresh);
    const int traced = x.trace_pid[0] ? chosen_messages(ctx, &chosen, &(const char *){x.trace_pid}, 1) : 0;
    return traced ? traced : x.status;
}

static int cmd_ps_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct ps_opts o = {.rows = -1};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node}, {&ps_group, &o}, {&talk_group, &talk}};
    struct texts words = {0};
    char **rest;
    int status = 0;
    struct err e;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status) &&
        cmd_no_words(ctx, self, &words, "-P selects processes", &status))
        status = cmd_format(o.json, &o.as, &e) ? ps_run(ctx, &o, &node) : ctx_fail(ctx, &e);
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] = "  etrace ps                            the processes with the most memory\n"
                            "  etrace ps --sort queue               with the longest queues\n"
                            "  etrace ps --sort binaries --for 10s  whose binaries grow the most in 10 s\n"
                            "\nOn a terminal the table refreshes. The arrows choose a process: Enter shows what\n"
                            "it does, t traces its messages. q quit, s sort, / filter, h all keys.\n";

static const struct opt_group *const groups[] = {&node_group, &ps_group, &talk_group, NULL};
const struct cmd cmd_ps = {
    .name = "ps",
    .usage = "[-n NODE] [OPTIONS]",
    .summary = "Lists processes by queue, memory, binaries, reductions or growth",
    .about = about,
    .run = cmd_ps_run,
    .groups = groups,
};
