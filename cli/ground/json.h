/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON into a buffer. Callers name keys and values; the writer adds commas, colons and quotes.
 *
 * The writer has no state. It writes a comma unless the last byte of the buffer opens an object or array, ends a key,
 * or is white space or a comma. The buffer must therefore end in JSON or in white space, or be empty. The output is
 * valid UTF-8 without control characters, even if the input is not.
 *
 *     json_begin_record(to, "node");     {"v":1,"type":"node"
 *     json_put_int(to, "port", 4369);                        ,"port":4369
 *     json_end_record(to);                                               }\n
 */
#ifndef ETRACE_JSON_H
#define ETRACE_JSON_H

#include "buf.h"

void json_begin_object(struct buf *to);
static inline void json_end_object(struct buf *to);
void json_begin_array(struct buf *to);
static inline void json_end_array(struct buf *to);

/* Begins a line with an object of the schema (views/schema.json). json_end_record() ends it. */
void json_begin_record(struct buf *to, const char *type);
void json_end_record(struct buf *to);

/*
 * The following functions write a member of an object. Keys must not need escapes; texts and strings may be untrusted.
 */
static inline void json_put_text(struct buf *to, const char *key, const char *text);
static inline void json_put_string(struct buf *to, const char *key, struct raw text);
static inline void json_put_safe(struct buf *to, const char *key, struct safe text);
static inline void json_put_int(struct buf *to, const char *key, int64_t value);
static inline void json_put_uint(struct buf *to, const char *key, uint64_t value);
static inline void json_put_bool(struct buf *to, const char *key, bool value);
static inline void json_put_object(struct buf *to, const char *key); /* ends with json_end_object() */
static inline void json_put_array(struct buf *to, const char *key);  /* ends with json_end_array() */

/* Begins a member whose value follows. */
void json_key(struct buf *to, const char *key);
void json_key_raw(struct buf *to, struct raw key);

void json_string(struct buf *to, struct raw text);
void json_text(struct buf *to, const char *text); /* the text may be untrusted */
void json_int(struct buf *to, int64_t value);
void json_uint(struct buf *to, uint64_t value);
void json_real(struct buf *to, double value); /* writes null for a number that JSON does not have */
void json_bool(struct buf *to, bool value);
void json_null(struct buf *to);
void json_ready(struct buf *to, struct str json); /* appends a value or members written into another buffer */

/* Begins a value that the caller then writes into the buffer. */
static inline void json_value(struct buf *to);
/*
 * Begins a line for the next value of an array. The caller passes `first`, because the buffer may have been emptied
 * since the first value.
 */
void json_next_line(struct buf *to, bool first);

/* ---- values without a comma: after a key, after json_value(), and as the first JSON in other text ---- */

static inline void json_open_object(struct buf *to);
static inline void json_open_array(struct buf *to);
/*
 * Begin and end a string. Between these two calls the caller writes safe text. If the text may need escapes in JSON,
 * the caller then calls json_escape_tail().
 */
static inline void json_open_string(struct buf *to);
static inline void json_close_string(struct buf *to);
void json_escape_tail(struct buf *to, size_t from); /* escapes the text that was written since `from` */
void json_open_real(struct buf *to, double value);
void json_quote(struct buf *to, struct raw text); /* writes any bytes as a string */
void json_quote_safe(struct buf *to, struct safe text);
/* Puts the value that was written since `from` into a new object, as its first member. The object stays open. */
void json_wrap(struct buf *to, size_t from, const char *key);

/* ---- for fast printers: members that are not the first of their object, so a comma always precedes them ---- */

#define JSON_NEXT_KEY(key) ",\"" key "\":"
#define json_next_key(to, key) buf_add(to, JSON_NEXT_KEY(key), sizeof(JSON_NEXT_KEY(key)) - 1) /* key: a literal */
#define json_next_key_open_string(to, key) buf_add(to, JSON_NEXT_KEY(key) "\"", sizeof(JSON_NEXT_KEY(key)))

/* The text `,"KEY":` for a key that is not a literal. */
struct json_key {
    char text[16];
    size_t len;
};

void json_key_init(struct json_key *key, const char *name); /* the name has at most 11 bytes */

static inline void json_next_ready_key(struct buf *to, const struct json_key *key)
{
    memcpy(buf_room(to, sizeof(key->text)), key->text, sizeof(key->text)); /* a copy of constant size needs no call */
    to->len += key->len;
}

/* Appends members that this writer wrote into another buffer. See buf_short() for the bytes that must be readable. */
static inline void json_next_ready(struct buf *to, struct str members)
{
    buf_char(to, ',');
    buf_short(to, members);
}

/* ---- the inline functions ---- */

extern const bool json_no_comma_after[256];

static inline void json_value(struct buf *to)
{
    if (to->len && !json_no_comma_after[(unsigned char)to->data[to->len - 1]])
        buf_char(to, ',');
}

static inline void json_open_object(struct buf *to)
{
    buf_char(to, '{');
}

static inline void json_end_object(struct buf *to)
{
    buf_char(to, '}');
}

static inline void json_open_array(struct buf *to)
{
    buf_char(to, '[');
}

static inline void json_end_array(struct buf *to)
{
    buf_char(to, ']');
}

static inline void json_open_string(struct buf *to)
{
    buf_char(to, '"');
}

static inline void json_close_string(struct buf *to)
{
    buf_char(to, '"');
}

static inline void json_put_text(struct buf *to, const char *key, const char *text)
{
    json_key(to, key);
    json_text(to, text);
}

static inline void json_put_string(struct buf *to, const char *key, struct raw text)
{
    json_key(to, key);
    json_quote(to, text);
}

static inline void json_put_safe(struct buf *to, const char *key, struct safe text)
{
    json_key(to, key);
    json_quote_safe(to, text);
}

static inline void json_put_int(struct buf *to, const char *key, int64_t value)
{
    json_key(to, key);
    json_int(to, value);
}

static inline void json_put_uint(struct buf *to, const char *key, uint64_t value)
{
    json_key(to, key);
    json_uint(to, value);
}

static inline void json_put_bool(struct buf *to, const char *key, bool value)
{
    json_key(to, key);
    json_bool(to, value);
}

static inline void json_put_object(struct buf *to, const char *key)
{
    json_key(to, key);
    json_open_object(to);
}

static inline void json_put_array(struct buf *to, const char *key)
{
    json_key(to, key);
    json_open_array(to);
}

#endif
