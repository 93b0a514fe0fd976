/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts owed results: for each process and function, the traced calls that have not returned yet. The VM keeps a frame
 * on the stack for each such call. A function that ends by calling itself returns only after its last iteration, so its
 * process would collect frames without end. This file counts, and opens a question about the function when the count is
 * high. The asker (tracer_owed.hrl) looks at the stack and answers whether the function loops.
 *
 * The table has a fixed size and is hashed by process and function. A process runs on one thread at a time, so a slot
 * has one writer. A slot whose count is 0 is free. If no slot of the probe sequence is free, a new call takes over the
 * slot of a dead process, or else the slot with the lowest count. The calls counted in that slot are then forgotten.
 * This only delays a question. It does not mislead the asker, which compares two looks at a stack and not the counts.
 *
 * Any thread calls owed_more(), owed_less(), owed_pause() and owed_halts(), in a callback of that process. The owner's
 * helpers call the rest.
 */
#ifndef ETRACE_OWED_H
#define ETRACE_OWED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stack.h"

#define OWED_ASK 24 /* pending results of one process and function at which the asker first looks at the stack */
/* Pending results at which call tracing stops, unless a look at the stack has shown real recursion */
#define OWED_MOST 10000
#define OWED_WAITING 16       /* calls of a function with an open question after which its process is halted */
#define OWED_PASSED 4         /* calls of that function that a halted process may make before the answer */
#define OWED_FRAMES 96        /* pending results of a function at which no call passes after the answer "it loops" */
#define OWED_REJECTS 7        /* calls of a halted process that are rejected for each call that passes */
#define OWED_REJECTED 1000000 /* rejected calls of a process at which call tracing stops */
#define OWED_ENDLESS 1024     /* functions that call themselves in loops */

enum owed { OWED_FINE, OWED_ASKS, OWED_WAITS, OWED_STUCK };

struct owed_count {
    uint32_t count, total; /* results that the process owes: of the function, of all functions */
    uint32_t returns;      /* results of the function so far */
    uint32_t lowest;       /* the lowest count since the last owed_read() */
};

/* Resets everything. */
void owed_begin(stack_alive_fn *alive);
void owed_clear(void); /* resets counts and halts, but keeps the endless functions */

/*
 * Counts a call. Returns OWED_ASKS if the call opens a question. Returns OWED_WAITS if a question is open already, or
 * if the function loops and the worker is about to stop tracing its results. For both values the caller should pause
 * the call and make the process yield after it. Returns OWED_STUCK above OWED_MOST pending results.
 */
enum owed owed_more(void *env, uint64_t process, const struct stack_function *f);
/* Counts a return. */
void owed_less(uint64_t process, const struct stack_function *f);

/* ---- questions ---- */

/*
 * owed_question() finds the next open question from slot *at on, and sets *at to the slot of that question. It returns
 * each question once. Returns false if there is no further open question.
 */
void owed_reopen(void); /* makes owed_question() return unanswered questions again */
bool owed_question(uint32_t *at, uint64_t *ret_process, struct stack_function *ret);
/* Reads the counts. Returns false if the process owes no result of the function, or no question about it is open. */
bool owed_read(uint64_t process, const struct stack_function *f, struct owed_count *ret);

/*
 * Answers a question: the next one opens after `more` calls. trusted: the calls really nest, so OWED_MOST does not
 * apply.
 */
void owed_answer(uint64_t process, const struct stack_function *f, uint32_t more, bool trusted);
/*
 * Makes the process reset its counts at its next call. The asker calls this when the stack has no frames for the calls
 * that were counted.
 */
void owed_forget(uint64_t process);

/* ---- endless functions: they call themselves in loops, most of them for ever ---- */

/*
 * Pauses a call while there is an open question about its function and process, and halts the process after
 * OWED_WAITING such calls. Returns true if the process is halted now. If the table of halted processes is full, the
 * process is not halted.
 *
 * A running process would collect frames faster than the asker can look at its stack. A pause therefore blocks the
 * scheduler, for at most 40 times `ticks`; all pauses of one question together take at most 208 times `ticks`. A pause
 * ends early when the question is answered or the halt ends. If there are questions about many processes, no call
 * pauses: the processes compete for the schedulers, so each of them is slow anyway.
 *
 * owed_halts() rejects the calls of a halted process before the VM keeps a frame for them. It does not know the
 * function, so it rejects calls of other functions, too. It lets some calls pass, at random, because only a call that
 * passes can make the process yield. A process that does not yield loses thousands of calls and delays the look at its
 * stack. So a process collects at most OWED_WAITING + OWED_PASSED frames for each look at its stack, however late the
 * asker is, and OWED_FRAMES until the worker has stopped tracing the results of the function. When the function has
 * returned, as in a recursion, calls pass again: each return makes room for one call.
 */
#define OWED_PAUSE_US 100
bool owed_pause(uint64_t process, const struct stack_function *f, uint64_t ticks);

/*
 * Halts a process that loops in a function, until the worker has stopped tracing the results of the function and calls
 * owed_release(). Until then the calls of the process pause, and after OWED_WAITING calls they are rejected.
 */
void owed_halt(uint64_t process, const struct stack_function *f);
void owed_release(const struct stack_function *f); /* ends the halts because of this function; NULL: all halts */
bool owed_is_halting(void);                        /* returns true if any process is halted */
/*
 * Decides about a call of a process. OWED_FINE: the process is not halted, or the call may pass. OWED_WAITS: the caller
 * must reject the call. OWED_STUCK: the caller must reject it, too, and more than OWED_REJECTED calls were rejected
 * without an answer.
 */
enum owed owed_halts(uint64_t process);
bool owed_is_halted(uint64_t process); /* returns true if the caller should make the process yield after a call */

/*
 * Notes that a function is endless, so that its calls owe no results. Returns false if the table is full; the caller
 * must then answer the question of each process that loops, or the process stays halted.
 */
bool owed_end(const struct stack_function *f);
bool owed_ended(const struct stack_function *f); /* returns true if owed_end() has noted the function */

#endif
