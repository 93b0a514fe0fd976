/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the results that are owed: for each process and function, how many traced calls have not returned yet. The VM
 * keeps a frame on the stack for each such call. A function that ends by calling itself returns only after its last
 * turn, so its process would collect frames without end. This file counts and decides when to ask; tracer_owed.hrl
 * looks at the stack and judges.
 *
 * The table has a fixed size and is hashed by process and function. A process runs on one thread at a time, so a slot
 * has one writer. A slot whose count is 0 is free. If no slot of the probe sequence is free, a new call takes over the
 * slot of a dead process, or else the slot with the lowest count. The calls counted in that slot are then forgotten.
 * This only delays a question: the asker compares two looks at a stack, so frames that nobody counted do not mislead
 * it.
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
#define OWED_WAITING 16       /* a process is halted after so many calls of a function that is in question */
#define OWED_PASSED 4         /* calls of the function that may pass while a halted process waits for the answer */
#define OWED_FRAMES 96        /* pending results of the function at which no call passes after the answer */
#define OWED_REJECTS 7        /* calls that are rejected for each call that passes */
#define OWED_REJECTED 1000000 /* rejected calls of a process at which call tracing stops */
#define OWED_ENDLESS 64       /* functions that call themselves in loops */

enum owed { OWED_FINE, OWED_ASKS, OWED_WAITS, OWED_STUCK };

struct owed_count {
    uint32_t count, total; /* owed results of the function, and of all functions in the process */
    uint32_t returns;      /* results of that function so far */
    uint32_t lowest;       /* the lowest count since the last owed_read() */
};

/* Resets everything. alive: returns true if the process with this word is alive. */
void owed_begin(stack_alive_fn *alive);
void owed_clear(void); /* resets counts and halts, but keeps the endless functions */

/*
 * Counts a call. Returns OWED_ASKS if the call opens a question. Returns OWED_WAITS if a question is open, or the
 * worker is about to arm the function without results. In both cases the call should pause, and the process should
 * yield after it. Returns OWED_STUCK above OWED_MOST.
 */
enum owed owed_more(void *env, uint64_t process, const struct stack_function *f);
/* Counts a return. */
void owed_less(uint64_t process, const struct stack_function *f);

/* ---- questions ---- */

/*
 * owed_question() finds the next open question from slot *at on, and moves *at to its slot. It returns each question
 * once, and false if none is open.
 */
void owed_reopen(void); /* makes owed_question() return the questions without an answer again */
bool owed_question(uint32_t *at, uint64_t *ret_process, struct stack_function *ret);
/* Reads the counts. Returns false if the process owes nothing, or no question is open. */
bool owed_read(uint64_t process, const struct stack_function *f, struct owed_count *ret);

/*
 * Answers a question: the next one opens after `more` calls. trusted: the calls really nest, so OWED_MOST does not
 * apply.
 */
void owed_answer(uint64_t process, const struct stack_function *f, uint32_t more, bool trusted);
/*
 * Makes the process reset its counts at its next call, because its stack has no frames for the calls that were counted.
 */
void owed_forget(uint64_t process);

/* ---- endless functions: they call themselves in loops, most of them for ever ---- */

/*
 * Pauses a call while there is an open question about its function and process, and halts the process after
 * OWED_WAITING such calls. Returns true if the process is halted now. If the table of halted processes is full, the
 * process continues.
 *
 * A running process would collect frames faster than the asker can look at its stack. A pause therefore blocks the
 * scheduler: at most for 40 times `ticks`, and all pauses of one question for 208 times `ticks`. It ends early when the
 * question is answered or the halt ends. If there are questions about many processes, no call pauses: the processes
 * compete for the schedulers, so each of them is slow anyway.
 *
 * owed_halts() rejects the calls of a halted process before the VM keeps a frame for them. It does not know the
 * function, so it rejects calls of other functions, too. It lets some calls pass, at random, because only a call that
 * passes can make the process yield. A process that goes on running loses thousands of calls, and delays the look at
 * its stack. So a process collects at most OWED_WAITING + OWED_PASSED frames for each look at its stack, however late
 * the asker is, and OWED_FRAMES until the worker has armed the function without results. Calls pass again as soon as
 * the function has returned, as in recursion: each return makes room for one call.
 */
#define OWED_PAUSE_US 100
bool owed_pause(uint64_t process, const struct stack_function *f, uint64_t ticks);

/*
 * Halts a process in a function in which it loops, and which the worker is about to arm without results. The calls of
 * the process pause, and are then rejected, until owed_release().
 */
void owed_halt(uint64_t process, const struct stack_function *f);
void owed_release(const struct stack_function *f); /* ends the halts in this function; NULL: in all functions */
bool owed_is_halting(void);                        /* returns true if any process is halted */
/*
 * Decides about a call of a halted process. OWED_WAITS: reject it. OWED_STUCK: reject it, too; OWED_REJECTED calls were
 * rejected, and nobody has looked at the stack.
 */
enum owed owed_halts(uint64_t process);
bool owed_is_halted(uint64_t process); /* returns true if a call that passes should make the process yield */

/*
 * Notes that a function is endless, so that its calls owe nothing. Returns false if the table is full; owed_more() then
 * counts its calls and asks again.
 */
bool owed_end(const struct stack_function *f);
bool owed_ended(const struct stack_function *f);

#endif
