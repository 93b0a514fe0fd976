/* Keeps the list of probes and asks the nodes for them. */
#include "repl_probes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../commands/asked.h"
#include "../commands/prepare.h"
#include "../events/recfile.h"
#include "../ground/mem.h"
#include "repl_syntax.h"

#define RECORD_MS 10000
#define PROMPT_MS 1000 /* the next line can be typed then, although a node has not answered */
#define ON_THEIR_WAY_MS 60 /* the last events of probes that were stopped */

#define NO_REQUEST UINT64_MAX

struct probe {
    char *label, *text;
    char *records;         /* the text of a header that defines its records; NULL: it has none */
    size_t number, nspecs; /* the number of its first spec, and how many it has; numbers are never used again */
    uint64_t since;        /* the mark of the first request that has it; NO_REQUEST: none has */
    bool stopped;
    bool fresh; /* not every node has taken it yet */
    bool told;  /* its events may be on their way */
    bool gone;  /* dropped, and kept only while `told` */
};

struct repl_probes {
    struct repl_base *base;
    struct repl_nodes *nodes;
    struct probe *items;
    size_t count, cap;
    size_t numbers;  /* of specs */
    unsigned labels; /* that we chose */
    uint64_t mark;   /* of the last request */
    bool armed;      /* something is traced */
    bool arming;     /* nodes were asked, and the line that says so is not printed yet */
    bool asking;     /* repl_probes_arm_all() waits, and handles a refusal itself */
    bool refused;    /* a node refused the last request; the next turn of the timer handles it */
    struct err refusal;
    uint64_t refuser_took; /* a mark: the node that refused traces the probes of requests up to this one */
    struct {
        bool due;      /* it was attached after the last request */
        bool alone;    /* only this node is asked: its refusal costs no probe */
        uint64_t took; /* the mark of the last request that it accepted */
    } peers[PEERS_MAX]; /* by the index of the peer */
    int64_t until;   /* :for, -1: none */
    int64_t stopped; /* when to print that the probes are stopped; -1: never */
};

/* ---- arming ---- */

static bool is_running(const struct probe *p)
{
    return !p->stopped && !p->gone;
}

static void words(const struct repl_probes *ps, struct texts *ret)
{
    size_t number = 0;

    for (size_t i = 0; i < ps->count; i++) {
        const struct probe *p = &ps->items[i];
        if (!is_running(p))
            continue;
        for (; number < p->number; number++)
            texts_add(ret, NULL);
        texts_add(ret, p->text);
        number += p->nspecs;
    }
}

size_t repl_probes_running(const struct repl_probes *ps)
{
    size_t n = 0;

    for (size_t i = 0; i < ps->count; i++)
        n += is_running(&ps->items[i]);
    return n;
}

/* One probe as a recording has it. The number is needed only where it is not the next one. */
static void put_probe(struct buf *to, const struct probe *p, bool labels, size_t *number)
{
    char text[24];

    if (labels || p->label[0] < '0' || p->label[0] > '9')
        recfile_spec_add(to, "label", (struct str){p->label, strlen(p->label)});
    if (p->number != *number) {
        snprintf(text, sizeof(text), "%zu", p->number);
        recfile_spec_add(to, "number", (struct str){text, strlen(text)});
    }
    recfile_spec_add(to, "expr", (struct str){p->text, strlen(p->text)});
    *number = p->number + p->nspecs;
}

/* All probes as a recording has them, with labels if several. `told`: also those whose events may come. */
static void put_specs(const struct repl_probes *ps, const struct asked *asked, bool told, struct buf *to)
{
    const struct what_opts *what = &ps->base->options.what;
    size_t count = 0, number = 0;

    for (size_t i = 0; i < asked->nheaders; i++)
        recfile_spec_add(to, "hrl", asked->headers[i]);
    recfile_spec_needs(to, what->needs);
    for (size_t i = 0; i < what->lets.count; i++)
        recfile_spec_add(to, "let", (struct str){what->lets.items[i], strlen(what->lets.items[i])});
    for (size_t i = 0; i < ps->count; i++) {
        const struct probe *p = &ps->items[i];
        if (!is_running(p) && !(told && p->told))
            continue;
        count++;
        if (p->records)
            recfile_spec_add(to, "hrl", (struct str){p->records, strlen(p->records)});
    }
    for (size_t i = 0; i < ps->count; i++)
        if (is_running(&ps->items[i]) || (told && ps->items[i].told))
            put_probe(to, &ps->items[i], count > 1, &number);
}

static void forget(struct repl_probes *ps, size_t i)
{
    free(ps->items[i].label);
    free(ps->items[i].text);
    free(ps->items[i].records);
    memmove(&ps->items[i], &ps->items[i + 1], (ps->count - i - 1) * sizeof(*ps->items));
    ps->count--;
}

/* From the next mark on only events of running probes come. */
static void forget_gone(struct repl_probes *ps)
{
    for (size_t i = ps->count; i-- > 0;) {
        ps->items[i].told = is_running(&ps->items[i]);
        if (ps->items[i].gone)
            forget(ps, i);
    }
}

static struct arm_mark tell_scroll(struct repl_probes *ps, const struct asked *asked)
{
    struct arm_mark mark = {ps->mark + 1, ps->mark + 1};
    struct buf text = {0};

    for (size_t i = 0; i < ps->count; i++)
        if (ps->items[i].told && !is_running(&ps->items[i]))
            mark.last = mark.first + 1;
    put_specs(ps, asked, true, &text);
    scroll_specs(ps->base->scroll, mark.first, buf_view(&text));
    if (mark.last != mark.first) {
        buf_clear(&text);
        put_specs(ps, asked, false, &text);
        scroll_specs(ps->base->scroll, mark.last, buf_view(&text));
    }
    buf_release(&text);
    ps->mark = mark.last;
    return mark;
}

static bool begin(struct repl_probes *ps, const struct texts *all, struct err *e)
{
    const struct texts none = {0};
    struct asked asked;
    bool later = false;

    asked_init(&asked);
    asked.find_record = asked_later;
    asked.find_data = &later;
    bool ok = asked_compile(&asked, &ps->base->options.what, all, &none, 0, e);
    if (ok) {
        struct arm_mark mark = tell_scroll(ps, &asked);
        for (size_t i = 0; i < ps->count; i++)
            if (is_running(&ps->items[i]) && ps->items[i].since == NO_REQUEST)
                ps->items[i].since = mark.last;
        forget_gone(ps);
        run_arm(repl_nodes_run(ps->nodes), &ps->base->options.what, all, mark);
    }
    asked_release(&asked);
    return ok;
}

/* Sends the request and returns; refusals arrive in repl_probes_on_refused(). */
static bool arm(struct repl_probes *ps, struct err *e)
{
    struct texts all = {0};

    ps->until = -1;
    ps->refused = false;
    ps->refuser_took = ps->mark; /* if this request fails without an answer */
    for (size_t i = 0; i < PEERS_MAX; i++)
        ps->peers[i].alone = false;
    ps->armed = ps->arming = repl_probes_running(ps);
    if (!ps->armed) {
        run_disarm(repl_nodes_run(ps->nodes));
        forget_gone(ps);
        return true;
    }
    words(ps, &all);
    bool ok = begin(ps, &all, e);
    texts_release(&all);
    return ok;
}

bool repl_probes_arm_all(struct repl_probes *ps, int64_t patience_ms, struct err *e)
{
    int64_t until = patience_ms < 0 ? -1 : loop_now() + patience_ms;
    bool interrupted = false;

    ps->asking = true;
    bool ok = arm(ps, e);
    while (ok && run_preparing(repl_nodes_run(ps->nodes)) && !ps->refused && !ps->base->leaving && !interrupted &&
           (until < 0 || loop_now() < until)) {
        repl_step(ps->base, until);
        interrupted = repl_interrupted(ps->base);
    }
    ps->asking = false;
    repl_wake(ps->base); /* nodes may have become due meanwhile */
    if (interrupted)
        return err_set(e, ERR_RUN, "interrupted before every node has answered");
    if (ok && ps->refused)
        *e = ps->refusal;
    ok = ok && !ps->refused;
    ps->refused = false;
    return ok;
}

/* Drops the fresh probes that only requests after this mark have. false: there are none. */
static bool drop_fresh(struct repl_probes *ps, uint64_t mark)
{
    bool any = false;

    for (size_t i = 0; i < ps->count; i++) {
        struct probe *p = &ps->items[i];
        bool dropped = p->fresh && !p->gone && p->since > mark;
        any |= dropped;
        p->gone |= dropped;
    }
    return any;
}

/*
 * A request was refused: asks again without the probes that were new to the node that refused. If it traces all of them
 * already, every probe is dropped that is new to some node; without such probes, all are stopped.
 */
static void go_without(struct repl_probes *ps, const struct err *e)
{
    repl_fail(ps->base, e);
    if (!drop_fresh(ps, ps->refuser_took) && !drop_fresh(ps, 0))
        for (size_t i = 0; i < ps->count; i++)
            ps->items[i].stopped = true;
    repl_probes_arm(ps);
}

void repl_probes_arm(struct repl_probes *ps)
{
    struct err e;

    if (!arm(ps, &e))
        go_without(ps, &e);
}

/* A refusal that came while nobody waited. */
static void settle(struct repl_probes *ps)
{
    if (!ps->refused)
        return;
    ps->refused = false;
    go_without(ps, &ps->refusal);
}

/* ---- probes ---- */

static struct probe *find(struct repl_probes *ps, const char *label)
{
    for (size_t i = 0; i < ps->count; i++)
        if (!ps->items[i].gone && !strcmp(ps->items[i].label, label))
            return &ps->items[i];
    return NULL;
}

static bool ask_for_record(struct repl_probes *ps, struct peer *p, struct records *records, struct str request,
                           struct err *e)
{
    struct buf told = {0};
    struct etf answer;

    /* A node is asked one thing at a time. */
    while (run_arming(repl_nodes_run(ps->nodes)) && !ps->base->leaving && !ps->base->ctx->interrupts)
        repl_step(ps->base, -1);
    bool ok = peer_request(p, request, RECORD_MS, &told, e);
    while (ok && peer_waits(p) && !ps->base->leaving && !ps->base->ctx->interrupts)
        repl_step(ps->base, -1);
    if (ok && repl_interrupted(ps->base))
        ok = err_set(e, ERR_RUN, "%s has not answered yet", peer_name(p));
    etf_open(&answer, told.data, told.len);
    ok = ok && peer_answer(p, e) && records_read(records, answer, e);
    p->into = NULL;
    buf_release(&told);
    return ok;
}

/* Asks the current node for the records of the expression, as text of a header. Later each node is asked itself. */
static bool find_records(struct repl_probes *ps, const struct texts *one, struct buf *ret, struct err *e)
{
    struct peer *p = repl_nodes_current(ps->nodes);
    const struct texts none = {0};
    struct records records;
    struct asked asked;
    struct str wanted;
    bool ok;

    if (!p || p->state != PEER_UP)
        return err_set(e, ERR_NODE, "no node is attached that could be asked for the record");
    records_init(&records);
    asked_init(&asked);
    do {
        ok = records_compile(&records, &asked, &ps->base->options.what, one, &none, session_node(p->session)->otp,
                             &wanted, e);
        if (wanted.len)
            ok = ask_for_record(ps, p, &records, wanted, e);
    } while (ok && wanted.len);
    asked_release(&asked);
    records_text(&records, ret);
    records_release(&records);
    return ok;
}

static struct probe *add(struct repl_probes *ps, const char *line, size_t labelled)
{
    char label[32];

    if (labelled)
        snprintf(label, sizeof(label), "%.*s", (int)labelled, line);
    else
        do
            snprintf(label, sizeof(label), "%u", ++ps->labels);
        while (find(ps, label));
    struct probe *p = find(ps, label);
    if (p)
        p->gone = true;
    ps->items = mem_grow(ps->items, &ps->cap, ps->count + 1, sizeof(*ps->items));
    p = &ps->items[ps->count++];
    *p = (struct probe){.label = mem_strndup(label, strlen(label)), .number = ps->numbers, .since = NO_REQUEST,
                        .fresh = true};
    return p;
}

bool repl_probes_add(struct repl_probes *ps, const char *line, const char **ret_expr, struct err *e)
{
    size_t labelled = repl_label_length(line);
    const char *expr = line + (labelled ? labelled + 1 : 0);
    struct texts one = {0}, none = {0};
    struct buf records = {0};
    struct asked asked;
    bool later = false;

    settle(ps); /* it was about the probes before this one */
    while (*expr == ' ' || *expr == '\t')
        expr++;
    *ret_expr = expr;
    texts_add(&one, expr);
    asked_init(&asked);
    asked.find_record = asked_later;
    asked.find_data = &later;
    bool ok = asked_compile(&asked, &ps->base->options.what, &one, &none, 0, e);
    if (ok && !repl_nodes_attached(ps->nodes) && !repl_nodes_attaching(ps->nodes)) {
        ok = err_set(e, ERR_NODE, "no node is attached");
        err_hint(e, ":attach NODE attaches one");
    }
    ok = ok && (!later || find_records(ps, &one, &records, e));
    if (ok) {
        asked_warn(&asked, ps->base->ctx);
        struct probe *p = add(ps, line, labelled);
        p->text = mem_strndup(expr, strlen(expr));
        p->records = records.len ? mem_strndup(records.data, records.len) : NULL;
        p->nspecs = asked.count;
        ps->numbers += asked.count;
    }
    asked_release(&asked);
    texts_release(&one);
    buf_release(&records);
    return ok;
}

bool repl_probes_begin(struct repl_probes *ps)
{
    struct err e;
    bool ok = repl_probes_arm_all(ps, PROMPT_MS, &e);

    if (!ok)
        go_without(ps, &e);
    return ok;
}

bool repl_probes_drop(struct repl_probes *ps, const char *label)
{
    struct probe *p = find(ps, label);

    if (!p && strcmp(label, "all") != 0)
        return false;
    for (size_t i = 0; i < ps->count; i++)
        ps->items[i].gone |= !p || p == &ps->items[i];
    repl_probes_arm(ps);
    return true;
}

static bool set_stopped(struct repl_probes *ps, const char *label, bool stopped)
{
    struct probe *p = label ? find(ps, label) : NULL;

    if (label && !p && strcmp(label, "all") != 0)
        return false;
    for (size_t i = 0; i < ps->count; i++)
        if (!p || p == &ps->items[i])
            ps->items[i].stopped = stopped;
    return true;
}

bool repl_probes_resume(struct repl_probes *ps, const char *label)
{
    return set_stopped(ps, label, false);
}

bool repl_probes_stop(struct repl_probes *ps, const char *label)
{
    if (!set_stopped(ps, label, true))
        return false;
    repl_probes_arm(ps);
    return true;
}

void repl_probes_list(const struct repl_probes *ps, struct buf *to)
{
    bool any = false;

    for (size_t i = 0; i < ps->count; i++) {
        const struct probe *p = &ps->items[i];
        any |= !p->gone;
        if (p->gone)
            continue;
        buf_printf(to, "%-8s ", p->label);
        for (const char *at = p->text; *at; at++) /* on one line, as the history has it */
            buf_char(to, *at == '\n' ? ' ' : *at);
        buf_printf(to, "%s\n", p->stopped ? "   (stopped)" : "");
    }
    if (!any)
        buf_puts(to, "no probes: an expression makes one\n");
}

void repl_probes_labels(const struct repl_probes *ps, void (*each)(void *data, const char *label), void *data)
{
    for (size_t i = 0; i < ps->count; i++)
        if (!ps->items[i].gone)
            each(data, ps->items[i].label);
}

/* ---- what the nodes say ---- */

/* Prints that all nodes trace, once no node is left that could still answer. */
static void look_at_arming(struct repl_probes *ps, const char *which, const char *counts)
{
    size_t running = repl_probes_running(ps);

    if (!ps->arming || run_arming(repl_nodes_run(ps->nodes)) || ps->refused || !repl_nodes_attached(ps->nodes))
        return;
    ps->arming = false;
    ctx_say(ps->base->ctx, "%s%zu probe%s%s · Ctrl-C stops", which, running, PLURAL(running), counts);
    for (size_t i = 0; i < ps->count; i++)
        ps->items[i].fresh = false;
    ps->until = ps->base->options.limit.for_ns ? loop_now() + ps->base->options.limit.for_ns / 1000000 : -1;
    repl_wake(ps->base);
}

void repl_probes_on_ready(struct repl_probes *ps, const struct peer *peer)
{
    ps->peers[peer->index].due = true;
    ps->peers[peer->index].alone = false;
    ps->peers[peer->index].took = 0;
}

void repl_probes_on_armed(struct repl_probes *ps, const struct peer *peer, const struct arm_result *result)
{
    const uint64_t functions = result->functions;
    char of[NODE_NAME_MAX + 4] = "";
    struct buf counts = {0};

    ps->peers[peer->index].took = ps->mark; /* answers to earlier requests do not come here */
    if (repl_nodes_attached(ps->nodes) > 1)
        snprintf(of, sizeof(of), "%s: ", peer_name(peer) ? peer_name(peer) : "the node");
    for (size_t i = 0; i < result->nwarnings; i++)
        ctx_warn(ps->base->ctx, "%swarning: %s", of, result->warnings[i]);
    if (run_arming(repl_nodes_run(ps->nodes))) {
        ctx_say(ps->base->ctx, "%s%llu function%s", of, (unsigned long long)functions, PLURAL(functions));
        return;
    }
    ps->arming = true; /* also where the only new node is this one */
    buf_printf(&counts, " · %llu function%s · %llu process%s", (unsigned long long)functions, PLURAL(functions),
               (unsigned long long)result->processes, PLURAL_ES(result->processes));
    look_at_arming(ps, of, buf_cstr(&counts));
    buf_release(&counts);
}

void repl_probes_on_refused(struct repl_probes *ps, const struct peer *peer, const struct err *e)
{
    if (ps->peers[peer->index].alone) {
        repl_fail(ps->base, e);
        return;
    }
    ps->refused = true;
    ps->refusal = *e;
    ps->refuser_took = ps->peers[peer->index].took;
    repl_wake(ps->base);
}

bool repl_probes_arming(const struct repl_probes *ps)
{
    bool arming = ps->refused || run_arming(repl_nodes_run(ps->nodes)) || repl_nodes_attaching(ps->nodes);

    for (size_t i = 0; i < PEERS_MAX; i++)
        arming = arming || ps->peers[i].due;
    return arming;
}

/* ---- time ---- */

static void arm_peer(struct repl_probes *ps, struct peer *peer)
{
    struct texts all = {0};

    words(ps, &all);
    ps->peers[peer->index].alone = true;
    if (all.count && ps->armed)
        run_arm_peer(repl_nodes_run(ps->nodes), peer, &ps->base->options.what, &all,
                     (struct arm_mark){ps->mark, ps->mark});
    texts_release(&all);
}

void repl_probes_arm_due(struct repl_probes *ps)
{
    struct peers *peers = repl_nodes_peers(ps->nodes);

    if (!ps->asking) {
        settle(ps);
        for (size_t i = 0; i < peers->count; i++) {
            bool due = ps->peers[i].due && peers->items[i].state == PEER_UP;
            ps->peers[i].due = false;
            if (due)
                arm_peer(ps, &peers->items[i]);
        }
    }
    look_at_arming(ps, "", "");
}

int64_t repl_probes_tick(struct repl_probes *ps)
{
    int64_t now = loop_now();

    if (ps->until >= 0 && now >= ps->until) {
        ctx_say(ps->base->ctx, "the time is over (:for)");
        repl_probes_stop(ps, NULL);
    }
    if (ps->stopped >= 0 && now >= ps->stopped) {
        ps->stopped = -1;
        ctx_say(ps->base->ctx, "stopped; :start goes on, Ctrl-C again or Ctrl-D leaves");
    }
    return loop_sooner(ps->until, ps->stopped);
}

void repl_probes_say_stopped(struct repl_probes *ps)
{
    ps->stopped = loop_now() + ON_THEIR_WAY_MS;
    repl_wake(ps->base);
}

/* ---- beginning and end ---- */

bool repl_probes_armed(const struct repl_probes *ps)
{
    return ps->armed;
}

struct repl_probes *repl_probes_new(struct repl_base *base, struct repl_nodes *nodes)
{
    struct repl_probes *ps = mem_zalloc(sizeof(*ps));

    ps->base = base;
    ps->nodes = nodes;
    ps->until = ps->stopped = -1;
    return ps;
}

void repl_probes_free(struct repl_probes *ps)
{
    if (!ps)
        return;
    while (ps->count)
        forget(ps, 0);
    free(ps->items);
    free(ps);
}
