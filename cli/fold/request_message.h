/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes the messages and callbacks of gen_server, gen_statem and similar processes in events. */
#ifndef ETRACE_REQUEST_MESSAGE_H
#define ETRACE_REQUEST_MESSAGE_H

#include "../events/event.h"

enum request_message_kind {
    MESSAGE_OTHER,
    MESSAGE_REQUEST,
    MESSAGE_TASK,
    MESSAGE_REPLY,
    MESSAGE_DOWN,
    MESSAGE_TIMEOUT
};

/* The parts of From = {Pid, Tag}. NULL: not captured. */
struct request_from {
    const uint8_t *pid, *ref;
    bool alias; /* the tag has an alias: the caller may give up */
};

struct request_message {
    enum request_message_kind kind;
    struct request_from from;
    const uint8_t *request; /* MESSAGE_TASK: {Module, Function, Arguments}; NULL: not captured */
};

/* The kind of a callback. With its shape it is printed as handle_info(recount). */
enum request_work { WORK_NONE, WORK_CALL, WORK_CAST, WORK_INFO, WORK_CONTINUE, WORK_EVENT };

struct request_callback {
    enum request_work work; /* WORK_NONE: the end of a callback */
    bool inner;             /* the module's own function, which a callback may also call itself */
    bool statem;
    struct request_from from;        /* WORK_CALL */
    const uint8_t *message, *module; /* NULL: not captured */
    bool of_function;                /* `module` is that of the called function, not an argument */
};

struct request_message request_message_read(const struct term_env *env, const uint8_t *at);
/* Returns false if the call is no callback. */
bool request_callback_read(const struct event *call, struct request_callback *ret);
/* Returns true if the result of a callback makes the server reply at once. */
bool request_replies(const struct event *result);
/* Returns the digits of a reference without those of its node, which differ between nodes. */
struct str request_ref(const uint8_t *ref);

#endif
