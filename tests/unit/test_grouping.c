/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which events the tables of `by` count: probes that share a function, and conditions that a result decides. */
#include "events/recfile.h"
#include "pipetest.h"

#define MS(n) (UINT64_C(1000000) * (n)) /* a tick is one nanosecond */

static struct fw w; /* the frames for the next pipeline */

/* Ends a frame of an event that answers the first n probes. */
static void end_answering(int n)
{
    w.flags |= ETW_F_MS;
    fw_tuple(&w, 2);
    fw_atom(&w, "etrace_probe");
    fw_tuple(&w, (unsigned)n);
    for (int i = 0; i < n; i++)
        fw_int(&w, i);
    fw_frame_end(&w);
}

/* A call m:f(ARGUMENT) that answers the first n probes. */
static void call(uint64_t tick, int argument, int n)
{
    fw_ring(&w, 1);
    fw_call(&w, tick, PID(84), "m", "f", 1);
    fw_int(&w, argument);
    end_answering(n);
}

static void result(uint64_t tick)
{
    fw_return_int(&w, tick, PID(84), "m", "f", 7);
}

/* Feeds a request with the probes, one in each line, and the frames, as a recording has them. Forgets the frames. */
static void feed(struct pt *t, const char *exprs)
{
    struct buf request = {0};

    for (const char *at = exprs, *end; *at; at = end + (*end == '\n')) {
        end = at + strcspn(at, "\n");
        recfile_spec_add(&request, "expr", (struct str){at, (size_t)(end - at)});
    }
    pipeline_item(t->p, &(struct source_item){.type = SOURCE_SPECS, .bytes = buf_view(&request)}, &t->err);
    pt_feed(t, 0, fw_batch(&w, MS(1000), MS(1000), MS(1000), ETW_BATCH_LAST));
    pipeline_item(t->p, &(struct source_item){.type = SOURCE_FOOTER}, &t->err);
    buf_release(&request);
    fw_release(&w);
    memset(&w, 0, sizeof(w));
    fw_begin(&w);
}

/* Compares what the first view shows of the frames, and frees the pipeline. */
static void end_is(struct pt *t, const char *want, const char *name)
{
    pt_close(t);
    is_text(buf_cstr(&t->out[0]), want, name);
    pt_free(t);
}

static const struct look utc = {.time = TIME_UTC};

/* Compares the tables of the frames. `beside` is another view that gets the events; NULL: none. */
static void counts(const char *exprs, const char *beside, const char *want, const char *name)
{
    const char *const views[] = {"table", beside, NULL};
    struct pt t = {0};

    pt_open(&t, views, &utc, (struct pipeline_options){0});
    feed(&t, exprs);
    end_is(&t, want, name);
}

/* Four calls of 10 ms, 1 us, 20 ms and 30 ms. */
static void four_calls(int answers)
{
    static const uint64_t ends[] = {MS(10), 1000, MS(20), MS(30)};
    static const int arguments[] = {1, 1, 2, 2};

    for (unsigned i = 0; i < 4; i++) {
        call(MS(100 * (i + 1)), arguments[i], answers);
        result(MS(100 * (i + 1)) + ends[i]);
    }
}

static void shared_functions(void)
{
    four_calls(2);
    counts("m:f(_) -> return\nm:f(_) where dur > 5ms by args[1]: count", NULL,
           "args[1]  count\n2            2\n1            1\n",
           "a call counts for a condition on its result, although another probe has shown the call already");
    four_calls(2);
    counts("m:f(_) -> return\nm:f(_) where dur > 5ms by args[1]: count, max(dur)", NULL,
           "args[1]  count  max(dur)\n2            2      30ms\n1            1      10ms\n",
           "the row of such a call has the values of its result");
    four_calls(2);
    fw_call_int(&w, MS(900), PID(84), "m", "g", 1);
    counts("m:f(_) -> return\nm:f(_) where dur > 5ms by ret: count\nm:g(_) by ret: count", NULL,
           "ret  count\n7        3\n*** 1 call without a result, not counted ***\n*** 1 call incomplete ***\n",
           "such a call does not hide another call without a result");
    four_calls(2);
    counts("m:f(_) by args[1]: count\nm:f(_) where dur > 5ms by args[1]: count", NULL,
           "args[1]  count\n1            2\n2            2\n", "a call counts once in a table that two probes share");
}

/* A call that is too large for a copy, so that only its result counts. */
static void large_call(void)
{
    static const char large[100000];

    fw_call_int(&w, MS(100), PID(84), "m", "g", 1);
    fw_call(&w, MS(200), PID(84), "m", "f", 1);
    fw_bin_n(&w, large, sizeof(large), sizeof(large));
    fw_frame_end(&w);
    result(MS(300));
    counts("m:f(_) where dur > 5ms by ret: count\nm:g(_) by ret: count", NULL,
           "ret  count\n7        1\n*** 1 call without a result, not counted ***\n*** 1 call incomplete ***\n",
           "a call that was not kept does not hide another call without a result");
}

/* Three nested calls of 100, 50 and 10 ms. */
static void nested_calls(int answers)
{
    for (unsigned i = 0; i < 3; i++)
        call(MS(100 + i), (int)i, answers);
    result(MS(110));
    result(MS(150));
    result(MS(200));
}

static void calls_around(void)
{
    static const char two[] = "args[1]  count  max(dur)\n0            1     100ms\n1            1      49ms\n";

    nested_calls(1);
    counts("m:f(_) where dur > 20ms by args[1]: count, max(dur)", NULL, two, "nested calls count");
    nested_calls(1);
    counts("m:f(_) where dur > 20ms by args[1]: count, max(dur)", "tree", two,
           "the same calls count if a tree shows them around another call before their results");
    nested_calls(1);
    counts("m:f(_) where args[1] > 1 by args[1]: count, max(dur)", "tree",
           "args[1]  count  max(dur)\n2            1       8ms\n",
           "a call that is only shown around another one does not count");
}

/* A row of a node: it has counted so many events with these keys, one atom for each letter. */
static void counted_row(const char *keys, int64_t count)
{
    const struct etw_row row = {.counts = {count}};

    fw_ring(&w, ETW_META_RING);
    fw_frame(&w, ETW_ROW, MS(1), 0);
    fw_tuple(&w, 1 + (unsigned)strlen(keys));
    fw_int(&w, ETW_ROW_BY);
    for (; *keys; keys++) {
        fw_tuple(&w, 1);
        fw_atom(&w, (const char[]){*keys, 0});
    }
    fw_bin_n(&w, &row, sizeof(row), sizeof(row));
    fw_frame_end(&w);
}

static void rows_of_runs(void)
{
    static const char *const table[] = {"table", NULL};
    struct pt t = {0};

    pt_open(&t, table, &utc, (struct pipeline_options){0});
    counted_row("ab", 5);
    feed(&t, "m:f(_, _) by args[1], args[2]: count");
    counted_row("c", 9);
    feed(&t, "m:f(_, _) by args[1]: count");
    counted_row("d", 7);
    feed(&t, "m:f(_, _)");
    counted_row("e", 3);
    feed(&t, "m:f(_, _) by args[1]: count");
    end_is(&t,
           "by args[1], args[2]: count\nargs[1]  args[2]  count\na        b            5\n\n"
           "by args[1]: count\nargs[1]  count\nc            9\ne            3\n",
           "the rows of each run of a recording are in the table of its probe");
}

int main(void)
{
    fw_begin(&w);
    shared_functions();
    large_call();
    calls_around();
    rows_of_runs();
    return tap_end();
}
