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

#define SECRET_NAME_BYTES 64    /* a longer text is no name */
#define SECRET_COOKIE_LEAST 4   /* a shorter cookie is shown: it would hide every `a` or `ok` */
#define SECRET_COOKIE_INSIDE 8  /* a cookie of so many bytes is found inside other text too */
#define SECRET_COOKIE_MOST 255

extern HIDDEN unsigned secret_names;

struct secret_cookie {
    uint32_t inside; /* its bytes; UINT32_MAX: it is not looked for inside other text */
    uint32_t whole;  /* its bytes; 0: there is none */
    uint32_t again;  /* how far to move behind a last byte that did not match */
    uint8_t text[SECRET_COOKIE_MOST];
    uint8_t skip[256]; /* how far to move where this byte stands in the place of the last one; 0: it is the last one */
};
extern HIDDEN struct secret_cookie secret_cookie;

/* No names and no cookie. */
HIDDEN void secret_none(void);

/* One more name; false: there are ETW_MAX_KEYS, or it is longer than ETW_MAX_KEY_BYTES. */
HIDDEN bool secret_add(const uint8_t *name, size_t bytes);

/*
 * Whether a name has the words of a secret one after the other: `password` is in db_password, 'DB-Password' and dbPasswords, but not
 * in compassword. A word ends at whatever is neither letter nor digit, before a capital, and between letters and digits.
 */
HIDDEN bool secret_named(const uint8_t *name, size_t bytes);

HIDDEN void secret_set_cookie(const uint8_t *text, size_t bytes);

HIDDEN void secret_hide_inside(uint8_t *from, const uint8_t *to);
HIDDEN void secret_hide_whole(uint8_t *from);

/* Writes stars over the cookie wherever it stands in these bytes, which may be encoded terms: text is text there too. */
static inline void secret_hide(uint8_t *from, const uint8_t *to)
{
    if ((size_t)(to - from) >= secret_cookie.inside)
        secret_hide_inside(from, to);
}

/* The end of a text that was cut may be the beginning of the cookie. */
HIDDEN void secret_hide_begun(uint8_t *from, uint8_t *to);

/* The same for the bytes of one text, which may be a cookie too short to be looked for inside. */
static inline void secret_hide_text(uint8_t *from, uint8_t *to)
{
    if ((size_t)(to - from) == secret_cookie.whole)
        secret_hide_whole(from);
}

#endif
