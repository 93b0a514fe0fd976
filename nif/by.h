/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts calls and messages by the keys of a probe (`by`) instead of sending them: encodes the key terms, and counts in
 * the row of these bytes (rows.h). The client makes the rows of its table from the same terms that it would find in the
 * events (cli/pipeline/grouping.c).
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
 * The owner calls by_open(), by_set() and by_take(). Any thread calls the rest, in a callback of the traced process.
 */
#ifndef ETRACE_BY_H
#define ETRACE_BY_H

#include "encode.h"
#include "stack.h"
#include "tally.h"

/* Clears the rows, like rows_open(), and makes room for so many keys. */
enum rows_opened by_open(uint32_t keys);
void by_unmap(void);
/* Keys, values: lists of what the client asks for (enum etw_by). */
bool by_set(ErlNifEnv *env, ERL_NIF_TERM keys, ERL_NIF_TERM values);

/* A call, or a message that is sent or received. Result: of the match specification. A term is 0 if there is none. */
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
/* The caller has counted the event as lost for this reason: the result of a call is lost, too. */
void by_lost(ErlNifEnv *env, const struct by_event *b, enum etw_loss why);
/* The function loops (owed.h): its open calls in this process get no result. */
void by_endless(const struct by_event *b);

/* Value: what the call returned, or 0. Class, reason: of the exception, or 0. */
struct by_result {
    ERL_NIF_TERM process, value, class, reason;
    struct stack_function function;
    struct verdict_end end; /* for the filter */
};

/* False: send the result, because its call was sent, or it is not known which call it belongs to. */
bool by_result(ErlNifEnv *env, struct lane *lane, uint32_t rules, const struct by_result *r);

/*
 * Returns the next frame of this round, like rows_take(): the terms of the frame, and its tracee. Writes at most
 * BY_BYTES.
 */
#define BY_BYTES (64u << 10)
enum rows_took by_take(ErlNifEnv *env, int64_t *work, uint8_t *ret_bytes, size_t *ret_length, uint64_t *ret_tracee);
bool by_is_told(void);                         /* rows_are_told() */
bool by_counts(const struct stack_call *call); /* tally_counts() of these calls */

#endif
