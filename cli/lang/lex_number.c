/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads numbers of both surfaces (16#ff, 0xff, 1_000, 1.5e-3, 16#1.8#e2), and pids, ports and references as a shell
 * prints them. It splits the unit off a number (5ms, 10kB); compile_where.c interprets the unit.
 */
#include <stdlib.h>
#include <string.h>

#include "lex.h"

#define MAX_DIGITS 1000

struct digits {
    char at[MAX_DIGITS + 1];
    size_t count;
};

static char number_peek(const struct comp *c, size_t pos)
{
    return pos < c->text.len ? c->text.at[pos] : 0;
}

/* Reads digits of a base, with single underscores between them. */
static bool read_digits(struct comp *c, size_t *pos, int base, struct digits *d)
{
    const size_t begin = *pos;

    d->count = 0;
    while (digit_of(number_peek(c, *pos)) < base ||
           (number_peek(c, *pos) == '_' && d->count && digit_of(number_peek(c, *pos + 1)) < base)) {
        char ch = number_peek(c, *pos);
        ++*pos;
        if (ch == '_')
            continue;
        if (d->count == MAX_DIGITS)
            return diag(c, begin, *pos - begin, "the number has more than %d digits", MAX_DIGITS);
        d->at[d->count++] = ch;
    }
    d->at[d->count] = 0;
    return true;
}

/* Converts the digits to a decimal integer, with limbs of base 10^9. */
static term_t integer_of(struct comp *c, const struct digits *d, int base)
{
    uint32_t limbs[MAX_DIGITS * 6 / 29 + 2] = {
        0}; /* a digit needs at most 6 bits (base 36); 29 leaves room for rounding */
    size_t used = 1;

    for (size_t i = 0; i < d->count; i++) {
        uint64_t carry = (uint64_t)digit_of(d->at[i]);
        for (size_t j = 0; j < used || carry; j++) {
            if (j == used)
                used++;
            carry += (uint64_t)limbs[j] * (uint64_t)base;
            limbs[j] = (uint32_t)(carry % 1000000000u);
            carry /= 1000000000u;
        }
    }
    if (used <= 2 || (used == 3 && limbs[2] < 9))
        return term_int(c->arena, (int64_t)limbs[0] + (int64_t)limbs[1] * 1000000000 +
                                      (int64_t)limbs[2] * 1000000000 * 1000000000);

    char *text = arena_alloc(c->arena, used * 9 + 1);
    size_t n = 0;
    for (size_t j = used; j-- > 0;) {
        char group[10];
        uint32_t v = limbs[j];
        for (int k = 8; k >= 0; k--, v /= 10)
            group[k] = (char)('0' + v % 10);
        memcpy(text + n, group, 9);
        n += 9;
    }
    size_t zeros = 0;
    while (text[zeros] == '0')
        zeros++;
    struct term *t = arena_alloc(c->arena, sizeof(*t));
    *t = (struct term){.type = TERM_BIG, .text = {text + zeros, n - zeros}};
    return t;
}

static bool float_of(struct comp *c, size_t from, size_t to, term_t *ret)
{
    char text[MAX_DIGITS * 2 + 20];
    size_t n = 0;

    for (size_t i = from; i < to && n + 1 < sizeof(text); i++)
        if (c->text.at[i] != '_')
            text[n++] = c->text.at[i];
    text[n] = 0;
    double value = strtod(text, NULL);
    if (value > 1.7976931348623157e308)
        return diag(c, from, to - from, "the float is too large");
    *ret = term_float(c->arena, value);
    return true;
}

/*
 * Reads 16#1.8 and 16#1.8#e2: the mantissa has the given base; the exponent is decimal and means a power of this base.
 */
static bool based_float(struct comp *c, size_t begin, size_t *pos, int base, const struct digits *whole, term_t *ret)
{
    struct digits part;
    double value = 0, scale = 1;

    for (size_t i = 0; i < whole->count; i++)
        value = value * base + digit_of(whole->at[i]);
    ++*pos;
    if (!read_digits(c, pos, base, &part))
        return false;
    for (size_t i = 0; i < part.count; i++) {
        scale /= base;
        value += scale * digit_of(part.at[i]);
    }
    if (number_peek(c, *pos) == '#' && (number_peek(c, *pos + 1) | 32) == 'e') {
        *pos += 2;
        bool down = number_peek(c, *pos) == '-';
        if (down || number_peek(c, *pos) == '+')
            ++*pos;
        if (!read_digits(c, pos, 10, &part))
            return false;
        long n = strtol(part.at, NULL, 10);
        for (long i = 0; i < MIN(n, 2000); i++)
            value = down ? value / base : value * base;
    }
    if (value > 1.7976931348623157e308)
        return diag(c, begin, *pos - begin, "the float is too large");
    *ret = term_float(c->arena, value);
    return true;
}

static bool is_name_letter(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_' || (unsigned char)ch >= 0x80;
}

bool lex_number(struct comp *c, size_t *pos, struct token *ret)
{
    const size_t begin = *pos;
    struct digits d;
    int base = 10;

    ret->type = TOK_LIT;
    if (c->surface == SPEC_ELIXIR && number_peek(c, begin) == '0' && number_peek(c, begin + 1) &&
        strchr("xob", number_peek(c, begin + 1))) {
        char kind = number_peek(c, begin + 1);
        base = kind == 'x' ? 16 : kind == 'o' ? 8 : 2;
        *pos += 2;
        if (!read_digits(c, pos, base, &d))
            return false;
        if (!d.count)
            return diag(c, begin, *pos - begin, "the number has no digits");
        ret->value = integer_of(c, &d, base);
    } else {
        if (!read_digits(c, pos, 10, &d))
            return false;
        if (c->surface == SPEC_ERLANG && number_peek(c, *pos) == '#' && digit_of(number_peek(c, *pos + 1)) < 36 &&
            d.count <= 2) {
            base = atoi(d.at);
            if (base < 2 || base > 36) {
                diag(c, begin, *pos - begin, "invalid base %d", base);
                return diag_note(c, "a base is 2 to 36");
            }
            ++*pos;
            if (!read_digits(c, pos, base, &d))
                return false;
            if (!d.count || digit_of(number_peek(c, *pos)) < 36)
                return diag(c, begin, *pos + 1 - begin, "invalid digit for base %d", base);
            if (number_peek(c, *pos) == '.' && digit_of(number_peek(c, *pos + 1)) < base) {
                if (!based_float(c, begin, pos, base, &d, &ret->value))
                    return false;
            } else {
                ret->value = integer_of(c, &d, base);
            }
        } else if (number_peek(c, *pos) == '.' && digit_of(number_peek(c, *pos + 1)) < 10) {
            struct digits fraction;
            ++*pos;
            if (!read_digits(c, pos, 10, &fraction))
                return false;
            size_t e = *pos;
            if ((number_peek(c, e) | 32) == 'e') {
                e++;
                if (number_peek(c, e) == '-' || number_peek(c, e) == '+')
                    e++;
                if (digit_of(number_peek(c, e)) < 10) {
                    if (!read_digits(c, &e, 10, &fraction))
                        return false;
                    *pos = e;
                }
            }
            if (!float_of(c, begin, *pos, &ret->value))
                return false;
        } else {
            ret->value = integer_of(c, &d, 10);
        }
    }

    size_t suffix = *pos;
    while (is_name_letter(number_peek(c, *pos)) || (*pos > suffix && digit_of(number_peek(c, *pos)) < 10))
        ++*pos;
    ret->suffix = (struct str){c->text.at + suffix, *pos - suffix};
    return true;
}

/* ---- <0.84.0>, #PID<0.84.0>, #Port<0.6>, #Ref<0.1.2.3>, #Reference<0.1.2.3> ---- */

static const struct {
    const char *open;
    enum term_type type;
} shown[] = {
    {"<", TERM_PID}, {"#PID<", TERM_PID}, {"#Port<", TERM_PORT}, {"#Ref<", TERM_REF}, {"#Reference<", TERM_REF},
};

/*
 * Reads numbers with dots between them, up to a '>'. Returns the count of the numbers, or 0 if the text is malformed.
 */
static size_t read_dotted(const struct comp *c, size_t pos, uint64_t *numbers, size_t most, size_t *ret_end)
{
    size_t n = 0;

    for (;;) {
        size_t begin = pos;
        uint64_t v = 0;
        for (; digit_of(number_peek(c, pos)) < 10; pos++) {
            if (pos - begin > 18)
                return 0;
            v = v * 10 + (uint64_t)digit_of(number_peek(c, pos));
        }
        if (pos == begin || n == most)
            return 0;
        numbers[n++] = v;
        if (number_peek(c, pos) == '>') {
            *ret_end = pos + 1;
            return n;
        }
        if (number_peek(c, pos++) != '.')
            return 0;
    }
}

bool lex_process_id(struct comp *c, size_t *pos, struct token *ret, bool *ret_found)
{
    *ret_found = false;
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        size_t open = strlen(shown[i].open), n, end;
        uint64_t v[6];
        if (c->text.len - *pos < open || memcmp(c->text.at + *pos, shown[i].open, open))
            continue;
        n = read_dotted(c, *pos + open, v, ARRAY_LEN(v), &end);
        bool fits = shown[i].type == TERM_PID    ? n == 3 && v[1] <= UINT32_MAX && v[2] <= UINT32_MAX
                    : shown[i].type == TERM_PORT ? n == 2
                                                 : n >= 3;
        for (size_t k = 1; fits && shown[i].type == TERM_REF && k < n; k++)
            fits = v[k] <= UINT32_MAX;
        if (!fits)
            continue;
        if (v[0]) {
            diag(c, *pos, end - *pos, "this identifier belongs to another node");
            return diag_note(c, "only <0.…> is valid on the traced node");
        }
        struct term *t = arena_alloc(c->arena, sizeof(*t));
        t->type = shown[i].type;
        t->id = v[1];
        if (shown[i].type == TERM_PID)
            t->serial = (uint32_t)v[2];
        if (shown[i].type == TERM_REF) { /* a reference is printed with its last word first */
            t->id = 0;
            t->nwords = (uint32_t)(n - 1);
            for (size_t k = 1; k < n; k++)
                t->words[n - 1 - k] = (uint32_t)v[k];
        }
        *ret = (struct token){.type = TOK_LIT, .from = *pos, .value = t};
        *pos = end;
        *ret_found = true;
        return true;
    }
    return true;
}
