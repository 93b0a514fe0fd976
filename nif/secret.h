/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the names of secrets, and hides the cookie of the node. It reads bytes, never terms.
 *
 * The owner sets the rules before a session is live; every producer thread reads them.
 */
#ifndef ETRACE_SECRET_H
#define ETRACE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etrace_wire.h"
#include "hidden.h"

#define SECRET_NAME_BYTES 64   /* a longer text does not count as the name of a secret */
#define SECRET_COOKIE_LEAST 4  /* a shorter cookie is not hidden: stars would replace every `a` or `ok` */
#define SECRET_COOKIE_INSIDE 8 /* a cookie of at least this length is also found inside other text */
#define SECRET_COOKIE_MOST 255

extern HIDDEN unsigned secret_names;

struct secret_cookie {
    uint32_t inside; /* length of the cookie; UINT32_MAX: do not search inside other text */
    uint32_t whole;  /* length of the cookie; 0: no cookie */
    uint32_t again;  /* how far the search moves if the last byte of the cookie matches but another byte does not */
    uint8_t text[SECRET_COOKIE_MOST];
    /* How far the search moves if it finds this byte where the cookie would end. 0: the byte is the cookie's last. */
    uint8_t skip[256];
};
extern HIDDEN struct secret_cookie secret_cookie;

/* Removes all names and the cookie. */
HIDDEN void secret_none(void);

/* Adds a name. Returns false if there are ETW_MAX_KEYS already, or the name is longer than ETW_MAX_KEY_BYTES. */
HIDDEN bool secret_add(const uint8_t *name, size_t bytes);

/*
 * Returns true if a name contains the words of a secret name in sequence: `password` is in db_password, 'DB-Password'
 * and dbPasswords, but not in compassword. A word ends at a byte that is neither letter nor digit, before a capital,
 * and between letters and digits.
 */
HIDDEN bool secret_named(const uint8_t *name, size_t bytes);

HIDDEN void secret_set_cookie(const uint8_t *text, size_t bytes);

HIDDEN void secret_hide_inside(uint8_t *from, const uint8_t *to);
HIDDEN void secret_hide_whole(uint8_t *from);

/*
 * Writes stars over the cookie wherever these bytes contain it. They may be encoded terms, which contain text
 * unchanged.
 */
static inline void secret_hide(uint8_t *from, const uint8_t *to)
{
    if ((size_t)(to - from) >= secret_cookie.inside)
        secret_hide_inside(from, to);
}

/* Writes stars over the end of a text that was cut, if that end is the beginning of the cookie. */
HIDDEN void secret_hide_begun(uint8_t *from, uint8_t *to);

/*
 * Writes stars over a text that is exactly the cookie. This also hides a cookie that is too short to search for inside
 * other text.
 */
static inline void secret_hide_text(uint8_t *from, uint8_t *to)
{
    if ((size_t)(to - from) == secret_cookie.whole)
        secret_hide_whole(from);
}

#endif
