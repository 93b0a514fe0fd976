/* SPDX-License-Identifier: Apache-2.0 */
#include "why_look.h"

#include <string.h>

#include "../erlang/etf_fields.h"
#include "../erlang/term_print.h"

void why_request(struct buf *to, struct str who, bool anew, bool whole)
{
    look_request(to, &(struct look_question){.what = "why",
                                             .who = who,
                                             .anew = anew,
                                             .most = whole,
                                             .share = 100,
                                             .patience_ms = WHY_PATIENCE_MS});
}

/* ---- answers ---- */

/* A row that is being read. The stack is decoded after the other members. */
struct why_taken_row {
    struct why_row row;
    struct etf stack;
};

static bool why_take_row(struct etf *r, struct why_row *x, struct funs *funs)
{
#define FIELD(what, key, ...) ETF_##what(struct why_taken_row, key, __VA_ARGS__)
    static const struct etf_field fields[] = {
        FIELD(TEXT, "pid", row.process.pid), FIELD(TEXT, "name", row.process.name),
        FIELD(TEXT, "answer", row.answer),   FIELD(TEXT, "status", row.status),
        FIELD(INT, "queue", row.queue),      FIELD(INT, "reductions", row.reductions),
        FIELD(INT, "memory", row.memory),    FIELD(INT, "minor", row.minor),
        FIELD(BOOL, "least", row.least),     FIELD(INT, "among", row.among),
        FIELD(BOOL, "nif", row.nif),         FIELD(TEXT, "untold", row.untold),
        FIELD(BOOL, "loop", row.loop),       FIELD(TERM, "stack", stack),
    };
#undef FIELD
    struct why_taken_row t = {.row = {.among = 0}};
    size_t n = 0;
    bool ok = etf_get_fields(r, fields, ARRAY_LEN(fields), &t) && (!t.stack.at || etf_get_list(&t.stack, &n)) &&
              n <= WHY_FRAMES;

    *x = t.row;
    for (; ok && x->nstack < n; x->nstack++)
        ok = look_frame_read(&t.stack, funs, &x->stack[x->nstack]);
    return ok;
}

static bool why_take_chain(struct etf *r, struct why_look *l, struct funs *funs)
{
    size_t n;
    bool ok = etf_get_list(r, &n) && n && n <= WHY_CHAIN;

    while (ok && l->n < n)
        ok = why_take_row(r, &l->chain[l->n], funs) && l->n++ < WHY_CHAIN;
    return ok;
}

static bool why_take_shape(struct etf *r, struct why_shape *x)
{
    struct raw text;
    size_t n;

    if (!etf_get_tuple(r, 3) || !etf_get_bin(r, &text) || !etf_get_int(r, &x->count) || !etf_get_list(r, &n) ||
        n > WHY_SOME)
        return false;
    safe_copy(x->shape, sizeof(x->shape), text);
    for (; x->nsenders < n; x->nsenders++) {
        if (!etf_get_bin(r, &text))
            return false;
        safe_copy(x->senders[x->nsenders], sizeof(x->senders[0]), text);
    }
    return !n || etf_get_nil(r);
}

static bool why_take_messages(struct etf *r, struct why_look *l)
{
    size_t n;

    if (etf_is_atom(r, "none"))
        return true;
    bool ok = etf_get_list(r, &n) && n <= WHY_SHAPES;
    l->messages_known = ok;
    while (ok && l->nshapes < n)
        ok = why_take_shape(r, &l->shapes[l->nshapes]) && l->nshapes++ < WHY_SHAPES;
    return ok;
}

static bool why_take_waiter(struct etf *r, struct why_waiter *x)
{
    struct raw pid, name;

    if (!etf_get_tuple(r, 3) || !etf_get_bin(r, &pid) || !etf_get_bin(r, &name))
        return false;
    safe_copy(x->process.pid, sizeof(x->process.pid), pid);
    safe_copy(x->process.name, sizeof(x->process.name), name);
    x->elsewhere = etf_is_atom(r, "true");
    return etf_skip(r);
}

static bool why_take_waiters(struct etf *r, struct why_look *l)
{
    size_t n;

    if (etf_is_atom(r, "none"))
        return true;
    bool ok = etf_get_tuple(r, 3) && etf_get_int(r, &l->waiters) && etf_get_list(r, &n) && n <= WHY_SOME;
    while (ok && l->nwaiters < n)
        ok = why_take_waiter(r, &l->waiter[l->nwaiters]) && l->nwaiters++ < WHY_SOME;
    return ok && (!n || etf_get_nil(r)) && etf_get_int(r, &l->monitors);
}

bool why_read(struct etf r, struct why_look *ret, struct funs *funs, struct err *e)
{
    struct taken {
        struct why_look look;
        struct etf chain, messages, waiters, details;
    } t = {.look = {.cycle = -1, .waiters = -1}};
    static const struct etf_field fields[] = {
        ETF_INT(struct taken, "cycle", look.cycle),   ETF_BOOL(struct taken, "deep", look.deep),
        ETF_BOOL(struct taken, "sure", look.sure),    ETF_TERM(struct taken, "chain", chain),
        ETF_TERM(struct taken, "messages", messages), ETF_TERM(struct taken, "waiters", waiters),
        ETF_TERM(struct taken, "details", details),
    };
    bool ok = etf_get_fields(&r, fields, ARRAY_LEN(fields), &t);

    *ret = t.look;
    ok = ok && why_take_chain(&t.chain, ret, funs) && (!t.messages.at || why_take_messages(&t.messages, ret)) &&
         (!t.waiters.at || why_take_waiters(&t.waiters, ret)) &&
         (!t.details.at || ps_row_read(&t.details, &ret->self, funs)) && ret->cycle < (int64_t)ret->n;
    return ok || err_set(e, ERR_RUN, "the node's answer about the process is malformed");
}

/* ---- several looks ---- */

static void add_top(struct why_samples *s, const struct look_frame *f, bool running, bool waiting)
{
    unsigned i = 0;

    while (i < s->ntops && (s->tops[i].frame.fun != f->fun || s->tops[i].frame.arity != f->arity))
        i++;
    if (i == WHY_TOPS)
        return;
    if (i == s->ntops)
        s->tops[s->ntops++] = (struct why_top){*f, 0, 0};
    s->tops[i].running += running;
    s->tops[i].waiting += waiting;
}

/* A queue has fallen only if it has lost more than 1/FALL_PART of its messages, because messages come in bursts. */
#define FALL_PART 100

void why_sample(struct why_samples *s, const struct why_look *look)
{
    const struct why_row *x = &look->chain[0];

    s->looks++;
    s->to = look->at;
    if (strcmp(x->answer, "known")) {
        s->silent++;
        return;
    }
    if (!s->first.answer[0]) {
        s->first = s->last = *x;
        s->from = look->at;
        s->queue_least = s->queue_most = x->queue;
    }
    s->queue_fell |= x->queue < s->last.queue - s->last.queue / FALL_PART;
    s->memory_fell |= x->memory < s->last.memory;
    s->queue_least = MIN(s->queue_least, x->queue);
    s->queue_most = MAX(s->queue_most, x->queue);
    bool runs = !strcmp(x->status, "running") || !strcmp(x->status, "runnable"), waits = !strcmp(x->status, "waiting");
    s->running += runs;
    s->nif += runs && x->nif;
    s->collecting += !strcmp(x->status, "garbage_collecting");
    s->suspended += !strcmp(x->status, "suspended");
    s->queued += waits && x->queue > 0;
    s->major += x->minor < s->last.minor;
    s->minor += x->minor < s->last.minor ? x->minor : x->minor - s->last.minor;
    if (x->nstack)
        add_top(s, &x->stack[0], runs, waits);
    s->last = *x;
}

double why_rate(const struct why_samples *s, int64_t from, int64_t to)
{
    return s->to > s->from ? (double)(to - from) * 1000 / (double)(s->to - s->from) : 0;
}

bool why_has_not_run(const struct why_samples *s)
{
    return s->looks > 1 && s->last.reductions - s->first.reductions <= 4 * (int64_t)s->looks;
}

const struct why_top *why_busiest(const struct why_samples *s)
{
    const struct why_top *most = NULL;

    for (unsigned i = 0; i < s->ntops; i++)
        if (s->tops[i].running && !s->tops[i].waiting && (!most || s->tops[i].running > most->running))
            most = &s->tops[i];
    return most;
}

int64_t why_taken(const struct why_samples *s)
{
    return s->counted ? MAX(s->received - (s->last.queue - s->first.queue), 0) : 0;
}

/* ---- the cause ---- */

const char *const why_causes[WHY_CAUSES] = {
    "gone",  "silent", "deadlock", "probable_deadlock", "suspended", "exiting", "nif",    "waits", "collects", "socket",
    "grows", "runs",   "scans",    "unmatched",         "owes",      "works",   "sleeps", "idle",
};

bool why_in_suspend(const struct why_row *x)
{
    return x->nstack && look_frame_is(&x->stack[0], "sys", "suspend_loop");
}

enum why_io why_io_of(const struct why_row *x)
{
    static const struct {
        const char *module, *name;
        enum why_io io;
    } functions[] = {
        {"erlang", "port_command", WHY_PORT_IO},
        {"erlang", "dsend_continue_trap", WHY_DIST_IO},
        {"prim_inet", "send", WHY_SEND_IO},
        {"prim_inet", "do_sendto", WHY_SEND_IO},
        {"prim_inet", "sendfile_1", WHY_SEND_IO},
        {"prim_inet", "close_pend_loop", WHY_SEND_IO},
        {"prim_inet", "recv0", WHY_RECEIVE_IO},
        {"prim_inet", "recvfrom0", WHY_RECEIVE_IO},
        {"prim_inet", "accept0", WHY_RECEIVE_IO},
        {"prim_inet", "connect_cmd", WHY_RECEIVE_IO},
        {"socket", "send_deadline", WHY_SEND_IO},
        {"socket", "send_deadline_cont", WHY_SEND_IO},
        {"socket", "sendto_deadline", WHY_SEND_IO},
        {"socket", "sendto_deadline_cont", WHY_SEND_IO},
        {"socket", "sendmsg_deadline", WHY_SEND_IO},
        {"socket", "sendmsg_deadline_cont", WHY_SEND_IO},
        {"socket", "sendmmsg_deadline", WHY_SEND_IO},
        {"socket", "sendv_deadline", WHY_SEND_IO},
        {"socket", "sendv_deadline_cont", WHY_SEND_IO},
        {"socket", "sendfile_deadline", WHY_SEND_IO},
        {"socket", "recv_deadline", WHY_RECEIVE_IO},
        {"socket", "recvfrom_deadline", WHY_RECEIVE_IO},
        {"socket", "recvmsg_deadline", WHY_RECEIVE_IO},
        {"socket", "recvmmsg_deadline", WHY_RECEIVE_IO},
        {"socket", "accept_deadline", WHY_RECEIVE_IO},
        {"socket", "connect_deadline", WHY_RECEIVE_IO},
        {"os", "get_data", WHY_COMMAND_IO},
        {"Elixir.System", "do_cmd", WHY_COMMAND_IO},
        {"Elixir.System", "do_port_byte", WHY_COMMAND_IO},
    };

    for (size_t i = 0; x->nstack && i < ARRAY_LEN(functions); i++)
        if (look_frame_is(&x->stack[0], functions[i].module, functions[i].name))
            return functions[i].io;
    return WHY_NO_IO;
}

/*
 * Returns true if the process is in a NIF that its stack does not name: with enif_schedule_nif(), a NIF can run on a
 * dirty scheduler under another name. If the process ran on a normal scheduler, each answer would cost it reductions.
 */
static bool in_unnamed_nif(const struct why_samples *s)
{
    return s->running > 1 && s->running == s->looks - s->silent && s->first.reductions == s->last.reductions &&
           !strcmp(s->last.status, "running");
}

bool why_is_silent(const struct why_samples *s)
{
    return s->silent && s->silent * 3 >= s->looks;
}

enum why_cause why_cause_of(const struct why_look *l, const struct why_samples *s)
{
    const struct why_row *x = &l->chain[0];
    bool runs = s->running * 10 >= s->looks * 8;
    /* A process that searches its queue may also be found running, or waiting for a scheduler. */
    bool unmatched = s->queued * 10 >= s->looks * 8 ||
                     (s->ntops == 1 && s->queued * 5 >= s->looks && s->queued + s->running == s->looks);
    bool sleeps = x->nstack && (look_frame_is(&x->stack[0], "timer", "sleep") ||
                                look_frame_is(&x->stack[0], "Elixir.Process", "sleep"));
    bool socket = why_io_of(x) >= WHY_SEND_IO;

    if (!strcmp(x->answer, "gone"))
        return WHY_GONE;
    if (strcmp(x->answer, "known"))
        return WHY_SILENT;
    if (l->cycle >= 0)
        return l->sure ? WHY_DEADLOCK : WHY_CYCLE;
    if (why_is_silent(s))
        return WHY_SILENT;
    if (!strcmp(x->status, "suspended") || why_in_suspend(x))
        return WHY_SUSPENDED;
    if (!strcmp(x->status, "exiting"))
        return WHY_EXITING;
    if (s->nif * 10 >= s->looks * 8 || in_unnamed_nif(s))
        return WHY_NIF;
    if (l->n > 1)
        return WHY_WAITS;
    if (s->collecting * 2 >= s->looks)
        return WHY_COLLECTS;
    if (socket && !s->running && s->ntops == 1)
        return WHY_SOCKET;
    if (s->last.queue - s->first.queue >= 3 && (sleeps || !unmatched))
        return WHY_GROWS;
    if (runs)
        return WHY_RUNS;
    /*
     * The numbers of arrived and of queued messages are measured at slightly different times, so a difference of a few
     * messages means nothing.
     */
    if (unmatched && !sleeps && !x->untold[0])
        return why_taken(s) > 2 && why_taken(s) * 10 > s->received ? WHY_SCANS : WHY_UNMATCHED;
    if (s->running * 10 >= s->looks)
        return WHY_WORKS;
    if (l->waiters > 0 && x->loop && !x->queue)
        return WHY_OWES;
    if (socket)
        return WHY_SOCKET;
    return sleeps ? WHY_SLEEPS : WHY_IDLE;
}
