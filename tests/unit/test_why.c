/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the cause that `etrace why` finds in several looks at one process. */
#include "commands/why_look.h"
#include "tap.h"

enum state { WAITS, WAITS_QUEUED, RUNS, WORKS }; /* RUNS: in the function that waits; WORKS: in another one */

/* One look: each has 10 more messages than the one before if `grows`, and 100 more reductions if `works`. */
static void look_at(struct why_look *l, struct why_samples *s, enum state state, bool grows, bool works)
{
    struct why_row *x = &l->chain[0];

    l->at += 50;
    x->queue = state == WAITS ? 0 : grows ? x->queue + 10 : 1;
    x->reductions += works ? 100 : 0;
    x->nstack = 1;
    x->stack[0] = (struct look_frame){NULL, state == WORKS};
    snprintf(x->status, sizeof(x->status), "%s", state >= RUNS ? "running" : "waiting");
    why_sample(s, l);
}

/* Makes 20 looks: `n` find the process in the state `other`, the rest in `state`. */
static const char *cause(enum state state, int n, enum state other, bool grows, bool works)
{
    struct why_look l = {.n = 1, .cycle = -1};
    struct why_samples s = {0};

    snprintf(l.chain[0].answer, sizeof(l.chain[0].answer), "known");
    for (int i = 0; i < 20; i++)
        look_at(&l, &s, i < n ? other : state, grows, works);
    return why_causes[why_cause_of(&l, &s)];
}

static const char *cycle(bool sure)
{
    struct why_look l = {.n = 2, .cycle = 0, .sure = sure};
    struct why_samples s = {0};

    snprintf(l.chain[0].answer, sizeof(l.chain[0].answer), "known");
    return why_causes[why_cause_of(&l, &s)];
}

/* `n` of 10 looks find the process silent, and the last one finds that it waits. */
static const char *silent(unsigned n)
{
    struct why_look l = {.n = 1, .cycle = -1};
    struct why_samples s = {.looks = n, .silent = n};

    snprintf(l.chain[0].answer, sizeof(l.chain[0].answer), "known");
    for (unsigned i = n; i < 10; i++)
        look_at(&l, &s, WAITS, false, false);
    return why_causes[why_cause_of(&l, &s)];
}

/* The process waits in a call with a message in its queue, and did not say for which process. */
static const char *untold(const char *why)
{
    struct why_look l = {.n = 1, .cycle = -1};
    struct why_samples s = {0};

    snprintf(l.chain[0].answer, sizeof(l.chain[0].answer), "known");
    for (int i = 0; i < 20; i++)
        look_at(&l, &s, WAITS_QUEUED, false, false);
    snprintf(l.chain[0].untold, sizeof(l.chain[0].untold), "%s", why);
    return why_causes[why_cause_of(&l, &s)];
}

/* The process waits with a queue that grows by 190 messages, and takes `n` further ones. */
static const char *taken(int n)
{
    struct why_look l = {.n = 1, .cycle = -1};
    struct why_samples s = {0};

    snprintf(l.chain[0].answer, sizeof(l.chain[0].answer), "known");
    for (int i = 0; i < 20; i++)
        look_at(&l, &s, WAITS_QUEUED, true, true);
    s.counted = true;
    s.received = 190 + n;
    return why_causes[why_cause_of(&l, &s)];
}

/* Returns whether the queue has fallen, if a look finds `to` messages after one that found `from`. */
static bool falls(int64_t from, int64_t to)
{
    struct why_samples s = {0};
    struct why_look l = {.n = 1, .cycle = -1};

    snprintf(l.chain[0].answer, sizeof(l.chain[0].answer), "known");
    l.chain[0].queue = from;
    why_sample(&s, &l);
    l.chain[0].queue = to;
    why_sample(&s, &l);
    return s.queue_fell;
}

static void test_busiest(void)
{
    struct why_look l = {.n = 1, .cycle = -1};
    struct why_samples s = {0};

    snprintf(l.chain[0].answer, sizeof(l.chain[0].answer), "known");
    for (int i = 0; i < 10; i++)
        look_at(&l, &s, RUNS, false, true);
    ok(why_busiest(&s) && why_busiest(&s)->frame.arity == 0,
       "the function that most looks find running is the busiest");
    look_at(&l, &s, WORKS, false, true);
    look_at(&l, &s, WAITS, false, true);
    ok(why_busiest(&s) && why_busiest(&s)->frame.arity == 1, "but not one in which the process also waits");
    look_at(&l, &s, WORKS, false, true);
    is_number(why_busiest(&s)->running, 2, "looks that find it running count");
}

int main(void)
{
    is_text(cycle(true), "deadlock", "a cycle");
    is_text(cycle(false), "probable_deadlock", "a cycle with a guess");

    is_text(cause(WAITS, 0, WAITS, false, false), "idle", "idle");
    is_text(cause(WAITS_QUEUED, 0, WAITS, false, true), "unmatched", "waits although its queue has a message");
    is_text(cause(WAITS_QUEUED, 0, WAITS, true, true), "unmatched", "the same while the queue grows");
    is_text(cause(WAITS_QUEUED, 2, WORKS, true, true), "unmatched", "the same if a look finds it running");
    is_text(cause(WAITS_QUEUED, 10, RUNS, true, true), "unmatched",
            "the same if half of the looks find it while it rejects a message");
    is_text(cause(WAITS_QUEUED, 10, WORKS, true, true), "grows", "works half of the time, and the queue grows");
    is_text(cause(WAITS_QUEUED, 17, RUNS, true, true), "grows", "runs most of the time, and the queue grows");
    is_text(cause(RUNS, 0, WAITS, false, true), "runs", "runs all the time");
    is_text(cause(RUNS, 0, WAITS, false, false), "nif", "runs without reductions: a dirty NIF of any name");
    is_text(cause(RUNS, 0, WAITS, true, false), "nif", "the same while the queue grows");

    is_text(silent(4), "silent", "a third of the looks find it silent: the last answer is not the rule");
    is_text(silent(3), "idle", "less than a third of the looks find it silent");
    is_text(untold(""), "unmatched", "waits with a message, and for no other process");
    is_text(untold("late"), "idle", "waits for a process that it did not name in time: its queue is not the cause");
    is_text(untold("many"), "idle", "the same with too many links and monitors");

    ok(!falls(4700, 4690) && !falls(50, 51), "a queue that loses less than a hundredth has not fallen");
    ok(falls(4700, 4600) && falls(50, 49), "one that loses more has");
    is_text(taken(0), "unmatched", "messages arrive, and the queue grows by all of them");
    is_text(taken(3), "unmatched", "the same, but the counts do not begin at the same time");
    is_text(taken(50), "scans", "it takes messages from behind others");
    test_busiest();
    return tap_end();
}
