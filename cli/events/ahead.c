/* SPDX-License-Identifier: Apache-2.0 */
#include "ahead.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "../ground/buf.h"
#include "../ground/mem.h"
#include "../ground/thread.h"

#define WAIT_MS 20 /* the thread waits this long for input before it checks whether it has to end */

struct slot {
    enum source_got got; /* SOURCE_ITEM, SOURCE_END or SOURCE_FAILED */
    struct source_item item;
    struct buf bytes; /* the copy of the item's bytes */
    struct err err;   /* filled if `got` is SOURCE_FAILED */
};

struct ahead {
    struct source source;
    struct source *from;
    pthread_mutex_t lock; /* guards all members below, but not the content of the slots */
    pthread_cond_t changed;
    uint64_t put, taken; /* number of slots that the thread has filled, and that the reader has taken */
    size_t bytes;        /* bytes of the items in the slots that the reader may use */
    bool stop, over;     /* stop: the thread has to end; over: the thread has ended */
    /* The reader may use all filled slots and the slot that it took last. The thread may use the other slots. */
    struct slot slots[AHEAD_ITEMS];
};

static struct slot *slot_of(struct ahead *a, uint64_t number)
{
    return &a->slots[number % AHEAD_ITEMS];
}

static void keep_bytes(struct slot *s)
{
    buf_clear(&s->bytes);
    buf_str(&s->bytes, s->item.bytes);
    s->item.bytes = buf_view(&s->bytes);
}

/* ---- the thread ---- */

static bool has_room(const struct ahead *a)
{
    return a->put - a->taken < AHEAD_ITEMS - 1 && a->bytes < AHEAD_BYTES;
}

/* Reads the next item into a slot that only the thread uses. */
static enum source_got read_slot(struct ahead *a, struct slot *s)
{
    s->got = source_next(a->from, &s->item, WAIT_MS, &s->err);
    if (s->got == SOURCE_ITEM)
        keep_bytes(s);
    else
        buf_clear(&s->bytes);
    return s->got;
}

static void *read_ahead(void *data)
{
    struct ahead *a = data;
    enum source_got got = SOURCE_NOTHING;

    pthread_mutex_lock(&a->lock);
    while (got <= SOURCE_NOTHING && !a->stop) {
        if (!has_room(a)) {
            pthread_cond_wait(&a->changed, &a->lock);
            continue;
        }
        struct slot *s = slot_of(a, a->put);
        pthread_mutex_unlock(&a->lock);
        got = read_slot(a, s);
        pthread_mutex_lock(&a->lock);
        if (got == SOURCE_NOTHING)
            continue;
        a->bytes += s->bytes.len;
        a->put++;
        pthread_cond_signal(&a->changed);
    }
    a->over = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- the reader ---- */

/* Waits until a slot is filled. Returns false if none is filled at the end of the timeout. */
static bool await_slot(struct ahead *a, int timeout_ms)
{
    struct timespec until;
    int error = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t ns = until.tv_nsec + (int64_t)timeout_ms * 1000000;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    while (a->put == a->taken && !error)
        error = timeout_ms < 0 ? pthread_cond_wait(&a->changed, &a->lock)
                               : pthread_cond_timedwait(&a->changed, &a->lock, &until);
    return a->put != a->taken;
}

static void wake_thread(struct ahead *a)
{
    if (has_room(a))
        pthread_cond_signal(&a->changed);
}

/* Empties the slot that the reader took last, and wakes the thread if there is room. */
static void give_back(struct ahead *a)
{
    struct slot *last = slot_of(a, a->taken - 1);

    a->bytes -= last->bytes.len;
    buf_clear(&last->bytes);
    wake_thread(a);
}

static enum source_got ahead_next(struct source *source, struct source_item *ret, int timeout_ms, struct err *e)
{
    struct ahead *a = (struct ahead *)source;

    pthread_mutex_lock(&a->lock);
    if (a->taken)
        give_back(a);
    const bool any = await_slot(a, timeout_ms);
    struct slot *s = slot_of(a, a->taken);
    if (any && s->got == SOURCE_ITEM) { /* an end or a failure stays in its slot, so that each later call returns it */
        a->taken++;
        wake_thread(a);
    }
    pthread_mutex_unlock(&a->lock);
    if (!any)
        return SOURCE_NOTHING;
    *ret = s->item;
    if (s->got == SOURCE_FAILED)
        *e = s->err;
    return s->got;
}

static void ahead_free(struct ahead *a)
{
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->changed);
    for (size_t i = 0; i < AHEAD_ITEMS; i++)
        buf_release(&a->slots[i].bytes);
    free(a);
}

void ahead_close(struct source *source)
{
    struct ahead *a = (struct ahead *)source;

    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_signal(&a->changed);
    while (!a->over)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
    ahead_free(a);
}

struct source *ahead_new(struct source *from, struct source_item *last)
{
    static const struct source_ops ops = {.next = ahead_next, .close = ahead_close};
    struct ahead *a = mem_zalloc(sizeof(*a));
    pthread_condattr_t attributes;

    a->source.ops = &ops;
    a->from = from;
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&a->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (last) {
        a->slots[0].item = *last;
        keep_bytes(&a->slots[0]);
        a->bytes = a->slots[0].bytes.len;
        a->put = a->taken = 1;
    }
    if (!thread_start(NULL, read_ahead, a)) {
        ahead_free(a);
        return NULL;
    }
    if (last)
        *last = a->slots[0].item;
    return &a->source;
}
