/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests a live trace of several nodes, from attaching to the exit status, with simulated nodes (played_nodes.h). A node
 * also lacks the function, refuses to trace or does not know a record, and the user may stop at any moment. In every
 * simulation no node waits for another one and the trace ends. All simulations together make every transition of a
 * node in a trace, and of a trace.
 *
 * The linker also replaces the outputs, because events are not part of this test.
 */
#include "trace/live.h"
#include "answers.h"
#include "played_nodes.h"
#include "tap.h"

#define SEEDS 10000
#define ATTACH_MS 6000 /* the most that finding, connecting and booting take here */
/* A node answers a request within 300 ms and tells its time within 100 ms; its clock is measured five times. */
#define CLOCK_MS (5 * (100 + 20) + 50)
#define ARM_MS (4 * 300)

static struct ctx ctx;

/* ---- replacements for the linker ---- */

bool __wrap_outputs_open(struct outputs *s, struct ctx *c, const struct view_opts *o, const char *view, struct err *e);
bool __wrap_outputs_open(struct outputs *s, struct ctx *c UNUSED, const struct view_opts *o UNUSED,
                         const char *view UNUSED, struct err *e UNUSED)
{
    *s = (struct outputs){.count = 0};
    return true;
}

int __wrap_ctx_flush(struct ctx *c, int status);
int __wrap_ctx_flush(struct ctx *c UNUSED, int status)
{
    return status;
}

static bool put_answer(const struct session *s, struct buf *b)
{
    if (is_about(s, "nodes")) {
        put_list(b);
    } else if (is_about(s, "record")) {
        put_record(roll(4), b);
    } else if (is_about(s, "atoms")) {
        etf_nil(b);
    } else if (is_about(s, "select") && roll(8) == 0) {
        etf_tuple(b, 2);
        etf_atomz(b, "empty");
        etf_bin(b, "m:f/1", 5);
        return false;
    } else if (roll(20) == 0) {
        etf_atomz(b, "stopping");
        return false;
    } else {
        put_result(b);
    }
    return true;
}

/* ---- moves ---- */

enum { NODE_STATES = 6, TRACE_STATES = 3 };
static const char *const node_states[] = {"awaited", "here", "clock", "arming", "armed", "without"};
static const char *const trace_states[] = {"beginning", "running", "leaving"};
static bool node_moved[NODE_STATES][NODE_STATES], trace_moved[TRACE_STATES][TRACE_STATES];
static int64_t since[NODES];
static int64_t ended_at; /* when the trace began to leave; 0: not yet */

static size_t state_at(const char *text, const char *const *states, size_t n)
{
    size_t i = 0;

    while (i < n && strncmp(text, states[i], strlen(states[i])))
        i++;
    return i;
}

static bool read_move(struct str line, const char *const *states, size_t n, size_t *ret_from, size_t *ret_to)
{
    const char *arrow = memmem(line.at, line.len, " -> ", 4), *from = arrow;

    if (!arrow)
        return false;
    while (from[-1] != ' ')
        from--;
    *ret_from = state_at(from, states, n);
    *ret_to = state_at(arrow + 4, states, n);
    return *ret_from < n && *ret_to < n;
}

static void node_moves(const char *name, size_t from, size_t to)
{
    static const int64_t most[NODE_STATES] = {[2] = CLOCK_MS, [3] = ARM_MS};
    struct played *n = find(name);

    node_moved[from][to] = true;
    if (!n)
        return;
    size_t i = (size_t)(n - played);
    if (most[from] && to > from)
        expect(course_ms - since[i] <= most[from], "a node waits for another one");
    since[i] = course_ms;
}

/* Parses "etrace: NAME, traced: one -> other" and "etrace: the trace: one -> other". Stops the trace at random. */
static void hear(void *data UNUSED, struct str line)
{
    size_t from, to;
    char name[16] = "";

    if (memmem(line.at, line.len, ", traced: ", 10) && read_move(line, node_states, NODE_STATES, &from, &to)) {
        sscanf(line.at, "etrace: %15[^,]", name);
        node_moves(name, from, to);
    } else if (memmem(line.at, line.len, "the trace: ", 11) &&
               read_move(line, trace_states, TRACE_STATES, &from, &to)) {
        trace_moved[from][to] = true;
        ended_at = to == 2 ? course_ms : ended_at;
    }
    if (roll(200) == 0)
        ctx.interrupts = 1;
}

/* ---- simulations ---- */

static int statuses[8];

static void play(unsigned number)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct what_opts what = WHAT_OPTS_INIT;
    struct limit_opts limit = LIMIT_OPTS_INIT;
    struct view_opts view = VIEW_OPTS_INIT;
    struct assert_opts asserts = {0};
    struct texts words = {0};

    nodes_reset(number);
    memset(since, 0, sizeof since);
    ended_at = 0;
    ctx = (struct ctx){.debug = true, .talk = hear};
    loop_init(&ctx.loop);
    bool with_records = roll(3) == 0;
    node.reattach = roll(2);
    node.cluster = roll(2);
    what.dry_run = roll(8) == 0;
    limit.for_ns = (1 + roll(20000)) * INT64_C(1000000);
    for (size_t i = 0, n = 1 + roll(3); i < n; i++)
        texts_add(&node.nodes, played[i].name);
    texts_add(&words, with_records ? "m:f(#one{a = 1})" : "m:f/1");
    struct live_options o =
        {.node = &node, .what = &what, .limit = &limit, .view = &view, .asserts = &asserts, .words = &words};
    int status = live_run(&ctx, &o, "text");
    expect(status >= 0 && status < 8, "an unknown exit status");
    statuses[status]++;
    ended_at = ended_at ? ended_at : course_ms; /* a trace that loses all nodes ends without leaving any */
    expect(course_ms <= ended_at + STOP_MOST, "leaving takes too long");
    expect(ended_at <= 1000 + ATTACH_MS + 2 * PATIENCE + limit.for_ns / 1000000 + 5000, "the trace lasts too long");
    for (size_t i = 0; i < NODES; i++)
        expect(!played[i].session, "a session is left");
    texts_release(&node.nodes);
    texts_release(&words);
    ctx_release(&ctx);
}

static unsigned compare(const bool *moved, const char *const *states, size_t n, const char *const *all_moves)
{
    unsigned other = 0;

    for (size_t from = 0; from < n; from++)
        for (size_t to = 0; to < n; to++) {
            bool may = strchr(all_moves[from], '0' + (char)to);
            if (moved[from * n + to] != may)
                printf("# %s -> %s: %s\n", states[from], states[to], may ? "never made" : "made");
            other += moved[from * n + to] != may;
        }
    return other;
}

/* By the numbers of the states. The lists in live_state.h are the reference. */
static const char *const node_all[] = {"01", "02", "03", "045", "0", "0"};
static const char *const trace_all[] = {"12", "2", ""};

int main(void)
{
    const unsigned seeds = course_count(SEEDS);

    for (unsigned number = 1; number <= seeds && !course_wrong; number++) {
        play(number);
        if (course_wrong)
            printf("# seed %u\n", number);
    }
    ok(!course_wrong, "%u random traces keep every rule", seeds);
    is_number(compare(&node_moved[0][0], node_states, NODE_STATES, node_all), 0,
              "nodes make every possible transition and no other");
    is_number(compare(&trace_moved[0][0], trace_states, TRACE_STATES, trace_all), 0,
              "traces make every possible transition and no other");
    printf("# exit statuses:");
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
        printf(" %d", statuses[i]);
    printf("\n");
    return tap_end();
}
