/* SPDX-License-Identifier: Apache-2.0 */
#include "etf_print.h"

#include "term_print.h"

struct job {
    struct buf *to;
    const struct etf_limits *limits;
    size_t end; /* the length of `to` from which on nothing more is printed */
};

static void print_next(const struct job *j, struct etf *r, unsigned depth);

/* Prints the mark `…` for parts that are left out, unless the text already ends with this mark. */
static void print_mark(struct buf *to)
{
    static const char mark[] = "…";
    const size_t len = sizeof(mark) - 1;

    if (to->len < len || memcmp(to->data + to->len - len, mark, len))
        buf_add(to, mark, len);
}

static void print_cut(const struct job *j, struct raw text)
{
    const size_t left = j->to->len < j->end ? j->end - j->to->len : 0, most = MIN(j->limits->text, left);
    const struct raw shown = raw_bytes(raw_view(text).at, MIN(text.len, most));

    if (j->limits->quotes)
        erlang_print_string(j->to, shown, '"');
    else
        print_safe(j->to, shown);
    if (text.len > most && j->limits->quotes)
        buf_printf(j->to, "…+%zu B", text.len - most);
    else if (text.len > most)
        print_mark(j->to);
}

/* Prints items, separated by commas. `between` separates a key from its value in a map, and is a comma otherwise. */
static void print_items(const struct job *j, struct etf *r, size_t count, const char *between, unsigned depth)
{
    bool cut = false;

    for (size_t i = 0; i < count && !r->failed; i++) {
        if (depth >= j->limits->depth || i >= j->limits->items || j->to->len >= j->end) {
            cut = true;
            etf_skip(r);
            continue;
        }
        buf_puts(j->to, !i ? "" : i % 2 ? between : ",");
        print_next(j, r, depth + 1);
    }
    if (cut)
        print_mark(j->to);
}

static void print_list(const struct job *j, struct etf *r, size_t count, unsigned depth)
{
    struct etf_head tail;

    buf_char(j->to, '[');
    print_items(j, r, count, ",", depth);
    if (etf_peek(r, &tail) && tail.type != ETF_NIL)
        buf_puts(j->to, "|…");
    etf_skip(r);
    buf_char(j->to, ']');
}

static void print_binary(const struct job *j, struct raw bytes, unsigned depth)
{
    struct etf inner;

    if (!j->limits->quotes) {
        print_cut(j, bytes);
    } else if (depth < j->limits->depth && etf_open_version(&inner, raw_view(bytes).at, bytes.len)) {
        print_next(j, &inner, depth + 1); /* a binary may contain an encoded term, as a request does */
    } else {
        buf_puts(j->to, "<<");
        print_cut(j, bytes);
        buf_puts(j->to, ">>");
    }
}

static void print_next(const struct job *j, struct etf *r, unsigned depth)
{
    struct buf *to = j->to;
    struct etf_head h;

    if (!etf_next(r, &h)) {
        buf_puts(to, "(malformed)");
        return;
    }
    switch (h.type) {
    case ETF_ATOM:
        if (j->limits->quotes)
            erlang_print_atom(to, h.text);
        else
            print_cut(j, h.text);
        break;
    case ETF_INT:
        buf_printf(to, "%lld", (long long)h.integer);
        break;
    case ETF_FLOAT:
        erlang_print_float(to, h.real);
        break;
    case ETF_BIN:
        print_binary(j, h.text, depth);
        break;
    case ETF_STRING:
        print_cut(j, h.text);
        break;
    case ETF_NIL:
        buf_puts(to, "[]");
        break;
    case ETF_LIST:
        print_list(j, r, h.count, depth);
        break;
    case ETF_TUPLE:
        buf_char(to, '{');
        print_items(j, r, h.count, ",", depth);
        buf_char(to, '}');
        break;
    case ETF_MAP:
        buf_puts(to, "#{");
        print_items(j, r, 2 * h.count, "=>", depth);
        buf_char(to, '}');
        break;
    case ETF_PID:
        buf_printf(to, "<0.%llu.%u>", (unsigned long long)h.id, h.serial);
        break;
    case ETF_EXPORT:
        buf_puts(to, "fun ");
        print_items(j, r, 3, ",", depth);
        break;
    case ETF_BIG:
    case ETF_PORT:
    case ETF_REF:
    case ETF_FUN:
        print_mark(to);
        break;
    }
}

void etf_print(struct buf *to, struct etf *r, const struct etf_limits *limits)
{
    const struct job j = {.to = to, .limits = limits, .end = to->len + MIN(limits->all, SIZE_MAX - to->len)};

    print_next(&j, r, 0);
}
