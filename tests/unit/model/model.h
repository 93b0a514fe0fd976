/*
 * A model checker for the lock-free parts of nif/: it runs the real code in every order, with every value that a load may see.
 *
 * Threads are coroutines. An atomic store adds a message to its place, and a load reads any message that is not older than what its
 * thread has seen; release, acquire and fences hand on what a thread has seen, as C11 says. So a thread may see stores late and out of
 * order, as on aarch64. Sequentially consistent operations count as acquire and release only, so the model allows more than C11 does. It
 * allows less in one way: a load never reads a store that runs later (C11 lets relaxed ones do so).
 *
 * Plain accesses are checked for data races: the files are compiled for the thread sanitizer, whose callbacks are the model's.
 *
 * Time: model_clock() is a clock that all threads share. A store is visible to a thread that reads the clock MODEL_SLACK later, whatever
 * the order (tick.h, tick_slack()). A thread may read its clock before the stores that stand before it, unless a signal fence lies
 * between, because then the compiler may move them.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_THREADS 3
#define MODEL_SLACK 3

struct model {
    const char *name;
    void (*begin)(void); /* sets everything up, before each run */
    void (*threads[MODEL_THREADS])(void);
    void (*end)(void);   /* checks what came of it; all threads have ended, and it sees everything */
};

/* Runs it in every way. False: some run failed; then *ret_why says how, or a data race was found. */
bool model_check(const struct model *m, const char **ret_why, unsigned *ret_runs);

/* In a run: this run is wrong. */
void model_fail(const char *why);

uint64_t model_clock(void);

#endif
