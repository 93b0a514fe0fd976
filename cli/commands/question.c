#include "question.h"

bool question_ask(struct question *a, struct str request, int timeout_ms,
                  bool (*read)(struct etf term, void *into, struct err *e), void *into, struct err *e)
{
    struct err answer;

    a->into = into;
    a->err = &answer;
    a->answered = false;
    if (!session_request(a->session, request, timeout_ms, &a->id, e))
        return false;
    a->read = read;
    bool ok = session_wait(a->session, a->id, timeout_ms, e);
    a->read = NULL;
    if (ok && !a->answered)
        *e = answer;
    return ok && a->answered;
}

bool question_reply(struct question *a, const struct session_reply *reply)
{
    if (!a->read || reply->id != a->id)
        return false;
    a->answered = reply->ok ? a->read(reply->term, a->into, a->err) : session_error(reply, a->err);
    return true;
}
