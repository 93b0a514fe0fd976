/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how fast batches become text: decodes and prints the same batches repeatedly, from memory, and discards the
 * output.
 *
 *     bench_print VIEW [w1|w3|w4|whole|FILE.etr] [MILLIONS] [BATCHES]
 *
 * Makes BATCHES (32) batches of 8000 events, and repeats them until it has shown MILLIONS (10) of events.
 * tests/unit/workloads.h describes w1, w3, w4 and whole; in w4 the client pairs results with calls. Prints events and
 * bytes per second.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../unit/workloads.h"
#include "events/recfile.h"
#include "ground/mem.h"
#include "pipeline/pipeline.h"

#include <time.h>

static uint64_t bytes_out;

static bool count(void *output, struct buf *bytes)
{
    (void)output;
    bytes_out += bytes->len;
    bytes->len = 0;
    return true;
}

struct batches {
    struct str *items;
    size_t n, cap;
};

static void keep(struct batches *b, struct str bytes)
{
    b->items = mem_grow(b->items, &b->cap, b->n + 1, sizeof(*b->items));
    b->items[b->n++] = (struct str){mem_strndup(bytes.at, bytes.len), bytes.len};
}

static void synthetic(struct batches *b, int batches, const struct workload *what)
{
    struct fw w = {0};
    uint64_t tick = 1000000;

    fw_begin(&w);
    fw_hello(&w, tick, "bench@localhost");
    for (int i = 0; i < batches; i++)
        keep(b, workload_batch(&w, what, &tick, 8000, i == batches - 1 ? ETW_BATCH_LAST : 0));
    fw_release(&w);
}

static const struct workload *workload_by_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(workloads); i++)
        if (!strcmp(workloads[i].name, name))
            return &workloads[i];
    return NULL;
}

static void recorded(struct batches *b, const char *path)
{
    struct err e;
    struct source_item item;
    struct source *s = recfile_open(path, &e);

    while (s && source_next(s, &item, -1, &e) == SOURCE_ITEM)
        if (item.type == SOURCE_BATCH)
            keep(b, item.bytes);
    source_close(s);
}

static double now(void)
{
    struct timespec t;

    /* processor time of this process, because other processes may be running */
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    const struct sink_type *type = sink_by_name(argc > 1 ? argv[1] : "text");
    const char *what = argc > 2 ? argv[2] : "w1";
    uint64_t want = (uint64_t)(1e6 * (argc > 3 ? atof(argv[3]) : 10)), in = 0;
    struct batches b = {0};
    struct err e = {0};

    if (workload_by_name(what))
        synthetic(&b, argc > 4 ? atoi(argv[4]) : 32, workload_by_name(what));
    else
        recorded(&b, what);
    if (!type || !b.n) {
        fprintf(stderr, "usage: bench_print VIEW [w1|w3|w4|whole|FILE.etr] [MILLIONS] [BATCHES]\n");
        return 2;
    }
    struct view v = {.type = type, .look = {.time = TIME_UTC}, .write = count};
    struct pipeline *p = pipeline_new(&(struct pipeline_options){.views = &v, .nviews = 1}, &e);
    if (!strcmp(what, "w4")) {
        struct buf asked = {0};
        recfile_spec_add(&asked, "expr", (struct str){"w:handle_call/3 -> return", 25});
        pipeline_item(p, &(struct source_item){.type = SOURCE_SPECS, .bytes = buf_view(&asked)}, &e);
        buf_release(&asked);
    }
    double begin = now();
    while (pipeline_totals(p)->shown < want) {
        for (size_t i = 0; i < b.n; i++) {
            if (pipeline_batch(p, 0, b.items[i], &e) != PIPELINE_MORE) {
                fprintf(stderr, "%s\n", e.text);
                return 1;
            }
            in += b.items[i].len;
        }
    }
    pipeline_end(p);
    double took = now() - begin;
    uint64_t n = pipeline_totals(p)->shown;
    printf("%s %s: %.2f M events/s, %.1f ns an event, %.0f MB/s in, %.0f MB/s out\n", type->name, what,
           (double)n / took / 1e6, took * 1e9 / (double)n, (double)in / took / 1e6, (double)bytes_out / took / 1e6);
    pipeline_free(p);
    return 0;
}
