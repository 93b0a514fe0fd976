/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one term with framewriter.h and prints it. Shared by the tests of printers. */
#ifndef ETRACE_PRINTED_H
#define ETRACE_PRINTED_H

#include "erlang/term_json.h"
#include "framewriter.h"
#include "tap.h"

static struct fw w;

/* Prints the bytes written since the last call. */
static const char *printed(const struct printer *p)
{
    static struct buf out;
    struct wire_atoms atoms = {0};
    struct term_env env = {&atoms, false};
    const uint8_t *at = (const uint8_t *)w.r->bytes.data, *end;
    const char *why;
    size_t len = w.r->bytes.len;
    uint8_t *copy = malloc(len ? len : 1); /* an exact copy, so that a sanitizer reports a read past its end */

    buf_clear(&out);
    if (len)
        memcpy(copy, at, len);
    wire_frame(&atoms);
    enum wire_found found = wire_check(&atoms, copy, copy + len, 1, &end, &why);
    if (found == WIRE_BAD || end != copy + len) {
        buf_printf(&out, "bad: %s", found == WIRE_BAD ? why : "bytes behind it");
    } else {
        wire_define(&atoms, copy, end);
        if (p->term(&out, &env, copy) != end || wire_skip(copy) != end)
            ok(false, "the printer and wire_skip() end where the term ends");
    }
    wire_atoms_release(&atoms);
    free(copy);
    buf_clear(&w.r->bytes);
    while (w.r->natoms)
        free(w.r->atoms[--w.r->natoms]);
    return buf_cstr(&out);
}

#endif
