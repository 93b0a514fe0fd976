#include "question.h"

/* A session that fails meanwhile has told why to whoever serves it, and may be asked again. */
static bool wait_among_others(struct question *a, struct err *e)
{
    struct session *s = a->session;
    int64_t ignored;

    while (a->id && session_state(s) == SESSION_READY)
        a->serve(a->data);
    if (!a->id)
        return true;
    return session_tick(s, session_now(), &ignored, e) && err_set(e, ERR_RUN, "%s is not traced any more", session_node(s)->name);
}

bool question_ask(struct question *a, struct str request, int timeout_ms,
                  bool (*read)(struct etf term, void *into, struct err *e), void *into, struct err *e)
{
    struct err answer;

    /* what comes meanwhile may have the session stopped */
    err_set(&answer, ERR_RUN, "%s is not traced any more", session_node(a->session)->name);
    a->into = into;
    a->err = &answer;
    a->answered = false;
    if (!session_request(a->session, request, timeout_ms, &a->id, e))
        return false;
    a->read = read;
    bool ok = a->serve ? wait_among_others(a, e) : session_await(a->session, a->id, e);
    a->read = NULL;
    if (ok && !a->answered)
        *e = answer;
    return ok && a->answered;
}

bool question_reply(struct question *a, const struct session_reply *reply)
{
    if (!a->read || reply->id != a->id)
        return false;
    a->id = 0;
    a->answered = reply->ok ? a->read(reply->term, a->into, a->err) : session_error(reply, a->err);
    return true;
}
