/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the printers with one encoded term, as text and as JSON: the output must be valid UTF-8 and visible. If the
 * checker accepts a term, the target walks it, copies it, and compares it with itself.
 */
#include <stdlib.h>

#include "erlang/term_json.h"
#include "erlang/wire_order.h"
#include "ground/utf8.h"

/* The normal form is a term, and its own normal form. */
static void check_normal(const struct term_env *env, const uint8_t *term)
{
    static const struct term_env none;
    struct buf normal = {0}, again = {0};
    struct wire_atoms no_atoms = {0};
    const uint8_t *end;
    const char *why;

    wire_normal(&normal, env, term);
    const uint8_t *at = (const uint8_t *)normal.data;
    wire_frame(&no_atoms);
    if (wire_check(&no_atoms, at, at + normal.len, 1, &end, &why) != WIRE_OK || end != at + normal.len)
        abort();
    wire_normal(&again, &none, at);
    if (again.len != normal.len || memcmp(again.data, normal.data, normal.len))
        abort();
    buf_release(&normal);
    buf_release(&again);
    wire_atoms_release(&no_atoms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct buf *b)
{
    const char *at = b->data, *end = at + b->len;

    while (at < end) {
        uint32_t c = utf8_next(&at, end);
        if (c == UTF8_BAD || !utf8_shows(c))
            abort();
    }
}

/*
 * True: an atom is not valid UTF-8. No node has such atoms. The atom tables repair them, so that they no longer equal
 * the atoms of the term.
 */
static bool has_bad_name(const uint8_t *at, const uint8_t *end)
{
    for (; at < end; at = wire_token(at)) {
        if (*at != ETW_T_ATOMDEF)
            continue;
        const char *name = (const char *)at + 5, *stop = name + wire_u16(at + 3);
        while (name < stop)
            if (utf8_next(&name, stop) == UTF8_BAD)
                return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_atoms atoms = {0};
    struct term_env env = {.atoms = &atoms, .otp27 = size & 2};
    struct buf out = {0}, copy = {0};
    const uint8_t *end;
    const char *why;

    wire_atoms_define(&atoms, 0, "an atom", 7);
    wire_atoms_define(&atoms, 1, "b", 1);
    wire_frame(&atoms);
    enum wire_found found = wire_check(&atoms, data, data + size, 1, &end, &why);
    if (found == WIRE_BAD || found == WIRE_CONFLICT)
        goto done;
    wire_define(&atoms, data, end);
    if (wire_skip(data) != end)
        abort();
    static const struct printer *const printers[] = {&printer_erlang, &printer_json, &printer_elixir};
    for (size_t i = 0; i < ARRAY_LEN(printers); i++) {
        buf_clear(&out);
        if (printers[i]->term(&out, &env, data) != end)
            abort();
        check(&out);
    }
    buf_clear(&out);
    erlang_print(&out, &env, data);
    if (!has_bad_name(data, end) && wire_copy(&copy, &env, (struct wire){data, end}, 1 << 20)) {
        struct buf again = {0};
        struct term_env none = {.otp27 = env.otp27};
        erlang_print(&again, &none, (const uint8_t *)copy.data);
        if (again.len != out.len || memcmp(again.data, out.data, out.len))
            abort();
        buf_release(&again);
        enum wire_order o = wire_compare(&env, data, &none, (const uint8_t *)copy.data, true);
        bool map = false; /* the map may have a key twice, and then differs from itself */
        for (const uint8_t *at = data; at < end; at = wire_token(at))
            map |= *at == ETW_T_MAP;
        if (o != WIRE_EQUAL && o != WIRE_UNKNOWN && !map)
            abort();
        check_normal(&env, data);
    }
done:
    buf_release(&out);
    buf_release(&copy);
    wire_atoms_release(&atoms);
    return 0;
}
