/* SPDX-License-Identifier: Apache-2.0 */
#include "node_merge.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../erlang/term_print.h"

#define SLOT_MS 50      /* length of a slot; an event waits for at most NODE_MERGE_SLOTS + 1 slots */
#define ASK_MS 20       /* interval between two questions to a node for which the events of other nodes wait */
#define ANSWER_MS 20000 /* a node that is silent for this long is lost */
#define MEASURE 5       /* number of measurements of a clock; etrace uses the best one */
/* A node that is traced alone gets a warning if its clock is off by more than this. */
#define OFF_NS INT64_C(5000000000)
#define AGAIN_MS 30000 /* a clock is measured again when its measurement is older than this */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t wall_now(const struct node_merge *t)
{
    return t->wall + clock_ns(CLOCK_MONOTONIC);
}

/*
 * Returns the wall clock time at which the monotonic clock was zero. Of three pairs of readings it uses the pair that
 * took the shortest time, because a busy host may interrupt the process between two readings.
 */
static int64_t wall_at_zero(void)
{
    int64_t best = 0, narrowest = INT64_MAX;

    for (int i = 0; i < 3; i++) {
        int64_t before = clock_ns(CLOCK_MONOTONIC), wall = clock_ns(CLOCK_REALTIME);
        int64_t width = clock_ns(CLOCK_MONOTONIC) - before;
        if (width < narrowest) {
            narrowest = width;
            best = wall - before - width / 2;
        }
    }
    return best;
}

void node_merge_init(struct node_merge *t, struct ctx *ctx, struct peers *ps, struct pipeline *p)
{
    *t = (struct node_merge){.ctx = ctx, .peers = ps, .pipeline = p, .slot = loop_now(), .wall = wall_at_zero()};
    for (size_t i = 0; i < PEERS_MAX; i++)
        t->nodes[i] = (struct node_merge_node){.error = -1, .best_error = INT64_MAX, .asked = -1};
}

static bool has_several_nodes(const struct node_merge *t)
{
    return peers_several(t->peers);
}

static enum pipeline_status pass_note(struct node_merge *t, const struct peer *p, uint32_t what, int64_t value,
                                      int64_t error, const char *text, struct err *e)
{
    struct etw_note n = {.what = what, .value = value, .error = error};
    struct buf b = {0};

    buf_add(&b, &n, sizeof(n));
    print_safe(&b, raw_text(text));
    enum pipeline_status s = PIPELINE_MORE;
    if (t->keep && what != ETW_NOTE_MARK)
        t->keep(t->data, p->index, buf_view(&b));
    else
        s = pipeline_note(t->pipeline, p->index, buf_view(&b), e);
    buf_release(&b);
    return s;
}

void node_merge_show(struct node_merge *t, struct pipeline *p)
{
    t->pipeline = p;
    for (size_t i = 0; i < PEERS_MAX; i++) {
        struct node_merge_node *n = &t->nodes[i];
        n->handed = n->freed = 0;
        memset(n->past, 0, sizeof(n->past));
    }
}

/* ---- clocks ---- */

static void put_offset(struct buf *b, int64_t seconds)
{
    if (seconds < 120)
        buf_printf(b, "%lld s", (long long)seconds);
    else if (seconds < 7200)
        buf_printf(b, "%lld min", (long long)seconds / 60);
    else if (seconds < 172800)
        buf_printf(b, "%lld h %lld min", (long long)seconds / 3600, (long long)seconds / 60 % 60);
    else
        buf_printf(b, "%lld days", (long long)seconds / 86400);
}

/*
 * Warns if the clock of a single node is off, because a single node keeps its own times, which match its logs. With
 * several nodes, all times are converted to the clock of this host.
 */
static void say_off(const struct node_merge *t, const struct peer *p)
{
    const struct node_merge_node *n = &t->nodes[p->index];
    struct buf b = {0};

    if (llabs(n->skew) - n->best_error < OFF_NS)
        return;
    put_offset(&b, llabs(n->skew) / 1000000000);
    ctx_warn(t->ctx, "%s: its clock is %s %s of this host's; times are those of the node", peer_name(p), buf_cstr(&b),
             n->skew > 0 ? "ahead" : "behind");
    buf_release(&b);
}

/*
 * Makes the best measurement the offset in use, unless the two agree within their errors. Returns false if the pipeline
 * has failed.
 */
static bool use_best(struct node_merge *t, const struct peer *p)
{
    struct node_merge_node *n = &t->nodes[p->index];
    struct err ignored;
    bool first = n->error < 0;

    if (!first && llabs(n->best_offset - n->offset) <= n->best_error + n->error)
        return true;
    n->offset = n->best_offset;
    n->error = n->best_error;
    if (first && llabs(n->skew) > n->error)
        ctx_say(t->ctx, "%s: clock %+.2f ms ± %.2f ms", peer_name(p), (double)n->skew / 1e6, (double)n->error / 1e6);
    return pass_note(t, p, ETW_NOTE_CLOCK, n->offset, n->error, "", &ignored) != PIPELINE_FAILED;
}

static void measure_anew(struct node_merge_node *n)
{
    n->best_error = INT64_MAX;
    n->measured = 0;
    n->since = loop_now();
}

void node_merge_time(struct node_merge *t, struct peer *p, const struct session_time *time)
{
    struct node_merge_node *n = &t->nodes[p->index];
    int64_t error = (time->heard - time->sent) / 2 + 1, here = t->wall + time->sent + (time->heard - time->sent) / 2;

    n->asked = -1;
    n->measured++;
    if (error < n->best_error) {
        n->best_error = error;
        n->best_offset = here - time->mono;
        n->skew = time->wall - here;
    }
    if (!has_several_nodes(t) && n->measured == 1)
        say_off(t, p);
}

bool node_merge_known(const struct node_merge *t, const struct peer *p)
{
    return !has_several_nodes(t) || t->nodes[p->index].error >= 0;
}

static bool ask_node_time(struct node_merge *t, struct peer *p, struct err *e)
{
    uint32_t id;

    t->nodes[p->index].asked = loop_now();
    return session_ask_time(p->session, ANSWER_MS, &id, e);
}

bool node_merge_ask(struct node_merge *t, struct peer *p, struct err *e)
{
    struct node_merge_node *n = &t->nodes[p->index];

    n->error = -1;
    measure_anew(n);
    return ask_node_time(t, p, e);
}

void node_merge_ask_all(struct node_merge *t)
{
    struct err ignored; /* the session reports its failure itself */

    for (size_t i = 0; i < t->peers->count; i++) {
        struct peer *p = &t->peers->items[i];
        if (p->state == PEER_UP && t->nodes[p->index].asked < 0)
            ask_node_time(t, p, &ignored);
    }
}

/* ---- loss and return ---- */

void node_merge_batch(struct node_merge *t, const struct peer *p)
{
    t->nodes[p->index].handed++;
}

enum pipeline_status node_merge_down(struct node_merge *t, const struct peer *p, const struct err *why, struct err *e)
{
    const char *name = peer_name(p), *text = why->text;
    size_t len = strlen(name);

    t->nodes[p->index].asked = -1;
    if (!strncmp(text, name, len) && !strncmp(text + len, ": ", 2))
        text += len + 2;
    return pass_note(t, p, ETW_NOTE_DOWN, wall_now(t), 0, text, e);
}

enum pipeline_status node_merge_up(struct node_merge *t, const struct peer *p, struct err *e)
{
    return pass_note(t, p, ETW_NOTE_UP, wall_now(t), 0, peer_name(p), e);
}

/* ---- waiting ---- */

static enum pipeline_status node_merge_let_go(struct node_merge *t, struct err *e)
{
    enum pipeline_status s = PIPELINE_MORE;
    int64_t now = loop_now();
    bool slot = now >= t->slot;

    if (slot)
        t->slot = now + SLOT_MS;
    for (size_t i = 0; i < t->peers->count && slot; i++) {
        struct node_merge_node *n = &t->nodes[i];
        uint64_t waiting = pipeline_waiting(t->pipeline, (unsigned)i), old = n->past[NODE_MERGE_SLOTS - 1];
        memmove(n->past + 1, n->past, sizeof(n->past) - sizeof(n->past[0]));
        n->past[0] = n->handed;
        if (waiting && waiting <= old && n->freed < old) {
            n->freed = old;
            s = MAX(s, pass_note(t, &t->peers->items[i], ETW_NOTE_MARK, (int64_t)old, 0, "", e));
        }
    }
    return s;
}

enum pipeline_status node_merge_step(struct node_merge *t, struct err *e)
{
    int64_t now = loop_now();

    if (!has_several_nodes(t))
        return PIPELINE_MORE;
    for (size_t i = 0; i < t->peers->count; i++) {
        struct node_merge_node *n = &t->nodes[i];
        struct peer *p = &t->peers->items[i];
        if (p->state != PEER_UP || n->asked >= 0)
            continue;
        bool measuring = n->error < 0 && n->since;
        if (measuring && n->measured >= MEASURE)
            use_best(t, p);
        else if (n->error >= 0 && n->measured >= MEASURE && now - n->since >= AGAIN_MS && use_best(t, p))
            measure_anew(n);
        bool due = measuring || (n->error >= 0 && now - n->since >= AGAIN_MS) ||
                   (!t->blocked && pipeline_holds_up(t->pipeline, (unsigned)i));
        if (due && (measuring || now >= n->next_ask)) {
            n->next_ask = now + ASK_MS;
            if (!ask_node_time(t, p, e))
                peer_fail(p, e);
        }
    }
    return node_merge_let_go(t, e);
}

int64_t node_merge_next(const struct node_merge *t)
{
    if (!has_several_nodes(t))
        return -1;
    for (size_t i = 0; i < t->peers->count; i++)
        if (pipeline_waiting(t->pipeline, (unsigned)i))
            return MIN(t->slot, loop_now() + ASK_MS);
    return loop_now() + 1000;
}
