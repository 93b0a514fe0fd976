/* SPDX-License-Identifier: Apache-2.0 */
#include "wire_log.h"

#include <string.h>

#include "../../nif/etrace_wire.h"
#include "../erlang/etf_print.h"

static void put_encoded(struct buf *to, struct str bytes)
{
    static const struct etf_limits limits = {.depth = 6, .items = 12, .text = 64, .all = SIZE_MAX, .quotes = true};
    struct etf r;

    if (etf_open_version(&r, bytes.at, bytes.len))
        etf_print(to, &r, &limits);
    else
        buf_puts(to, "(no term)");
}

static void put_batch(struct buf *to, struct str bytes)
{
    struct etw_batch b;

    if (bytes.len < sizeof(b)) {
        buf_printf(to, "batch of %zu bytes (too short)", bytes.len);
        return;
    }
    memcpy(&b, bytes.at, sizeof(b));
    buf_printf(to, "batch %llu: %zu bytes, %u sections, flags %u, complete until tick %llu", (unsigned long long)b.seq,
               bytes.len, b.sections, b.flags, (unsigned long long)b.watermark);
}

void wire_log_put(struct buf *to, bool sent, struct str m)
{
    struct str rest = m.len ? (struct str){m.at + 1, m.len - 1} : m;
    uint32_t id;

    buf_puts(to, sent ? "> " : "< ");
    if (sent) {
        put_encoded(to, m);
        return;
    }
    switch ((enum etw_message)(m.len ? m.at[0] : 0)) {
    case ETW_MSG_BATCH:
        put_batch(to, rest);
        return;
    case ETW_MSG_REPLY:
        if (rest.len < sizeof(id)) {
            buf_puts(to, "reply (too short)");
            return;
        }
        memcpy(&id, rest.at, sizeof(id));
        buf_printf(to, "reply %u: ", id);
        put_encoded(to, (struct str){rest.at + sizeof(id), rest.len - sizeof(id)});
        return;
    case ETW_MSG_WAITS:
        buf_puts(to, "waits for ");
        put_encoded(to, rest);
        return;
    case ETW_MSG_PROGRESS:
        buf_puts(to, "progress ");
        put_encoded(to, rest);
        return;
    case ETW_MSG_GONE:
        buf_puts(to, "gone ");
        put_encoded(to, rest);
        return;
    }
    buf_printf(to, "unknown message of %zu bytes", m.len);
}
