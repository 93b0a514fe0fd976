/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that an event costs no allocation and no memory in the steady state: once a workload has run, more of the same
 * workload allocates nothing. The pipeline frees the memory that a burst needed.
 */
#include <malloc.h>

#include "pipetest.h"
#include "workloads.h"

/* The linker redirects every allocation of the program and its libraries here (tests/meson.build). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

static unsigned long allocations;

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    allocations++;
    return __real_realloc(old, size);
}

#define EVENTS 600 /* in a batch */

static uint64_t bytes_out;

static bool drop(void *output, struct buf *bytes)
{
    (void)output;
    bytes_out += bytes->len;
    bytes->len = 0;
    return true;
}

static bool take(void *output, struct buf *bytes)
{
    (void)output;
    buf_release(bytes);
    return true;
}

static unsigned long feed(struct pipeline *p, struct fw *w, const struct workload *what, uint64_t *tick, int batches)
{
    unsigned long sum = 0;
    struct err e;

    for (int i = 0; i < batches; i++) {
        struct str batch = workload_batch(w, what, tick, EVENTS, 0);
        unsigned long before = allocations;
        pipeline_batch(p, 0, batch, &e);
        pipeline_flush(p);
        sum += allocations - before;
    }
    return sum;
}

static void steady(const char *view, const struct workload *what, const struct grep *grep)
{
    const struct spec *spec = pt_spec("w", "_", -1, ACT_RETURN);
    struct view v = {.type = sink_by_name(view), .look = {.time = TIME_UTC}, .write = drop};
    struct err e;
    struct pipeline *p = pipeline_new(&(struct pipeline_options){.views = &v,
                                                                 .nviews = 1,
                                                                 .specs = &spec,
                                                                 .nspecs = 1,
                                                                 .greps = grep,
                                                                 .ngreps = grep ? 1 : 0,
                                                                 .max_calls = 1000,
                                                                 .apart = 1},
                                      &e);
    struct fw w = {0};
    uint64_t tick = 1000000;

    fw_begin(&w);
    fw_hello(&w, tick, "n@h");
    feed(p, &w, what, &tick, 10);
    unsigned long first = feed(p, &w, what, &tick, 10), second = feed(p, &w, what, &tick, 20);
    uint64_t shown = pipeline_totals(p)->shown;
    ok(shown == 40 * EVENTS && !first && !second, "%s %s%s does not allocate for an event", view, what->name,
       grep ? " --grep" : "");
    if (shown != 40 * EVENTS || first || second)
        printf("# %llu shown; %lu allocations for %d events, %lu for %d\n", (unsigned long long)shown, first,
               10 * EVENTS, second, 20 * EVENTS);
    pipeline_end(p);
    pipeline_free(p);
    fw_release(&w);
    pt_spec_free(spec);
}

/* Returns the allocated bytes; 0 if the C library does not report them. */
static long in_use(void)
{
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 33)
    struct mallinfo2 m = mallinfo2();
    return (long)(m.uordblks + m.hblkhd);
#endif
#endif
    return 0;
}

/* Feeds a batch and returns how many more bytes are allocated after it. */
static long fed(struct pipeline *p, struct str batch)
{
    long before = in_use();
    struct err e;

    pipeline_batch(p, 0, batch, &e);
    pipeline_flush(p);
    return in_use() - before;
}

#define LARGE 20000 /* bytes of an argument */

static void burst(struct fw *w, uint64_t *tick, int calls, size_t bytes)
{
    static char text[LARGE];

    memset(text, 'x', sizeof(text));
    for (int i = 0; i < calls; i++, *tick += 10) {
        fw_ring(w, 1);
        fw_call(w, *tick, 100, "w", "f", 1);
        fw_bin_n(w, text, bytes, bytes);
        fw_frame_end(w);
    }
    for (int i = 0; i < calls; i++, *tick += 10)
        fw_return_int(w, *tick, 100, "w", "f", i);
}

static void shrinks(const char *view)
{
    const struct spec *spec = pt_spec("w", "_", -1, ACT_RETURN);
    struct grep grep = {.regex = "w"}; /* a filter makes the pipeline keep calls until they return */
    struct view v = {.type = sink_by_name(view), .look = {.time = TIME_UTC}, .write = take};
    struct err e;
    struct pipeline *p = pipeline_new(&(struct pipeline_options){.views = &v,
                                                                 .nviews = 1,
                                                                 .specs = &spec,
                                                                 .nspecs = 1,
                                                                 .greps = &grep,
                                                                 .ngreps = 1},
                                      &e);
    struct fw w = {0};
    uint64_t tick = 1000000;
    long more = 0, most;

    fw_begin(&w);
    fw_hello(&w, tick, "n@h");
    burst(&w, &tick, 40, 20);
    fed(p, fw_batch(&w, tick, (int64_t)tick, tick, 0));
    uint64_t held = tick;
    burst(&w, &tick, 40, LARGE);
    more += fed(p, fw_batch(&w, tick, (int64_t)tick, held, 0));
    most = more;
    for (int i = 0; i < 4; i++) {
        burst(&w, &tick, 40, 20);
        more += fed(p, fw_batch(&w, tick, (int64_t)tick, tick, 0));
    }
    ok(more <= most / 4, "%s releases the memory of a burst", view);
    if (more > most / 4)
        printf("# %ld bytes more at most, %ld in the end\n", most, more);
    pipeline_end(p);
    pipeline_free(p);
    fw_release(&w);
    pt_spec_free(spec);
}

int main(void)
{
    static const char *const views[] = {"text", "json", "csv", "tree", "summary", "hist", "folded", "flame", "record"};
    const struct grep grep = {.regex = "[a-z]"};

    for (size_t i = 0; i < ARRAY_LEN(workloads); i++) {
        for (size_t k = 0; k < ARRAY_LEN(views); k++)
            steady(views[k], &workloads[i], NULL);
        steady("text", &workloads[i], &grep);
    }
    ok(bytes_out > 0, "the views wrote something");
    shrinks("text");
    shrinks("json");
    return tap_end();
}
