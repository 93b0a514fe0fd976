#include "prepare.h"

#include "cost.h"

bool prepare_compile(struct asked *asked, struct records *records, const struct what_opts *what, const struct texts *texts,
                     const struct texts *wheres, struct err *e)
{
    asked_init(asked);
    asked->find_record = records_find;
    asked->find_data = records;
    bool ok = asked_compile(asked, what, texts, wheres, session_node(records->ask->session)->otp, e);
    if (!ok && records->err.status)
        *e = records->err;
    return ok;
}

static bool read_result(struct etf term, void *into, struct err *e)
{
    return arm_result_read(term, into, e);
}

/* What would be traced; to be released. */
static bool select_functions(struct question *ask, struct str asked, struct arm_result *ret, struct err *e)
{
    struct buf request = {0};

    arm_request(&request, ARM_SELECT, asked);
    bool ok = question_ask(ask, buf_view(&request), QUESTION_MS, read_result, ret, e);
    buf_release(&request);
    return ok;
}

bool prepare(struct ctx *ctx, struct question *ask, const struct what_opts *what, const struct texts *texts,
             struct asked_how how, struct buf *ret_asked, struct arm_result *ret_chosen, struct err *e)
{
    const struct session_node *node = session_node(ask->session);
    const struct texts none = {0};
    struct asked asked;
    struct records records;
    struct arm_result chosen;

    records_init(&records, ask);
    bool ok = prepare_compile(&asked, &records, what, texts, &none, e) && asked_arm(&asked, what, node, how, ret_asked, e);
    asked_release(&asked);
    records_release(&records);
    if (!ok || !select_functions(ask, buf_view(ret_asked), &chosen, e))
        return false;
    if (chosen.busy && !what->force && !cost_measure(ctx, ask, node->name, chosen.busy, buf_view(ret_asked), e)) {
        arm_result_release(&chosen);
        return false;
    }
    *ret_chosen = chosen;
    return true;
}
