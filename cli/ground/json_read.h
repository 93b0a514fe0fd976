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
#define JSON_MEMBERS_MOST 1024 /* of one object */

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_kind kind;
    bool truth;         /* JSON_BOOL */
    struct raw text;    /* JSON_STRING: decoded, it may contain a NUL; JSON_NUMBER: as written */
    struct raw key;     /* of a member of an object */
    struct json *first; /* the first element or member; NULL: none */
    struct json *next;  /* the next element or member of the same array or object */
};

/* Names of the kinds for messages: "a string", "an object". */
extern const char *const json_kind_names[];

/* Reads the whole text. After false, e says what is wrong at which byte. */
bool json_read(struct str text, struct arena *a, struct json **ret, struct err *e);

/* Appends the value in the form of the writer (json.h): without white space, and safe to print. */
void json_put_read(struct buf *to, const struct json *json);

/* Returns the member of an object. NULL: `object` is NULL or no object, or has no such member. */
const struct json *json_member(const struct json *object, const char *key);

/* Returns the text of a string that contains no NUL, with a NUL after it. NULL: `json` is NULL or no such string. */
const char *json_text_of(const struct json *json);

/* Returns false if the number has a fraction or an exponent, or does not fit. 5.0 is 5. */
bool json_integer(const struct json *json, int64_t *ret);

#endif
