/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "number.h"
#include "utf8.h"

/* ---- strings ---- */

static size_t count_escapes(const char *at, size_t len)
{
    size_t n = 0, i = 0;

#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    for (; i + 16 <= len; i += 16) {
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
        __m128i hits = _mm_or_si128(_mm_cmpeq_epi8(b, quote), _mm_cmpeq_epi8(b, slash));
        for (unsigned m = (unsigned)_mm_movemask_epi8(hits); unlikely(m); m &= m - 1)
            n++;
    }
#endif
    for (; i < len; i++)
        n += at[i] == '"' || at[i] == '\\';
    return n;
}

void json_escape_tail(struct buf *to, size_t from)
{
    size_t more = count_escapes(to->data + from, to->len - from);

    if (likely(!more))
        return;
    buf_room(to, more);
    to->len += more;
    for (char *end = to->data + to->len - more; more; more--) { /* no byte moves more than once */
        char *run = end;
        while (run[-1] != '"' && run[-1] != '\\')
            run--;
        memmove(run + more, run, (size_t)(end - run));
        end = run - 1;
        end[more] = *end;
        end[more - 1] = '\\';
    }
}

void json_quote(struct buf *to, struct raw text)
{
    const char *at = raw_view(text).at, *end = text.len ? at + text.len : at;

    buf_char(to, '"');
    while (at < end) {
        const char *from = at;
        uint32_t c = utf8_next(&at, end);
        if (c == UTF8_BAD)
            buf_puts(to, "\\ufffd");
        else if (c == '"' || c == '\\')
            buf_printf(to, "\\%c", (char)c);
        else if (c == '\n')
            buf_puts(to, "\\n");
        else if (utf8_shows(c))
            buf_add(to, from, (size_t)(at - from));
        else if (c < 0x10000)
            buf_printf(to, "\\u%04x", c);
        else
            buf_printf(to, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
    }
    buf_char(to, '"');
}

void json_quote_safe(struct buf *to, struct safe text)
{
    json_open_string(to);
    size_t from = to->len;
    buf_safe(to, text);
    json_escape_tail(to, from);
    json_close_string(to);
}

/* ---- values ---- */

const bool json_no_comma_after[256] = {
    ['{'] = true, ['['] = true, [':'] = true, [','] = true, [' '] = true, ['\n'] = true,
};

void json_begin_object(struct buf *to)
{
    json_value(to);
    json_open_object(to);
}

void json_begin_array(struct buf *to)
{
    json_value(to);
    json_open_array(to);
}

void json_begin_record(struct buf *to, const char *type)
{
    json_begin_object(to);
    json_put_int(to, "v", 1);
    json_put_text(to, "type", type);
}

void json_end_record(struct buf *to)
{
    json_end_object(to);
    buf_char(to, '\n');
}

void json_key(struct buf *to, const char *key)
{
    size_t len = strlen(key);

    json_value(to);
    buf_char(to, '"');
    buf_add(to, key, len);
    buf_add(to, "\":", 2);
}

void json_key_raw(struct buf *to, struct raw key)
{
    json_string(to, key);
    buf_char(to, ':');
}

void json_key_init(struct json_key *key, const char *name)
{
    int len = snprintf(key->text, sizeof(key->text), JSON_NEXT_KEY("%s"), name);

    assert(len > 0 && (size_t)len < sizeof(key->text));
    key->len = (size_t)len;
}

void json_wrap(struct buf *to, size_t from, const char *key)
{
    struct buf begin = {0};

    json_open_object(&begin);
    json_key(&begin, key);
    buf_room(to, begin.len);
    memmove(to->data + from + begin.len, to->data + from, to->len - from);
    memcpy(to->data + from, begin.data, begin.len);
    to->len += begin.len;
    buf_release(&begin);
}

void json_string(struct buf *to, struct raw text)
{
    json_value(to);
    json_quote(to, text);
}

void json_text(struct buf *to, const char *text)
{
    json_string(to, raw_text(text));
}

void json_int(struct buf *to, int64_t value)
{
    json_value(to);
    print_i64(to, value);
}

void json_uint(struct buf *to, uint64_t value)
{
    json_value(to);
    print_u64(to, value);
}

void json_open_real(struct buf *to, double value)
{
    if (isfinite(value))
        to->len = (size_t)(print_float(buf_room(to, FLOAT_ROOM), value) - to->data);
    else
        buf_puts(to, "null");
}

void json_real(struct buf *to, double value)
{
    json_value(to);
    json_open_real(to, value);
}

void json_bool(struct buf *to, bool value)
{
    json_value(to);
    buf_puts(to, value ? "true" : "false");
}

void json_null(struct buf *to)
{
    json_value(to);
    buf_puts(to, "null");
}

void json_ready(struct buf *to, struct str json)
{
    json_value(to);
    buf_str(to, json);
}

void json_next_line(struct buf *to, bool first)
{
    buf_puts(to, first ? "\n" : ",\n");
}
