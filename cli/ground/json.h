/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON into a buffer. Callers name keys and values; the writer adds commas, colons and quotes.
 *
 * The writer has no state. It writes a comma unless the last byte of the buffer opens an object or array, ends a key, or
 * is white space. The buffer must therefore end in JSON or in white space, or be empty. The output is valid UTF-8
 * without control characters, even if the input is not.
 *
 *     json_begin_record(to, "node");            {"v":1,"type":"node"
 *     json_key(to, "port"), json_int(to, 4369);                      ,"port":4369
 *     json_end_record(to);                                                       }\n
 */
#ifndef ETRACE_JSON_H
#define ETRACE_JSON_H

#include "buf.h"

void json_begin_object(struct buf *to);
void json_end_object(struct buf *to);
void json_begin_array(struct buf *to);
void json_end_array(struct buf *to);

/* A line of its own with an object of the schema (views/schema.json). */
void json_begin_record(struct buf *to, const char *type);
void json_end_record(struct buf *to);

void json_key(struct buf *to, const char *key); /* must not need escapes */
void json_key_raw(struct buf *to, struct raw key);

void json_string(struct buf *to, struct raw text);
void json_text(struct buf *to, const char *text); /* may be untrusted, too */
void json_int(struct buf *to, int64_t value);
void json_uint(struct buf *to, uint64_t value);
void json_bool(struct buf *to, bool value);
void json_null(struct buf *to);
void json_ready(struct buf *to, struct str json); /* a value or members that this writer wrote into another buffer */

/* Begins a value that the caller writes itself. */
void json_value(struct buf *to);
/* Begins a line for the next value of an array. The caller knows if it is the first, even when the buffer is empty. */
void json_next_line(struct buf *to, bool first);

/* ---- for printers of terms ---- */

/* Writes any bytes as a string with its quotes, and no comma. */
void json_quote(struct buf *to, struct raw text);

/* Escapes the text that was written since `from`: only quotes and backslashes, so the text must be safe to print. */
void json_escape_tail(struct buf *to, size_t from);

#endif
