/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that a client cannot delay the end of a node for long: the library gives up after a time, whatever the socket
 * accepts. The test stands in for the clock, the socket and the functions that make batches.
 */
#include "leftover.h"

#include <erl_nif.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "figures.h"
#include "tap.h"
#include "tick.h"

static int64_t now_ms;      /* the clock */
static int64_t patience_ms; /* of the socket: what SO_SNDTIMEO allows */
static long takes;          /* bytes that each write accepts, after which the write waits as long as it may; -1: all */
static long accepted, sockets;
static unsigned batches;

ErlNifTime enif_monotonic_time(ErlNifTimeUnit unit)
{
    return unit == ERL_NIF_MSEC ? now_ms : now_ms * 1000000;
}

long syscall(long number, ...)
{
    va_list args;
    long words[6];

    va_start(args, number);
    for (unsigned i = 0; i < 6; i++)
        words[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_socket) {
        sockets++;
        return dup(STDERR_FILENO);
    }
    if (number == SYS_setsockopt) {
        const struct timeval *wait = (const void *)words[3];
        patience_ms = wait->tv_sec * 1000 + wait->tv_usec / 1000;
    } else if (number == SYS_sendto) {
        const long most = words[2], n = takes < 0 || takes > most ? most : takes;
        now_ms += takes < 0 ? 1 : patience_ms ? patience_ms : INT32_MAX; /* no timeout: waits for ever */
        accepted += n;
        errno = EAGAIN;
        return n ? n : -1;
    }
    return 0;
}

void *enif_alloc(size_t bytes)
{
    return malloc(bytes);
}

void enif_free(void *at)
{
    free(at);
}

static int some;

ErlNifEnv *enif_alloc_env(void)
{
    return (ErlNifEnv *)(void *)&some;
}

void enif_free_env(ErlNifEnv *env)
{
    (void)env;
}

enum rows_took figures_put(ErlNifEnv *env, int64_t *work, uint8_t **at)
{
    (void)env, (void)work, (void)at;
    return ROWS_END;
}

ERL_NIF_TERM figures_put_waits(ErlNifEnv *env, uint8_t **at)
{
    (void)env, (void)at;
    return 0;
}

void batch_plan(const struct batch_state *b, const struct batch_clock *clock, uint64_t slack, size_t most,
                const uint8_t *own, uint32_t own_bytes, bool last, struct batch_plan *ret)
{
    (void)b, (void)clock, (void)slack, (void)most, (void)own, (void)own_bytes, (void)last;
    *ret = (struct batch_plan){.wanted = true, .more = true, .bytes = 1000};
    batches++;
}

void batch_write(struct batch_state *b, const struct batch_plan *plan, uint8_t *to)
{
    (void)b;
    memset(to, 0, plan->bytes);
}

static struct batch_clock clock_of_test(void)
{
    return (struct batch_clock){0};
}

/* Sends 10,000 bytes that were kept, and batches without end. Returns the milliseconds that this takes. */
static int64_t send_to(long each)
{
    static const uint8_t kept[10000];
    const int64_t begun = now_ms;

    takes = each;
    accepted = 0;
    batches = 0;
    leftover_to((const uint8_t *)"/nowhere", 8);
    leftover_keep(1, kept, sizeof kept);
    leftover_send(&(struct leftover){.clock = clock_of_test});
    return now_ms - begun;
}

int main(void)
{
    int64_t took = send_to(0);
    ok(took > 1000 && took <= 9000 && accepted == 0, "a client that is stopped is given up: after %lld ms",
       (long long)took);
    took = send_to(1);
    ok(took <= 9000, "so is one whose socket accepts a part of each write: after %lld ms", (long long)took);
    took = send_to(-1);
    ok(took <= 9000 && batches > 1000, "a client that reads gets batches until then: %u", batches);
    is_number(sockets, 3, "each time one socket is opened");
    return tap_end();
}
