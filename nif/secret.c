/* SPDX-License-Identifier: Apache-2.0 */
#include "secret.h"

#include <string.h>

unsigned secret_names;
struct secret_cookie secret_cookie = {.inside = UINT32_MAX};

/* A name in lower case, without the separators of its words. */
struct words {
    uint64_t begins; /* bit n: a word begins at byte n */
    uint32_t bytes;
    uint8_t text[SECRET_NAME_BYTES];
};

static struct {
    uint32_t bytes;
    uint8_t text[ETW_MAX_KEY_BYTES];
} secrets[ETW_MAX_KEYS];
static uint64_t secrets_from[256]; /* bit n: secret n begins with this byte */

_Static_assert(ETW_MAX_KEYS <= 64 && SECRET_NAME_BYTES <= 64, "each has a bit of a word");

enum kind { OTHER, DIGIT, LOWER, UPPER };

static enum kind kind_of(uint8_t c)
{
    if ((c >= 'a' && c <= 'z') || c >= 0x80)
        return LOWER;
    return c >= 'A' && c <= 'Z' ? UPPER : c >= '0' && c <= '9' ? DIGIT : OTHER;
}

static void split_words(const uint8_t *name, size_t bytes, struct words *ret)
{
    enum kind before = OTHER;
    uint64_t begins = 0;
    uint32_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        enum kind is = kind_of(name[i]);
        if (before == UPPER && is == LOWER)
            begins |= UINT64_C(1) << (n - 1); /* the K of APIKey */
        else if (is != OTHER && is != before)
            begins |= UINT64_C(1) << n;
        if (is != OTHER)
            ret->text[n++] = is == UPPER ? name[i] | 0x20 : name[i];
        before = is;
    }
    ret->begins = begins;
    ret->bytes = n;
}

static bool is_word_end(const struct words *w, uint32_t at)
{
    return at == w->bytes || (w->begins >> at & 1);
}

static bool stands_at(const struct words *w, uint32_t at, unsigned secret)
{
    uint32_t behind = at + secrets[secret].bytes;
    if (behind > w->bytes || memcmp(w->text + at, secrets[secret].text, secrets[secret].bytes) != 0)
        return false;
    return is_word_end(w, behind) || (w->text[behind] == 's' && is_word_end(w, behind + 1));
}

bool secret_named(const uint8_t *name, size_t bytes)
{
    struct words w;
    if (bytes > SECRET_NAME_BYTES)
        return false;
    split_words(name, bytes, &w);
    for (uint64_t begins = w.begins; begins; begins &= begins - 1) {
        uint32_t at = (uint32_t)__builtin_ctzll(begins);
        for (uint64_t some = secrets_from[w.text[at]]; some; some &= some - 1)
            if (stands_at(&w, at, (unsigned)__builtin_ctzll(some)))
                return true;
    }
    return false;
}

bool secret_add(const uint8_t *name, size_t bytes)
{
    struct words w;
    if (secret_names == ETW_MAX_KEYS || bytes > ETW_MAX_KEY_BYTES)
        return false;
    split_words(name, bytes, &w);
    if (!w.bytes)
        return true;
    memcpy(secrets[secret_names].text, w.text, w.bytes);
    secrets[secret_names].bytes = w.bytes;
    secrets_from[w.text[0]] |= UINT64_C(1) << secret_names++;
    return true;
}

void secret_none(void)
{
    memset(secrets_from, 0, sizeof secrets_from);
    secret_names = 0;
    secret_set_cookie(NULL, 0);
}

/* ---- the cookie -------------------------------------------------------------------------------------------------- */

void secret_set_cookie(const uint8_t *text, size_t bytes)
{
    struct secret_cookie *c = &secret_cookie;
    uint32_t n = bytes < SECRET_COOKIE_MOST ? (uint32_t)bytes : SECRET_COOKIE_MOST;
    *c = (struct secret_cookie){.inside = UINT32_MAX};
    if (n < SECRET_COOKIE_LEAST)
        return;
    memcpy(c->text, text, n);
    c->whole = n;
    if (n >= SECRET_COOKIE_INSIDE)
        c->inside = n;
    memset(c->skip, (int)n, sizeof c->skip);
    for (uint32_t i = 0; i < n - 1; i++)
        c->skip[c->text[i]] = (uint8_t)(n - 1 - i);
    c->again = c->skip[c->text[n - 1]];
    c->skip[c->text[n - 1]] = 0;
}

/* Searches with the algorithm of Boyer, Moore and Horspool, which skips most bytes. */
void secret_hide_inside(uint8_t *from, const uint8_t *to)
{
    const struct secret_cookie *c = &secret_cookie;
    uint32_t n = c->whole;
    for (uint8_t *at = from; (size_t)(to - at) >= n;) {
        uint32_t skip = c->skip[at[n - 1]];
        if (skip == 0 && memcmp(at, c->text, n - 1) == 0) {
            memset(at, '*', n);
            skip = n;
        }
        at += skip ? skip : c->again;
    }
}

void secret_hide_begun(uint8_t *from, uint8_t *to)
{
    const struct secret_cookie *c = &secret_cookie;
    size_t n = (size_t)(to - from);
    if (c->inside == UINT32_MAX)
        return;
    for (n = n < c->whole ? n : c->whole - 1; n >= SECRET_COOKIE_LEAST; n--) {
        if (memcmp(to - n, c->text, n) == 0) {
            memset(to - n, '*', n);
            return;
        }
    }
}

void secret_hide_whole(uint8_t *from)
{
    if (memcmp(from, secret_cookie.text, secret_cookie.whole) == 0)
        memset(from, '*', secret_cookie.whole);
}
