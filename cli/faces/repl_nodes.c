/* Nodes: which are attached, what they say, and what becomes of those that go and come. */
#include <stdio.h>

#include "repl.h"

#define RETRY_MS 1000
#define LEAVE_MS 5000

static struct peers *peers(struct repl *r)
{
    return &r->run.peers;
}

static const char *name_of(const struct peer *p)
{
    return peer_name(p) ? peer_name(p) : "the node";
}

static bool is_attached(const struct peer *p)
{
    return peer_is_there(p) && !peer_is_leaving(p);
}

/* ---- attaching ---- */

size_t repl_attached(const struct repl *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->run.peers.count; i++)
        n += is_attached(&r->run.peers.items[i]);
    return n;
}

bool repl_attaching(const struct repl *r)
{
    for (size_t i = 0; i < r->run.peers.count; i++) {
        const struct peer *p = &r->run.peers.items[i];
        if (p->state == PEER_CONNECTING || p->state == PEER_BOOTING)
            return true;
    }
    return false;
}

bool repl_has_all(const struct repl *r)
{
    bool all = true;

    for (size_t i = 0; i < r->run.peers.count; i++)
        all = all && (is_attached(&r->run.peers.items[i]) || r->nodes[i].retry_at >= 0);
    return all;
}

bool repl_several(const struct repl *r)
{
    size_t met = 0;

    for (size_t i = 0; i < r->run.peers.count; i++)
        met += r->nodes[i].met;
    return met > 1;
}

struct peer *repl_current(struct repl *r)
{
    struct peer *p = r->current >= 0 ? &peers(r)->items[r->current] : NULL;

    return p && is_attached(p) ? p : NULL; /* it may be on its way, and then has no session */
}

/* What commands ask by default is a node that is there, or comes back. */
static void choose_current(struct repl *r)
{
    if (repl_current(r) || (r->current >= 0 && peers(r)->items[r->current].state == PEER_CONNECTING))
        return;
    r->current = -1;
    for (size_t i = peers(r)->count; i-- > 0;)
        if (is_attached(&peers(r)->items[i]))
            r->current = (int)i;
}

struct peer *repl_peer(struct repl *r, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < peers(r)->count; i++) {
        struct peer *p = &peers(r)->items[i];
        if ((is_attached(p) || p->state == PEER_CONNECTING) && !strncmp(name_of(p), name, len) && (!name_of(p)[len] || name_of(p)[len] == '@'))
            return p;
    }
    return NULL;
}

bool repl_attach(struct repl *r, const char *name, enum repl_wish wish, struct err *e)
{
    struct peer *p = run_attach(&r->run, &r->base.options.node, name, &r->base.options.limit, e);

    if (!p)
        return false;
    struct repl_node *n = &r->nodes[p->index];
    *n = (struct repl_node){.retry_at = -1, .wish = wish, .met = n->met, .lost = n->lost, .refusals = wish == WISH_AGAIN ? n->refusals : 0};
    snprintf(n->name, sizeof(n->name), "%s", name ? name : "");
    repl_wake(&r->base);
    return true;
}

/* Events that are left on the node still come. */
static void leave(struct repl *r, struct peer *p)
{
    int64_t by = loop_now() + LEAVE_MS;

    r->nodes[p->index].detached = true;
    peer_detach(p);
    while (peer_is_leaving(p) && loop_now() < by && !r->base.leaving)
        repl_step(&r->base, by);
}

void repl_detach(struct repl *r, struct peer *p)
{
    leave(r, p);
    ctx_say(r->base.ctx, "%s: detached", name_of(p));
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
        bool named = peer_name(p);
        if (!is_attached(p) && p->state != PEER_CONNECTING)
            continue;
        snprintf(name, sizeof(name), "%s", name_of(p));
        enum repl_wish wish = p->state == PEER_CONNECTING ? r->nodes[i].wish : WISH_TYPED;
        leave(r, p);
        if (!repl_attach(r, named ? name : NULL, wish, &e))
            repl_fail(&r->base, &e);
    }
    choose_current(r);
}

/* ---- what they say ---- */

static void on_batch(void *data, struct peer *p, const void *batch, size_t len)
{
    struct repl *r = data;
    struct err e;

    if (r->nodes[p->index].lost) /* what still came of one that has failed */
        return;
    if (!scroll_batch(r->base.scroll, p->index, (struct str){batch, len}, &e))
        peer_fail(p, &e);
}

void repl_settle(struct repl *r)
{
    if (!r->refused)
        return;
    r->refused = false;
    repl_go_without(r, &r->refusal);
}

static void arm_due(struct repl *r)
{
    if (r->asking)
        return;
    repl_settle(r);
    for (size_t i = 0; i < peers(r)->count; i++) {
        bool due = r->nodes[i].arm_due && peers(r)->items[i].state == PEER_UP;
        r->nodes[i].arm_due = false;
        if (due)
            repl_arm_peer(r, &peers(r)->items[i]);
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

    ctx_say(r->base.ctx, "%s · OTP %s · %llu process%s · attached", node->name, node->otp_version,
            (unsigned long long)node->processes, PLURAL_ES(node->processes));
    if (node->fallback)
        ctx_warn(r->base.ctx, "%s: tracing without the NIF, at most 1000 events a second: %s", node->name, node->fallback_why);
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
        if (each->state == PEER_UP && (each == p || !together_known(&r->together, each)) &&
            !together_ask(&r->together, each, &e))
            peer_fail(each, &e);
    }
    repl_wake(&r->base);
}

/* Reports the probes when no node is left that could still answer. */
static void look_at_arming(struct repl *r, const char *which)
{
    if (!r->arming || run_arming(&r->run) || r->refused || !repl_attached(r))
        return;
    r->arming = false;
    ctx_say(r->base.ctx, "%s%zu probe%s%s · Ctrl-C stops", which, repl_running(r), PLURAL(repl_running(r)), buf_cstr(&r->counts));
    for (size_t i = 0; i < r->nprobes; i++)
        r->probes[i].fresh = false;
    r->until = r->base.options.limit.for_ns ? loop_now() + r->base.options.limit.for_ns / 1000000 : -1;
    repl_wake(&r->base);
}

static void on_armed(void *data, struct peer *p, const struct arm_result *result)
{
    struct repl *r = data;
    const uint64_t functions = result->functions;
    char of[NODE_NAME_MAX + 4] = "";

    if (repl_attached(r) > 1)
        snprintf(of, sizeof(of), "%s: ", name_of(p));
    for (size_t i = 0; i < result->nwarnings; i++)
        ctx_warn(r->base.ctx, "%swarning: %s", of, result->warnings[i]);
    if (run_arming(&r->run)) {
        ctx_say(r->base.ctx, "%s%llu function%s", of, (unsigned long long)functions, PLURAL(functions));
        return;
    }
    r->arming = true; /* also where it is one that came later */
    buf_clear(&r->counts);
    buf_printf(&r->counts, " · %llu function%s · %llu process%s", (unsigned long long)functions, PLURAL(functions),
               (unsigned long long)result->processes, PLURAL_ES(result->processes));
    look_at_arming(r, of);
    buf_clear(&r->counts);
}

static void on_refused(void *data, struct peer *p, const struct err *e)
{
    struct repl *r = data;

    if (r->nodes[p->index].alone) {
        repl_fail(&r->base, e);
        return;
    }

    r->refused = true;
    r->refusal = *e;
    repl_wake(&r->base);
}

static void on_failed(void *data, struct peer *p, const struct err *e)
{
    struct repl *r = data;
    struct repl_node *n = &r->nodes[p->index];
    bool paused = loop_now() < n->wanted, again = r->base.options.reattach || paused;
    struct err ignored;

    if (n->detached)
        return;

    repl_wake(&r->base);
    if (n->wish == WISH_AGAIN) {
        n->refusals = p->session || e->refused ? n->refusals + 1 : 0;
        n->retry_at = n->refusals < PEERS_REFUSALS ? loop_now() + RETRY_MS : -1;
        if (n->retry_at < 0) {
            repl_fail(&r->base, e);
            ctx_say(r->base.ctx, "%s: tried %d times, and no more; :attach %s does", n->name, PEERS_REFUSALS, n->name);
        }
        return;
    }
    if (n->wish == WISH_DEFAULT && !p->session) {
        ctx_warn(r->base.ctx, "no node is attached: %s; :attach NODE attaches one", e->text);
        return;
    }
    repl_fail(&r->base, e);
    choose_current(r);
    if (n->lost && r->base.options.reattach)
        n->retry_at = loop_now() + RETRY_MS;
    if (!p->session || !n->met)
        return;
    together_down(&r->together, p, e, &ignored);
    n->lost = true;
    snprintf(n->name, sizeof(n->name), "%s", name_of(p));
    n->retry_at = again ? loop_now() + (paused ? 0 : RETRY_MS) : -1;
    n->wanted = 0;
    if (again)
        ctx_say(r->base.ctx, "%s: will be attached again", n->name);
    else
        ctx_say(r->base.ctx, "%s is no longer attached; :attach %s attaches it again, :reattach on does so by itself", n->name, n->name);
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
    scroll_note(((struct repl *)data)->base.scroll, node, note);
}

static void on_time(void *owner)
{
    struct repl *r = owner;
    int64_t now, next;

    peers_tick(peers(r), &next);
    arm_due(r);
    look_at_arming(r, "");
    now = loop_now();
    for (size_t i = 0; i < peers(r)->count; i++) {
        struct repl_node *n = &r->nodes[i];
        if (n->lost && n->retry_at >= 0 && now >= n->retry_at && peers(r)->items[i].state != PEER_CONNECTING)
            try_again(r, &peers(r)->items[i]);
        if (n->lost)
            next = loop_sooner(next, n->retry_at);
    }
    if (r->until >= 0 && now >= r->until) {
        ctx_say(r->base.ctx, "the time is over (:for)");
        repl_stop(r, NULL);
    }
    if (r->stopped >= 0 && now >= r->stopped) {
        r->stopped = -1;
        ctx_say(r->base.ctx, "stopped; :start goes on, Ctrl-C again or Ctrl-D leaves");
    }
    r->base.timer.due = loop_sooner(now + 1000, loop_sooner(next, loop_sooner(r->until, r->stopped)));
}

void repl_begin(struct repl *r)
{
    struct run_handlers handlers = {.data = r, .ready = on_ready, .batch = on_batch, .armed = on_armed, .refused = on_refused,
                                    .failed = on_failed, .answer = on_answer, .time = on_clock};

    run_begin(&r->run, r->base.ctx, &handlers);
    together_init(&r->together, r->base.ctx, &r->run.peers, NULL);
    r->together.keep = keep_note;
    r->together.data = r;
    r->current = -1;
    r->until = r->stopped = -1;
    r->base.timer = (struct loop_timer){.due = 0, .run = on_time, .owner = r};
    loop_start(&r->base.ctx->loop, &r->base.timer);
}
