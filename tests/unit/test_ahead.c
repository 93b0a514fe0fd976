/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the source that reads another source ahead in a thread: order, limits, the end, errors, and closing. */
#include "tap.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "events/ahead.h"
#include "ground/mem.h"

/* A source of `count` items, each with its number; then it ends or fails. */
struct counter {
    struct source source;
    uint64_t count;
    size_t size;     /* of an item, at least 8 */
    unsigned silent; /* before every so many items nothing arrives; 0: never */
    bool endless;    /* after the items nothing arrives any more */
    bool fails;      /* the end is an error */
    bool was_silent;
    char *bytes; /* of the last item only */
    _Atomic uint64_t given;
};

static enum source_got counter_next(struct source *s, struct source_item *ret, int timeout_ms, struct err *e)
{
    struct counter *c = (struct counter *)s;
    const uint64_t n = c->given;

    (void)timeout_ms;
    if (c->silent && n % c->silent == 0 && !c->was_silent) {
        c->was_silent = true;
        return SOURCE_NOTHING;
    }
    c->was_silent = false;
    if (n == c->count && c->endless) {
        usleep(1000);
        return SOURCE_NOTHING;
    }
    if (n == c->count && c->fails) {
        err_set(e, ERR_RUN, "damaged at byte %d", (int)n);
        return SOURCE_FAILED;
    }
    if (n == c->count)
        return SOURCE_END;
    free(c->bytes); /* the address sanitizer finds a use of the last item after this */
    c->bytes = mem_zalloc(c->size);
    memcpy(c->bytes, &n, sizeof(n));
    *ret = (struct source_item){.type = SOURCE_BATCH,
                                .node = (unsigned)(n % 7),
                                .bytes = {c->bytes, c->size},
                                .offset = n * 3};
    c->given = n + 1;
    return SOURCE_ITEM;
}

static struct counter counter(uint64_t count, size_t size)
{
    static const struct source_ops ops = {.next = counter_next};

    return (struct counter){.source = {&ops}, .count = count, .size = size};
}

static bool is_item(const struct source_item *item, uint64_t n, size_t size)
{
    uint64_t got;

    memcpy(&got, item->bytes.at, sizeof(got));
    return got == n && item->bytes.len == size && item->node == n % 7 && item->offset == n * 3 &&
           item->type == SOURCE_BATCH;
}

/* Reads to the end. Returns the number of items that came in order, and how it ended in *ret_got. */
static uint64_t read_all(struct source *ahead, uint64_t from, size_t size, int timeout_ms, enum source_got *ret_got,
                         struct err *e)
{
    struct source_item item;
    uint64_t n = from;

    while ((*ret_got = source_next(ahead, &item, timeout_ms, e)) <= SOURCE_NOTHING)
        if (*ret_got == SOURCE_ITEM && is_item(&item, n, size))
            n++;
    return n;
}

static void reads(uint64_t count, size_t size, unsigned silent, int timeout_ms, const char *name)
{
    struct counter c = counter(count, size);
    enum source_got got;
    struct err e;

    c.silent = silent;
    struct source *a = ahead_new(&c.source, NULL);
    is_number((int64_t)read_all(a, 0, size, timeout_ms, &got, &e), (int64_t)count, name);
    is_number(got, SOURCE_END, "then the source ends");
    is_number(source_next(a, &(struct source_item){0}, -1, &e), SOURCE_END, "and the end stays");
    ahead_close(a);
    free(c.bytes);
}

static void keeps_last_item(void)
{
    struct counter c = counter(3000, 8);
    struct source_item item;
    enum source_got got;
    struct err e;

    source_next(&c.source, &item, -1, &e);
    struct source *a = ahead_new(&c.source, &item);
    while (c.given < AHEAD_ITEMS - 1)
        usleep(100);
    ok(is_item(&item, 0, 8), "the item from before stays valid while the thread reads");
    is_number((int64_t)read_all(a, 1, 8, -1, &got, &e), 3000, "the items after it follow");
    ahead_close(a);
    free(c.bytes);
}

static void stays_within_limits(void)
{
    struct counter few = counter(1000, 8), large = counter(100, AHEAD_BYTES / 2 + 1);
    struct source *a = ahead_new(&few.source, NULL), *b = ahead_new(&large.source, NULL);

    while (few.given < AHEAD_ITEMS - 1 || large.given < 2)
        usleep(100);
    usleep(20000); /* time for the threads to read too much */
    is_number((int64_t)few.given, AHEAD_ITEMS - 1, "no more items than AHEAD_ITEMS are kept");
    is_number((int64_t)large.given, 2, "no item is read beyond AHEAD_BYTES");
    ahead_close(a);
    ahead_close(b);
    free(few.bytes);
    free(large.bytes);
}

static void fails_after_its_items(void)
{
    struct counter c = counter(20, 8);
    enum source_got got;
    struct err e = {0}, again = {0};

    c.fails = true;
    struct source *a = ahead_new(&c.source, NULL);
    is_number((int64_t)read_all(a, 0, 8, -1, &got, &e), 20, "all items before an error arrive");
    is_number(got, SOURCE_FAILED, "then the error");
    is_text(e.text, "damaged at byte 20", "with its text");
    is_number(source_next(a, &(struct source_item){0}, 0, &again), SOURCE_FAILED, "which stays");
    is_text(again.text, "damaged at byte 20", "and keeps its text");
    ahead_close(a);
    free(c.bytes);
}

static void closes_early(void)
{
    struct counter unread = counter(UINT64_MAX, 8), silent = counter(1, 8);
    struct source_item item;
    struct err e;

    silent.endless = true;
    struct source *a = ahead_new(&unread.source, NULL), *b = ahead_new(&silent.source, NULL);
    is_number(source_next(a, &item, -1, &e), SOURCE_ITEM, "an item is read");
    is_number(source_next(b, &item, -1, &e), SOURCE_ITEM, "an item is read from a source that falls silent");
    is_number(source_next(b, &item, 1, &e), SOURCE_NOTHING, "then nothing arrives");
    is_number(source_next(b, &item, 0, &e), SOURCE_NOTHING, "without a timeout, too");
    ahead_close(a);
    ahead_close(b);
    ok(true, "a full reader and a waiting one end");
    ahead_close(NULL);
    free(unread.bytes);
    free(silent.bytes);
}

int main(void)
{
    reads(0, 8, 0, -1, "an empty source has no items");
    reads(20000, 8, 0, -1, "small items arrive in order");
    reads(20000, 8, 3, 0, "they do from a slow source and for an owner that does not wait");
    reads(2000, 70000, 0, 5, "items of a usual size arrive in order");
    reads(20, AHEAD_BYTES + 1, 0, -1, "items larger than all that is kept arrive, too");
    keeps_last_item();
    stays_within_limits();
    fails_after_its_items();
    closes_early();
    return tap_end();
}
