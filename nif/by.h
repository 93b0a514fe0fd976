/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts calls and messages by the keys of a probe (`by`) instead of sending them. Encodes the terms of the key, and
 * counts in the row (tally.h) of these bytes. The client builds its table from these terms, which are the same terms
 * that it would find in the events (cli/pipeline/grouping.c).
 *
 * A call waits on the stack of its process (stack.h) if its result has a key or a value, or decides whether the filter
 * (verdict.h) shows the call. Its row waits there too, or the parts of its key that are known before the result.
 *
 * A row cannot hold every key and value: not a float, a negative value of a histogram, or a long key. by_event()
 * returns false for events with such a key or value, and for calls without room on a stack. The caller then sends the
 * event, and later the result of a call. If only the result has such a value, by_result() sends the key and the values
 * in a frame. So the sums stay exact.
 *
 * The owner calls by_set() and by_put_key(). Any thread calls the rest, in a callback of the traced process.
 */
#ifndef ETRACE_BY_H
#define ETRACE_BY_H

#include "encode.h"
#include "stack.h"
#include "tally.h"

/* Returns the size of a table for this number of keys. */
struct rows_room by_room(uint32_t keys);
/*
 * Sets the keys and the values: lists of what the client asks for (enum etw_by). Returns false if a list is malformed.
 */
bool by_set(ErlNifEnv *env, ERL_NIF_TERM keys, ERL_NIF_TERM values);

/*
 * A call, or a message that is sent or received. A term that the event lacks is 0. result: what the match specification
 * returned.
 */
struct by_event {
    enum etw_kind kind;
    ERL_NIF_TERM process, result, message, to;
    struct stack_function function;
    const ERL_NIF_TERM *args;
    unsigned count;
    bool bare;    /* the arguments of the call are not known */
    bool returns; /* the result is traced */
};

/* Counts an event. Returns false if the caller must send the event. */
bool by_event(ErlNifEnv *env, struct lane *lane, const struct by_event *b);
/* Makes the result of a lost call count as lost, too. The caller has counted the call as lost for the reason `why`. */
void by_lost(ErlNifEnv *env, const struct by_event *b, enum etw_loss why);
/* Drops the open calls of this function in this process, because a function that loops (owed.h) returns no results. */
void by_endless(const struct by_event *b);

/* A result. value: what the call returned, or 0. class, reason: the exception, or 0. */
struct by_result {
    ERL_NIF_TERM process, value, class, reason;
    struct stack_function function;
    struct verdict_end end; /* how the call ended, for the filter */
};

/* Counts a result. Returns false if the caller must send it: its call was sent, or cannot be identified. */
bool by_result(ErlNifEnv *env, struct lane *lane, uint32_t rules, const struct by_result *r);

/*
 * Begins the frame of a row: writes the terms of its key at `at`, at most BY_BYTES, and returns where the figures
 * follow. ROWS_OTHER has no key terms. *ret_tracee: the tracee of the frame.
 */
#define BY_BYTES (32u << 10)
uint8_t *by_put_key(ErlNifEnv *env, uint8_t *at, uint32_t row, uint64_t *ret_tracee);

#endif
