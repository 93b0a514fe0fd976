/* SPDX-License-Identifier: Apache-2.0 */
#include "wire_log.h"

#include <string.h>

#include "../../nif/etrace_wire.h"
#include "../erlang/etf.h"
#include "../erlang/term_print.h"

#define DEPTH 6
#define ITEMS 12
#define TEXT 64

static void put_term(struct buf *to, struct etf *r, int depth);

static void put(struct buf *to, const char *text)
{
    buf_add(to, text, strlen(text));
}

static void put_cut(struct buf *to, struct raw text, char quote)
{
    erlang_print_string(to, raw_bytes(raw_view(text).at, MIN(text.len, (size_t)TEXT)), quote);
    if (text.len > TEXT)
        buf_printf(to, "…+%zu B", text.len - TEXT);
}

/* Reads `count` elements and prints the first ITEMS. Prints a comma after each pair, and `between` inside a pair. */
static void put_items(struct buf *to, struct etf *r, size_t count, const char *between, int depth)
{
    for (size_t i = 0; i < count && !r->failed; i++) {
        if (depth == DEPTH || i >= ITEMS) {
            etf_skip(r);
            continue;
        }
        put(to, i ? i % 2 ? between : "," : "");
        put_term(to, r, depth + 1);
    }
    if (count && (depth == DEPTH || count > ITEMS))
        put(to, "…");
}

static void put_term(struct buf *to, struct etf *r, int depth)
{
    struct etf_head h;
    struct etf inner;

    if (!etf_next(r, &h)) {
        put(to, "(malformed)");
        return;
    }
    switch (h.type) {
    case ETF_ATOM:
        erlang_print_atom(to, h.text);
        break;
    case ETF_INT:
        buf_printf(to, "%lld", (long long)h.integer);
        break;
    case ETF_FLOAT:
        erlang_print_float(to, h.real);
        break;
    case ETF_BIN:
        /* A request is an encoded term in a term. */
        if (etf_open_version(&inner, h.text.at, h.text.len) && depth < DEPTH) {
            put_term(to, &inner, depth + 1);
            break;
        }
        put(to, "<<");
        put_cut(to, h.text, '"');
        put(to, ">>");
        break;
    case ETF_STRING:
        put_cut(to, h.text, '"');
        break;
    case ETF_NIL:
        put(to, "[]");
        break;
    case ETF_LIST:
        buf_char(to, '[');
        put_items(to, r, h.count, ",", depth);
        if (!etf_get_nil(r))
            put(to, "|…");
        buf_char(to, ']');
        break;
    case ETF_TUPLE:
        buf_char(to, '{');
        put_items(to, r, h.count, ",", depth);
        buf_char(to, '}');
        break;
    case ETF_MAP:
        put(to, "#{");
        put_items(to, r, 2 * h.count, "=>", depth);
        buf_char(to, '}');
        break;
    case ETF_PID:
        buf_printf(to, "<%llu.%u>", (unsigned long long)h.id, h.serial);
        break;
    case ETF_BIG:
    case ETF_PORT:
    case ETF_REF:
    case ETF_FUN:
        put(to, "…");
        break;
    case ETF_EXPORT:
        put(to, "fun ");
        put_items(to, r, 3, ",", depth);
        break;
    }
}

static void put_encoded(struct buf *to, struct str bytes)
{
    struct etf r;

    if (etf_open_version(&r, bytes.at, bytes.len))
        put_term(to, &r, 0);
    else
        put(to, "(no term)");
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

    put(to, sent ? "> " : "< ");
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
            put(to, "reply (too short)");
            return;
        }
        memcpy(&id, rest.at, sizeof(id));
        buf_printf(to, "reply %u: ", id);
        put_encoded(to, (struct str){rest.at + sizeof(id), rest.len - sizeof(id)});
        return;
    case ETW_MSG_WAITS:
        put(to, "waits for ");
        put_encoded(to, rest);
        return;
    case ETW_MSG_PROGRESS:
        put(to, "progress ");
        put_encoded(to, rest);
        return;
    case ETW_MSG_GONE:
        put(to, "gone ");
        put_encoded(to, rest);
        return;
    }
    buf_printf(to, "unknown message of %zu bytes", m.len);
}
