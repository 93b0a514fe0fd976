/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers the keys that requests are counted by: shapes of requests, and servers. A key is bytes, and a view prints it
 * (views/request_text.h).
 *
 * The shape of a request is the request without its data: count, {reserve,_,_}, {get,{user,_}}. It is a term that keeps
 * an atom, the tags of tuples and the names of structs; every other term is replaced by ETW_T_ELIDED. Tags inside of a
 * request can be data, too. So after KEY_VARIANTS shapes with the same outermost tag, all of them become one shape,
 * which keeps only that tag: {get,_}.
 *
 * Bounded: further keys share the key 0.
 */
#ifndef ETRACE_REQUEST_KEY_H
#define ETRACE_REQUEST_KEY_H

#include "../events/event.h"
#include "../ground/table.h"

#define KEYS_MAX 4096
#define KEY_VARIANTS 16

enum request_key_kind {
    KEY_REST,     /* the key 0: all requests that have no key of their own */
    KEY_SHAPE,    /* a term in the encoding of wire_normal() */
    KEY_FUNCTION, /* the function of a task as a term: {Module, Function, Arity}, or the text of a fun */
    KEY_SERVER,   /* the characters of a name */
};

struct request_key {
    enum request_key_kind kind;
    bool is_atom;      /* KEY_SERVER: the bytes are the characters of an atom, else a text */
    uint32_t coarse;   /* the shape that keeps only the tag; may be this shape itself */
    uint32_t variants; /* number of shapes whose `coarse` is this one */
    size_t at, len;    /* of the bytes */
};

struct request_keys {
    struct request_key *items;
    size_t n, cap;
    struct buf bytes, next; /* the bytes of all keys; the bytes of the key that is looked up */
    struct table by_bytes;
};

void request_keys_release(struct request_keys *s);
/* Returns the key of a request. The term may be cut or redacted. */
uint32_t request_key_shape(struct request_keys *s, const struct term_env *env, const uint8_t *at);
/* Returns the key of a task that runs {M, F, Args | Arity}. 0: the function was not captured. */
uint32_t request_key_task(struct request_keys *s, const struct event *e, const uint8_t *mfa);
/*
 * Return the key of a server: by its callback module, or by its name or pid. A module and a name with the same text
 * have one key.
 */
uint32_t request_key_module(struct request_keys *s, struct raw name);
uint32_t request_key_process(struct request_keys *s, struct safe name);
/* Returns the key itself, or its coarse key once that has too many variants. */
uint32_t request_key_now(const struct request_keys *s, uint32_t key);
/* Returns the bytes of a key, valid until the next key is added. */
struct str request_key_bytes(const struct request_keys *s, uint32_t key);

#endif
