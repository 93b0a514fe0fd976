/*
 * A question to the node of a session and its answer, for who has to wait for it.
 * The session's reply handler calls ask_reply().
 */
#ifndef ETRACE_ASK_H
#define ETRACE_ASK_H

#include "../ground/buf.h"
#include "../node/session.h"

struct ask {
    struct session *session;
    /* while a question is open: */
    bool (*read)(struct etf term, void *into, struct err *e);
    void *into;
    bool answered;
    struct err *err;
};

/* Sends the request, one term, and has its answer read. What the node refuses is an error in its words. */
bool ask_node(struct ask *a, struct str request, bool (*read)(struct etf term, void *into, struct err *e), void *into,
              struct err *e);
void ask_reply(struct ask *a, const struct session_reply *reply);

#endif
