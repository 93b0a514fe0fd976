/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes a term tree in the encoding of nif/etrace_wire.h, so that terms of this program and of a node share one
 * printer and one comparison.
 */
#include "term.h"
#include "term_print.h"

static void wire_write_put(struct buf *b, uint8_t tag, const void *bytes, size_t len)
{
    buf_char(b, (char)tag);
    buf_add(b, bytes, len);
}

static void wire_write_put_text(struct buf *b, enum etw_text what, const struct buf *text)
{
    uint16_t len = (uint16_t)MIN(text->len, (size_t)UINT16_MAX);

    wire_write_put(b, ETW_T_TEXT, &(uint8_t){(uint8_t)what}, 1);
    buf_add(b, &len, sizeof(len));
    buf_add(b, text->data, len);
}

static void put_int(struct buf *b, int64_t v)
{
    if (v >= 0 && v < 128)
        buf_char(b, (char)v);
    else
        wire_write_put(b, ETW_T_INT64, &v, sizeof(v));
}

/* Converts decimal digits to a magnitude, lowest byte first. */
static void put_big(struct buf *b, struct str digits)
{
    bool negative = digits.len && digits.at[0] == '-';
    struct buf bytes = {0};

    for (size_t i = negative; i < digits.len; i++) {
        unsigned carry = (unsigned)(digits.at[i] - '0');
        for (size_t k = 0; k < bytes.len; k++) {
            carry += 10u * (unsigned char)bytes.data[k];
            bytes.data[k] = (char)carry;
            carry >>= 8;
        }
        if (carry)
            buf_char(&bytes, (char)carry);
    }
    uint16_t len = (uint16_t)MIN(bytes.len, (size_t)UINT16_MAX);
    wire_write_put(b, negative ? ETW_T_BIGNEG : ETW_T_BIGPOS, &len, sizeof(len));
    buf_add(b, bytes.data, len);
    buf_release(&bytes);
}

static void wire_write_put_bin(struct buf *b, term_t t)
{
    uint64_t size = t->text.len;
    uint32_t captured = (uint32_t)t->text.len;
    unsigned bits = t->bits;

    if (bits && bits < 8 && size)
        wire_write_put(b, ETW_T_BITS, &(uint8_t){(uint8_t)bits}, 1);
    else
        buf_char(b, (char)ETW_T_BIN);
    buf_add(b, &size, sizeof(size));
    buf_add(b, &captured, sizeof(captured));
    buf_str(b, t->text);
}

static void wire_write_put_pid(struct buf *b, term_t t)
{
    uint64_t data = t->type == TERM_PID ? (t->id & 0x0fffffff) | (uint64_t)t->serial << 28 : t->id;
    struct buf text = {0};

    if (!t->text.len) {
        wire_write_put(b, t->type == TERM_PID ? ETW_T_PID : ETW_T_PORT, &data, sizeof(data));
        return;
    }
    buf_printf(&text, t->type == TERM_PID ? "<%.*s.%llu.%u>" : "#Port<%.*s.%llu>", (int)t->text.len, t->text.at,
               (unsigned long long)t->id, t->serial);
    wire_write_put_text(b, t->type == TERM_PID ? ETW_TEXT_PID : ETW_TEXT_PORT, &text);
    buf_release(&text);
}

static void put_ref(struct buf *b, term_t t)
{
    struct buf text = {0};

    buf_puts(&text, "#Ref<0");
    for (uint32_t i = t->nwords; i-- > 0;)
        buf_printf(&text, ".%u", t->words[i]);
    buf_char(&text, '>');
    wire_write_put_text(b, ETW_TEXT_REF, &text);
    buf_release(&text);
}

static void put_export(struct buf *b, term_t t)
{
    struct buf text = {0};

    buf_puts(&text, "fun ");
    erlang_print_atom(&text, raw_of(t->items[0]->text));
    buf_char(&text, ':');
    erlang_print_atom(&text, raw_of(t->items[1]->text));
    buf_char(&text, '/');
    print_i64(&text, t->items[2]->integer);
    wire_write_put_text(b, ETW_TEXT_FUN, &text);
    buf_release(&text);
}

void term_to_wire(struct buf *b, term_t t)
{
    uint32_t count = (uint32_t)t->count;
    uint16_t len = (uint16_t)t->text.len;

    switch (t->type) {
    case TERM_ATOM:
        wire_write_put(b, ETW_T_ATOMTEXT, &len, sizeof(len));
        buf_add(b, t->text.at, len);
        return;
    case TERM_INT:
        put_int(b, t->integer);
        return;
    case TERM_BIG:
        put_big(b, t->text);
        return;
    case TERM_FLOAT:
        wire_write_put(b, ETW_T_FLOAT, &t->real, sizeof(t->real));
        return;
    case TERM_BIN:
        wire_write_put_bin(b, t);
        return;
    case TERM_TUPLE:
        wire_write_put(b, ETW_T_TUPLE, &count, sizeof(count));
        break;
    case TERM_MAP:
        count /= 2;
        wire_write_put(b, ETW_T_MAP, &count, sizeof(count));
        break;
    case TERM_LIST:
        if (!t->count) {
            if (t->tail)
                term_to_wire(b, t->tail);
            else
                buf_char(b, (char)ETW_T_NIL);
            return;
        }
        buf_char(b, (char)ETW_T_LIST);
        break;
    case TERM_PID:
    case TERM_PORT:
        wire_write_put_pid(b, t);
        return;
    case TERM_REF:
        put_ref(b, t);
        return;
    case TERM_EXPORT:
        put_export(b, t);
        return;
    }
    for (;; t = t->tail) {
        for (size_t i = 0; i < t->count; i++)
            term_to_wire(b, t->items[i]);
        /* The elements of a tail that is a list belong to the list itself. */
        if (t->type != TERM_LIST || !t->tail || t->tail->type != TERM_LIST)
            break;
    }
    if (t->type == TERM_LIST && t->tail) {
        buf_char(b, (char)ETW_T_TAIL);
        term_to_wire(b, t->tail);
    } else if (t->type == TERM_LIST) {
        buf_char(b, (char)ETW_T_END);
    }
}
