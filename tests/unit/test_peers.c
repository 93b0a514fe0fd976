/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the nodes of a command, with simulated nodes (played_nodes.h). In every simulation no node waits for another
 * one, each request gets an answer or a failure of its node, and the command ends. All simulations together make every
 * transition that a peer may make.
 */
#include "played_nodes.h"
#include "tap.h"
#include "trace/target.h"

#define SEEDS 20000

static struct peers peers;

/* ---- answers ---- */

static bool put_answer(const struct session *s, struct buf *b)
{
    if (is_about(s, "nodes") && roll(8) == 0)
        etf_int(b, 1); /* malformed */
    else if (is_about(s, "nodes"))
        put_list(b);
    else
        etf_int(b, 7);
    return true;
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

    nodes_reset(number);
    o.reattach = roll(2);
    o.cluster = roll(2);
    for (size_t i = 0; i < 3; i++)
        texts_add(&o.nodes, played[i].name);
    if (roll(3) == 0)
        texts_add(&o.nodes, "n1"); /* names the second node again, by another name */
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
    expect(course_ms <= left + STOP_MOST, "leaving takes too long");
    for (size_t i = 0; i < peers.count; i++)
        expect(peers.items[i].state == PEER_FREE || peers.items[i].state == PEER_OVER ||
                   peers.items[i].state == PEER_LEAVING,
               "a peer is still connected in the end");
    peers_close(&peers);
    for (size_t i = 0; i < NODES; i++)
        expect(!played[i].session, "a session is left");
    texts_release(&o.nodes);
    loop_release(&ctx.loop);
}

/* The transitions of each state, by the numbers of the states. The list at the head of peers.h is the reference. */
static const char *const all_moves[] = {"1", "2670", "34670", "4567", "567", "7", "270", "1"};

/* The options of a command that lead to one of its nodes. */
static void alone(void)
{
    static const char *name = "b@h", *given[] = {"b@h", "c@h"};
    static const struct {
        const char *what;
        size_t nodes;
        const char *os_pid;
        int64_t port;
        bool cluster;
        enum peer_wish wish;
        /* The options for the node: its name, its process, and the port at which etrace connects without epmd. */
        bool is_named, has_pid;
        int port_there;
    } cases[] = {
        {"the node of the environment", 0, NULL, 0, false, PEER_NAMED, false, false, 9999},
        {"the same with its cluster", 0, NULL, 0, true, PEER_NAMED, false, false, 0},
        {"a node of its cluster", 0, NULL, 0, true, PEER_CLUSTER, true, false, 0},
        {"a process with its cluster", 0, "42", 0, true, PEER_NAMED, false, true, 0},
        {"a node of its cluster", 0, "42", 0, true, PEER_CLUSTER, true, false, 0},
        {"a port with its cluster", 0, NULL, 1234, true, PEER_NAMED, false, false, 1234},
        {"a hidden node of its cluster", 0, NULL, 1234, true, PEER_HIDDEN, true, false, 0},
        {"a name and a port", 1, NULL, 1234, false, PEER_NAMED, true, false, 1234},
        {"a name with its cluster", 1, NULL, 0, true, PEER_NAMED, true, false, 0},
        {"one of two names", 2, NULL, 0, false, PEER_NAMED, true, false, 0},
    };

    setenv("ERL_DIST_PORT", "9999", 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct node_opts o = {.nodes = {.items = given, .count = cases[i].nodes},
                                    .os_pid = cases[i].os_pid,
                                    .port = cases[i].port,
                                    .cluster = cases[i].cluster};
        const struct peers ps = {.node = &o};
        const struct peer p = {.wish = cases[i].wish};
        struct node_opts found;
        struct target t;
        struct err e;

        peers_alone(&ps, &p, &name, &found);
        const char *named = found.nodes.count ? found.nodes.items[0] : NULL;
        ok(found.nodes.count == cases[i].is_named && !found.cluster && (named == NULL || named == name) &&
               !found.os_pid == !cases[i].has_pid && target_init(&t, &found, named, &e) &&
               t.node.port == (cases[i].has_pid ? 0 : cases[i].port_there),
           "options for one node: %s", cases[i].what);
        target_release(&t);
    }
    unsetenv("ERL_DIST_PORT");
}

int main(void)
{
    alone();
    const unsigned seeds = course_count(SEEDS);
    bool same = true;

    for (unsigned number = 1; number <= seeds && !course_wrong; number++) {
        fflush(stdout);
        play(number);
        if (course_wrong)
            printf("# seed %u\n", number);
    }
    ok(!course_wrong, "%u random courses of %d nodes keep every rule", seeds, NODES);
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
