/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts calls and messages by the keys of a probe (`by`) instead of sending them: encodes the key terms, and counts in
 * the row of these bytes (tally.h). The client makes the rows of its table from the same terms that it would find in
 * the events (cli/pipeline/grouping.c).
 *
 * If a key or a value comes with the result of a call, or the result decides whether the filter (verdict.h) shows the
 * call, the call waits on the stack of its process (stack.h), with its row, or with the parts of its key that are
 * known.
 *
 * Some events have a key or a value that a row cannot have: a float, a negative value of a histogram, a key of many
 * bytes. by_event() returns false for them, and for calls without room on a stack. The caller then sends the event, and
 * for a call its result. If only the result has such a value, by_result() sends its key and values in a frame. So the
 * sums stay exact.
 *
 * The owner calls by_set() and by_put_key(). Any thread calls the rest, in a callback of the traced process.
 */
#ifndef ETRACE_BY_H
#define ETRACE_BY_H

#include "encode.h"
#include "stack.h"
#include "tally.h"

/* Returns the room for the figures of so many keys. */
struct rows_room by_room(uint32_t keys);
/*
 * Sets the keys and the values: lists of what the client asks for (enum etw_by). Returns false if a list is malformed.
 */
bool by_set(ErlNifEnv *env, ERL_NIF_TERM keys, ERL_NIF_TERM values);

/*
 * A call, or a message that is sent or received. A term is 0 if the event has none. result: of the match specification.
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

bool by_event(ErlNifEnv *env, struct lane *lane, const struct by_event *b);
/* Makes the result of a call count as lost, too. The caller has counted the event as lost for the reason `why`. */
void by_lost(ErlNifEnv *env, const struct by_event *b, enum etw_loss why);
/* Drops the open calls of this function in this process, because a function that loops (owed.h) returns no results. */
void by_endless(const struct by_event *b);

/* A result. value: what the call returned, or 0. class, reason: of the exception, or 0. */
struct by_result {
    ERL_NIF_TERM process, value, class, reason;
    struct stack_function function;
    struct verdict_end end; /* for the filter */
};

/* Counts a result. Returns false if the caller must send it: its call was sent, or cannot be identified. */
bool by_result(ErlNifEnv *env, struct lane *lane, uint32_t rules, const struct by_result *r);

/*
 * Puts the terms of a key in front of its figures, at most BY_BYTES; a row without a key of its own has none.
 * *ret_tracee: the tracee of the frame.
 */
#define BY_BYTES (32u << 10)
uint8_t *by_put_key(ErlNifEnv *env, uint8_t *at, uint32_t row, uint64_t *ret_tracee);

#endif
