/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints and compares encoded terms. The oracle compares the output with the VM's own printers and operators.
 *
 *     print_driver STYLE [OTP]     stdin: u32 bytes, one term …    stdout: u32 bytes, its text …
 *     print_driver order              stdin: likewise    stdout: two characters for each two terms: < = > ! ? by value
 *                                     (==, <), and by type, too (=:=); ! if the terms differ without a known order
 *     print_driver hidden             prints the ranges FROM-TO of code points that etrace never shows
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "erlang/term_json.h"
#include "erlang/wire_order.h"
#include "ground/mem.h"
#include "ground/utf8.h"

static const struct printer *style(const char *name)
{
    static const struct printer *const all[] = {&printer_erlang, &printer_json, &printer_elixir};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (!strcmp(all[i]->name, name))
            return all[i];
    return NULL;
}

static int hidden(void)
{
    uint32_t from = 0;
    bool in = false;

    for (uint32_t c = 0; c <= 0x110000; c++) {
        bool hides = c < 0x110000 && !utf8_shows(c);
        if (hides && !in)
            from = c;
        if (!hides && in)
            printf("%u-%u\n", from, c - 1);
        in = hides;
    }
    return 0;
}

/* Reads a term into *b. */
static bool read_term(struct wire_atoms *atoms, struct buf *b)
{
    const uint8_t *end;
    const char *why;
    uint32_t len;

    buf_clear(b);
    if (fread(&len, sizeof(len), 1, stdin) != 1 || fread(buf_room(b, len), 1, len, stdin) != len)
        return false;
    const uint8_t *at = (const uint8_t *)b->data;
    wire_frame(atoms);
    return wire_check(atoms, at, at + len, 1, &end, &why) != WIRE_BAD && end == at + len;
}

static int order(void)
{
    static const char signs[] = "<=>!?";
    struct wire_atoms atoms = {0};
    const struct term_env env = {.atoms = &atoms};
    struct buf a = {0}, b = {0};

    while (read_term(&atoms, &a) && read_term(&atoms, &b))
        for (int exact = 0; exact < 2; exact++)
            putchar(
                signs[wire_compare(&env, (const uint8_t *)a.data, &env, (const uint8_t *)b.data, exact) - WIRE_LESS]);
    wire_atoms_release(&atoms);
    buf_release(&a);
    buf_release(&b);
    return 0;
}

int main(int argc, char **argv)
{
    struct wire_atoms atoms = {0};
    struct term_env env = {
        .atoms = &atoms,
        .otp27 = argc > 2 && atoi(argv[2]) < 28,
    };
    struct buf in = {0}, out = {0};
    uint32_t len;

    if (argc > 1 && !strcmp(argv[1], "hidden"))
        return hidden();
    if (argc > 1 && !strcmp(argv[1], "order"))
        return order();
    const struct printer *p = argc > 1 ? style(argv[1]) : NULL;
    if (!p) {
        fprintf(stderr, "usage: print_driver STYLE [OTP] | order | hidden\n");
        return 2;
    }
    while (fread(&len, sizeof(len), 1, stdin) == 1) {
        const uint8_t *end;
        const char *why = "";
        buf_clear(&in);
        buf_clear(&out);
        if (fread(buf_room(&in, len), 1, len, stdin) != len)
            return 1;
        const uint8_t *at = (const uint8_t *)in.data;
        wire_frame(&atoms);
        enum wire_found found = wire_check(&atoms, at, at + len, 1, &end, &why);
        if (found == WIRE_BAD || end != at + len)
            buf_printf(&out, "MALFORMED at %td: %s", end - at, why);
        else
            p->term(&out, &env, at);
        len = (uint32_t)out.len;
        fwrite(&len, sizeof(len), 1, stdout);
        fwrite(out.data ? out.data : "", 1, out.len, stdout);
    }
    wire_atoms_release(&atoms);
    buf_release(&in);
    buf_release(&out);
    return 0;
}
