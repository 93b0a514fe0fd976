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

/* The parts of the From of a request, which is {Pid, Tag}. */
struct request_from {
    const uint8_t *pid, *ref; /* the pid, and the last reference of the tag; NULL: not captured */
    bool alias;               /* the tag has an alias, so the caller may stop waiting */
};

struct request_message {
    enum request_message_kind kind;
    struct request_from from;
    const uint8_t *request; /* the request; for MESSAGE_TASK, {Module, Function, Arguments}; NULL: not captured */
};

/* The kind of a callback. Views print the kind with the shape of the message, as in handle_info(recount). */
enum request_work { WORK_NONE, WORK_CALL, WORK_CAST, WORK_INFO, WORK_CONTINUE, WORK_EVENT };

struct request_callback {
    enum request_work work;   /* WORK_NONE: the event shows the end of a callback */
    bool inner;               /* the traced function belongs to the callback module, which may also call it itself */
    bool statem;              /* the process is a gen_statem */
    struct request_from from; /* set for WORK_CALL */
    const uint8_t *message, *module; /* NULL: not captured */
    bool of_function;                /* the callback module is the module of the traced function */
};

struct request_message request_message_read(const struct term_env *env, const uint8_t *at);
/* Reads a call that begins or ends a callback. Returns false for another call. */
bool request_callback_read(const struct event *call, struct request_callback *ret);
/* Returns true if the result of a callback makes the server reply at once. */
bool request_replies(const struct event *result);
/* Returns the digits of a reference without the digits of its node, which differ from node to node. */
struct str request_ref(const uint8_t *ref);

#endif
