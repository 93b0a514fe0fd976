/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that `where` decides the same about a call on the node and on the client: the node uses the tally and its
 * filter (plain C), the client filters events. The test runs generated conditions over generated calls in both ways.
 * It also tests that the filter rejects malformed steps.
 */
#include "pipetest.h"

#include "../../nif/tally.h"
#include "ground/mem.h"
#include "lang/lang.h"
#include "lang/where_steps.h"

enum { ROUNDS = 400, EVENTS = 300, PROCESSES = 3, DEEP = 40 };

static uint64_t seed = 88172645463325252u;

static unsigned below(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 11) % n;
}

/* ---- conditions ---- */

static void random_test(struct buf *to)
{
    static const char *const compares[] = {">", ">=", "<", "=<", "==", "=:=", "/=", "=/="};
    static const char *const classes[] = {"error", "exit", "throw"};

    switch (below(4)) {
    case 0:
        buf_printf(to, "(dur %s %uns)", compares[below(8)], below(4000));
        break;
    case 1:
        buf_printf(to, "(%uns %s dur)", below(4000), compares[below(8)]);
        break;
    case 2:
        buf_printf(to, "(size %s %uB)", compares[below(8)], 20 + below(120));
        break;
    default:
        buf_printf(to, "(class %s %s)", compares[4 + below(4)], classes[below(3)]);
        break;
    }
}

static void random_condition(struct buf *to, unsigned deep)
{
    static const char *const operators[] = {"andalso", "orelse", "and", "or", "xor"};

    if (!deep || below(4) == 0) {
        random_test(to);
    } else if (below(5) == 0) {
        buf_puts(to, "(not ");
        random_condition(to, deep - 1);
        buf_char(to, ')');
    } else {
        buf_char(to, '(');
        random_condition(to, deep - 1);
        buf_printf(to, " %s ", operators[below(5)]);
        random_condition(to, deep - 1);
        buf_char(to, ')');
    }
}

static bool compile(const char *text, struct arena *a, struct spec_list *ret)
{
    struct lang_options options = {0};
    struct err e;
    struct buf probe = {0};

    buf_printf(&probe, "m:_ -> return where %s", text);
    struct str kept = {arena_strndup(a, probe.data, probe.len), probe.len};
    bool good = lang_compile(&options, kept, a, ret, &e) || ok(false, "%s: %s", text, e.text);
    buf_release(&probe);
    return good;
}

/* ---- the same calls, as events and as figures ---- */

static bool lives(void *env, uint64_t process)
{
    (void)env, (void)process;
    return true;
}

struct scene {
    struct fw w;
    uint64_t tick;
    unsigned depth[PROCESSES];
    unsigned stacks[PROCESSES][DEEP];
    struct lane *lane;
};

static const char *const functions[] = {"f", "g", "h", "i"};

static struct stack_function words(unsigned function)
{
    return (struct stack_function){1000, 2000 + function, 1};
}

static void some_bytes(struct fw *w)
{
    static const char text[128] = {0};

    fw_bin_n(w, text, below(sizeof(text)), 128);
}

static void call(struct scene *s, unsigned process, unsigned function)
{
    struct stack_function f = words(function);

    fw_call(&s->w, s->tick, PID(process + 1), "m", functions[function], 1);
    some_bytes(&s->w);
    fw_frame_end(&s->w);
    s->stacks[process][s->depth[process]++] = function;
    tally_call(NULL, s->lane, process + 1, &f, s->tick, s->w.r->bytes.len - s->w.frame, true);
}

static void result(struct scene *s, unsigned process)
{
    static const char *const classes[] = {"error", "exit", "throw"};
    /* open calls above the returning one that end without a result */
    unsigned passed = below(8) ? 0 : below(s->depth[process]);
    struct tally_result r = {.tick = s->tick, .failed = below(3) == 0};

    r.end.class = r.failed ? (enum etw_class)below(3) : ETW_CLASSES;

    s->depth[process] -= passed + 1;
    unsigned function = s->stacks[process][s->depth[process]];
    for (unsigned i = 1; i <= passed; i++)
        /* a result belongs to the newest call of its function */
        if (s->stacks[process][s->depth[process] + i] == function) {
            s->depth[process] += i;
            function = s->stacks[process][s->depth[process]];
            i = 0;
            passed = 0;
        }
    struct stack_function f = words(function);
    if (r.failed) {
        fw_frame(&s->w, ETW_EXCEPTION_FROM, s->tick, PID(process + 1));
        fw_fun(&s->w, "m", functions[function], 1);
        fw_tuple(&s->w, 2);
        fw_atom(&s->w, classes[r.end.class]);
    } else {
        fw_return(&s->w, s->tick, PID(process + 1), "m", functions[function], 1);
    }
    some_bytes(&s->w);
    fw_frame_end(&s->w);
    r.bytes = s->w.r->bytes.len - s->w.frame;
    tally_result(s->lane, process + 1, &f, &r);
}

static void happen(struct scene *s)
{
    fw_begin(&s->w);
    fw_hello(&s->w, 1, "a@b");
    fw_ring(&s->w, 1);
    s->tick = 1000;
    for (unsigned i = 0; i < EVENTS; i++) {
        unsigned process = below(PROCESSES);
        s->tick += below(1000);
        if (s->depth[process] < DEEP && (!s->depth[process] || below(2)))
            call(s, process, below(ARRAY_LEN(functions)));
        else
            result(s, process);
    }
}

static void tallied(struct scene *s, struct fw *w)
{
    struct stack_function f;
    struct rows_growth g;
    struct etw_bucket buckets[ETW_BUCKETS];

    fw_begin(w);
    fw_hello(w, 1, "a@b");
    fw_ring(w, 1);
    w->r->seen = s->lane->ring.seen;
    fw_ring(w, ETW_META_RING);
    int64_t work = INT64_MAX;
    while (tally_take(&work, &g, buckets) == ROWS_TOOK) {
        const struct etw_tally head = tally_of(&g, &f);
        fw_frame(w, ETW_TALLY, s->tick, 0);
        fw_fun(w, "m", functions[f.name - 2000], f.arity);
        fw_raw(w, &head, sizeof(head));
        fw_raw(w, buckets, head.buckets * sizeof(*buckets));
        fw_frame_end(w);
    }
}

/* Returns the text of the summary and the totals. */
static void told(struct fw *w, uint64_t tick, const struct spec_list *specs, struct buf *ret)
{
    static const struct look look = {0};
    struct pt t = {0};

    pt_open(&t, (const char *const[]){"summary", "hist", NULL}, &look,
            (struct pipeline_options){.specs = specs->items, .nspecs = specs->count});
    pt_feed(&t, 0, fw_batch(w, tick, (int64_t)tick, tick, ETW_BATCH_LAST));
    pt_close(&t);
    const struct totals *n = pipeline_totals(t.p);
    buf_printf(ret, "%d: %d seen, %d shown, %d filtered, %d missing, %d incomplete\n%s\n%s", (int)t.status,
               (int)n->seen, (int)n->shown, (int)n->filtered, (int)n->missing, (int)n->incomplete, buf_cstr(&t.out[0]),
               buf_cstr(&t.out[1]));
    pt_free(&t);
}

static unsigned shown_of(const struct buf *told)
{
    return (unsigned)atoi(strstr(told->data, "seen, ") + 6);
}

static bool set_filter(const struct buf *filter)
{
    struct str steps = where_steps_view(buf_view(filter));

    return verdict_set((const uint8_t *)steps.at, steps.len, NULL);
}

static bool same(const char *condition, unsigned *ret_shown)
{
    const struct rows_room room = tally_functions(10);
    struct arena a;
    struct spec_list specs;
    struct buf filter = {0}, events = {0}, figures = {0};
    struct scene s = {0};
    struct fw w = {0};

    arena_init(&a);
    bool good = compile(condition, &a, &specs) && where_steps(specs.items[0]->where, specs.items[0]->nwhere, &filter) &&
                set_filter(&filter);
    if (good) {
        lanes_open(1, 65536, 4096, (struct encode_limits){0});
        while (tally_open(&room, 1000000, lives) == ROWS_CLEARING)
            ;
        s.lane = lane_mine();
        happen(&s);
        tallied(&s, &w);
        told(&s.w, s.tick, &specs, &events);
        told(&w, s.tick, &specs, &figures);
        *ret_shown = shown_of(&events);
        if (strcmp(buf_cstr(&events), buf_cstr(&figures))) {
            tap_text("of the events ", events.data, events.len);
            tap_text("of the figures", figures.data, figures.len);
            good = false;
        }
    }
    buf_release(&events);
    buf_release(&figures);
    buf_release(&filter);
    fw_release(&w);
    fw_release(&s.w);
    arena_release(&a);
    return good;
}

static void test_same(void)
{
    struct buf text = {0};
    unsigned some = 0, shown = 0;
    bool good = true;

    for (unsigned i = 0; i < ROUNDS && good; i++) {
        buf_clear(&text);
        random_condition(&text, below(4));
        good = same(buf_cstr(&text), &shown);
        some += shown > 0 && shown < EVENTS;
        if (!good)
            printf("# where %s\n", buf_cstr(&text));
    }
    ok(good, "figures and events give the same result for %d conditions", (int)ROUNDS);
    ok(some > ROUNDS / 4, "many conditions show some calls and hide others (%u)", some);
    buf_release(&text);
}

/* ---- conditions that the node decides, and malformed ones ---- */

static bool decides(const char *condition)
{
    struct arena a;
    struct spec_list specs;
    struct buf filter = {0};

    arena_init(&a);
    bool yes = compile(condition, &a, &specs) && where_steps(specs.items[0]->where, specs.items[0]->nwhere, &filter);
    buf_release(&filter);
    arena_release(&a);
    return yes;
}

static void test_decides(void)
{
    struct buf deep = {0};

    ok(decides("dur > 5ms andalso size < 1kB"), "the node decides two conditions");
    ok(decides("ret == 1 or ret > 3 andalso not is_atom(ret)"), "the node decides about a result's value");
    ok(decides("ret = {error, #{reason := R}}") && decides("ret == error") && decides("ret = [ok | _]"),
       "the node decides about a pattern and an atom of a result");
    ok(!decides("ret > error") && !decides("ret == {error, timeout}"),
       "the node does not decide about the order of atoms, nor about those in a term");
    ok(!decides("ret = {X, X}") && !decides("element(1, ret) == error") && !decides("ret == args[1]"),
       "the node does not decide about parts of a result that are equal, computed, or compared with arguments");
    ok(!decides("dur > 5ms andalso args[1] == 1"), "the node does not decide about arguments");
    ok(!decides("dur / 2 > 5ms"), "the node does not decide about arithmetic");
    ok(!decides("text =~ \"x\""), "the node does not decide about patterns");
    for (int i = 0; i < ETW_FILTER_DEEP; i++)
        buf_puts(&deep, "(dur > 5ms orelse ");
    buf_puts(&deep, "dur > 6ms");
    for (int i = 0; i < ETW_FILTER_DEEP; i++)
        buf_char(&deep, ')');
    ok(!decides(buf_cstr(&deep)), "the node does not decide about a condition that is too deep");
    buf_clear(&deep);
    buf_puts(&deep, "dur > 5ms");
    for (int i = 0; i < ETW_FILTER_MOST; i++)
        buf_puts(&deep, " orelse dur > 5ms");
    ok(!decides(buf_cstr(&deep)), "the node does not decide about a condition that is too long");
    buf_release(&deep);
}

static bool takes(const struct etw_filter_step *steps, size_t n)
{
    return verdict_set((const uint8_t *)steps, n * sizeof(*steps), NULL);
}

#define TAKES(...)                                                                                                     \
    takes((const struct etw_filter_step[]){__VA_ARGS__},                                                               \
          sizeof((const struct etw_filter_step[]){__VA_ARGS__}) / sizeof(struct etw_filter_step))
#define TEST                                                                                                           \
    {                                                                                                                  \
        .what = ETW_FILTER_DUR, .compare = ETW_FILTER_GE, .value = 7                                                   \
    }

static void test_hostile(void)
{
    static const struct verdict_end no_end = {.class = ETW_CLASSES};
    struct etw_filter_step many[ETW_FILTER_MOST + 1];
    uint8_t bytes[sizeof(many)];
    unsigned taken = 0;

    ok(TAKES(TEST), "a filter with one test is valid");
    ok(!TAKES(TEST, TEST), "a filter that leaves two values is refused");
    ok(!TAKES({.what = ETW_FILTER_NOT}), "an operator without an operand is refused");
    ok(!TAKES(TEST, {.what = ETW_FILTER_AND}), "an operator with half of its operands is refused");
    ok(!TAKES({.what = ETW_FILTER_WHATS, .value = 1}), "an unknown step is refused");
    ok(!TAKES({.what = ETW_FILTER_RET}), "a test of the result without its program is refused");
    ok(!TAKES({.what = ETW_FILTER_DUR, .compare = ETW_FILTER_COMPARES}), "an unknown comparison is refused");
    ok(!TAKES({.what = ETW_FILTER_CLASS, .compare = ETW_FILTER_EQ, .value = ETW_CLASSES}),
       "an unknown class is refused");
    ok(!TAKES({.what = ETW_FILTER_CLASS, .compare = ETW_FILTER_EQ, .value = -1}), "a negative class is refused");
    ok(!TAKES({.what = ETW_FILTER_CLASS, .compare = ETW_FILTER_GT}), "an order comparison of classes is refused");
    ok(!TAKES(TEST, {.what = ETW_FILTER_NOT, .compare = 1}), "an operator with a comparison is refused");
    ok(!TAKES({.what = ETW_FILTER_DUR, .spare1 = 1}) && !TAKES({.what = ETW_FILTER_DUR, .spare2 = 1}),
       "a spare field that is not 0 is refused");
    for (size_t i = 0; i <= ETW_FILTER_MOST; i++)
        many[i] = (struct etw_filter_step){.what = i % 2 ? ETW_FILTER_AND : ETW_FILTER_SIZE};
    ok(!takes(many, ETW_FILTER_MOST + 1), "a filter with too many steps is refused");
    for (size_t i = 0; i <= ETW_FILTER_MOST; i++)
        many[i] = (struct etw_filter_step){.what = i <= ETW_FILTER_DEEP ? ETW_FILTER_SIZE : ETW_FILTER_AND};
    ok(!takes(many, 2 * ETW_FILTER_DEEP + 1), "a filter that needs too many values is refused");
    ok(!verdict_set((const uint8_t *)many, sizeof(*many) - 1, NULL), "half a step is refused");
    ok(verdict_result(0, 7, &no_end) && !verdict_result(0, 6, &no_end),
       "a refused filter leaves the current one in force");
    for (unsigned i = 0; i < 2000000; i++) {
        size_t n = below(4) * sizeof(struct etw_filter_step);
        for (size_t k = 0; k < n; k++) { /* mostly bytes that are valid in a step */
            size_t at = k % sizeof(struct etw_filter_step);
            bytes[k] = (uint8_t)(at < 2 ? below(8) : at == 8 ? below(4) : below(64) == 0);
        }
        if (verdict_set(bytes, n, NULL)) {
            taken++;
            verdict_call(below(1000), below(2));
            const struct verdict_end end = {.class = (enum etw_class)below(ETW_CLASSES + 1), .returned = below(2)};
            verdict_result(below(1000), below(1000), &end);
        }
    }
    ok(taken > 0, "random bytes that are accepted as a filter do no harm (%u)", taken);
    ok(verdict_set(NULL, 0, NULL) && verdict_call(1, true) == VERDICT_SHOWS, "no steps remove the filter");
}

static void test_times(void)
{
    static const struct verdict_end end = {.class = ETW_CLASSES};
    uint64_t least, most;

    ok(TAKES(TEST) && !verdict_times(&least, &most), "a new filter has tested no duration");
    verdict_result(0, 9, &end);
    verdict_result_may(3, &end);
    verdict_result(0, 5, &end);
    ok(verdict_times(&least, &most) && least == 3 && most == 9, "the shortest and the longest duration are kept");
    verdict_set(NULL, 0, NULL);
}

int main(void)
{
    test_same();
    test_decides();
    test_hostile();
    test_times();
    return tap_end();
}
