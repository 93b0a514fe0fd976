/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer. The owner calls buf_release(). buf_clear() keeps the memory for the next use.
 *
 * buf_room() is for printers that must be fast: it checks the capacity once, and the printer then stores bytes directly
 * at `data + len`.
 */
#ifndef ETRACE_BUF_H
#define ETRACE_BUF_H

#include <string.h>

#include "macros.h"

struct buf {
    char *data;
    size_t len, cap;
};

void buf_release(struct buf *b);
void buf_grow(struct buf *b, size_t more);   /* makes room for at least `more` bytes after `len` */
void buf_shrink(struct buf *b, size_t kept); /* empties the buffer; frees its memory if that exceeds `kept` bytes */
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_utf8(struct buf *b, uint32_t codepoint);
const char *buf_cstr(struct buf *b); /* returns the text with a NUL after it, valid until the next change */

static inline void buf_clear(struct buf *b)
{
    b->len = 0;
}

static inline char *buf_room(struct buf *b, size_t more)
{
    if (unlikely(b->cap - b->len < more))
        buf_grow(b, more);
    return b->data + b->len;
}

/* Makes buf_add() reject the text of a struct raw at compile time, because untrusted text must be escaped first. */
void raw_text_is_not_added(void);
#define buf_add(b, data, len)                                                                                          \
    _Generic((data), const struct raw_byte * : raw_text_is_not_added, default : buf_add)(b, data, len)

static inline void(buf_add)(struct buf *b, const void *data, size_t len)
{
    if (len) {
        memcpy(buf_room(b, len), data, len);
        b->len += len;
    }
}

static inline void buf_char(struct buf *b, char c)
{
    *buf_room(b, 1) = c;
    b->len++;
}

static inline void buf_str(struct buf *b, struct str s)
{
    buf_add(b, s.at, s.len);
}

/*
 * Appends mostly short text faster than buf_str(): a copy of constant size needs no call. At least BUF_SHORT bytes must
 * be readable at s.at.
 */
#define BUF_SHORT 32
static inline void buf_short(struct buf *b, struct str s)
{
    char *p = buf_room(b, s.len + BUF_SHORT);

    memcpy(p, s.at, BUF_SHORT);
    if (unlikely(s.len > BUF_SHORT))
        memcpy(p, s.at, s.len);
    b->len += s.len;
}

static inline void buf_puts(struct buf *b, const char *text)
{
    buf_add(b, text, strlen(text));
}

static inline void buf_safe(struct buf *b, struct safe s)
{
    buf_str(b, safe_view(s));
}

static inline struct str buf_view(const struct buf *b)
{
    return (struct str){b->data ? b->data : "", b->len};
}

static inline bool str_same(struct str a, struct str b)
{
    return a.len == b.len && (!a.len || !memcmp(a.at, b.at, a.len));
}

/* Takes the next line from the text, without its newline. Returns false after the last line. */
static inline bool str_line(struct str *text, struct str *ret_line)
{
    const char *end = text->len ? memchr(text->at, '\n', text->len) : NULL;
    const size_t len = end ? (size_t)(end - text->at) : text->len, taken = len + (end != NULL);

    if (!text->len)
        return false;
    *ret_line = (struct str){text->at, len};
    *text = (struct str){text->at + taken, text->len - taken};
    return true;
}

static inline bool str_is(struct str s, const char *text)
{
    return str_same(s, (struct str){text, strlen(text)});
}

/* Compares two texts byte by byte; returns a negative number, 0 or a positive number. */
static inline int str_order(struct str a, struct str b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int order = n ? memcmp(a.at, b.at, n) : 0;

    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static inline bool raw_same(struct raw a, struct raw b)
{
    return str_same(raw_view(a), raw_view(b));
}

static inline bool raw_is(struct raw r, const char *text)
{
    return str_is(raw_view(r), text);
}

/* Converts a NUL-terminated text, such as a node name from the command line, to untrusted text. */
static inline struct raw raw_text(const char *text)
{
    return raw_bytes(text, strlen(text));
}

#endif
