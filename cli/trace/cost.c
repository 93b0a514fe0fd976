/* SPDX-License-Identifier: Apache-2.0 */
#include "cost.h"

/* Prints 1234567 as 1,234,567. */
static void cost_number(struct buf *b, uint64_t n)
{
    if (n >= 1000) {
        cost_number(b, n / 1000);
        buf_printf(b, ",%03u", (unsigned)(n % 1000));
    } else {
        buf_printf(b, "%u", (unsigned)n);
    }
}

bool cost_judge(struct ctx *ctx, const char *node, uint64_t functions, struct etf answer, struct err *e)
{
    struct arm_rates rates;
    struct buf all = {0}, most = {0};
    bool ok = true;

    if (!arm_rates_read(answer, &rates, e))
        return false;
    cost_number(&all, rates.all);
    for (size_t i = 0; i < rates.count; i++) {
        buf_printf(&most, "%s%s ", i ? ", " : ", most of them ", rates.names[i]);
        cost_number(&most, rates.most[i]);
    }
    ctx_warn(ctx, "%s: %llu functions, called %s time%s a second%s", node, (unsigned long long)functions,
             buf_cstr(&all), PLURAL(rates.all), buf_cstr(&most));
    if (rates.all > COST_MOST) {
        buf_clear(&most);
        cost_number(&most, COST_MOST);
        ok = err_set(e, ERR_GUARD, "%s: %s calls a second are too many for a wildcard; the limit is %s", node,
                     buf_cstr(&all), buf_cstr(&most));
        err_hint(e, "select fewer functions or one process (-P), or use --force");
    }
    buf_release(&all);
    buf_release(&most);
    return ok;
}
