/* SPDX-License-Identifier: Apache-2.0 */
#include "notice.h"

static bool read_mfa_notice(const struct event *e, const char *tag, struct mfa *ret)
{
    return e->kind == ETW_NOTICE && wire_is_atom(&e->env, e->terms.at, tag) &&
           mfa_read(e, wire_skip(e->terms.at), ret, NULL) && ret->arity >= 0;
}

bool notice_endless(const struct event *e, struct mfa *ret)
{
    return read_mfa_notice(e, "endless", ret);
}

bool notice_root_loops(const struct event *e, struct mfa *ret)
{
    return read_mfa_notice(e, "root_loops", ret);
}

bool notice_tokens(const struct event *e, struct notice_tokens *ret)
{
    const uint8_t *held;
    uint32_t arity;

    *ret = (struct notice_tokens){.held = 0};
    if (e->kind != ETW_NOTICE || !wire_is_atom(&e->env, e->terms.at, "tokens"))
        return false;
    ret->known = wire_tuple(wire_skip(e->terms.at), &arity, &held) == 2 && arity == 2 && wire_int(held, &ret->held) &&
                 wire_int(wire_skip(held), &ret->queued);
    return true;
}

bool notice_waits(const struct event *e, struct notice_waits *ret)
{
    const uint8_t *at;
    uint32_t arity;

    return e->kind == ETW_NOTICE && wire_is_atom(&e->env, e->terms.at, "waits") &&
           wire_tuple(wire_skip(e->terms.at), &arity, &at) == 4 && arity == 4 && wire_int(at, &ret->calls) &&
           wire_int(at = wire_skip(at), &ret->ns) && ret->calls > 0 && ret->ns >= 0 &&
           mfa_read(e, wire_skip(ret->pid = wire_skip(at)), &ret->function, NULL) && ret->function.arity >= 0 &&
           ret->function.arity <= 255;
}

bool notice_times(const struct event *e, struct notice_times *ret)
{
    const uint8_t *at;
    uint32_t arity;

    return e->kind == ETW_NOTICE && wire_is_atom(&e->env, e->terms.at, "times") &&
           wire_tuple(wire_skip(e->terms.at), &arity, &at) == 2 && arity == 2 && wire_int(at, &ret->least_ns) &&
           wire_int(wire_skip(at), &ret->most_ns);
}

uint64_t notice_reloads(const struct event *e)
{
    int64_t omitted;

    if (e->kind != ETW_NOTICE)
        return 0;
    if (wire_is_atom(&e->env, e->terms.at, "omitted") && wire_int(wire_skip(e->terms.at), &omitted))
        return (uint64_t)MAX(omitted, 0);
    return wire_is_atom(&e->env, e->terms.at, "rearmed") || wire_is_atom(&e->env, e->terms.at, "unarmed") ||
           wire_is_atom(&e->env, e->terms.at, "blind");
}

/* Reads {exact | estimated, Calls}. For any other term, sets ret->untraced to -1, which means unknown. */
static void read_untraced(const struct event *e, const uint8_t *at, struct notice_overhead *ret)
{
    uint32_t arity;

    ret->untraced = -1;
    if (wire_tuple(at, &arity, &at) != 2 || arity != 2 || !wire_int(wire_skip(at), &ret->untraced))
        return;
    ret->estimated = wire_is_atom(&e->env, at, "estimated");
}

bool notice_overhead(const struct event *e, struct notice_overhead *ret)
{
    const uint8_t *at;
    uint32_t arity;

    *ret = (struct notice_overhead){.functions = 0};
    if (e->kind != ETW_NOTICE || !wire_is_atom(&e->env, e->terms.at, "overhead"))
        return false;
    wire_tuple(wire_skip(e->terms.at), &arity, &at);
    bool ok = (arity == 3 || arity == 4) && wire_int(at, &ret->taken) && wire_int(at = wire_skip(at), &ret->limit) &&
              wire_int(at = wire_skip(at), &ret->calls);
    if (ok && arity == 3) { /* a recording of an older etrace, which did not count the untraced calls */
        ret->untraced = -1;
    } else if (ok && mfa_read(e, at = wire_skip(at), &ret->busiest, NULL)) {
        ret->functions = ret->taken;
        ret->taken = 0;
    } else if (ok) {
        read_untraced(e, at, ret);
    }
    return ok;
}
