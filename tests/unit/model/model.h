/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model checker for the lock-free parts of nif/. It runs the real code in every order, with every value that a load
 * may return.
 *
 * Threads are coroutines. An atomic store adds a message to its place. A load reads any message that is not older than
 * the thread's view of the place. Release, acquire and fences pass views on, as C11 specifies. Threads therefore may
 * see stores late and out of order, as on aarch64. The model treats sequentially consistent operations as acquire and
 * release, so it allows more orders than C11 does. It allows fewer in one case: a load never reads a store that runs
 * later (C11 permits that for relaxed loads).
 *
 * The model checks plain accesses for data races: meson compiles the files for the thread sanitizer, and the model
 * implements the sanitizer's callbacks.
 *
 * model_clock() is a clock that all threads share. If a thread reads the clock at least MODEL_SLACK after a store, the
 * thread sees the store in every memory order (tick.h, tick_slack()). A thread may read the clock before its earlier
 * stores, unless a signal fence stands between them, because without the fence the compiler may move the stores.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_THREADS 3
#define MODEL_SLACK 3

struct model {
    const char *name;
    void (*begin)(void); /* sets everything up before each run */
    void (*threads[MODEL_THREADS])(void);
    void (*end)(void); /* checks the result after all threads have ended; it sees all stores */
};

/* Runs all orders. False: a run failed or had a data race, and *ret_why says how. */
bool model_check(const struct model *m, const char **ret_why, unsigned *ret_runs);

/* Marks the current run as failed. */
void model_fail(const char *why);

uint64_t model_clock(void);

#endif
