/* Nodes and probes: what is traced, and what the nodes say about it. */
#include <stdio.h>
#include <stdlib.h>

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
    return session_node(p->session)->name;
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
        if (!p->over && !strncmp(name_of(p), name, len) && (!name_of(p)[len] || name_of(p)[len] == '@'))
            return p;
    }
    return NULL;
}

bool repl_attach(struct repl *r, const char *name, struct err *e)
{
    struct peer *p = run_attach(&r->run, &r->node, name, &r->limit, e);

    if (!p)
        return false;
    r->nodes[p->index] = (struct repl_node){.retry_at = -1};
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
    struct err e;
    int64_t began = loop_now();

    if (repl_attach(r, n->name, &e))
        return;
    /* Who does not even refuse costs time, during which nothing else is served. */
    n->retry_at = loop_now() + MAX(RETRY_MS, 10 * (loop_now() - began));
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
        if (!repl_attach(r, name, &e))
            repl_fail(r, &e);
    }
    choose_current(r);
}

/* ---- arming ---- */

static void words(const struct repl *r, struct texts *ret)
{
    for (size_t i = 0; i < r->nprobes; i++)
        if (!r->probes[i].stopped)
            texts_add(ret, r->probes[i].text);
}

size_t repl_running(const struct repl *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->nprobes; i++)
        n += !r->probes[i].stopped;
    return n;
}

/* As a recording has it: labels only where events could be mistaken. */
static void tell_scroll(struct repl *r, const struct asked *asked)
{
    struct buf text = {0};
    bool labels = repl_running(r) > 1;

    for (size_t i = 0; i < asked->nheaders; i++)
        recfile_spec_add(&text, "hrl", asked->headers[i]);
    for (size_t i = 0; i < r->what.lets.count; i++)
        recfile_spec_add(&text, "let", (struct str){r->what.lets.items[i], strlen(r->what.lets.items[i])});
    for (size_t i = 0; i < r->nprobes; i++) {
        const struct probe *p = &r->probes[i];
        if (p->stopped)
            continue;
        if (labels || p->label[0] < '0' || p->label[0] > '9')
            recfile_spec_add(&text, "label", (struct str){p->label, strlen(p->label)});
        recfile_spec_add(&text, "expr", (struct str){p->text, strlen(p->text)});
    }
    scroll_specs(r->scroll, ++r->mark, buf_view(&text));
    buf_release(&text);
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

void repl_arm(struct repl *r)
{
    bool refused = false;
    struct texts all = {0}, none = {0};
    struct asked asked;
    struct err e;

    words(r, &all);
    if (run_arming(&r->run) || !all.count)
        run_disarm(&r->run);
    r->armed = all.count > 0;
    r->until = -1;
    if (all.count) {
        asked_init(&asked);
        if (asked_compile(&asked, &r->what, &all, &none, 0, &e)) {
            tell_scroll(r, &asked);
            refused = !run_arm(&r->run, &r->what, &all, r->mark, &e);
        } else {
            repl_fail(r, &e);
            run_disarm(&r->run);
            r->armed = false;
        }
        asked_release(&asked);
    }
    texts_release(&all);
    if (refused)
        go_without(r, &e);
}

static void forget(struct repl *r, size_t i)
{
    free(r->probes[i].label);
    free(r->probes[i].text);
    memmove(&r->probes[i], &r->probes[i + 1], (r->nprobes - i - 1) * sizeof(*r->probes));
    r->nprobes--;
}

/* What no node has taken yet is what a refusal is about. */
static bool forget_fresh(struct repl *r)
{
    bool any = false;

    for (size_t i = r->nprobes; i-- > 0;)
        if (r->probes[i].fresh) {
            forget(r, i);
            any = true;
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
    if (all.count && r->armed && !run_arm_peer(&r->run, p, &r->what, &all, r->mark, &e))
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
    bool arming = r->refused || run_arming(&r->run);

    for (size_t i = 0; i < r->run.peers.count; i++) {
        const struct peer *p = &r->run.peers.items[i];
        arming = arming || r->nodes[i].arm_due || (!p->over && session_state(p->session) == SESSION_BOOTING);
    }
    return arming;
}

static void on_ready(void *data, struct peer *p)
{
    struct repl *r = data;
    const struct session_node *node = session_node(p->session);

    ctx_say(r->ctx, "%s · OTP %s · %llu process%s · attached", node->name, node->otp_version,
            (unsigned long long)node->processes, node->processes == 1 ? "" : "es");
    if (node->fallback)
        ctx_warn(r->ctx, "%s: tracing without the NIF, at most 1000 events a second: %s", node->name, node->fallback_why);
    choose_current(r);
    if (r->live && r->live->nodes != (peers(r)->count > 1))
        repl_show_live(r, true);
    r->nodes[p->index].arm_due = true;
    r->timer.due = 0;
}

static void on_armed(void *data, struct peer *p, const struct arm_result *result)
{
    struct repl *r = data;
    uint64_t functions = 0;
    char of[NODE_NAME_MAX + 4] = "";

    if (repl_attached(r) > 1)
        snprintf(of, sizeof(of), "%s: ", name_of(p));
    for (size_t i = 0; i < result->nwarnings; i++)
        ctx_warn(r->ctx, "%swarning: %s", of, result->warnings[i]);
    for (size_t i = 0; i < result->nprobes; i++)
        functions += result->probes[i].functions;
    if (repl_arming(r))
        ctx_say(r->ctx, "%s%llu function%s", of, (unsigned long long)functions, plural(functions));
    else
        ctx_say(r->ctx, "%s%zu probe%s · %llu function%s · %llu process%s · Ctrl-C stops", of, repl_running(r),
                plural(repl_running(r)), (unsigned long long)functions, plural(functions),
                (unsigned long long)result->processes, result->processes == 1 ? "" : "es");
    if (repl_arming(r))
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

    repl_fail(r, e);
    n->lost = true;
    snprintf(n->name, sizeof(n->name), "%s", name_of(p));
    n->retry_at = again ? loop_now() + (paused ? 0 : RETRY_MS) : -1;
    n->wanted = 0;
    r->timer.due = 0;
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

static void on_time(void *owner)
{
    struct repl *r = owner;
    int64_t now, next;

    peers_tick(peers(r), &next);
    arm_due(r);
    now = loop_now();
    for (size_t i = 0; i < peers(r)->count; i++) {
        struct repl_node *n = &r->nodes[i];
        if (n->lost && n->retry_at >= 0 && now >= n->retry_at)
            try_again(r, &peers(r)->items[i]);
        if (n->lost && n->retry_at >= 0 && (next < 0 || n->retry_at < next))
            next = n->retry_at;
    }
    if (r->until >= 0 && now >= r->until) {
        ctx_say(r->ctx, "the time is over (:for)");
        repl_stop(r, NULL);
    }
    if (r->until >= 0 && (next < 0 || r->until < next))
        next = r->until;
    r->timer.due = next < 0 ? now + 1000 : MIN(next, now + 1000);
}

void repl_begin(struct repl *r)
{
    struct run_handlers handlers = {.data = r, .ready = on_ready, .batch = on_batch, .armed = on_armed, .refused = on_refused,
                                    .failed = on_failed, .answer = on_answer};

    run_begin(&r->run, r->ctx, &handlers);
    r->current = -1;
    r->until = -1;
    r->timer = (struct loop_timer){.due = 0, .run = on_time, .owner = r};
    loop_start(&r->ctx->loop, &r->timer);
}

/* ---- probes ---- */

static struct probe *find(struct repl *r, const char *label)
{
    for (size_t i = 0; i < r->nprobes; i++)
        if (!strcmp(r->probes[i].label, label))
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
static void wrong(struct repl *r, const char *line, const char *expr, struct err *e)
{
    static const char prompt[] = "etrace> ";
    size_t skipped = (size_t)(expr - line);

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

bool repl_probe(struct repl *r, const char *line)
{
    size_t labelled = label_length(line);
    const char *expr = line + (labelled ? labelled + 1 : 0);
    struct texts one = {0}, none = {0};
    struct asked asked;
    struct err e;
    char label[32];

    while (*expr == ' ' || *expr == '\t')
        expr++;
    texts_add(&one, expr);
    asked_init(&asked);
    bool ok = asked_compile(&asked, &r->what, &one, &none, 0, &e);
    if (ok)
        asked_warn(&asked, r->ctx);
    asked_release(&asked);
    texts_release(&one);
    if (!ok) {
        wrong(r, line, expr, &e);
        return false;
    }
    if (!repl_attached(r)) {
        err_set(&e, ERR_NODE, "no node is attached");
        err_hint(&e, ":attach NODE attaches one");
        repl_fail(r, &e);
        return false;
    }
    if (labelled)
        snprintf(label, sizeof(label), "%.*s", (int)labelled, line);
    else
        do
            snprintf(label, sizeof(label), "%u", ++r->labels);
        while (find(r, label));
    struct probe *p = find(r, label);
    if (p) {
        free(p->text);
    } else {
        r->probes = mem_grow(r->probes, &r->probes_cap, r->nprobes + 1, sizeof(*r->probes));
        p = &r->probes[r->nprobes++];
        p->label = mem_strndup(label, strlen(label));
    }
    p->text = mem_strndup(expr, strlen(expr));
    p->stopped = false;
    p->fresh = true;
    if (r->live->done)
        repl_show_live(r, true);
    repl_arm(r);
    return true;
}

bool repl_drop(struct repl *r, const char *label)
{
    struct probe *p = find(r, label);

    if (!p && strcmp(label, "all") != 0)
        return false;
    if (p)
        forget(r, (size_t)(p - r->probes));
    else
        while (r->nprobes)
            forget(r, 0);
    repl_arm(r);
    return true;
}

static void set_stopped(struct repl *r, const char *label, bool stopped)
{
    for (size_t i = 0; i < r->nprobes; i++)
        if (!label || !strcmp(label, "all") || !strcmp(r->probes[i].label, label))
            r->probes[i].stopped = stopped;
}

void repl_start(struct repl *r, const char *label)
{
    set_stopped(r, label, false);
    if (r->live->done)
        repl_show_live(r, true);
    repl_arm(r);
}

void repl_stop(struct repl *r, const char *label)
{
    set_stopped(r, label, true);
    repl_arm(r);
}

void repl_list(struct repl *r, struct buf *to)
{
    for (size_t i = 0; i < r->nprobes; i++)
        buf_printf(to, "%-8s %s%s\n", r->probes[i].label, r->probes[i].text, r->probes[i].stopped ? "   (stopped)" : "");
    if (!r->nprobes)
        buf_puts(to, "no probes: an expression makes one\n");
}

void repl_release(struct repl *r)
{
    while (r->nprobes)
        forget(r, 0);
    free(r->probes);
}
