/* SPDX-License-Identifier: Apache-2.0 */
#include "spell.h"

#include <stdbool.h>
#include <string.h>

#include "frame.h"
#include "imm.h"
#include "secret.h"

#define TEXT_BYTES 640
#define TEXT_LEAST 16
#define OCTETS 256 /* the longest bit string that is captured completely */
#define SHOWN 16   /* octets that are captured of a longer bit string, or of a binary */

static uint8_t *begin_text(uint8_t *at, enum etw_text what, size_t bytes)
{
    return put16(put8(put8(at, ETW_T_TEXT), what), bytes) + bytes;
}

/* Does not format the term if fewer than TEXT_LEAST bytes fit: that would cost too much for a few bytes of text. */
uint8_t *spell_term(struct encoder *e, uint8_t *at, const uint8_t *end, enum etw_text what, ERL_NIF_TERM t)
{
    if (at + TEXT_LEAST > end) {
        e->flags |= ETW_F_CUT;
        return put8(at, ETW_T_ELIDED);
    }
    char *string = (char *)at + 4;
    int n = enif_snprintf(string, TEXT_BYTES, "%T", t);
    if (n >= TEXT_BYTES) { /* a fun with long names: cut it, but not inside a UTF-8 character */
        e->flags |= ETW_F_CUT;
        for (n = TEXT_BYTES - 4; (string[n] & 0xc0) == 0x80; n--)
            ;
        memcpy(string + n, "...", 3);
        n += 3;
    }
    return begin_text(at, what, n < 0 ? 0 : (size_t)n);
}

/* The text that ends a cut text: "..." and a closing bracket. */
struct ellipsis {
    const char *text;
    size_t bytes;
};
#define ELLIPSIS(close) ((struct ellipsis){"..." close, sizeof "..." close - 1})

static uint8_t *write_cut_text(struct encoder *e, uint8_t *at, const char *said, size_t bytes, struct ellipsis end)
{
    char *string = (char *)at + 4;
    e->flags |= ETW_F_CUT;
    memcpy(string, said, bytes);
    memcpy(string + bytes, end.text, end.bytes);
    return begin_text(at, ETW_TEXT_OTHER, bytes + end.bytes);
}

/*
 * Writes the first octets of a binary or of a bit string. The text ends with `end`, which tells the client whether it
 * is a binary or a bit string.
 */
static uint8_t *write_cut_octets(struct encoder *e, uint8_t *at, const uint8_t *octets, size_t n, struct ellipsis end)
{
    char said[4 * SHOWN + 4] = "<<";
    uint8_t safe[OCTETS + 1] = {0};
    size_t bytes = 2;
    n = n < sizeof safe ? n : sizeof safe;
    if (n)
        memcpy(safe, octets, n);
    secret_hide(safe, safe + n);
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        uint8_t c = safe[i];
        if (c >= 100)
            said[bytes++] = (char)('0' + c / 100);
        if (c >= 10)
            said[bytes++] = (char)('0' + c / 10 % 10);
        said[bytes++] = (char)('0' + c % 10);
        said[bytes++] = ',';
    }
    return write_cut_text(e, at, said, bytes, end);
}

uint8_t *spell_begun(struct encoder *e, uint8_t *at, const uint8_t *octets, size_t n)
{
    return write_cut_octets(e, at, octets, n, ELLIPSIS(">>"));
}

/*
 * Encodes a bit string. enif_snprintf() writes its text, such as <<1,2,5:3>>, which this function parses. The precision
 * of the format limits the octets, so the VM does not read the rest of the bit string.
 */
static uint8_t *write_bit_string(struct encoder *e, uint8_t *at, const uint8_t *end, ERL_NIF_TERM t)
{
    char said[4 * OCTETS + TEXT_LEAST];
    uint8_t octets[OCTETS + 1];
    size_t n = 0, room = at + 14 < end ? (size_t)(end - at) - 14 : 0;
    const char *c = said + 2;
    memcpy(said, "<<", 3); /* in case the VM prints nothing */
    enif_snprintf(said, sizeof said, "%.*T", OCTETS + 1, t);
    for (; n <= OCTETS && *c >= '0' && *c <= '9'; c += *c == ',') {
        for (octets[n] = 0; *c >= '0' && *c <= '9'; c++)
            octets[n] = (uint8_t)(octets[n] * 10 + (*c - '0'));
        n++;
    }
    unsigned used = *c == ':' ? (unsigned)c[1] - '0' : 0;
    if (!n || used - 1 >= 7)
        return write_cut_octets(e, at, octets, n, ELLIPSIS(ETW_TEXT_BITS_END));
    octets[n - 1] = (uint8_t)(octets[n - 1] << (8 - used));
    if (room < n)
        e->flags |= ETW_F_CUT;
    else
        room = n;
    at = put32(put64(put8(put8(at, ETW_T_BITS), used), n), room);
    memcpy(at, octets, room);
    return at + room;
}

static char *behind_atom(char *c)
{
    if (*c != '\'') {
        while (*c && *c != ':' && *c != '{' && *c != '.')
            c++;
        return c;
    }
    for (c++; *c && *c != '\''; c++)
        if (*c == '\\' && c[1])
            c++;
    return c + (*c != 0);
}

/*
 * Returns how much of the format's precision the VM uses for the printed atom in [c, end): the bytes of the atom's
 * unquoted name.
 */
static int atom_precision(const char *c, const char *end)
{
    int bytes = *c == '\'' ? -2 : 0;
    for (; c < end; c++, bytes++)
        if (*c == '\\' && c[1] >= '0' && c[1] <= '7') { /* \001; from \200 on it stands for two bytes */
            bytes += c[1] > '1';
            c += 3;
        } else if (*c == '\\') {
            c++;
        }
    return bytes;
}

/*
 * Prints a native record as #module:name{...}, without its fields. Printing fields takes unbounded time: the VM walks a
 * string before it prints its first character. The VM never cuts an atom. So a precision of one character prints the
 * module. A second call, with a precision that just reaches the name, prints module and name and no field.
 */
static uint8_t *write_native_record(struct encoder *e, uint8_t *at, ERL_NIF_TERM t)
{
    char said[TEXT_BYTES];
    if (enif_snprintf(said, sizeof said, "%.*T", 1, t) > 0 && *said == '#') {
        int most = atom_precision(said + 1, behind_atom(said + 1)) + 2;
        enif_snprintf(said, sizeof said, "%.*T", most, t);
        char *name = behind_atom(said + 1), *behind = *name == ':' ? behind_atom(name + 1) : name;
        if (behind > name && *behind) {
            *behind = '{';
            return write_cut_text(e, at, said, (size_t)(behind + 1 - said), ELLIPSIS("}"));
        }
    }
    return write_cut_text(e, at, said, 0, ELLIPSIS(""));
}

uint8_t *spell_other(struct encoder *e, uint8_t *at, const uint8_t *end, ERL_NIF_TERM t)
{
    /* The VM compares types first, so this takes bounded time. Only bit strings are greater than [].
     */
    return enif_compare(t, imm_nil) > 0 ? write_bit_string(e, at, end, t) : write_native_record(e, at, t);
}
