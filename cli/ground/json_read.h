/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one JSON value (RFC 8259) into a tree in an arena. The reader is strict: the text is UTF-8, and comments,
 * trailing commas, lone surrogates and numbers such as 01 are errors. So is an object with the same key twice, because
 * two readers could understand it differently.
 *
 * Depth and the number of members are bounded, so hostile text costs no more than its length. The caller bounds the
 * length. All text of the tree is untrusted, and lives in the arena.
 */
#ifndef ETRACE_JSON_READ_H
#define ETRACE_JSON_READ_H

#include "buf.h"
#include "err.h"
#include "mem.h"

#define JSON_DEPTH_MOST 64
#define JSON_MEMBERS_MOST 1024 /* limit for the members of one object */

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_kind kind;
    bool truth;         /* JSON_BOOL */
    struct raw text;    /* JSON_STRING: the decoded text, which may contain a NUL; JSON_NUMBER: the number as written */
    struct raw key;     /* the key of this value, if it is a member of an object */
    struct json *first; /* the first element or member of this array or object, or NULL */
    struct json *next;  /* the next element or member of the array or object that this value belongs to */
};

/* Names of the kinds for messages: "a string", "an object". */
extern const char *const json_kind_names[];

/* Reads the whole text. If it is malformed, returns false and fills *e with the reason and the offset. */
bool json_read(struct str text, struct arena *a, struct json **ret, struct err *e);

/* Appends the value in the form of the writer (json.h): without white space, and safe to print. */
void json_put_read(struct buf *to, const struct json *json);

/* Returns the member of an object, or NULL if `object` is NULL, is no object or has no such member. */
const struct json *json_member(const struct json *object, const char *key);

/* Returns the NUL-terminated text of a string. Returns NULL if `json` is NULL, is no string, or contains a NUL. */
const char *json_text_of(const struct json *json);

/*
 * Reads an integer, which may be written as 5.0. Returns false if `json` is NULL, for any other value, and for one that
 * does not fit.
 */
bool json_integer(const struct json *json, int64_t *ret);

#endif
