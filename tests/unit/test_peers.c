/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the nodes of a command. This program simulates the nodes and the clock. A seed decides whether a node is
 * found, refuses, is slow, falls silent, is lost or comes back, and in which order. In every simulation no node waits
 * for another one, each request gets an answer or a failure of its node, and the command ends. All simulations
 * together make every transition that a peer may make.
 *
 * The linker replaces sessions and connections. The descriptor of a node is its index.
 */
#include <stdlib.h>

#include "trace/peers.h"
#include "erlang/etf_write.h"
#include "node/knock.h"
#include "course.h"
#include "tap.h"

#define NODES 6
#define NEVER INT64_MAX
#define PATIENCE 20000
#define SEEDS 20000

enum event { BOOTS, ANSWERS, LOST, GONE, EVENTS };

struct session {
    struct played *node;
    enum session_state state;
    struct session_handlers h;
    bool lost, listing;
    struct session_node about;
};

/* A simulated node, and its future events. */
static struct played {
    char name[16];
    bool there, found, refuses, hidden;
    int64_t due[EVENTS]; /* in virtual time */
    int64_t silent_from; /* the node sends nothing after this time */
    struct session *session;
    int64_t asked_at, up_at, answered_at;
    uint32_t id;
    bool waits; /* a request is open */
    unsigned answers, failures, requests;
} played[NODES];

static struct peers peers;

int64_t __wrap_loop_now(void);
int64_t __wrap_loop_now(void)
{
    return course_ms;
}

int64_t __wrap_session_now(void);
int64_t __wrap_session_now(void)
{
    return course_ms;
}

/* ---- connecting ---- */

struct knock {
    struct played *node;
    int64_t due;
};

static struct played *find(const char *name)
{
    for (size_t i = 0; name && i < NODES; i++)
        if (!strcmp(played[i].name, name) || (!strchr(name, '@') && !strncmp(played[i].name, name, strlen(name))))
            return &played[i];
    return NULL;
}

struct knock *__wrap_knock_start(const struct node_target *t);
struct knock *__wrap_knock_start(const struct node_target *t)
{
    struct knock *k = calloc(1, sizeof *k);

    k->node = find(t->name);
    k->due = course_ms + 1 + roll(400);
    k->node->there = k->node->there || roll(3) == 0; /* the node has started */
    return k;
}

int __wrap_knock_fd(const struct knock *k);
int __wrap_knock_fd(const struct knock *k)
{
    return (int)(k->node - played);
}

bool __wrap_knock_answer(struct knock *k, struct node_conn *ret, struct err *e);
bool __wrap_knock_answer(struct knock *k, struct node_conn *ret, struct err *e)
{
    *ret = (struct node_conn){.found = k->node->found};
    if (k->node->there && !k->node->refuses && k->node->found) {
        snprintf(ret->node, sizeof ret->node, "%s", k->node->name);
        ret->stream.fd = (int)(k->node - played);
        return true;
    }
    err_set(e, ERR_NODE, "cannot connect to %s", k->node->name);
    e->refused = k->node->refuses;
    return false;
}

void __wrap_knock_free(struct knock *k);
void __wrap_knock_free(struct knock *k)
{
    free(k);
}

void __wrap_stream_close(struct stream *s);
void __wrap_stream_close(struct stream *s)
{
    s->fd = -1;
}

/* ---- sessions ---- */

struct session *__wrap_session_open(struct node_conn *conn, const struct session_options *o,
                                    const struct session_handlers *h, struct err *e);
struct session *__wrap_session_open(struct node_conn *conn, const struct session_options *o UNUSED,
                                    const struct session_handlers *h, struct err *e UNUSED)
{
    struct session *s = calloc(1, sizeof *s);

    s->node = &played[conn->stream.fd];
    s->h = *h;
    snprintf(s->about.name, sizeof s->about.name, "%s", s->node->name);
    expect(!s->node->session || s->node->session->state == SESSION_FAILED || s->node->session->state == SESSION_GONE,
           "two sessions on one node");
    s->node->session = s;
    s->node->silent_from = roll(6) ? NEVER : course_ms + roll(3000);
    s->node->due[BOOTS] = s->node->asked_at = course_ms + 1 + roll(200);
    s->node->due[LOST] = roll(3) ? NEVER : course_ms + 1 + roll(3000);
    return s;
}

void __wrap_session_close(struct session *s);
void __wrap_session_close(struct session *s)
{
    if (s && s->node->session == s) {
        s->node->session = NULL;
        for (size_t i = BOOTS; i < EVENTS; i++)
            s->node->due[i] = NEVER;
    }
    free(s);
}

int __wrap_session_fd(const struct session *s);
int __wrap_session_fd(const struct session *s)
{
    return s->state == SESSION_FAILED || s->state == SESSION_GONE ? -1 : (int)(s->node - played);
}

enum session_state __wrap_session_state(const struct session *s);
enum session_state __wrap_session_state(const struct session *s)
{
    return s->state;
}

bool __wrap_session_lost(const struct session *s);
bool __wrap_session_lost(const struct session *s)
{
    return s->lost;
}

bool __wrap_session_wants_write(const struct session *s);
bool __wrap_session_wants_write(const struct session *s UNUSED)
{
    return false;
}

const struct session_node *__wrap_session_node(const struct session *s);
const struct session_node *__wrap_session_node(const struct session *s)
{
    return &s->about;
}

static bool is_lost(struct session *s, struct err *e)
{
    s->state = SESSION_FAILED;
    s->lost = true;
    for (size_t i = BOOTS; i < EVENTS; i++)
        s->node->due[i] = NEVER;
    s->node->there = roll(2);
    return err_set(e, ERR_RUN, "%s is lost", s->node->name);
}

bool __wrap_session_tick(struct session *s, int64_t now, int64_t *ret_next, struct err *e);
bool __wrap_session_tick(struct session *s, int64_t now, int64_t *ret_next, struct err *e)
{
    int64_t until = s->node->silent_from == NEVER ? NEVER : s->node->silent_from + PATIENCE;

    if (s->state == SESSION_FAILED)
        return err_set(e, ERR_RUN, "%s is lost", s->node->name);
    *ret_next = MIN(until, now + 3000);
    return now < until || s->state == SESSION_GONE || is_lost(s, e);
}

/* Puts {[Name], [Hidden]}. Every node knows all nodes. */
static void put_list(struct buf *b)
{
    etf_tuple(b, 2);
    for (int hidden = 0; hidden < 2; hidden++) {
        size_t n = 0;
        for (size_t i = 0; i < NODES; i++)
            n += played[i].hidden == hidden;
        if (n)
            etf_list(b, n);
        for (size_t i = 0; i < NODES; i++)
            if (played[i].hidden == hidden)
                etf_bin(b, played[i].name, strlen(played[i].name));
        etf_nil(b);
    }
}

static void answer(struct session *s)
{
    struct session_reply reply = {.id = s->node->id, .ok = true};
    struct buf b = {0};

    if (s->listing && roll(8) == 0)
        etf_int(&b, 1); /* malformed */
    else if (s->listing)
        put_list(&b);
    else
        etf_int(&b, 7);
    s->listing = false;
    etf_open(&reply.term, b.data, b.len);
    s->h.reply(s->h.data, &reply);
    buf_release(&b);
}

bool __wrap_session_on_readable(struct session *s, struct err *e);
bool __wrap_session_on_readable(struct session *s, struct err *e)
{
    int64_t *due = s->node->due;

    if (due[LOST] <= course_ms)
        return is_lost(s, e);
    if (due[GONE] <= course_ms) {
        due[GONE] = NEVER;
        s->state = SESSION_GONE;
    } else if (due[BOOTS] <= course_ms) {
        due[BOOTS] = NEVER;
        s->state = SESSION_READY;
    } else if (due[ANSWERS] <= course_ms) {
        due[ANSWERS] = NEVER;
        answer(s);
    }
    return true;
}

bool __wrap_session_request(struct session *s, struct str term, int timeout_ms, uint32_t *ret_id, struct err *e);
bool __wrap_session_request(struct session *s, struct str term, int timeout_ms UNUSED, uint32_t *ret_id, struct err *e UNUSED)
{
    *ret_id = ++s->node->id;
    s->listing = term.len > 6 && !memcmp(term.at + term.len - 5, "nodes", 5);
    s->node->due[ANSWERS] = course_ms + 1 + roll(300);
    return true;
}

bool __wrap_session_stop(struct session *s, struct err *e);
bool __wrap_session_stop(struct session *s, struct err *e UNUSED)
{
    s->state = SESSION_STOPPING;
    s->node->due[ANSWERS] = NEVER;
    s->node->due[GONE] = course_ms + 1 + roll(300);
    return true;
}

bool __wrap_session_pull_allowed(struct session *s, bool allowed, struct err *e);
bool __wrap_session_pull_allowed(struct session *s UNUSED, bool allowed UNUSED, struct err *e UNUSED)
{
    return true;
}

/* ---- the loop ---- */

/*
 * Returns when the descriptor becomes readable next. A silent node sends nothing, but its connection may still be
 * lost.
 */
static int64_t next_of(const struct loop_fd *f)
{
    const struct played *n = &played[f->fd];
    const struct peer *p = f->owner;
    int64_t next = NEVER;

    if (f == &p->answer)
        return p->knock->due;
    for (size_t i = BOOTS; i < EVENTS; i++)
        if (i == LOST || n->due[i] < n->silent_from)
            next = MIN(next, n->due[i]);
    return next;
}

void __wrap_loop_step(struct loop *l, int64_t deadline);
void __wrap_loop_step(struct loop *l, int64_t deadline)
{
    struct loop_fd *first = NULL;
    int64_t at = deadline < 0 ? NEVER : deadline;

    expect(!l->serving, "a callback of the loop runs the loop");
    for (size_t i = 0; i < l->count; i++)
        if (next_of(l->fds[i]) < at) {
            first = l->fds[i];
            at = next_of(first);
        }
    expect(at != NEVER, "the loop waits without a timeout");
    course_ms = at == NEVER ? course_ms + 100000 : MAX(course_ms, at);
    l->serving = true;
    if (first)
        first->ready(first->owner);
    l->serving = false;
}

/* ---- observations ---- */

static struct played *node_of(const struct peer *p)
{
    return find(peer_name(p));
}

static void ask(struct peer *p)
{
    static struct buf into;
    struct played *n = node_of(p);
    struct err e;

    buf_clear(&into);
    n->waits = session_request(p->session, STR("\203a\1"), 10000, &n->id, &e);
    n->requests++;
}

static void on_ready(void *data UNUSED, struct peer *p)
{
    struct played *n = node_of(p);

    if (!p->late && !(p->wish == PEER_NAMED && p->peers->node->cluster))
        expect(course_ms == n->asked_at, "the answer of a node is not read at once");
    ask(p);
}

static void on_reply(void *data UNUSED, struct peer *p, const struct session_reply *reply)
{
    struct played *n = node_of(p);

    expect(n->waits && reply->id == n->id, "a node answers without a request");
    n->waits = false;
    n->answers++;
    if (roll(3))
        ask(p);
}

static void on_failed(void *data UNUSED, struct peer *p, const struct err *e)
{
    struct played *n = node_of(p);

    expect(e->status && *e->text, "a peer fails without a message");
    expect(p->state == PEER_OVER || p->state == PEER_AWAY, "a peer that failed is still connected");
    n->failures += n->waits;
    n->waits = false;
}

/* ---- moves ---- */

static const char *const states[] = {"free", "connecting", "booting", "listing", "up", "leaving", "away", "over"};
static bool moved[8][8];

static size_t state_at(const char *text)
{
    size_t i = 0;

    while (i < 8 && strncmp(text, states[i], strlen(states[i])))
        i++;
    return i;
}

/* Parses "etrace: NAME: one -> other". */
static void hear(void *data UNUSED, struct str lines)
{
    const char *arrow = memmem(lines.at, lines.len, " -> ", 4);

    if (!arrow)
        return;
    const char *from = arrow;
    while (from[-1] != ' ')
        from--;
    size_t a = state_at(from), b = state_at(arrow + 4);
    if (a < 8 && b < 8)
        moved[a][b] = true;
}

static void play(unsigned number)
{
    struct ctx ctx = {.debug = true, .talk = hear};
    struct peers_handlers handlers = {.ready = on_ready, .reply = on_reply, .failed = on_failed};
    struct session_options options = {0};
    struct node_opts o = NODE_OPTS_INIT;
    struct err e;

    course_seed = number * 7919;
    course_ms = 1000;
    memset(played, 0, sizeof played);
    for (size_t i = 0; i < NODES; i++) {
        struct played *n = &played[i];
        snprintf(n->name, sizeof n->name, "n%zu@h", i);
        n->there = roll(4);
        n->found = roll(8);
        n->refuses = roll(10) == 0;
        n->hidden = i == 5;
        n->silent_from = NEVER;
        for (size_t k = 0; k < EVENTS; k++)
            n->due[k] = NEVER;
    }
    o.reattach = roll(2);
    o.cluster = roll(2);
    for (size_t i = 0; i < 3; i++)
        texts_add(&o.nodes, played[i].name);
    if (roll(3) == 0)
        texts_add(&o.nodes, "n1"); /* the second node again, under another name */
    loop_init(&ctx.loop);
    peers_begin(&peers, &ctx, &handlers);
    expect(peers_start(&peers, &o, &options, &e), "peers_start() fails");
    for (int64_t until = course_ms + 1 + roll(60000), by; course_ms < until && peers_step(&peers, until);) {
        struct peer *p = &peers.items[roll((unsigned)peers.count)];
        by = roll(200);
        if (by == 0 && p->state != PEER_FREE)
            peer_detach(p);
        else if (by == 1 && p->state == PEER_OVER && node_of(p))
            peers_attach(&peers, &o, node_of(p)->name, &options, &e);
    }
    expect(course_ms < 1000 + 60000 + PATIENCE + 10000, "the course does not end");
    int64_t left = course_ms;
    peers_leave(&peers);
    expect(course_ms <= left + 5000, "leaving takes too long");
    for (size_t i = 0; i < peers.count; i++)
        expect(peers.items[i].state == PEER_FREE || peers.items[i].state == PEER_OVER || peers.items[i].state == PEER_LEAVING,
               "a peer is still connected in the end");
    peers_close(&peers);
    for (size_t i = 0; i < NODES; i++)
        expect(!played[i].session, "a session is left");
    texts_release(&o.nodes);
    loop_release(&ctx.loop);
}

/* The transitions of each state, by the numbers of the states. The list at the head of peers.h is the reference. */
static const char *const all_moves[] = {"1", "2670", "34670", "4567", "567", "7", "270", "1"};

int main(void)
{
    bool same = true;

    for (unsigned number = 1; number <= SEEDS && !course_wrong; number++) {
        fflush(stdout);
        play(number);
        if (course_wrong)
            printf("# seed %u\n", number);
    }
    ok(!course_wrong, "%d random courses of %d nodes keep every rule", SEEDS, NODES);
    for (size_t i = 0; i < ARRAY_LEN(all_moves); i++)
        for (size_t k = 0; k < 8; k++) {
            bool may = strchr(all_moves[i], '0' + (char)k);
            if (moved[i][k] != may)
                printf("# %s -> %s: %s\n", states[i], states[k], may ? "never made" : "made");
            same = same && moved[i][k] == may;
        }
    ok(same, "the courses make every possible change of state and no other");
    return tap_end();
}
