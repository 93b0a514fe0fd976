/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the lists of open calls inside of roots: which events are shown, and that no list is kept for ever. */
#include "inside.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static uint64_t dead;

static bool lives(void *env, uint64_t process)
{
    (void)env;
    return process != dead;
}

static struct stack_function function(unsigned n)
{
    return (struct stack_function){.module = 11, .name = 75 + n * 64, .arity = n % 2};
}

static const struct stack_function *f(unsigned n)
{
    static struct stack_function all[8];

    all[n] = function(n);
    return &all[n];
}

static enum inside_call_is opens(uint64_t process, const struct stack_function *g, bool root, bool returns)
{
    return inside_call(NULL, process, &(struct inside_meta){.function = *g, .root = root, .returns = returns});
}

static bool closes(uint64_t process, const struct stack_function *g)
{
    struct inside_closed closed;

    return inside_result(process, g, &closed);
}

static void begin(void)
{
    static const uint32_t roots[] = {3, 70};

    inside_begin(roots, 2, 1, lives);
}

static unsigned taken(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < INSIDE_PLACES; i++)
        n += atomic_load(&inside_owners[i]) != 0;
    return n;
}

static void test_roots(void)
{
    begin();
    ok(inside_is_root(3) && inside_is_root(70) && !inside_is_root(0) && !inside_is_root(4),
       "the given probes are roots");
    ok(!inside_is_open(0x103), "a process is outside at first");
    ok(opens(0x103, f(0), false, true) == INSIDE_OUT, "a call outside is not shown");
    ok(!closes(0x103, f(0)), "nor is its result");
    ok(opens(0x103, f(1), true, true) == INSIDE_IN && inside_is_open(0x103), "a root opens");
    ok(!inside_is_open(0x113), "for its process only");
    ok(opens(0x103, f(1), true, true) == INSIDE_IN, "a root inside of a root is shown");
    ok(opens(0x103, f(1), false, true) == INSIDE_IN, "so is another call of its function");
    ok(closes(0x103, f(1)) && closes(0x103, f(1)) && inside_is_open(0x103), "the outer root is still open");
    ok(closes(0x103, f(1)) && !inside_is_open(0x103) && taken() == 0, "its result closes it, and frees the list");
    ok(!closes(0x103, f(1)), "a result too many is not shown");
}

static void test_without_result(void)
{
    begin();
    opens(0x103, f(1), true, true);
    ok(opens(0x103, f(2), false, false) == INSIDE_IN, "a call without a result is shown");
    opens(0x103, f(3), false, true);
    opens(0x103, f(4), true, true);
    ok(closes(0x103, f(1)) && taken() == 0, "a result closes the calls above it, which can no longer return");
}

static void test_full(void)
{
    enum { DEEP = INSIDE_CALLS * 3 };
    bool shown = true;

    begin();
    for (int i = 0; i < DEEP; i++)
        shown &= opens(0x103, f(1), true, true) == INSIDE_IN;
    for (int i = 0; i < DEEP - 1; i++)
        shown &= closes(0x103, f(1)) && inside_is_open(0x103);
    ok(shown, "roots beyond the length of a list are shown, and the first one stays open");
    ok(closes(0x103, f(1)) && !inside_is_open(0x103) && taken() == 0, "until its own result");
}

/* Opens roots until a process finds no list, and returns the word of that process. */
static uint64_t fill(void)
{
    uint64_t word = 0x103;

    while (opens(word, f(1), true, true) == INSIDE_IN)
        word += 16;
    return word;
}

/* Processes with pids in sequence, as of a burst, and with gaps, as of those that live long. */
static void test_promised(void)
{
    for (uint64_t step = 1; step < 200; step += step < 8 ? 1 : 37) {
        unsigned with = 0;
        begin();
        for (uint64_t i = 0; i < INSIDE_PROCESSES; i++)
            with += opens(0x103 + i * step * 16, f(1), true, true) == INSIDE_IN;
        is_number(with, INSIDE_PROCESSES, "as many processes as are promised have a list at once");
    }
    srand(1);
    for (unsigned turn = 0; turn < 4; turn++) {
        static uint64_t open[INSIDE_PROCESSES];
        unsigned lost = 0;
        begin();
        memset(open, 0, sizeof open);
        for (unsigned i = 0; i < 10 * INSIDE_PROCESSES; i++) {
            uint64_t *one = &open[i < INSIDE_PROCESSES ? i : (unsigned)rand() % INSIDE_PROCESSES];
            if (*one)
                closes(*one, f(1));
            *one = 0x103 + ((uint64_t)i + (uint64_t)turn * 1000003) * 16;
            lost += opens(*one, f(1), true, true) != INSIDE_IN;
        }
        is_number(lost, 0, "also after other processes have left their roots");
    }
}

static void test_crowded(void)
{
    begin();
    const uint64_t last = fill();
    ok(!inside_is_open(last) && !closes(last, f(1)), "a process without a list stays outside");
    bool found = false, one = true;
    for (uint64_t word = 0x103; !found && word < last; word += 16) {
        dead = word;
        found = opens(last, f(1), true, true) == INSIDE_IN;
        one = one && (!found || !inside_is_open(word));
    }
    ok(one, "and each list has one process");
    ok(found && inside_is_open(last), "it takes the list of a process that has ended");
    dead = 0;
    begin();
    ok(taken() == 0 && !inside_is_open(last), "a new session begins without lists");
}

static void test_chosen(void)
{
    static const uint64_t two[] = {0x103, 0x113}, more[] = {0x113, 0x123};
    bool all = true, none = false;

    begin();
    ok(inside_is_chosen(0x103), "every process may open roots at first");
    ok(inside_choose(two, 2, false) && inside_is_chosen(0x103) && inside_is_chosen(0x113) && !inside_is_chosen(0x123),
       "then only the given ones");
    ok(inside_choose(more, 2, false) && inside_is_chosen(0x103) && inside_is_chosen(0x123) && !inside_is_chosen(0x133),
       "and further ones");
    begin();
    ok(inside_choose(two, 2, true) && !inside_is_chosen(0x103) && inside_is_chosen(0x123), "or all others");
    begin();
    ok(inside_choose(two, 0, false) && !inside_is_chosen(0x103), "or none");
    for (uint64_t i = 0; i < INSIDE_CHOSEN; i++)
        all &= inside_choose(&(uint64_t){i << 4 | 3}, 1, false);
    for (uint64_t i = 0; i < INSIDE_CHOSEN; i++) {
        all &= inside_is_chosen(i << 4 | 3);
        none |= inside_is_chosen((i + INSIDE_CHOSEN) << 4 | 3);
    }
    ok(all && !none, "a full table knows its processes");
    ok(inside_choose(two, 2, false) && !inside_choose(&(uint64_t){UINT64_C(3) << 40 | 3}, 1, false),
       "and takes no further one");
}

static void test_sample(void)
{
    static const uint32_t probe = 3;
    unsigned shown = 0, whole = 0;

    inside_begin(&probe, 1, 3, lives);
    for (unsigned i = 0; i < 30; i++) {
        const bool in = opens(0x103, f(1), true, true) == INSIDE_IN;
        const bool inner = opens(0x103, f(1), true, true) == INSIDE_IN,
                   other = opens(0x103, f(1), false, true) == INSIDE_IN;
        shown += in;
        whole += in == inner && in == other && in == inside_is_open(0x103) && closes(0x103, f(1)) == in &&
                 closes(0x103, f(1)) == in && closes(0x103, f(1)) == in && taken() == 0;
    }
    is_number(shown, 10, "a sample has one of three roots");
    is_number(whole, 30, "with all inner ones, or none");
}

/* ---- trees ---- */

static enum inside_call_is roots(uint64_t process)
{
    return inside_call(NULL, process,
                       &(struct inside_meta){.function = *f(1), .root = true, .returns = true, .keeps = true});
}

static void test_tree_of_list(void)
{
    struct inside_closed closed;

    begin();
    trees_begin();
    ok(roots(0x103) == INSIDE_IN && inside_tree(0x103), "an outermost root has a tree");
    tree_add(inside_tree(0x103), 0, 8);
    tree_add(inside_tree(0x103), 0, 8);
    ok(roots(0x103) == INSIDE_IN && inside_tree(0x103)->count == 2, "an inner root has the same");
    inside_result(0x103, f(1), &closed);
    ok(!closed.tree && closed.call.root && closed.call.number == 2,
       "the result of the inner root finds its first event");
    struct tree *t = inside_tree(0x103);
    inside_result(0x103, f(1), &closed);
    ok(closed.tree == t && closed.call.number == 0 && !inside_tree(0x103),
       "the result of the outer root returns the tree");
    tree_free(t);
    uint64_t word = 0x103;
    while (roots(word) == INSIDE_IN)
        word += 16;
    ok((word - 0x103) / 16 == TREES && !inside_is_open(word), "a root is lost if all trees are taken");
    dead = 0x103;
    bool again = false;
    for (unsigned i = 0; !again && i < INSIDE_PLACES; i++)
        again = roots(word) == INSIDE_IN;
    ok(again, "and gets the tree of a process that has ended");
    dead = 0;
    begin();
}

static void test_deep(void)
{
    enum { DEEP = TREE_ROOTS + INSIDE_CALLS };
    struct inside_closed closed;
    uint32_t right = 0;

    begin();
    trees_begin();
    for (uint32_t i = 0; i < DEEP; i++) {
        inside_call(NULL, 0x103,
                    &(struct inside_meta){.function = *f(1),
                                          .tick = i,
                                          .root = i % 3 == 0,
                                          .returns = true,
                                          .keeps = true});
        tree_add(inside_tree(0x103), 0, 8);
    }
    struct tree *t = inside_tree(0x103);
    for (uint32_t i = DEEP; --i > 0;) {
        inside_result(0x103, f(1), &closed);
        right += closed.call.number == i && closed.call.tick == i && closed.call.root == (i % 3 == 0);
    }
    is_number(right, DEEP - 1, "thousands of nested roots know their first events and their times");
    ok(!t->doubtful, "and none of them is in doubt");
    for (uint32_t i = 0; i < DEEP; i++)
        roots(0x103);
    inside_result(0x103, f(1), &closed);
    ok(!closed.call.root && t->doubtful, "one more is in doubt");
}

static void test_flat(void)
{
    const struct inside_meta loops = {.function = *f(1), .root = true, .returns = true, .loops = true};

    begin();
    opens(0x103, f(2), true, true);
    ok(!inside_is_flat(0x103), "a root leaves room for others");
    ok(inside_call(NULL, 0x103, &loops) == INSIDE_IN && inside_is_flat(0x103), "a root that loops does not");
    ok(closes(0x103, f(1)) && inside_is_flat(0x103) && closes(0x103, f(2)) && !inside_is_flat(0x103),
       "until the outermost root has returned");
    opens(0x103, f(2), true, true);
    ok(!inside_is_flat(0x103) && closes(0x103, f(2)), "the next root leaves room again");
}

/* Counts the events of a tree and checks that their numbers ascend. */
static unsigned events(struct tree *t, uint32_t *ret_first_gap)
{
    unsigned n = 0;
    uint32_t last = 0;

    *ret_first_gap = 0;
    for (struct tree_event *e = NULL; (e = tree_next(t, e)); n++) {
        if (n && e->number != last + 1 && !*ret_first_gap)
            *ret_first_gap = last + 1;
        if (n && e->number <= last)
            return UINT32_MAX;
        last = e->number;
    }
    return last + 1 == t->count ? n : UINT32_MAX;
}

/* The number after the last one that is missing. */
static uint32_t gone(struct tree *t)
{
    uint32_t next = 0, ret = 0;

    for (struct tree_event *e = NULL; (e = tree_next(t, e)); next = e->number + 1)
        if (e->number != next)
            ret = e->number;
    return next == t->count ? ret : t->count;
}

static void test_tree(void)
{
    uint32_t gap;
    bool good = true;

    trees_begin();
    struct tree *t = tree_take();
    ok(!tree_next(t, NULL), "a new tree is empty");
    srand(7);
    for (unsigned i = 0; i < 20000; i++) {
        const size_t words = (size_t)rand() % 5, terms = (size_t)rand() % (rand() % 50 ? 60 : 9000);
        struct tree_event *e = tree_add(t, words, terms);
        if (!e || e->words != words || e->terms != terms) {
            good = false;
            break;
        }
        for (size_t k = 0; k < terms; k++)
            tree_terms(e)[k] = (uint8_t)e->number;
        if (i % 97 == 0 && gone(t) != t->gone)
            good = false;
    }
    ok(good, "a tree keeps its first and its last events and counts the others");
    ok(events(t, &gap) != UINT32_MAX && gap > 100, "the gap is behind the first ones");
    for (struct tree_event *e = NULL; (e = tree_next(t, e));)
        for (size_t k = 0; k < e->terms; k++)
            good &= tree_terms(e)[k] == (uint8_t)e->number;
    ok(good, "no event overwrites another one");
    tree_choose(t, 19990);
    unsigned chosen = 0;
    for (struct tree_event *e = NULL; (e = tree_next(t, e));)
        chosen += e->chosen;
    ok(chosen == 10 && !t->doubtful, "the events from a number on are chosen");
    ok(!tree_add(t, 0, TREE_TAIL) && tree_add(t, 0, 8), "an event that is too large is only counted");
    tree_choose(t, t->count - 1);
    ok(!t->doubtful, "a part without it is whole");
    tree_choose(t, t->count - 2);
    ok(t->doubtful, "a part with it is in doubt");
    t->doubtful = false;
    for (int i = 0; i < 20000; i++)
        tree_add(t, 0, 8);
    ok(t->doubtful, "so is a part whose events had to make room");
    tree_free(t);
    ok(tree_take() == t && !tree_next(t, NULL), "a free tree is taken again, empty");
    trees_unmap();
}

int main(void)
{
    test_chosen();
    test_sample();
    test_tree_of_list();
    test_deep();
    test_tree();
    test_flat();
    test_roots();
    test_without_result();
    test_full();
    test_promised();
    test_crowded();
    inside_unmap();
    return tap_end();
}
