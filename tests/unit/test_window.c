/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which event ends a replay with --to: it must not end before the last event of its part was read. */
#include "events/recfile.h"
#include "pipetest.h"

#define S(n) (UINT64_C(1000000000) * (n)) /* a tick is one nanosecond */

static struct fw w;
static struct pt t;

/* Begins a replay of a recording with one probe, up to four seconds after its first event. */
static void begin(const char *expr)
{
    static const struct look relative = {.time = TIME_RELATIVE};
    struct buf request = {0};

    fw_begin(&w);
    pt_open(&t, (const char *const[]){"text", NULL}, &relative,
            (struct pipeline_options){.window.to = {MOMENT_AFTER, (int64_t)S(4)}});
    recfile_spec_add(&request, "expr", (struct str){expr, strlen(expr)});
    pipeline_item(t.p, &(struct source_item){.type = SOURCE_SPECS, .bytes = buf_view(&request)}, &t.err);
    buf_release(&request);
}

static void call(uint64_t second, int argument)
{
    fw_call_int(&w, S(second), PID(84), "m", "f", argument);
}

/* A call that the node has sent later than it happened. */
static void held_call(uint64_t second, uint64_t began, int argument)
{
    fw_ring(&w, 1);
    fw_frame(&w, ETW_CALL, S(second), PID(84));
    w.flags |= ETW_F_BEGAN;
    fw_u64(&w, S(began));
    fw_fun(&w, "m", "f", 1);
    fw_int(&w, argument);
    fw_frame_end(&w);
}

/* Feeds the frames up to this second, and tests whether the replay goes on. */
static void feed(uint64_t second, enum pipeline_status status, const char *name)
{
    pt_feed(&t, 0, fw_batch(&w, S(second), (int64_t)S(second), S(second), 0));
    is_number(t.status, status, name);
}

/* Ends the replay. Compares what it has shown; `want` may be NULL. */
static void end(const char *want, const char *name)
{
    pt_close(&t);
    if (want)
        is_text(buf_cstr(&t.out[0]), want, name);
    pt_free(&t);
    fw_release(&w);
    memset(&w, 0, sizeof(w));
}

static void early_notice(void)
{
    begin("m:f(_)");
    call(1, 1);
    fw_ring(&w, ETW_META_RING);
    fw_frame(&w, ETW_NOTICE, S(6), 0);
    fw_atom(&w, "rearmed");
    fw_int(&w, 1);
    fw_frame_end(&w);
    feed(2, PIPELINE_MORE, "a notice that comes before older events does not end a replay");
    call(5, 2);
    call(6, 3);
    feed(7, PIPELINE_DONE, "an event of the VM behind the part ends it");
    end("  0.000000 <0.84.0> call m:f(1)\n  4.000000 <0.84.0> call m:f(2)\n", "all events of the part are shown");
}

static void held_events(void)
{
    static const char *const exprs[] = {"m:f(_) where dur > 5ms", "recv(_) inside m:f where dur > 5ms"};

    begin("m:f(_)");
    call(1, 1);
    held_call(7, 6, 2);
    feed(7, PIPELINE_MORE, "an event that the node held back does not end a replay");
    held_call(8, 4, 3);
    call(9, 4);
    feed(9, PIPELINE_MORE, "no other event ends the replay of such a recording");
    end("  0.000000 <0.84.0> call m:f(1)\n  3.000000 <0.84.0> call m:f(3)\n", "a later event of the part is shown");
    for (size_t i = 0; i < ARRAY_LEN(exprs); i++) {
        begin(exprs[i]);
        call(1, 1);
        call(7, 2);
        feed(7, PIPELINE_MORE, "no event ends a replay if nodes may hold back events of the probe");
        end(NULL, NULL);
    }
}

int main(void)
{
    early_notice();
    held_events();
    return tap_end();
}
