/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder.h"

#include <string.h>

#include "../trace/exprs.h"
#include "../trace/together.h"
#include "opts.h"

#define RING_LEAST (256 << 10)
#define RING_TIMED (8 << 20) /* size of a ring for --ring TIME, in bytes */

static uint32_t to_milliseconds(int64_t ns)
{
    return (uint32_t)MIN(MAX(ns / 1000000, 1), (int64_t)INT32_MAX);
}

/*
 * Reads the value of --ring: a size, which is rounded up to a power of two, or a time. Rejects the unit m, which could
 * mean megabytes or minutes.
 */
static bool read_ring(const char *text, struct ring_opts *ring, struct err *e)
{
    int64_t n = 0;
    const char *unit = text + strspn(text, "0123456789.");
    const bool known = *unit && strcmp(unit, "m") != 0 && strcmp(unit, "M") != 0;

    if (!known || (!opt_size(text, &n) && !opt_duration(text, &n)) || !n) {
        err_set(e, ERR_USAGE, "--ring does not take '%s'", text);
        err_hint(e, "a size with its unit such as 8MB, or a time such as 30s or 5min");
        return false;
    }
    if (!opt_size(text, &n)) {
        opt_duration(text, &n);
        ring->bytes = RING_TIMED;
        ring->most_ms = to_milliseconds(n);
    } else {
        if (n < RING_LEAST || n > RING_MOST)
            return err_set(e, ERR_USAGE, "--ring takes a size from 256kB to 64MB, not %s", text);
        for (ring->bytes = RING_LEAST; ring->bytes < n;)
            ring->bytes *= 2;
    }
    return true;
}

const char *recorder_option(const struct recorder_opts *o)
{
    return o->ring ? "--ring" : o->when ? "--snapshot-when" : NULL;
}

bool recorder_read(const struct recorder_opts *o, struct limit_opts *limit, struct err *e)
{
    struct ring_opts *ring = &limit->ring;

    *ring = (struct ring_opts){0};
    if (!TOGETHER(e, KNOWN(WITHIN, o->within_ns), KNOWN(WHEN, o->when), KNOWN(LIMIT, limit->limit),
                  KNOWN_TEXT(RECORDER, recorder_option(o))))
        return false;
    if (!recorder_option(o))
        return true;
    ring->on = true;
    ring->bytes = RING_TIMED;
    if (o->ring && !read_ring(o->ring, ring, e))
        return false;
    ring->when = o->when;
    ring->system = o->when && *o->when == '@';
    if (ring->system && !exprs_system_trigger(o->when, e))
        return false;
    ring->within_ms = o->within_ns ? to_milliseconds(o->within_ns) : 0;
    ring->after_ms = to_milliseconds(o->after_ns);
    ring->interval_ms = to_milliseconds(o->interval_ns);
    ring->snapshots = (uint64_t)o->snapshots;
    return true;
}
