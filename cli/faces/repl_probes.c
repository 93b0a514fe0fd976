/* Nodes and probes: what is traced, and what the nodes say about it. */
#include <stdio.h>
#include <stdlib.h>

#include "../commands/prepare.h"
#include "../events/recfile.h"
#include "../ground/mem.h"
#include "repl.h"

#define RETRY_MS 1000

static struct peers *peers(struct repl *r)
{
    return &r->run.peers;
}

static const char *name_of(const struct peer *p)
{
    return peer_name(p) ? peer_name(p) : "the node";
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- nodes ---- */

size_t repl_attached(const struct repl *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->run.peers.count; i++)
        n += !r->run.peers.items[i].over;
    return n;
}

bool repl_attaching(const struct repl *r)
{
    for (size_t i = 0; i < r->run.peers.count; i++) {
        const struct peer *p = &r->run.peers.items[i];
        if (p->knock || (!p->over && session_state(p->session) == SESSION_BOOTING))
            return true;
    }
    return false;
}

bool repl_several(const struct repl *r)
{
    size_t met = 0;

    for (size_t i = 0; i < r->run.peers.count; i++)
        met += r->nodes[i].met;
    return met > 1;
}

/* What commands ask by default is a node that is there. */
static void choose_current(struct repl *r)
{
    if (r->current >= 0 && (size_t)r->current < peers(r)->count && !peers(r)->items[r->current].over)
        return;
    r->current = -1;
    for (size_t i = peers(r)->count; i-- > 0;)
        if (!peers(r)->items[i].over)
            r->current = (int)i;
}

struct peer *repl_peer(struct repl *r, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < peers(r)->count; i++) {
        struct peer *p = &peers(r)->items[i];
        if ((!p->over || p->knock) && !strncmp(name_of(p), name, len) && (!name_of(p)[len] || name_of(p)[len] == '@'))
            return p;
    }
    return NULL;
}

bool repl_attach(struct repl *r, const char *name, enum repl_wish wish, struct err *e)
{
    struct peer *p = run_attach(&r->run, &r->node, name, &r->limit, e);

    if (!p)
        return false;
    struct repl_node *n = &r->nodes[p->index];
    *n = (struct repl_node){.retry_at = -1, .wish = wish, .met = n->met, .lost = n->lost && wish == WISH_AGAIN};
    snprintf(n->name, sizeof(n->name), "%s", name ? name : "");
    r->timer.due = 0;
    return true;
}

void repl_detach(struct repl *r, struct peer *p)
{
    peer_detach(p);
    ctx_say(r->ctx, "%s: detached", name_of(p));
    choose_current(r);
    repl_names_forget(r);
}

static void try_again(struct repl *r, struct peer *p)
{
    struct repl_node *n = &r->nodes[p->index];
    char name[NODE_NAME_MAX + 1];
    struct err ignored;

    snprintf(name, sizeof(name), "%s", n->name);
    if (!repl_attach(r, name, WISH_AGAIN, &ignored))
        n->retry_at = loop_now() + RETRY_MS;
}

void repl_reopen(struct repl *r)
{
    struct err e;

    for (size_t i = 0; i < peers(r)->count; i++) {
        struct peer *p = &peers(r)->items[i];
        char name[NODE_NAME_MAX + 1];
        if (p->over)
            continue;
        snprintf(name, sizeof(name), "%s", name_of(p));
        peer_detach(p);
        if (!repl_attach(r, name, WISH_TYPED, &e))
            repl_fail(r, &e);
    }
    choose_current(r);
}

/* ---- arming ---- */

static void words(const struct repl *r, struct texts *ret)
{
    size_t number = 0;

    for (size_t i = 0; i < r->nprobes; i++) {
        const struct probe *p = &r->probes[i];
        if (p->stopped || p->gone)
            continue;
        for (; number < p->number; number++)
            texts_add(ret, NULL);
        texts_add(ret, p->text);
        number += p->nspecs;
    }
}

size_t repl_running(const struct repl *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->nprobes; i++)
        n += !r->probes[i].stopped && !r->probes[i].gone;
    return n;
}

static bool is_running(const struct probe *p)
{
    return !p->stopped && !p->gone;
}

/* Those who read it know no more than there is in it. */
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

/* As a recording has it: labels only where events could be mistaken. `told`: and those whose events may be on their way. */
static void put_specs(const struct repl *r, const struct asked *asked, bool told, struct buf *to)
{
    size_t count = 0, number = 0;

    for (size_t i = 0; i < asked->nheaders; i++)
        recfile_spec_add(to, "hrl", asked->headers[i]);
    for (size_t i = 0; i < r->what.lets.count; i++)
        recfile_spec_add(to, "let", (struct str){r->what.lets.items[i], strlen(r->what.lets.items[i])});
    for (size_t i = 0; i < r->nprobes; i++) {
        const struct probe *p = &r->probes[i];
        if (!is_running(p) && !(told && p->told))
            continue;
        count++;
        if (p->records)
            recfile_spec_add(to, "hrl", (struct str){p->records, strlen(p->records)});
    }
    for (size_t i = 0; i < r->nprobes; i++)
        if (is_running(&r->probes[i]) || (told && r->probes[i].told))
            put_probe(to, &r->probes[i], count > 1, &number);
}

static void forget(struct repl *r, size_t i)
{
    free(r->probes[i].label);
    free(r->probes[i].text);
    free(r->probes[i].records);
    memmove(&r->probes[i], &r->probes[i + 1], (r->nprobes - i - 1) * sizeof(*r->probes));
    r->nprobes--;
}

/* From here on, what is on its way is of those that run. */
static void forget_gone(struct repl *r)
{
    for (size_t i = r->nprobes; i-- > 0;) {
        r->probes[i].told = is_running(&r->probes[i]);
        if (r->probes[i].gone)
            forget(r, i);
    }
}

static struct arm_mark tell_scroll(struct repl *r, const struct asked *asked)
{
    struct arm_mark mark = {r->mark + 1, r->mark + 1};
    struct buf text = {0};

    for (size_t i = 0; i < r->nprobes; i++)
        if (r->probes[i].told && !is_running(&r->probes[i]))
            mark.last = mark.first + 1;
    put_specs(r, asked, true, &text);
    scroll_specs(r->scroll, mark.first, buf_view(&text));
    if (mark.last != mark.first) {
        buf_clear(&text);
        put_specs(r, asked, false, &text);
        scroll_specs(r->scroll, mark.last, buf_view(&text));
    }
    buf_release(&text);
    r->mark = mark.last;
    return mark;
}

static bool forget_fresh(struct repl *r);

/* What a node does not take is not asked for any more: the latest probe, or all of them. */
static void go_without(struct repl *r, const struct err *e)
{
    repl_fail(r, e);
    if (!forget_fresh(r))
        for (size_t i = 0; i < r->nprobes; i++)
            r->probes[i].stopped = true;
    repl_arm(r);
}

static bool arm(struct repl *r, const struct texts *all, struct err *e)
{
    const struct texts none = {0};
    struct asked asked;
    bool later = false;

    asked_init(&asked);
    asked.find_record = asked_later;
    asked.find_data = &later;
    bool ok = asked_compile(&asked, &r->what, all, &none, 0, e);
    if (ok) {
        struct arm_mark mark = tell_scroll(r, &asked);
        forget_gone(r);
        ok = run_arm(&r->run, &r->what, all, mark, e);
    }
    asked_release(&asked);
    return ok;
}

bool repl_arm_all(struct repl *r, struct err *e)
{
    struct texts all = {0};

    r->until = -1;
    r->armed = repl_running(r);
    if (!r->armed) {
        run_disarm(&r->run);
        forget_gone(r);
        return true;
    }
    words(r, &all);
    r->asking = true;
    bool ok = arm(r, &all, e);
    r->asking = false;
    texts_release(&all);
    return ok;
}

void repl_arm(struct repl *r)
{
    struct err e;

    if (!repl_arm_all(r, &e))
        go_without(r, &e);
}

/* What no node has taken yet is what a refusal is about. */
static bool forget_fresh(struct repl *r)
{
    bool any = false;

    for (size_t i = 0; i < r->nprobes; i++) {
        struct probe *p = &r->probes[i];
        any |= p->fresh && !p->gone;
        p->gone |= p->fresh;
    }
    return any;
}

/* ---- what the nodes say ---- */

static void on_batch(void *data, struct peer *p, const void *batch, size_t len)
{
    struct repl *r = data;
    struct err e;

    if (!scroll_batch(r->scroll, p->index, (struct str){batch, len}, &e))
        peer_fail(p, &e);
}

static void arm_one(struct repl *r, struct peer *p)
{
    struct texts all = {0};
    struct err e;

    words(r, &all);
    if (all.count && r->armed && !run_arm_peer(&r->run, p, &r->what, &all, (struct arm_mark){r->mark, r->mark}, &e))
        repl_fail(r, &e);
    texts_release(&all);
}

static void arm_due(struct repl *r)
{
    if (r->refused) {
        r->refused = false;
        go_without(r, &r->refusal);
    }
    for (size_t i = 0; i < peers(r)->count; i++) {
        bool due = r->nodes[i].arm_due && !peers(r)->items[i].over;
        r->nodes[i].arm_due = false;
        if (due)
            arm_one(r, &peers(r)->items[i]);
    }
}

bool repl_arming(const struct repl *r)
{
    bool arming = r->refused || run_arming(&r->run) || repl_attaching(r);

    for (size_t i = 0; i < r->run.peers.count; i++)
        arming = arming || r->nodes[i].arm_due;
    return arming;
}

static void on_ready(void *data, struct peer *p)
{
    struct repl *r = data;
    const struct session_node *node = session_node(p->session);
    struct err e;

    ctx_say(r->ctx, "%s · OTP %s · %llu process%s · attached", node->name, node->otp_version,
            (unsigned long long)node->processes, node->processes == 1 ? "" : "es");
    if (node->fallback)
        ctx_warn(r->ctx, "%s: tracing without the NIF, at most 1000 events a second: %s", node->name, node->fallback_why);
    choose_current(r);
    struct repl_node *n = &r->nodes[p->index];
    bool back = n->lost;
    *n = (struct repl_node){.met = true, .arm_due = true, .retry_at = -1};
    if (r->live && r->live->nodes != repl_several(r))
        repl_show_live(r, true);
    if (back)
        together_up(&r->together, p, &e);
    for (size_t i = 0; i < peers(r)->count && repl_several(r); i++) {
        struct peer *each = &peers(r)->items[i];
        if (!each->over && session_state(each->session) == SESSION_READY && (each == p || !together_known(&r->together, each)) &&
            !together_ask(&r->together, each, &e))
            peer_fail(each, &e);
    }
    r->timer.due = 0;
}

static void on_armed(void *data, struct peer *p, const struct arm_result *result)
{
    struct repl *r = data;
    uint64_t functions = 0;
    char of[NODE_NAME_MAX + 4] = "";

    if (r->asking)
        return;
    if (repl_attached(r) > 1)
        snprintf(of, sizeof(of), "%s: ", name_of(p));
    for (size_t i = 0; i < result->nwarnings; i++)
        ctx_warn(r->ctx, "%swarning: %s", of, result->warnings[i]);
    for (size_t i = 0; i < result->nprobes; i++)
        functions += result->probes[i].functions;
    if (run_arming(&r->run))
        ctx_say(r->ctx, "%s%llu function%s", of, (unsigned long long)functions, plural(functions));
    else
        ctx_say(r->ctx, "%s%zu probe%s · %llu function%s · %llu process%s · Ctrl-C stops", of, repl_running(r),
                plural(repl_running(r)), (unsigned long long)functions, plural(functions),
                (unsigned long long)result->processes, result->processes == 1 ? "" : "es");
    if (run_arming(&r->run))
        return;
    for (size_t i = 0; i < r->nprobes; i++)
        r->probes[i].fresh = false;
    r->until = r->limit.for_ns ? loop_now() + r->limit.for_ns / 1000000 : -1;
    r->timer.due = 0;
}

static void on_refused(void *data, struct peer *p UNUSED, const struct err *e)
{
    struct repl *r = data;

    r->refused = true;
    r->refusal = *e;
    r->timer.due = 0;
}

static void on_failed(void *data, struct peer *p, const struct err *e)
{
    struct repl *r = data;
    struct repl_node *n = &r->nodes[p->index];
    bool paused = loop_now() < n->wanted, again = r->reattach || paused;
    struct err ignored;

    r->timer.due = 0;
    if (n->wish == WISH_AGAIN) {
        n->retry_at = loop_now() + RETRY_MS;
        return;
    }
    if (n->wish == WISH_DEFAULT && !p->session) {
        ctx_warn(r->ctx, "no node is attached: %s; :attach NODE attaches one", e->text);
        return;
    }
    repl_fail(r, e);
    if (!p->session || !n->met)
        return;
    together_down(&r->together, p, e, &ignored);
    n->lost = true;
    snprintf(n->name, sizeof(n->name), "%s", name_of(p));
    n->retry_at = again ? loop_now() + (paused ? 0 : RETRY_MS) : -1;
    n->wanted = 0;
    if (again)
        ctx_say(r->ctx, "%s: will be attached again", n->name);
    else
        ctx_say(r->ctx, "%s is no longer attached; :attach %s attaches it again, :reattach on does so by itself", n->name, n->name);
    choose_current(r);
    repl_names_forget(r);
}

static void on_answer(void *data, struct peer *p UNUSED, const struct session_reply *reply)
{
    repl_names_answer(data, reply);
}

static void on_clock(void *data, struct peer *p, const struct session_time *time)
{
    together_time(&((struct repl *)data)->together, p, time);
}

static void keep_note(void *data, unsigned node, struct str note)
{
    scroll_note(((struct repl *)data)->scroll, node, note);
}

static void on_time(void *owner)
{
    struct repl *r = owner;
    int64_t now, next;

    peers_tick(peers(r), &next);
    arm_due(r);
    now = loop_now();
    for (size_t i = 0; i < peers(r)->count; i++) {
        struct repl_node *n = &r->nodes[i];
        if (n->lost && n->retry_at >= 0 && now >= n->retry_at && !peers(r)->items[i].knock)
            try_again(r, &peers(r)->items[i]);
        if (n->lost && n->retry_at >= 0 && (next < 0 || n->retry_at < next))
            next = n->retry_at;
    }
    if (r->until >= 0 && now >= r->until) {
        ctx_say(r->ctx, "the time is over (:for)");
        repl_stop(r, NULL);
    }
    if (r->stopped >= 0 && now >= r->stopped) {
        r->stopped = -1;
        ctx_say(r->ctx, "stopped; :start goes on, Ctrl-C again or Ctrl-D leaves");
    }
    if (r->until >= 0 && (next < 0 || r->until < next))
        next = r->until;
    if (r->stopped >= 0 && (next < 0 || r->stopped < next))
        next = r->stopped;
    r->timer.due = next < 0 ? now + 1000 : MIN(next, now + 1000);
}

void repl_begin(struct repl *r)
{
    struct run_handlers handlers = {.data = r, .ready = on_ready, .batch = on_batch, .armed = on_armed, .refused = on_refused,
                                    .failed = on_failed, .answer = on_answer, .time = on_clock};

    run_begin(&r->run, r->ctx, &handlers);
    together_init(&r->together, r->ctx, &r->run.peers, NULL);
    r->together.keep = keep_note;
    r->together.data = r;
    r->current = -1;
    r->until = r->stopped = -1;
    r->timer = (struct loop_timer){.due = 0, .run = on_time, .owner = r};
    loop_start(&r->ctx->loop, &r->timer);
}

/* ---- probes ---- */

static struct probe *find(struct repl *r, const char *label)
{
    for (size_t i = 0; i < r->nprobes; i++)
        if (!r->probes[i].gone && !strcmp(r->probes[i].label, label))
            return &r->probes[i];
    return NULL;
}

static bool label_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* `name: expression`; a module stands directly before its function. */
static size_t label_length(const char *line)
{
    size_t n = 0;

    while (label_char(line[n]))
        n++;
    return n && n < 32 && line[n] == ':' && (line[n + 1] == ' ' || line[n + 1] == '\t') ? n : 0;
}

/* The carets stand under the line as it was typed, where that is one line of the terminal. */
static void wrong(struct repl *r, const char *expr, struct err *e)
{
    static const char prompt[] = "etrace> ";
    const char *line = buf_cstr(&r->typed);
    size_t skipped = (size_t)(expr - r->typed_at);

    if (!r->line || !e->line[0] || strcmp(e->line, expr) || strchr(line, '\n') ||
        line_column(r->line, prompt, line, strlen(line)) >= line_width(r->line)) {
        repl_fail(r, e);
        return;
    }
    struct buf b = {0};
    size_t from = line_column(r->line, prompt, line, skipped + MIN(e->from, strlen(expr)));
    size_t to = line_column(r->line, prompt, line, MIN(skipped + e->from + e->len, strlen(line)));
    bool colour = r->ctx->color_talk;
    buf_printf(&b, "%*s%s", (int)from, "", colour ? "\033[1;31m" : "");
    for (size_t i = from; i < MAX(to, from + 1); i++)
        buf_char(&b, '^');
    buf_printf(&b, "%s%s%s\n", colour ? "\033[m" : "", e->note[0] ? " " : "", e->note);
    line_above(r->line, buf_view(&b));
    buf_release(&b);
    e->line[0] = 0;
    repl_fail(r, e);
}

/* What the node that commands ask knows of the records in it, as text of a header; later on each node is asked for itself. */
static bool find_records(struct repl *r, const struct texts *one, struct buf *ret, struct err *e)
{
    const struct peer *p = r->current >= 0 ? &peers(r)->items[r->current] : NULL;
    const struct texts none = {0};
    struct records records;
    struct asked asked;

    if (!p || p->over || session_state(p->session) != SESSION_READY)
        return err_set(e, ERR_NODE, "no node is attached that could be asked for the record");
    r->run.question.session = p->session;
    records_init(&records, &r->run.question);
    bool ok = prepare_compile(&asked, &records, &r->what, one, &none, e);
    records_text(&records, ret);
    asked_release(&asked);
    records_release(&records);
    return ok;
}

static struct probe *add(struct repl *r, const char *line, size_t labelled)
{
    char label[32];

    if (labelled)
        snprintf(label, sizeof(label), "%.*s", (int)labelled, line);
    else
        do
            snprintf(label, sizeof(label), "%u", ++r->labels);
        while (find(r, label));
    struct probe *p = find(r, label);
    if (p)
        p->gone = true;
    r->probes = mem_grow(r->probes, &r->probes_cap, r->nprobes + 1, sizeof(*r->probes));
    p = &r->probes[r->nprobes++];
    *p = (struct probe){.label = mem_strndup(label, strlen(label)), .number = r->numbers, .fresh = true};
    return p;
}

bool repl_probe(struct repl *r, const char *line)
{
    size_t labelled = label_length(line);
    const char *expr = line + (labelled ? labelled + 1 : 0);
    struct texts one = {0}, none = {0};
    struct buf records = {0};
    struct asked asked;
    bool later = false;
    struct err e;

    while (*expr == ' ' || *expr == '\t')
        expr++;
    texts_add(&one, expr);
    asked_init(&asked);
    asked.find_record = asked_later;
    asked.find_data = &later;
    bool ok = asked_compile(&asked, &r->what, &one, &none, 0, &e);
    if (ok && !repl_attached(r) && !repl_attaching(r)) {
        ok = err_set(&e, ERR_NODE, "no node is attached");
        err_hint(&e, ":attach NODE attaches one");
    }
    ok = ok && (!later || find_records(r, &one, &records, &e));
    if (ok) {
        asked_warn(&asked, r->ctx);
        struct probe *p = add(r, line, labelled);
        p->text = mem_strndup(expr, strlen(expr));
        p->records = records.len ? mem_strndup(records.data, records.len) : NULL;
        p->nspecs = asked.count;
        r->numbers += asked.count;
    }
    asked_release(&asked);
    texts_release(&one);
    buf_release(&records);
    if (!ok) {
        wrong(r, expr, &e);
        return false;
    }
    if (r->live->done)
        repl_show_live(r, true);
    ok = repl_arm_all(r, &e);
    if (!ok)
        go_without(r, &e);
    return ok;
}

bool repl_drop(struct repl *r, const char *label)
{
    struct probe *p = find(r, label);

    if (!p && strcmp(label, "all") != 0)
        return false;
    for (size_t i = 0; i < r->nprobes; i++)
        r->probes[i].gone |= !p || p == &r->probes[i];
    repl_arm(r);
    return true;
}

static bool set_stopped(struct repl *r, const char *label, bool stopped)
{
    struct probe *p = label ? find(r, label) : NULL;

    if (label && !p && strcmp(label, "all") != 0)
        return false;
    for (size_t i = 0; i < r->nprobes; i++)
        if (!p || p == &r->probes[i])
            r->probes[i].stopped = stopped;
    return true;
}

bool repl_start(struct repl *r, const char *label)
{
    if (!set_stopped(r, label, false))
        return false;
    if (r->live->done)
        repl_show_live(r, true);
    repl_arm(r);
    return true;
}

bool repl_stop(struct repl *r, const char *label)
{
    if (!set_stopped(r, label, true))
        return false;
    repl_arm(r);
    return true;
}

void repl_list(struct repl *r, struct buf *to)
{
    bool any = false;

    for (size_t i = 0; i < r->nprobes; i++) {
        const struct probe *p = &r->probes[i];
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

void repl_release(struct repl *r)
{
    while (r->nprobes)
        forget(r, 0);
    free(r->probes);
}
