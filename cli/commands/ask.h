/*
 * A question to the node of a session and its answer, for who has to wait for it.
 * The session's reply handler calls ask_reply(); one `struct ask` does for several sessions, one after the other.
 */
#ifndef ETRACE_ASK_H
#define ETRACE_ASK_H

#include "../node/session.h"

struct ask {
    struct session *session; /* who is asked */
    /* while a question is open: */
    bool (*read)(struct etf term, void *into, struct err *e);
    void *into;
    uint32_t id;
    bool answered;
    struct err *err;
};

/* Sends the request, one term, and has its answer read. What the node refuses is an error in its words. */
bool ask_node(struct ask *a, struct str request, bool (*read)(struct etf term, void *into, struct err *e), void *into,
              struct err *e);
bool ask_reply(struct ask *a, const struct session_reply *reply); /* false: it answers something else */

#endif
