/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs the requests of gen_server and similar processes with their replies in the callbacks, and counts them by server
 * and shape (keyed.h) instead of sending their events. It counts what the client would count from all these events
 * (cli/views/request_pairs.c).
 *
 * One table has the open requests, by the hash of their reference. These events of a request follow each other, because
 * each one causes the next: sent, arrived, callback begins, reply sent, reply received. So each field has one writer at
 * a time. Only the caller's timeout and its 'DOWN' may come at any time. An atomic word of flags decides for them: the
 * event that sets REQUEST_SETTLED counts the request.
 *
 * Another table has the processes that run callbacks, with what they did last. It tells the cause of a wait. A
 * thread that finds a process's place in use by another thread goes on without it.
 *
 * The memory is fixed. A request whose server has died gives its place to a new one, and so does one that waits for the
 * reply of a dead caller. If a set of places has no such request, its oldest one is given up and counted. Only the large
 * table does that, so each event holds the place that it uses there. A place that an event holds is not taken.
 *
 * The owner calls request_count_open() and request_count_take(), and the unload request_count_unmap(). Any thread calls
 * the rest, in a callback of the traced process.
 */
#ifndef ETRACE_REQUEST_COUNT_H
#define ETRACE_REQUEST_COUNT_H

#include "keyed.h"
#include "requests.h"
#include "stack.h"

/* Counts, gauges and values of a row; etw_row.note of a row is the longest wait. */
enum {
    REQUEST_COUNT_CALLS,
    REQUEST_COUNT_CALLERS,
    REQUEST_COUNT_TIMED_OUT,
    REQUEST_COUNT_LATE,
    REQUEST_COUNT_DOWN,
    REQUEST_COUNT_LEFT
};

enum tally_opened request_count_open(stack_alive_fn *alive);
void request_count_unmap(void);

/* Sends: the process sends the message; else it receives it. */
void request_count_message(ErlNifEnv *env, struct lane *lane, ERL_NIF_TERM process, const struct requests_read *read,
                           bool sends);
/* Args: the list of the arguments. */
void request_count_call(ErlNifEnv *env, struct lane *lane, ERL_NIF_TERM process, const struct stack_function *f,
                        ERL_NIF_TERM args);

/*
 * Returns the next frame of this round, like keyed_take(): terms that say whose figures they are, and the figures.
 * Returns the bytes that it has written; at most REQUEST_COUNT_BYTES.
 */
#define REQUEST_COUNT_BYTES (64u << 10)
enum tally_took request_count_take(ErlNifEnv *env, int64_t *work, uint8_t *ret_bytes, size_t *ret_length);

#endif
