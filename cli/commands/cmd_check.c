/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace check: looks at a whole node for a second or two, without tracing, and says what is wrong with it. With --for
 * it looks longer, and also traces events that begin and end between two looks (check_trace.h).
 *
 * For each node, one question at a time:
 *
 *   SCANS     look at every process once, and choose suspects (nif/tracer_health.hrl)
 *   FACTS     ask for the figures of the node
 *   ARMS      only with --for: begin to trace
 *   WATCHES   look at the suspects again and again, as `etrace why` does
 *   QUEUES    only with --for, now and then while it watches: look for queues that have become long, which become
 *             suspects
 *   REARMS    trace the messages of their processes, too, and go on watching
 *   AGAIN     ask for the figures, and for the processes that others wait for: they become suspects, too
 *   DWELLS    look at all suspects, at last with all details
 *   LAST      ask for the figures a third time
 *   NAMES     only with --for: ask for the names of the processes that send most
 *   BINARIES  only if neither processes nor tables explain the memory: ask for the processes with the most binaries
 *   DONE, OVER
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/json.h"
#include "../ground/mem.h"
#include "../ground/tty.h"
#include "../trace/exprs.h"
#include "../trace/peers.h"
#include "check_page.h"
#include "cmd.h"

#define ANSWER_MS 30000
#define PATIENCE_MS 200
#define PAGE 20000      /* limit for the processes that one answer covers */
#define SHARE 50        /* percent of one core that the scan may use */
#define ROUND_MS 60     /* interval between two looks at the same suspect */
#define WATCH_MS 1000   /* how long check watches the suspects of the scan */
#define DWELL_MS 500    /* how long check then watches all suspects */
#define LONGEST_MS 2500 /* limit for watching suspects, if the answers are slow */
#define QUEUES_MS 2000  /* least interval between two looks for long queues */
#define QUEUES_PART 20  /* such a look may take a 20th of the interval; after a longer one the interval is longer */
/* A queue of so many messages or more is long. The node has the same limit (tracer_health.hrl). */
#define QUEUE_LONG 100
#define SUSPECTS 128
/* Limit for the suspects that did not answer the scan, because each look at one takes PATIENCE_MS. */
#define SILENT_SUSPECTS 8
#define BINARIES_LEAST (192 << 20) /* least number of unexplained bytes for which check asks about binaries */
#define BASE (64 << 20)            /* bytes of code and of the VM itself */
#define TRACED_SUSPECTS 8          /* limit for the suspects that the trace adds */
#define LATE_SUSPECTS 12           /* limit for the suspects whose queues have become long */
#define TRACED_BYTES 512           /* bytes that the node sends of a term */
#define TRACED_RING (256 << 10)    /* bytes of the ring of each thread of the node */

struct check_opts {
    int64_t for_ns;
    const char *sort;
    bool json;
    int as, color; /* as: enum grid_as */
};

#define ROW(...) OPT_ROW(struct check_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW('t', "for", "DURATION", OPT_DURATION, for_ns,
        "look for this time, and trace what is over between two looks (default 1s, without a trace)"),
    ROW(0, "json", NULL, OPT_FLAG, json, "one object per line: a `finding` for each, then a `check` for each node"),
    ROW(0, "as", GRID_AS, OPT_CHOICE, as, "the format: text, --json, or columns for spreadsheets"),
    OPT_SORT(struct check_opts, sort, "the most harmful first", &check_columns),
    ROW(0, "color", "auto|always|never", OPT_CHOICE, color, "colours (NO_COLOR is honoured)"),
};
static const struct opt_group check_group = {"How it is shown", rows, ARRAY_LEN(rows)};

enum check_phase { SCANS, FACTS, ARMS, WATCHES, AGAIN, DWELLS, LAST, NAMES, BINARIES, QUEUES, REARMS, DONE, OVER };

struct check_peer {
    enum check_phase phase;
    struct buf everybody; /* the argument "all processes", encoded for the scan */
    int64_t begun, asked; /* loop_now() times: of the first question, and of the last one */
    int64_t next;         /* loop_now() time of the next question; -1: an answer is missing */
    size_t at;            /* index of the suspect to look at next */
    int64_t round, until; /* loop_now() times: when this round over all suspects began, and when the phase should end */
    int64_t longest;      /* loop_now() time at which the phase ends even within a round */
    bool whole;           /* this is the last round, which asks for all details */
    bool more;            /* the scan, or the search for binaries, is not complete */
    struct check_suspect *suspects[SUSPECTS];
    struct ps_node binaries, queues;
    int64_t look_queues;       /* loop_now() time of the next look for long queues */
    struct check_trace *trace; /* NULL: without --for */
    /*
     * Numbers of suspects: those that the trace has added, those whose queues became long while check watched, and
     * those that did not answer the scan.
     */
    size_t traced, late, silent;
    struct check_seen seen;
    struct err why;              /* OVER: why nothing is known about the node */
    int64_t took_ms, slowest_ms; /* time of the whole check of the node, and of the slowest answer */
};

struct check_run {
    struct ctx *ctx;
    const struct check_opts *o;
    struct peers peers;
    struct check_peer *states;
    struct look_funs funs;
    size_t found, printed; /* printed: number of nodes */
    int status;
    bool hurries; /* Ctrl-C has ended the wait of --for */
};

static void check_fail(struct check_run *x, struct check_peer *s, const struct err *e)
{
    int status = ctx_fail(x->ctx, e);

    s->phase = OVER;
    s->why = *e;
    x->status = x->status ? x->status : status;
}

static void check_on_failed(void *data, struct peer *p, const struct err *e)
{
    struct check_run *x = data;

    if (x->states[p->index].phase != DONE)
        check_fail(x, &x->states[p->index], e);
}

/* ---- suspects ---- */

static struct check_suspect *check_suspect_with(struct check_peer *s, const char *pid)
{
    for (size_t i = 0; i < s->seen.nsuspects; i++)
        if (!strcmp(s->suspects[i]->pid, pid))
            return s->suspects[i];
    return NULL;
}

/* Makes the process a suspect. Returns false if it is one already, or if there is no room for it. */
static bool check_suspect(struct check_peer *s, struct peer *p, const char *pid, const char *reason)
{
    struct err e;

    if (pid[0] != '<' || check_suspect_with(s, pid))
        return false;
    if (s->seen.nsuspects == SUSPECTS) {
        s->seen.left_out++;
        return false;
    }
    struct check_suspect *new = mem_zalloc(sizeof(*new));
    snprintf(new->pid, sizeof(new->pid), "%s", pid);
    snprintf(new->reason, sizeof(new->reason), "%s", reason);
    if (!exprs_whom(&(struct texts){.items = &(const char *){new->pid}, .count = 1}, session_node(p->session),
                    &new->who, &e)) {
        free(new);
        return false;
    }
    s->suspects[s->seen.nsuspects++] = new;
    return true;
}

/* Makes a silent process a suspect. Counts it as left out if SILENT_SUSPECTS silent ones are suspects already. */
static void check_suspect_silent(struct check_peer *s, struct peer *p, const char *pid)
{
    if (s->silent == SILENT_SUSPECTS)
        s->seen.left_out++;
    else
        s->silent += check_suspect(s, p, pid, "silent");
}

/* Makes a suspect of a process for which others wait, or that may hold what they wait for. */
static void check_want(struct check_peer *s, struct peer *p, const char *pid, const char *reason)
{
    check_suspect(s, p, pid, reason);
    struct check_suspect *wanted = check_suspect_with(s, pid);
    if (wanted)
        wanted->wanted = true;
}

static void check_suspects_of(struct check_peer *s, struct peer *p, const struct check_facts *f)
{
    for (size_t i = 0; i < f->nports; i++)
        check_suspect(s, p, f->ports[i].owner.pid, "port");
    for (size_t i = 0; i < f->npools; i++) {
        check_want(s, p, f->pools[i].process.pid, "target");
        if (f->pools[i].nowners)
            check_want(s, p, f->pools[i].owners[0].pid, "owner");
    }
    for (size_t i = 0; i < f->nwaits; i++) {
        if (!f->waits[i].elsewhere)
            check_want(s, p, f->waits[i].process.pid, "target");
        if (f->waits[i].nowners)
            check_want(s, p, f->waits[i].owners[0].pid, "owner");
    }
}

/* ---- questions ---- */

static void check_look_request(struct check_peer *s, const char *what, struct buf *b)
{
    /* The figure by which the node chooses processes; NULL: it lists no processes. */
    const char *sort = s->phase == BINARIES ? ps_figures[PS_BINARIES]
                       : s->phase == QUEUES ? ps_figures[PS_QUEUE]
                                            : NULL;

    look_request(b, &(struct look_question){.what = what,
                                            .who = buf_view(&s->everybody),
                                            .anew = !s->more,
                                            .most = PAGE,
                                            .share = SHARE,
                                            .patience_ms = PATIENCE_MS,
                                            .sort = sort,
                                            .rows = !sort                ? 0
                                                    : s->phase == QUEUES ? CHECK_INBOXES
                                                                         : CHECK_NAMED});
}

static void check_names_request(struct check_peer *s, struct buf *b)
{
    struct buf pids = {0};
    const size_t n = check_trace_pids(s->trace, &pids);

    look_names_request(b, &pids, n, PATIENCE_MS);
    buf_release(&pids);
}

static void check_ask(struct check_run *x, struct peer *p)
{
    struct check_peer *s = &x->states[p->index];
    struct buf b = {0};
    uint32_t id;
    struct err e;

    s->next = -1;
    s->asked = loop_now();
    switch (s->phase) {
    case SCANS:
        check_look_request(s, "check", &b);
        break;
    case BINARIES:
    case QUEUES:
        check_look_request(s, "processes", &b);
        break;
    case WATCHES:
    case DWELLS:
        look_request(&b, &(struct look_question){.what = "why",
                                                 .who = buf_view(&s->suspects[s->at]->who),
                                                 .most = s->whole,
                                                 .share = 100,
                                                 .patience_ms = PATIENCE_MS});
        break;
    case FACTS:
    case AGAIN:
    case LAST:
        check_health_request(&b, s->phase != FACTS, PATIENCE_MS);
        break;
    case NAMES:
        check_names_request(s, &b);
        break;
    case ARMS: /* the preparation sends its requests itself */
    case REARMS:
    case DONE:
    case OVER:
        return;
    }
    if (!session_request(p->session, buf_view(&b), ANSWER_MS, &id, &e))
        peer_fail(p, &e);
    buf_release(&b);
}

/* ---- from phase to phase ---- */

/* Begins a round over all suspects at a loop_now() time. */
static void check_round(struct check_peer *s, int64_t at)
{
    check_suspects_order(s->suspects, s->seen.nsuspects);
    s->at = 0;
    s->round = at;
}

static void check_watch(struct check_peer *s, enum check_phase phase, int64_t ms)
{
    s->phase = phase;
    check_round(s, loop_now());
    s->until = s->round + ms;
    s->whole = false;
}

/* Begins to watch the suspects of the scan. */
static void check_watch_first(const struct check_run *x, struct check_peer *s)
{
    const int64_t ms = x->hurries ? 0 : x->o->for_ns ? x->o->for_ns / 1000000 : WATCH_MS;

    check_watch(s, WATCHES, ms);
    if (s->trace)
        s->longest = s->round + LONGEST_MS + ms;
    s->look_queues = s->round + QUEUES_MS;
}

/* Goes on watching after a look for long queues. */
static void check_watch_on(struct check_peer *s)
{
    s->phase = WATCHES;
    check_round(s, loop_now());
}

/* Makes suspects of further processes with long queues. Returns true if the node is asked to trace their messages. */
static bool check_trace_queues(struct check_peer *s, struct peer *p)
{
    for (size_t i = 0; i < s->queues.count; i++) {
        const struct ps_row *x = &s->queues.rows[i];
        if (x->figures[PS_QUEUE] < QUEUE_LONG || s->late == LATE_SUSPECTS ||
            !check_suspect(s, p, x->process.pid, "queue"))
            continue;
        s->late++;
        check_trace_inbox(s->trace, x->process.pid);
    }
    s->look_queues = loop_now() + MAX(QUEUES_MS, (loop_now() - s->look_queues) * QUEUES_PART);
    return check_trace_again(s->trace);
}

/* Begins to trace. Returns false if there is nothing to trace. */
static bool check_arm(struct check_run *x, struct check_peer *s, struct peer *p)
{
    if (!s->trace || x->hurries)
        return false;
    for (size_t i = 0; i < s->seen.nsuspects; i++)
        if (!strcmp(s->suspects[i]->reason, "queue"))
            check_trace_inbox(s->trace, s->suspects[i]->pid);
    return check_trace_begin(s->trace, x->ctx, p->session);
}

static bool check_wants_binaries(const struct check_peer *s)
{
    const struct check_facts *f = &s->seen.facts[CHECK_FACTS - 1];
    int64_t known = s->seen.total[2] + BASE;

    for (size_t i = 0; i < f->ntables; i++)
        known += f->tables[i].memory;
    return f->figures[CHECK_USED] - known >= BINARIES_LEAST;
}

static void check_done(struct check_peer *s)
{
    s->phase = DONE;
    s->took_ms = loop_now() - s->begun;
    if (s->trace && s->trace->on)
        s->trace->to = loop_now();
}

static void check_last_question(struct check_peer *s)
{
    if (check_wants_binaries(s)) {
        s->phase = BINARIES;
        s->seen.binaries = &s->binaries;
    } else {
        check_done(s);
    }
}

/* Ends the current phase and begins the next one. */
static void check_advance(struct check_run *x, struct check_peer *s, struct peer *p)
{
    ctx_debug(x->ctx, "check: phase %d is over after %lld ms, with %zu suspects", s->phase,
              (long long)(loop_now() - s->begun), s->seen.nsuspects);
    switch (s->phase) {
    case SCANS:
        s->phase = FACTS;
        break;
    case FACTS:
        check_suspects_of(s, p, &s->seen.facts[0]);
        if (check_arm(x, s, p))
            s->phase = ARMS;
        else
            check_watch_first(x, s);
        break;
    case ARMS:
        check_watch_first(x, s);
        break;
    case WATCHES:
        s->phase = AGAIN;
        break;
    case AGAIN:
        check_suspects_of(s, p, &s->seen.facts[1]);
        check_watch(s, DWELLS, DWELL_MS);
        break;
    case DWELLS:
        s->phase = LAST;
        break;
    case LAST:
        if (s->trace && s->trace->received)
            s->phase = NAMES;
        else
            check_last_question(s);
        break;
    case NAMES:
        check_last_question(s);
        break;
    case BINARIES:
        check_done(s);
        break;
    case QUEUES:
        if (check_trace_queues(s, p))
            s->phase = REARMS;
        else
            check_watch_on(s);
        break;
    case REARMS:
        check_watch_on(s);
        break;
    case DONE:
    case OVER:
        break;
    }
}

/* Sends the next question, or sets the time at which it is due. */
static void check_next(struct check_run *x, struct peer *p)
{
    struct check_peer *s = &x->states[p->index];
    int64_t now = loop_now();

    while ((s->phase == WATCHES || s->phase == DWELLS) && (s->at == s->seen.nsuspects || now >= s->longest)) {
        const bool over = now >= s->until || now >= s->longest;
        if (s->phase == WATCHES && s->trace && now >= s->look_queues && now + WATCH_MS <= s->until) {
            s->phase = QUEUES;
            s->look_queues = now;
            break;
        }
        if (s->whole || (over && (s->phase == WATCHES || !s->seen.nsuspects))) {
            check_advance(x, s, p);
            continue;
        }
        s->next = over ? now : MIN(s->round + ROUND_MS, s->until);
        check_round(s, MAX(s->next, now));
        /* Only the last round asks for which process a suspect waits, so check always makes that round. */
        if (s->phase == DWELLS && (over || s->next == s->until) && s->seen.nsuspects) {
            s->whole = true;
            s->longest = s->round + check_suspects_ms(s->seen.nsuspects);
        }
        if (s->next > now)
            return;
    }
    if (s->phase < DONE)
        check_ask(x, p);
}

/* ---- answers ---- */

static bool check_take_scan(struct check_peer *s, struct peer *p, struct etf term, struct err *e)
{
    struct look_answer a;
    struct look_process one;

    if (!look_read(term, &a, e))
        return false;
    s->more = a.left > 0;
    struct look_list silent = look_list(a.silent), suspects = look_list(a.suspects);
    while (look_list_next(&silent, &one))
        check_suspect_silent(s, p, one.pid);
    if (s->more)
        return true;
    memcpy(s->seen.total, a.total, sizeof(a.total));
    while (look_list_next(&suspects, &one)) {
        check_chosen_count(&s->seen.chosen, one.name);
        check_suspect(s, p, one.pid, one.name);
    }
    return (suspects.ok && check_chosen_read(a.reasons, &s->seen.chosen)) ||
           err_set(e, ERR_RUN, "the node's answer about its processes is malformed");
}

static bool check_take_processes(struct check_peer *s, struct peer *p, struct ps_node *to, struct etf term,
                                 struct funs *funs, struct err *e)
{
    struct look_answer a;

    if (!look_read(term, &a, e))
        return false;
    s->more = a.left > 0;
    return s->more || ps_node_read(to, p->index, &a, funs, e);
}

static bool check_take_names(struct check_peer *s, struct etf term, struct err *e)
{
    struct look_answer a;

    return look_read(term, &a, e) &&
           (check_trace_names(s->trace, a.names) || err_set(e, ERR_RUN, "the node's answer about names is malformed"));
}

static bool check_take_look(struct check_peer *s, struct etf term, struct funs *funs, struct err *e)
{
    struct check_suspect *suspect = s->suspects[s->at];

    if (!why_read(term, &suspect->look, funs, e))
        return false;
    suspect->whole = s->whole;
    suspect->look.at = loop_now();
    suspect->slow += suspect->look.at - s->asked >= CHECK_SLOW_MS;
    why_sample(&suspect->samples, &suspect->look);
    s->at++;
    return true;
}

static void check_on_reply(void *data, struct peer *p, const struct session_reply *reply)
{
    struct check_run *x = data;
    struct check_peer *s = &x->states[p->index];
    struct funs *funs = look_funs_of(&x->funs, session_node(p->session));
    struct err e;
    bool ok = reply->ok;

    if (s->phase == ARMS || s->phase == REARMS) {
        if (check_trace_reply(s->trace, reply)) {
            check_advance(x, s, p);
            check_next(x, p);
        }
        return;
    }
    s->slowest_ms = MAX(s->slowest_ms, loop_now() - s->asked);
    if (!ok)
        session_error(reply, &e);
    else if (s->phase == SCANS)
        ok = check_take_scan(s, p, reply->term, &e);
    else if (s->phase == BINARIES)
        ok = check_take_processes(s, p, &s->binaries, reply->term, funs, &e);
    else if (s->phase == QUEUES)
        ok = check_take_processes(s, p, &s->queues, reply->term, funs, &e);
    else if (s->phase == NAMES)
        ok = check_take_names(s, reply->term, &e);
    else if (s->phase == WATCHES || s->phase == DWELLS)
        ok = check_take_look(s, reply->term, funs, &e);
    else
        ok = check_facts_read(reply->term, s->asked, &s->seen.facts[s->seen.nfacts++], funs, &e);
    if (!ok) {
        check_fail(x, s, &e);
        return;
    }
    if (s->phase != WATCHES && s->phase != DWELLS && !s->more)
        check_advance(x, s, p);
    check_next(x, p);
}

/*
 * Makes suspects of processes that were suspended by a busy port or connection. Each suspension is short, so only looks
 * can tell how often it happens.
 */
static void check_suspects_of_trace(struct check_peer *s, struct peer *p)
{
    const struct check_trace *t = s->trace;

    for (size_t i = 0; s->phase == WATCHES && i < t->nrows && s->traced < TRACED_SUSPECTS; i++)
        if (t->rows[i].event == CHECK_BUSY_PORT || t->rows[i].event == CHECK_BUSY_DIST_PORT)
            s->traced += check_suspect(s, p, t->rows[i].process.pid, "busy_port");
}

static void check_on_batch(void *data, struct peer *p, const void *batch, size_t len)
{
    struct check_run *x = data;
    struct check_peer *s = &x->states[p->index];

    if (!s->trace)
        s->trace = check_trace_new();
    check_trace_batch(s->trace, batch, len);
    check_suspects_of_trace(s, p);
}

/* ---- the command ---- */

static bool check_is_over(const struct check_peer *s)
{
    return s->phase == DONE || s->phase == OVER;
}

/* Ends the wait of --for, if there is one: check then prints what it has found so far. */
static bool check_hurry(struct check_run *x)
{
    if (!x->o->for_ns || x->hurries)
        return false;
    x->hurries = true;
    x->ctx->interrupts = 0;
    for (size_t i = 0; i < PEERS_MAX; i++)
        if (x->states[i].phase == WATCHES || x->states[i].phase == QUEUES || x->states[i].phase == REARMS) {
            x->states[i].until = loop_now();
            x->states[i].next = MIN(x->states[i].next, loop_now()); /* stays -1 if an answer is missing */
        }
    return true;
}

/* Fails for the nodes that were not looked at to the end: the status 0 would say that nothing is wrong with them. */
static void check_stopped(struct check_run *x)
{
    struct err e;

    for (size_t i = 0; i < x->peers.count; i++) {
        const struct peer *p = &x->peers.items[i];
        if (check_is_over(&x->states[i]) || !p->session)
            continue;
        err_set(&e, ERR_RUN, "%s: the check was stopped before its end, so nothing is known about the node",
                session_node(p->session)->name);
        check_fail(x, &x->states[i], &e);
    }
}

/* Serves the nodes until check has finished with all of them, or a signal stops it. */
static void check_look(struct check_run *x)
{
    for (;;) {
        int64_t next = -1;
        bool all = true;
        for (struct peer *p = NULL; (p = peers_next(&x->peers, p));) {
            struct check_peer *s = &x->states[p->index];
            if (!check_is_over(s) && s->next >= 0 && s->next <= loop_now())
                check_next(x, p);
            all &= check_is_over(s);
            if (!check_is_over(s) && s->next >= 0)
                next = next < 0 ? s->next : MIN(next, s->next);
        }
        if (all || !peers_step(&x->peers, next) || (x->ctx->interrupts && !check_hurry(x)))
            break;
    }
    if (x->ctx->interrupts)
        check_stopped(x);
}

static void check_print(struct check_run *x, const struct peer *p)
{
    struct check_peer *s = &x->states[p->index];
    const struct session_node *node = session_node(p->session);
    struct check_findings findings = {0};
    struct buf b = {0};

    if (s->trace)
        check_trace_end(s->trace);
    check_find(&s->seen, &findings);
    struct check_page page = {
        .seen = &s->seen,
        .findings = &findings,
        .otp = node->otp_version,
        .sort = x->o->sort,
        .uptime_ms = node->uptime_ms,
        .took_ms = s->took_ms,
        .slowest_ms = s->slowest_ms,
        .paint.on = tty_colors(STDOUT_FILENO, (enum tty_color)x->o->color),
        .columns = tty_is(STDOUT_FILENO) ? tty_columns(STDOUT_FILENO) : 0,
        .continued = x->printed++ > 0,
    };
    if (x->o->as == GRID_TEXT)
        check_page_text(&page, &b);
    else
        check_page_data(&page, (enum grid_as)x->o->as, &b);
    x->found += check_count(&findings);
    out_take(x->ctx->out, &b);
    buf_release(&b);
    check_findings_release(&findings);
}

/* Tells programs that a node was not looked at. A message has told readers already. */
static void check_print_unchecked(struct check_run *x, const struct peer *p)
{
    struct buf b = {0};

    if (x->o->as != GRID_JSON || !peer_name(p))
        return;
    json_begin_record(&b, "unchecked");
    json_put_text(&b, "node", peer_name(p));
    json_put_text(&b, "error", x->states[p->index].why.text);
    json_end_record(&b);
    out_take(x->ctx->out, &b);
    buf_release(&b);
}

static bool check_open(struct check_run *x, const struct node_opts *node, struct err *e)
{
    struct peers_handlers handlers = {.data = x, .reply = check_on_reply, .failed = check_on_failed};
    struct session_options session = SESSION_QUESTIONS;
    const struct texts all = {0};

    if (x->o->for_ns) {
        handlers.batch = check_on_batch;
        session.variant = COMPANION_WHOLE;
        session.fallback = node->fallback;
        session.rate = CHECK_TRACE_RATE;
        session.size = TRACED_BYTES;
        session.ring_bytes = TRACED_RING;
        /*
         * The limit would end a check of a node whose memory grows, which check has to report. The trace itself needs
         * little memory: its rings are small, and it makes no process wait.
         */
        session.memory = UINT64_MAX;
    }
    peers_begin(&x->peers, x->ctx, &handlers);
    x->peers.each = x->peers.all_of_cluster = true;
    if (!peers_open(&x->peers, node, &session, e))
        return false;
    for (struct peer *p = NULL; (p = peers_next(&x->peers, p));) {
        struct check_peer *s = &x->states[p->index];
        s->begun = loop_now();
        s->longest = s->begun + LONGEST_MS + x->o->for_ns / 1000000;
        s->seen.suspects = s->suspects;
        if (x->o->for_ns && !s->trace)
            s->trace = check_trace_new();
        s->seen.trace = s->trace;
        s->seen.name = session_node(p->session)->name;
        s->seen.erts = session_node(p->session)->erts;
        s->seen.arch = session_node(p->session)->arch;
        s->seen.elixir = session_node(p->session)->elixir;
        s->seen.ssh = node->ssh;
        s->seen.named = peers_need_names(&x->peers) ? s->seen.name : NULL;
        if (!exprs_whom(&all, session_node(p->session), &s->everybody, e))
            return false;
        check_ask(x, p);
    }
    return true;
}

static void check_peer_release(struct check_peer *s)
{
    for (size_t i = 0; i < s->seen.nsuspects; i++) {
        buf_release(&s->suspects[i]->who);
        free(s->suspects[i]);
    }
    buf_release(&s->everybody);
    ps_node_release(&s->binaries);
    ps_node_release(&s->queues);
    check_trace_free(s->trace);
}

static int check_run(struct ctx *ctx, const struct check_opts *o, const struct node_opts *node)
{
    struct check_run x = {.ctx = ctx, .o = o, .states = mem_zalloc(PEERS_MAX * sizeof(struct check_peer))};
    struct err e;

    look_funs_init(&x.funs);
    if (check_open(&x, node, &e)) {
        ctx_watch_reader(ctx);
        check_look(&x);
        if (o->for_ns)
            peers_leave(&x.peers); /* waits for the last events of the trace */
        for (size_t i = 0; i < x.peers.count; i++)
            if (x.states[i].phase == DONE)
                check_print(&x, &x.peers.items[i]);
            else if (x.states[i].phase == OVER)
                check_print_unchecked(&x, &x.peers.items[i]);
    } else {
        x.status = ctx_fail(ctx, &e);
    }
    peers_leave(&x.peers);
    peers_close(&x.peers);
    for (size_t i = 0; i < PEERS_MAX; i++)
        check_peer_release(&x.states[i]);
    free(x.states);
    look_funs_release(&x.funs);
    /* A failure to write the findings comes before ERR_FOUND, which would hide it. */
    const int status = ctx_flush(ctx, x.status);
    return status ? status : x.found ? ERR_FOUND : 0;
}

static int cmd_check_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct check_opts o = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node}, {&check_group, &o}, {&talk_group, &talk}};
    struct texts words = {0};
    char **rest;
    int status = 0;
    struct err e;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status) &&
        cmd_no_words(ctx, self, &words, "etrace why looks at one process", &status))
        status = cmd_format(o.json, &o.as, &e) ? check_run(ctx, &o, &node) : ctx_fail(ctx, &e);
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] = "  etrace check                   what is wrong with this node?\n"
                            "  etrace check --for 10s         look longer, and trace what is soon over\n"
                            "  etrace check -n a -n b --json  two nodes, for programs\n"
                            "\nLooks at a node for two seconds, without tracing, and prints what it finds, the\n"
                            "most harmful first: deadlocks, chains of waiting processes, queues that grow,\n"
                            "pools without a free member, locks, suspended and busy processes, restarts,\n"
                            "memory, limits, alarms. Each line has its evidence, and a command that shows\n"
                            "more. The status is 12 if anything was found, 0 if not, and another one if a\n"
                            "node was not looked at to the end.\n"
                            "\nWith --for it looks longer, and sees what grows slowly. It also traces what is\n"
                            "over between two looks, at a small cost: long garbage collections and time\n"
                            "slices, large heaps, busy ports, and who sends to a process with a long queue.\n"
                            "Ctrl-C ends the wait.\n";

static const struct opt_group *const groups[] = {&node_group, &check_group, &talk_group, NULL};
const struct cmd cmd_check = {
    .name = "check",
    .usage = "[-n NODE] [OPTIONS]",
    .summary = "Says what is wrong with a node, in two seconds",
    .about = about,
    .run = cmd_check_run,
    .groups = groups,
};
