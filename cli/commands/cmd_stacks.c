/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace stacks: shows what every process is doing, grouped by stack.
 *
 * Each node gets one request at a time, independently of the other nodes, and each answer covers a part of its
 * processes. With --for, etrace looks again and again. It chooses the number of processes of the next look from the
 * time that earlier looks took, so that looking stays within its share of a core. On a terminal, it looks at all
 * processes every two seconds, and shows the result when it is complete.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../erlang/etf_write.h"
#include "../erlang/term_print.h"
#include "../ground/json.h"
#include "../ground/mem.h"
#include "../ground/out.h"
#include "../ground/screen.h"
#include "../ground/tty.h"
#include "../ground/utf8.h"
#include "../trace/exprs.h"
#include "../trace/peers.h"
#include "../views/grid.h"
#include "chosen.h"
#include "cmd.h"
#include "refresh.h"
#include "stack_table.h"

#include <time.h> /* must come last, because it defines the macro TIME_UTC */

#define ANSWER_MS 30000
#define PAGE 1000       /* limit for the processes that one answer covers */
#define ONCE_SHARE 50   /* percent of one core for a single look */
#define SAMPLES_SHARE 5 /* percent of one core with --for */
#define INTERVAL_MS 50  /* interval between two samples */
#define LIVE_MS 2000    /* interval between two updates on a terminal */
#define LIVE_LEAST 500
#define LEAST 10             /* least number of processes in a sample */
#define PATIENCE_MS 300      /* how long the node waits for processes that do not answer */
#define SAMPLE_PATIENCE_MS 5 /* the same with --for */
#define SILENT_MOST 200

struct stacks_opts {
    struct texts procs;
    /* share: limit for the load, in hundredths of a percent of a core; 0: not given */
    int64_t for_ns, interval_ns, rows, share;
    struct texts outputs;
    const char *as, *sort;
    bool json, once, all, running;
    int color;
};

#define ROW(...) OPT_ROW(struct stacks_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW('P', "proc", "WHO", OPT_TEXTS, procs,
        "only these: a pid, a registered name, app(NAME), initial(M:F/A); repeatable (default all)"),
    ROW('t', "for", "DURATION", OPT_DURATION, for_ns, "look again and again for this time (10s, 2m), and show shares"),
    ROW('i', "interval", "DURATION", OPT_DURATION, interval_ns,
        "time between two looks with --for (default 50ms), or between updates on a terminal (default 2s)"),
    ROW(0, "overhead", "PERCENT", OPT_PERCENT, share,
        "the share of one core that looking may take (default 5%; 50% without --for)"),
    ROW(0, "running", NULL, OPT_FLAG, running, "only processes that run or could run"),
    ROW('v', "verbose", NULL, OPT_FLAG, all,
        "a line for each stack of idle processes, too, and more of their processes"),
    OPT_SORT(struct stacks_opts, sort, "the most frequent first, idle ones last", &stack_columns),
    ROW(0, "rows", "N", OPT_NUMBER, rows, "print at most N stacks (default 0: all)"),
    ROW(0, "as", "VIEW", OPT_TEXT, as, "print the stacks in a view of stacks: folded, flame, speedscope, pprof"),
    ROW('o', "output", "FILE", OPT_TEXTS, outputs,
        "write to a file in the view of its extension: .svg .html .folded .speedscope.json .pprof; repeatable"),
    ROW('1', "once", NULL, OPT_FLAG, once, "print the stacks once, on a terminal too"),
    ROW(0, "json", NULL, OPT_FLAG, json,
        "one object per line: a `stack` for each stack, then a `stacks` for each node"),
    ROW(0, "color", "auto|always|never", OPT_CHOICE, color, "colours (NO_COLOR is honoured)"),
};
static const struct opt_group stacks_group = {"What is looked at", rows, ARRAY_LEN(rows)};

/* LOOK_OVER: the look is complete. LOOK_LEFT: the node was lost or has refused, so etrace does not look at it again. */
enum looking { LOOK_RESTING, LOOK_LOOKING, LOOK_NAMING, LOOK_OVER, LOOK_LEFT };

struct look_peer {
    enum looking doing;
    struct buf who;
    int64_t next;   /* loop_now() time of the next look */
    int64_t left;   /* number of processes that the current pass over all processes has not reached */
    int64_t most;   /* limit for the number of processes in the next look */
    double us_each; /* average time to look at one process, in us */
    uint64_t looks, passes, processes, left_out; /* left_out: as in struct stack_groups */
    struct look_process *silent;
    size_t nsilent, silent_cap;
    bool named;
};

struct chosen_stack {
    unsigned node;
    struct look_process processes[STACK_PIDS];
    size_t nprocesses;
    bool all; /* `processes` does not list all processes with this stack */
};

struct stacks_run {
    struct ctx *ctx;
    const struct stacks_opts *o;
    struct peers peers;
    struct look_peer *states;
    const char **names;
    struct stack_groups groups;
    /* On a terminal: the last complete look, and the first one. `groups` collects the next one. */
    struct stack_groups shown, first;
    struct refresh refresh;
    struct chosen_stack chosen; /* the stack to trace after the table is closed */
    char function[300];         /* the innermost function of the chosen stack that is not of OTP or Elixir; "": none */
    bool can_live;
    bool all; /* show a line for each stack of idle processes, too */
    struct look_funs funs;
    int64_t until, interval;
    int64_t from_ns, to_ns; /* wall clock times of the first and of the last look */
    int64_t begun;          /* loop_now() time when the current look, or the first sample, began */
    int share;
    int status;
};

static int64_t wall_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool stacks_is_looking(const struct look_peer *s)
{
    return s->doing < LOOK_OVER;
}

/* Returns true if etrace has looked at the node, and can show that. */
static bool stacks_knows(const struct look_peer *s)
{
    return s->looks || s->passes;
}

static bool stacks_knows_any(const struct stacks_run *x)
{
    for (size_t i = 0; i < x->peers.count; i++)
        if (stacks_knows(&x->states[i]))
            return true;
    return false;
}

/* Returns true if there is a node to look at again. */
static bool stacks_can_look(const struct stacks_run *x)
{
    for (struct peer *p = NULL; (p = peers_next(&x->peers, p));)
        if (x->states[p->index].doing != LOOK_LEFT)
            return true;
    return false;
}

/*
 * Ends the looks at a node. Drops what an incomplete look has found, because it must not be shown as if it were all
 * processes. With --for, keeps the samples.
 */
static void stacks_lose(struct stacks_run *x, const struct peer *p)
{
    struct look_peer *s = &x->states[p->index];
    const bool drops = !x->o->for_ns && stacks_is_looking(s);

    s->doing = LOOK_LEFT;
    if (drops)
        stack_groups_drop(&x->groups, p->index, s->left_out);
    if (drops && !x->refresh.live)
        s->looks = s->passes = s->left_out = s->nsilent = 0;
    if (x->refresh.live && !stacks_can_look(x))
        x->refresh.done = true;
}

static void stacks_on_failed(void *data, struct peer *p, const struct err *e)
{
    struct stacks_run *x = data;

    if (x->states[p->index].doing == LOOK_LEFT)
        return;
    stacks_lose(x, p);
    refresh_fail(&x->refresh, &x->status, e);
}

/* ---- questions ---- */

static void send_question(struct stacks_run *x, struct peer *p, struct str request, enum looking doing)
{
    uint32_t id;
    struct err e;

    x->states[p->index].doing = doing;
    if (!session_request(p->session, request, ANSWER_MS, &id, &e))
        peer_fail(p, &e);
}

static void ask_stacks(struct stacks_run *x, struct peer *p)
{
    struct look_peer *s = &x->states[p->index];
    struct buf b = {0};
    bool samples = x->o->for_ns > 0;

    look_request(&b, &(struct look_question){
                         .what = "stacks",
                         .who = buf_view(&s->who),
                         .anew = !s->left,
                         .most = (size_t)(samples ? s->most : PAGE),
                         .share = samples          ? 100
                                  : x->share / 100 ? x->share / 100
                                                   : 1,
                         .patience_ms = samples ? SAMPLE_PATIENCE_MS : PATIENCE_MS,
                         .pids = x->all || x->refresh.opened ? STACK_PIDS_ALL : STACK_PIDS,
                     });
    send_question(x, p, buf_view(&b), LOOK_LOOKING);
    buf_release(&b);
}

/* Requests the names of some processes of each group. */
static void ask_names(struct stacks_run *x, struct peer *p)
{
    struct look_peer *s = &x->states[p->index];
    struct buf b = {0};

    s->named = true;
    if (stack_groups_ask_names(&x->groups, p->index, PATIENCE_MS, &b))
        send_question(x, p, buf_view(&b), LOOK_NAMING);
    else
        s->doing = LOOK_OVER;
    buf_release(&b);
}

/* ---- answers ---- */

static bool take_silent(struct look_peer *s, struct etf term)
{
    struct look_list list = look_list(term);
    struct look_process one;

    while (look_list_next(&list, &one)) {
        bool known = false;
        for (size_t k = 0; k < s->nsilent; k++)
            known = known || !strcmp(s->silent[k].pid, one.pid);
        if (known || s->nsilent == SILENT_MOST)
            continue;
        s->silent = mem_grow(s->silent, &s->silent_cap, s->nsilent + 1, sizeof(*s->silent));
        s->silent[s->nsilent++] = one;
    }
    return list.ok;
}

/* Chooses the time of the next sample, and how many processes it covers. */
static void stacks_plan(struct stacks_run *x, struct look_peer *s, const struct look_answer *a)
{
    int64_t now = loop_now();

    if (!x->o->for_ns) {
        s->next = now;
        return;
    }
    if (a->looked > 0) {
        double us = (double)a->us / (double)a->looked;
        s->us_each = s->us_each > 0 ? s->us_each * 0.8 + us * 0.2 : us;
    }
    double budget = (double)x->interval * 1000 * x->share / 10000; /* time for looking in each interval, in us */
    double most = s->us_each > 0 ? budget / s->us_each : LEAST;
    s->most = most > PAGE ? PAGE : most < LEAST ? LEAST : (int64_t)most;
    /* If even the smallest sample exceeds the share, makes samples rarer. */
    double least = s->us_each * (double)MIN(s->most, a->looked) / 1000 * 10000 / x->share;
    s->next = now + MAX(x->interval, (int64_t)MIN(least, 60000));
}

static void stacks_pump(struct stacks_run *x);

static int64_t stacks_left(const struct stacks_run *x)
{
    int64_t left = 0;

    for (size_t i = 0; i < x->peers.count; i++)
        left += stacks_is_looking(&x->states[i]) ? x->states[i].left : 0;
    return left;
}

static void stacks_on_reply(void *data, struct peer *p, const struct session_reply *reply)
{
    struct stacks_run *x = data;
    struct look_peer *s = &x->states[p->index];
    const enum looking was = s->doing;
    const uint64_t left_out = x->groups.left_out;
    struct look_answer a;
    struct err e;
    bool ok = true;

    s->doing = LOOK_RESTING;
    if (!reply->ok) {
        session_error(reply, &e);
        ok = false;
    } else if (!look_read(reply->term, &a, &e)) {
        ok = false;
    } else if (was == LOOK_NAMING) {
        s->doing = LOOK_OVER;
        ok = stack_groups_named(&x->groups, p->index, a.names) ||
             err_set(&e, ERR_RUN, "the node's answer about names is malformed");
    } else {
        ok = stack_groups_add(&x->groups, p->index, &a, s->passes, look_funs_of(&x->funs, session_node(p->session)),
                              &e) &&
             (take_silent(s, a.silent) || err_set(&e, ERR_RUN, "the node's answer about its stacks is malformed"));
        s->left_out += x->groups.left_out - left_out;
        s->left = a.left;
        s->looks += (uint64_t)a.looked;
        s->passes += !a.left;
        stacks_plan(x, s, &a);
        if (!x->o->for_ns && !a.left)
            s->next = INT64_MAX;
        if (!x->o->for_ns && !x->refresh.live)
            look_progress(x->ctx, x->begun, stacks_left(x));
    }
    if (!ok) {
        stacks_lose(x, p);
        refresh_refused(&x->refresh, &x->status, p, &e);
    } else if (x->refresh.live) {
        stacks_pump(x);
    }
}

/* ---- the loop ---- */

/* Sends the requests that are due. Returns the loop_now() time of the next one; -1: there is no node left to ask. */
static int64_t stacks_due(struct stacks_run *x, bool ending)
{
    int64_t next = -1, now = loop_now();

    for (struct peer *p = NULL; (p = peers_next(&x->peers, p));) {
        struct look_peer *s = &x->states[p->index];
        if (s->doing == LOOK_RESTING && (ending || s->next == INT64_MAX))
            s->named ? (void)(s->doing = LOOK_OVER) : ask_names(x, p);
        else if (s->doing == LOOK_RESTING && now >= s->next)
            ask_stacks(x, p);
        if (stacks_is_looking(s)) {
            int64_t at = s->doing == LOOK_RESTING ? s->next : now + 1000;
            next = next < 0 ? at : MIN(next, at);
        }
    }
    return next;
}

/* Fails for the nodes that a signal has kept from answering. */
static void stacks_stopped(struct stacks_run *x)
{
    struct err e;

    for (struct peer *p = NULL; (p = peers_next(&x->peers, p));) {
        if (!stacks_is_looking(&x->states[p->index]))
            continue;
        stacks_lose(x, p);
        if (look_stopped(x->ctx, x->names[p->index], &e))
            refresh_fail(&x->refresh, &x->status, &e);
    }
}

static void stacks_collect(struct stacks_run *x)
{
    int64_t next;
    bool ending = false;

    x->from_ns = wall_now();
    x->begun = loop_now();
    while ((next = stacks_due(x, ending)) >= 0) {
        if (x->o->for_ns && !ending)
            next = MIN(next, x->until);
        if (!peers_step(&x->peers, next))
            break;
        if (x->ctx->interrupts > (x->o->for_ns ? 1 : 0)) /* with --for, the first Ctrl-C only ends the time of --for */
            break;
        ending = ending || x->ctx->interrupts || (x->o->for_ns && loop_now() >= x->until);
    }
    ctx_progress_end(x->ctx);
    if (!x->o->for_ns)
        stacks_stopped(x);
    x->to_ns = wall_now();
    x->groups.grown = x->o->for_ns > 0;
    for (unsigned i = 0; i < x->peers.count; i++) {
        x->groups.grown = x->groups.grown && (!x->names[i] || x->states[i].passes > 1);
        stack_groups_grow(&x->groups, i, x->states[i].passes);
    }
}

/* ---- output ---- */

static void json_nodes(struct stacks_run *x, struct buf *to)
{
    for (size_t i = 0; i < x->peers.count; i++) {
        const struct look_peer *s = &x->states[i];
        if (!stacks_knows(s))
            continue;
        json_begin_record(to, "stacks");
        json_put_text(to, "node", x->names[i]);
        json_put_uint(to, "looks", s->looks);
        if (x->o->for_ns)
            json_put_uint(to, "passes", s->passes);
        if (s->left_out)
            json_put_uint(to, "left_out", s->left_out);
        json_put_int(to, "elapsed_us", (x->to_ns - x->from_ns) / 1000);
        json_put_array(to, "silent");
        for (size_t k = 0; k < s->nsilent; k++)
            look_process_json(to, &s->silent[k]);
        json_end_array(to);
        json_end_record(to);
    }
}

static void text_silent(struct stacks_run *x, const struct stack_table *t, struct buf *to)
{
    for (size_t i = 0; i < x->peers.count; i++) {
        const struct look_peer *s = &x->states[i];
        struct buf who = {0};
        if (!s->nsilent)
            continue;
        buf_printf(to, "%8zu ", s->nsilent);
        if (t->nnodes > 1)
            buf_printf(to, "%s ", x->names[i]);
        paint_str(&t->paint, to, PAINT_FAILURE, STR("no answer"));
        for (size_t k = 0; k < s->nsilent; k++) {
            buf_char(&who, ' ');
            look_process_print(&who, &s->silent[k]);
        }
        const size_t used = 18 + (t->nnodes > 1 ? utf8_width(x->names[i], strlen(x->names[i])) + 1 : 0);
        if (t->columns)
            grid_cut(to, buf_view(&who), t->columns - MIN(used, t->columns));
        else
            buf_str(to, buf_view(&who));
        buf_char(to, '\n');
        buf_release(&who);
    }
}

static struct stack_table table_of(struct stacks_run *x)
{
    return (struct stack_table){
        .groups = x->refresh.live ? &x->shown : &x->groups,
        .names = x->names,
        .nnodes = x->peers.count,
        .sort = {x->o->sort, &x->refresh.turn},
        .samples = x->o->for_ns > 0,
        .all = x->all,
        .paint.on = tty_colors(STDOUT_FILENO, (enum tty_color)x->o->color),
        .columns = tty_is(STDOUT_FILENO) ? tty_columns(STDOUT_FILENO) : 0,
        .window = &x->refresh.window,
    };
}

static void stacks_print(struct stacks_run *x)
{
    struct stack_table t = table_of(x);
    struct buf b = {0};

    x->refresh.window.room = (size_t)x->o->rows;
    if (x->o->json) {
        stack_table_json(&t, &b);
        json_nodes(x, &b);
    } else {
        stack_table_text(&t, &b);
        text_silent(x, &t, &b);
    }
    out_take(x->ctx->out, &b);
    buf_release(&b);
}

/* Appends the stacks to `to`, formatted by a view. */
static bool stacks_view(struct stacks_run *x, const struct sink_type *type, const char *file, struct buf *to,
                        struct err *e)
{
    struct look look = {.colour = false, .file = file, .nodes = x->peers.count > 1};
    struct totals totals = {.complete = true};
    struct event_node *nodes = mem_zalloc((x->peers.count + 1) * sizeof(*nodes));
    struct buf *kept = mem_zalloc((x->peers.count + 1) * sizeof(*kept));
    struct sink *view = sink_open(type, &look, to, e);

    for (unsigned i = 0; i < x->peers.count; i++) {
        nodes[i].index = i;
        nodes[i].name = safe_keep(&kept[i], raw_text(x->names[i] ? x->names[i] : ""));
    }
    if (view) {
        stack_groups_show(&x->groups, nodes, x->from_ns, x->to_ns, view);
        view->type->end(view, &totals);
        sink_free(view);
    }
    for (size_t i = 0; i < x->peers.count; i++)
        buf_release(&kept[i]);
    free(kept);
    free(nodes);
    return view;
}

static const struct sink_type *view_of(const char *as, const char *file, struct err *e)
{
    const struct sink_type *type = as ? sink_by_name(as) : sink_by_file(file, NULL);

    if (type && type->flags & SINK_STACKS)
        return type;
    err_set(e, ERR_USAGE, as ? "%s is not a view of stacks" : "%s has no extension of a view of stacks",
            as ? as : file);
    err_hint(e, "folded, flame, speedscope and pprof show stacks; their extensions are .folded, .svg, .html, "
                ".speedscope.json and .pprof");
    return NULL;
}

static bool stacks_write(struct stacks_run *x, struct err *e)
{
    const struct stacks_opts *o = x->o;
    struct buf b = {0};
    bool ok = true;

    for (size_t i = 0; ok && i < o->outputs.count; i++) {
        const struct sink_type *type = view_of(NULL, o->outputs.items[i], e);
        buf_clear(&b);
        ok = type && stacks_view(x, type, o->outputs.items[i], &b, e) &&
             out_write_file(o->outputs.items[i], buf_view(&b), false, e);
    }
    if (ok && o->as) {
        const struct sink_type *type = view_of(o->as, NULL, e);
        buf_clear(&b);
        ok = type && stacks_view(x, type, NULL, &b, e);
        if (ok)
            out_take(x->ctx->out, &b);
    } else if (ok && (!o->outputs.count || o->json)) {
        stacks_print(x);
    }
    buf_release(&b);
    return ok;
}

/*
 * Warns if the time of --for was too short to look at all processes of a node, so that the shares are about some of
 * them.
 */
static void say_incomplete(struct stacks_run *x)
{
    for (size_t i = 0; i < x->peers.count; i++) {
        const struct look_peer *s = &x->states[i];
        if (s->doing != LOOK_LEFT && !s->passes && s->left)
            ctx_warn(x->ctx,
                     "%s: the time sufficed for %" PRIu64 " of %" PRIu64
                     " processes, and the shares are theirs: use a longer --for or a larger --overhead",
                     x->names[i], s->looks, s->looks + s->nsilent + (uint64_t)s->left);
    }
}

static bool sorts_by_growth(const struct stacks_opts *o)
{
    return o->sort && strstr(o->sort, "growth");
}

static void stacks_say(struct stacks_run *x)
{
    double seconds = (double)(x->to_ns - x->from_ns) / 1e9;
    uint64_t looks = 0;
    size_t silent = 0;

    for (size_t i = 0; i < x->peers.count; i++) {
        looks += x->states[i].looks;
        silent += x->states[i].nsilent;
    }
    const char *unit = x->o->for_ns ? "look" : "process";
    ctx_say(x->ctx, "%" PRIu64 " %s%s · %zu stack%s · %.2fs%s", looks, unit,
            x->o->for_ns ? PLURAL(looks) : PLURAL_ES(looks), x->groups.nstacks, PLURAL(x->groups.nstacks), seconds,
            x->o->for_ns && x->ctx->interrupts ? " · stopped" : "");
    if (x->o->for_ns)
        say_incomplete(x);
    if (x->groups.left_out)
        ctx_warn(x->ctx, "%" PRIu64 " %s%s of more than %d different stacks left out: look at fewer processes, with -P",
                 x->groups.left_out, unit, x->o->for_ns ? PLURAL(x->groups.left_out) : PLURAL_ES(x->groups.left_out),
                 GROUPS_MAX);
    if (x->o->for_ns && !x->groups.grown && sorts_by_growth(x->o))
        ctx_warn(x->ctx, "the growth is unknown: the time did not suffice for two looks at all processes");
    if (silent)
        ctx_warn(x->ctx, "%zu process%s did not answer in time%s: a long NIF or garbage collection keeps %s busy",
                 silent, PLURAL_ES(silent), x->o->for_ns ? ", at least once" : "", silent == 1 ? "it" : "them");
}

/* ---- on a terminal ---- */

static const char *const help_text[] = {
    "  q          quit; the stacks stay on the terminal",
    "  ↑ ↓        choose a stack; also Page Up and Down, Home, End",
    "  Enter      show the whole stack and its processes; Esc goes back",
    "  t          leave, and trace the calls of its innermost function that is not",
    "             of OTP or Elixir, in its processes; without one, their messages;",
    "             of more than four idle processes, show their stacks",
    "  /          show only stacks with a text, such as a function or a name",
    "  s  → ←     sort by the next column: count, growth, status, time waited, node,",
    "             stack",
    "  o          the other direction",
    "  v          show each stack of idle processes, and more of their processes",
    "  p  space   pause",
    "  h  ?       show this help",
    NULL,
};

static struct stack_groups no_groups(const struct stacks_run *x)
{
    return (struct stack_groups){.running = x->o->running};
}

/* Sends the requests that are due. When all nodes have answered, shows the result. */
static void stacks_pump(struct stacks_run *x)
{
    if (stacks_due(x, false) >= 0)
        return;
    if (x->shown.grown)
        stack_groups_release(&x->shown);
    else
        x->first = x->shown;
    x->shown = x->groups;
    stack_groups_grow_from(&x->shown, &x->first);
    x->groups = no_groups(x);
    x->to_ns = wall_now();
    x->refresh.dirty = true;
}

static void stacks_look_again(void *data)
{
    struct stacks_run *x = data;

    for (struct peer *p = NULL; (p = peers_next(&x->peers, p));)
        if (stacks_is_looking(&x->states[p->index]))
            return;
    for (struct peer *p = NULL; (p = peers_next(&x->peers, p));) {
        struct look_peer *s = &x->states[p->index];
        if (s->doing == LOOK_LEFT)
            continue;
        s->doing = LOOK_RESTING;
        s->next = s->left = 0;
        s->looks = s->nsilent = s->left_out = 0;
        s->named = false;
    }
    stack_groups_release(&x->groups);
    x->groups = no_groups(x);
    x->from_ns = wall_now();
    stacks_pump(x);
}

static void stacks_live_title(void *data, struct buf *to)
{
    const struct stacks_run *x = data;

    if (x->peers.count == 1)
        buf_puts(to, x->names[0]);
    else
        buf_printf(to, "%zu nodes", x->peers.count);
    buf_printf(to, " · %" PRIu64 " process%s · %zu stack%s", x->shown.looks, PLURAL_ES(x->shown.looks),
               x->shown.nstacks, PLURAL(x->shown.nstacks));
    if (x->shown.grown) {
        buf_puts(to, " · growth in ");
        print_duration(to, (loop_now() - x->begun) / 1000 * 1000000000);
    }
}

static void stacks_live_rows(void *data, unsigned columns, struct buf *to)
{
    struct stacks_run *x = data;
    struct stack_table t = table_of(x);

    t.columns = columns;
    if (x->o->rows)
        x->refresh.window.room = MIN(x->refresh.window.room, (size_t)x->o->rows);
    stack_table_text(&t, to);
    text_silent(x, &t, to);
}

static void stacks_live_details(void *data, unsigned columns, struct buf *to)
{
    struct stack_table t = table_of(data);

    t.columns = columns;
    if (!stack_table_details(&t, to))
        buf_puts(to, "no process has this stack now\n");
}

/* Copies what the trace needs, because the line is freed with the table. */
static void choose_line(void *data, const struct stack_line *line)
{
    struct stacks_run *x = data;
    struct chosen_stack *c = &x->chosen;
    const struct look_frame *own = look_own(x->shown.frames + line->stack->first, line->stack->count);
    struct buf b = {0};

    c->node = line->stack->node;
    for (size_t i = 0; i < line->ngroups; i++)
        for (size_t k = 0; k < line->groups[i]->nprocesses && c->nprocesses < STACK_PIDS; k++)
            c->processes[c->nprocesses++] = line->groups[i]->processes[k];
    c->all = line->looks > c->nprocesses;
    if (own) {
        look_frame_print(&b, own);
        snprintf(x->function, sizeof(x->function), "%s", buf_cstr(&b));
    }
    buf_release(&b);
    x->refresh.done = true;
}

/*
 * Chooses the stack to trace, and closes the table. If the line stands for many idle processes, which may have
 * different stacks, shows their stacks instead, unless its details show them already.
 */
static void choose_stack(void *data, const struct stack_line *line)
{
    struct stacks_run *x = data;

    if (line->behaviour && line->looks > STACK_PIDS && !x->refresh.opened)
        x->all = true;
    else
        choose_line(x, line);
}

static void stacks_on_key(void *data, int key)
{
    struct stacks_run *x = data;

    if (key == 'v') {
        x->all = !x->all;
    } else if (key == 't') {
        const struct stack_table t = table_of(x);
        stack_table_chosen(&t, choose_stack, x);
    }
}

static void stacks_live(struct stacks_run *x)
{
    int64_t interval = x->o->interval_ns ? MAX(x->o->interval_ns / 1000000, LIVE_LEAST) : LIVE_MS;

    x->shown = x->groups;
    x->groups = no_groups(x);
    refresh_run(&x->refresh, &x->peers, interval, stacks_look_again);
    stack_groups_release(&x->groups);
    x->groups = x->shown;
    x->shown = (struct stack_groups){0};
}

/* Traces the chosen stack: calls of its own function if there is one, otherwise messages of its processes. */
static int stacks_trace(struct stacks_run *x, const struct chosen_node *node)
{
    const char *pids[STACK_PIDS];

    for (size_t i = 0; i < x->chosen.nprocesses; i++)
        pids[i] = x->chosen.processes[i].pid;
    return x->function[0] ? chosen_calls(x->ctx, node, pids, x->chosen.all ? 0 : x->chosen.nprocesses, x->function)
                          : chosen_messages(x->ctx, node, pids, x->chosen.nprocesses);
}

/* ---- the command ---- */

static bool stacks_makes_sense(const struct stacks_opts *o, bool can_live, struct err *e)
{
    for (size_t i = 0; i < o->procs.count; i++)
        if (!strcmp(o->procs.items[i], "new")) {
            err_set(e, ERR_USAGE, "-P new selects processes that do not exist yet, so there is nothing to look at");
            return false;
        }
    for (size_t i = 0; i < o->outputs.count; i++)
        if (!view_of(NULL, o->outputs.items[i], e))
            return false;
    if (o->as && !view_of(o->as, NULL, e))
        return false;
    if (o->as && sink_by_name(o->as)->flags & SINK_BINARY && tty_is(STDOUT_FILENO))
        return err_set(e, ERR_USAGE, "the view '%s' is not for a terminal: use -o FILE, or a pipe", o->as);
    if (o->as && o->json)
        return err_set(e, ERR_USAGE, "--json and --as exclude each other");
    if (o->interval_ns && !o->for_ns && !can_live)
        return err_set(e, ERR_USAGE, "--interval also needs --for DURATION");
    if (sorts_by_growth(o) && !o->for_ns && !can_live)
        return err_set(e, ERR_USAGE, "--sort growth also needs --for DURATION, because one look shows no growth");
    return true;
}

static bool stacks_open(struct stacks_run *x, const struct node_opts *node, struct err *e)
{
    struct peers_handlers handlers = {.data = x, .reply = stacks_on_reply, .failed = stacks_on_failed};
    const struct session_options session = SESSION_QUESTIONS;

    peers_begin(&x->peers, x->ctx, &handlers);
    x->peers.each = true;
    if (!peers_open(&x->peers, node, &session, e))
        return false;
    for (struct peer *p = NULL; (p = peers_next(&x->peers, p));) {
        struct look_peer *s = &x->states[p->index];
        const struct session_node *there = session_node(p->session);
        x->names[p->index] = there->name;
        s->most = x->o->for_ns ? 100 : PAGE;
        if (!exprs_whom(&x->o->procs, there, &s->who, e))
            return false;
    }
    return true;
}

static int stacks_run(struct ctx *ctx, const struct stacks_opts *o, const struct node_opts *node)
{
    struct stacks_run x = {
        .ctx = ctx,
        .o = o,
        .interval = o->interval_ns ? MAX(o->interval_ns / 1000000, 1) : INTERVAL_MS,
        .all = o->all,
        .groups.running = o->running,
        .share = o->share ? (int)o->share : (o->for_ns ? SAMPLES_SHARE : ONCE_SHARE) * 100,
        .states = mem_zalloc(PEERS_MAX * sizeof(struct look_peer)),
        .names = mem_zalloc(PEERS_MAX * sizeof(char *)),
    };
    struct chosen_node chosen;
    struct err e;

    x.can_live =
        !o->json && !o->once && !o->for_ns && !o->as && !o->outputs.count && screen_can(STDIN_FILENO, STDOUT_FILENO);
    x.refresh = (struct refresh){
        .ctx = ctx,
        .name = "stacks",
        .keys = "q quit  Enter details  t trace  s sort  o order  / filter  v all  p pause  h help",
        .details_keys = "q quit  Esc back  ↑↓ scroll  t trace  p pause  h help",
        .help = help_text,
        .data = &x,
        .title = stacks_live_title,
        .rows = stacks_live_rows,
        .details = stacks_live_details,
        .key = stacks_on_key,
        .filters = true,
        .window = {.filter = x.refresh.filter, .chooses = true},
        .sorts = true,
        .color = tty_colors(STDOUT_FILENO, (enum tty_color)o->color),
    };
    look_funs_init(&x.funs);
    bool ok = stacks_makes_sense(o, x.can_live, &e) && stacks_open(&x, node, &e);
    if (ok) {
        if (!o->outputs.count)
            ctx_watch_reader(ctx);
        x.until = loop_now() + o->for_ns / 1000000;
        stacks_collect(&x);
        if (x.can_live && stacks_can_look(&x) && !ctx->interrupts)
            stacks_live(&x);
        if (!stacks_knows_any(&x))
            refresh_empty(&x.refresh, &x.status);
        const bool shows = stacks_knows_any(&x) && !x.chosen.nprocesses;
        ok = !shows || stacks_write(&x, &e);
        if (ok && shows)
            stacks_say(&x);
    }
    if (!ok)
        refresh_fail(&x.refresh, &x.status, &e);
    if (x.chosen.nprocesses)
        chosen_node(&chosen, &x.peers, x.chosen.node);
    peers_leave(&x.peers);
    peers_close(&x.peers);
    for (size_t i = 0; i < PEERS_MAX; i++) {
        buf_release(&x.states[i].who);
        free(x.states[i].silent);
    }
    free(x.states);
    free(x.names);
    stack_groups_release(&x.groups);
    stack_groups_release(&x.shown);
    stack_groups_release(&x.first);
    look_funs_release(&x.funs);
    refresh_release(&x.refresh);
    const int traced = x.chosen.nprocesses ? stacks_trace(&x, &chosen) : 0;
    return traced ? traced : x.status;
}

static int cmd_stacks_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct stacks_opts o = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node}, {&stacks_group, &o}, {&talk_group, &talk}};
    struct texts words = {0};
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status) &&
        cmd_no_words(ctx, self, &words, "-P selects processes", &status))
        status = stacks_run(ctx, &o, &node);
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] = "  etrace stacks                         what all processes do now\n"
                            "  etrace stacks -P 'app(shop)'\n"
                            "  etrace stacks --for 10s -o wait.svg   where they wait, as a flame graph\n"
                            "  etrace stacks --for 10s --running     which code runs\n"
                            "\nEach line has a number of processes, their state, and their stack from the\n"
                            "innermost function on. Idle processes have one line for each behaviour, with\n"
                            "the modules that they serve. Looking changes nothing in the processes. On a\n"
                            "terminal the table refreshes. The arrows choose a stack: Enter shows it whole,\n"
                            "t traces its own function. q quit, / filter, v all stacks, h all keys.\n";

static const struct opt_group *const groups[] = {&node_group, &stacks_group, &talk_group, NULL};
const struct cmd cmd_stacks = {
    .name = "stacks",
    .usage = "[-n NODE] [OPTIONS]",
    .summary = "Shows what all processes do now, grouped by stack",
    .about = about,
    .run = cmd_stacks_run,
    .groups = groups,
};
