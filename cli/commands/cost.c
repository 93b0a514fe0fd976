#include "cost.h"

static bool read_rates(struct etf term, void *into, struct err *e)
{
    return arm_rates_read(term, into, e);
}

/* 1234567 as 1,234,567 */
static void number(struct buf *b, uint64_t n)
{
    if (n >= 1000) {
        number(b, n / 1000);
        buf_printf(b, ",%03u", (unsigned)(n % 1000));
    } else {
        buf_printf(b, "%u", (unsigned)n);
    }
}

bool cost_measure(struct ctx *ctx, struct question *ask, const char *node, uint64_t functions, struct str asked, struct err *e)
{
    struct arm_rates rates;
    struct buf request = {0}, all = {0}, most = {0};

    arm_request(&request, ARM_COUNT, asked);
    bool ok = question_ask(ask, buf_view(&request), QUESTION_MS, read_rates, &rates, e);
    buf_release(&request);
    if (!ok)
        return false;
    number(&all, rates.all);
    for (size_t i = 0; i < rates.count; i++) {
        buf_printf(&most, "%s%s ", i ? ", " : ", most of them ", rates.names[i]);
        number(&most, rates.most[i]);
    }
    ctx_warn(ctx, "%s: %llu functions, called %s time%s a second%s", node, (unsigned long long)functions, buf_cstr(&all),
             PLURAL(rates.all), buf_cstr(&most));
    if (rates.all > COST_MOST) {
        buf_clear(&most);
        number(&most, COST_MOST);
        ok = err_set(e, ERR_GUARD, "%s: %s calls a second are too many for a wildcard, which takes %s at most", node, buf_cstr(&all), buf_cstr(&most));
        err_hint(e, "name fewer functions or a process (-P), or --force");
    }
    buf_release(&all);
    buf_release(&most);
    return ok;
}
