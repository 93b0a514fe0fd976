/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers the keys that requests are counted by: shapes of requests, and servers. A key has bytes, which
 * views/request_text.h prints.
 *
 * The shape of a request is the request without its data: count, {reserve,_,_}, {get,{user,_}}. A shape is a term that
 * keeps an atom, the tags of tuples and the names of structs; ETW_T_ELIDED replaces all other terms. Tags inside of a
 * request can be data, too. So if more than KEY_VARIANTS shapes have the same outermost tag, one coarse shape replaces
 * them, which keeps only that tag: {get,_}.
 *
 * Bounded: after KEYS_MAX keys, all further keys share the key 0. At most KEY_PIDS of them are pids, because
 * processes without a name come and go; further pids share one key.
 */
#ifndef ETRACE_REQUEST_KEY_H
#define ETRACE_REQUEST_KEY_H

#include "../events/event.h"
#include "../ground/table.h"

#define KEYS_MAX 4096
#define KEY_VARIANTS 16
#define KEY_PIDS 256

enum request_key_kind {
    KEY_REST,     /* the key 0, for all requests without a key of their own */
    KEY_SHAPE,    /* a term in the encoding of wire_normal() */
    KEY_FUNCTION, /* the function of a task as a term: {Module, Function, Arity}, or the text of a fun */
    KEY_SERVER,   /* the characters of a name or a pid */
    KEY_PID,      /* all pids that have no key of their own */
};

struct request_key {
    enum request_key_kind kind;
    bool is_atom;      /* KEY_SERVER: the bytes are the characters of an atom; otherwise they are a text */
    uint32_t coarse;   /* number of the key whose shape keeps only the outermost tag; may be this key */
    uint32_t variants; /* number of other keys whose `coarse` is this key */
    size_t at, len;    /* place of the key's bytes in request_keys.bytes */
};

struct request_keys {
    struct request_key *items;
    size_t n, cap;
    struct buf bytes, next; /* the bytes of all keys; the bytes of the key that is looked up */
    struct table by_bytes;
    size_t pids; /* number of pids with a key of their own */
};

void request_keys_release(struct request_keys *s);
/* Returns the key for the shape of a request. The request may be cut or redacted. */
uint32_t request_key_shape(struct request_keys *s, const struct term_env *env, const uint8_t *at);
/* Returns the key of a task that runs {M, F, Args | Arity}; 0 if the function was not captured. */
uint32_t request_key_task(struct request_keys *s, const struct event *e, const uint8_t *mfa);
/*
 * Return the key of a server: by its callback module, its name, or its pid. A module and a name with the same text have
 * one key.
 */
uint32_t request_key_module(struct request_keys *s, struct raw name);
uint32_t request_key_name(struct request_keys *s, struct safe name);
uint32_t request_key_pid(struct request_keys *s, struct safe pid);
/* Returns the key to count by now: the key itself, or its coarse key if that one has too many variants. */
uint32_t request_key_now(const struct request_keys *s, uint32_t key);
/* Returns the bytes of a key, valid until the next key is added. */
struct str request_key_bytes(const struct request_keys *s, uint32_t key);

#endif
