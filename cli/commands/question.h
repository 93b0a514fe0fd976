/*
 * A question to the node of a session and its answer, for who has to wait for it.
 * The session's reply handler calls question_reply(); one `struct question` does for several sessions, one after the other.
 */
#ifndef ETRACE_QUESTION_H
#define ETRACE_QUESTION_H

#include "../node/session.h"

#define QUESTION_MS 10000

struct question {
    struct session *session; /* who is asked */
    void (*serve)(void *data); /* a step of all that goes on meanwhile, this session included; NULL: it alone is served */
    void *data;
    /* while a question is open: */
    bool (*read)(struct etf term, void *into, struct err *e);
    void *into;
    uint32_t id;
    bool answered;
    struct err *err;
};

/* Sends the request, one term, and has its answer read. What the node refuses is an error in its words. */
bool question_ask(struct question *a, struct str request, int timeout_ms,
                  bool (*read)(struct etf term, void *into, struct err *e), void *into, struct err *e);
bool question_reply(struct question *a, const struct session_reply *reply); /* false: it answers something else */

#endif
