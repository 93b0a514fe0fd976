/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes the events of `etrace requests` with only the terms that its views read: the caller, the reference and the
 * request. ETW_T_ELIDED replaces all other terms in the frame. So the cost of an event does not depend on the state of
 * a server or on the size of a reply.
 *
 * The arguments of the functions that call a server's callbacks differ between releases of OTP. The frame of such a
 * call always has the arguments as in OTP 27, where the first argument is a tuple with the module.
 *
 * The owner sets what to encode before it sets RULE_REQUESTS; every producer reads it.
 */
#ifndef ETRACE_REQUESTS_H
#define ETRACE_REQUESTS_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stdint.h>

#include "encode.h"

enum requests_message {
    REQUESTS_OTHER, /* no view reads this message */
    REQUESTS_CALL,
    REQUESTS_TASK,
    REQUESTS_REPLY,
    REQUESTS_DOWN,
    REQUESTS_TIMEOUT,
};

struct requests_read {
    enum requests_message message;
    const ERL_NIF_TERM *elements; /* the elements of the message, a tuple */
    ERL_NIF_TERM pid, ref;
    bool alias; /* the reference is part of a tag such as [alias | Ref] */
};

/* Returns a hash of a reference, which is never 0. */
uint64_t requests_key(ERL_NIF_TERM ref);

void requests_load(ErlNifEnv *env);
/* Sets how requests are encoded. flags: enum etw_requests. */
void requests_set(uint32_t flags);
/* Returns true if all processes of the node are traced, so every request of the node has a send event. */
bool requests_are_sent(void);

struct requests_read requests_read(ErlNifEnv *env, ERL_NIF_TERM message);
/*
 * Returns the reference of the request that a call {Module, Name, Arguments} begins to serve. Returns 0 if there is
 * none.
 */
ERL_NIF_TERM requests_of_call(ErlNifEnv *env, ERL_NIF_TERM call);

uint8_t *requests_put(struct encoder *e, uint8_t *at, const struct requests_read *r);
/* Encodes a call. The call of a callback has its arguments except the state; other calls have no arguments. */
uint8_t *requests_put_call(struct encoder *e, uint8_t *at, struct encode_function f, const ERL_NIF_TERM *args);

#endif
