/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the results that are owed: for each process and function, how many traced calls have not returned yet. The VM keeps
 * a frame on the stack for each such call. A function that ends by calling itself never returns, so its process would
 * collect frames without end. This file counts and decides when to ask; tracer_owed.hrl looks at the stack and judges.
 *
 * The table has a fixed size and is hashed by process and function. A process runs on one thread at a time, so a slot
 * has one writer. A slot whose count is 0 is free. If no slot of the probe sequence is free, a new call takes over the
 * slot of a dead process, or else the slot with the lowest count. The calls counted in that slot are then forgotten.
 * This only delays a question: the asker compares two looks at a stack, so frames that nobody counted do not mislead
 * it.
 *
 * owed_more(), owed_less(), owed_halts(): any thread, in a callback of that process. The rest: the owner's helpers.
 */
#ifndef ETRACE_OWED_H
#define ETRACE_OWED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stack.h"

#define OWED_ASK 24 /* pending results of one process and function at which the asker looks at the stack first */
/* Pending results at which call tracing stops, unless a look at the stack has shown real recursion */
#define OWED_MOST 10000
#define OWED_ENDLESS 64 /* functions that do not return */

enum owed { OWED_FINE, OWED_ASKS, OWED_WAITS, OWED_STUCK };

struct owed_count {
    uint32_t count, total; /* of the function, and of all functions in the process */
    uint32_t returns;      /* results of that function so far */
};

/* Resets everything. Alive: tells whether the process of a word lives. */
void owed_begin(stack_alive_fn *alive);
void owed_clear(void); /* resets counts and halts, but keeps the functions that do not return */

/*
 * One more call of this function in this process. OWED_ASKS: there is a new question about it. OWED_WAITS: the question
 * is open, or the worker is about to arm the function without results. In both cases the call should pause, and the
 * process yield after it.
 */
enum owed owed_more(void *env, uint64_t process, const struct stack_function *f);
/* One of these calls has returned. */
void owed_less(uint64_t process, const struct stack_function *f);

/* ---- questions ---- */

/* Returns the next open question from slot *at on, once, and moves *at to its slot; false: no question is open. */
bool owed_question(uint32_t *at, uint64_t *ret_process, struct stack_function *ret);
/* false: the process owes nothing */
bool owed_read(uint64_t process, const struct stack_function *f, struct owed_count *ret);

/* Answers a question: ask again after `more` calls. Trusted: the calls really nest, so OWED_MOST does not apply. */
void owed_answer(uint64_t process, const struct stack_function *f, uint32_t more, bool trusted);
/* The stack has no frames for the counted calls, so the counts are wrong. The process resets them at its next call. */
void owed_forget(uint64_t process);

/* ---- functions that do not return ---- */

/*
 * A running process would collect frames faster than the asker can look at its stack. A call in question therefore
 * waits a moment, and blocks its scheduler: at most `ticks` each time, and OWED_PAUSES times for each question or halt.
 * It returns early when the question is answered or the halt ends.
 */
#define OWED_PAUSE_US 100
#define OWED_PAUSES 1000
void owed_pause(uint64_t process, const struct stack_function *f, uint64_t ticks);

/*
 * The process loops in a function that the worker is about to arm without results. Its calls pause until
 * owed_release().
 */
void owed_halt(uint64_t process, const struct stack_function *f);
void owed_release(const struct stack_function *f); /* NULL: of all functions */
bool owed_is_halting(void);                        /* whether some process is halted */
bool owed_halts(uint64_t process); /* the halted process has paused OWED_PAUSES times: reject its calls */

/* From now on calls of this function owe nothing. False: no room, so owed_more() counts its calls and asks again. */
bool owed_end(const struct stack_function *f);
bool owed_ended(const struct stack_function *f);

#endif
