/* SPDX-License-Identifier: Apache-2.0 */
#include "mfa.h"

/* Reads text from a list. ASCII text is returned in place, other text is converted into `text`. */
static bool read_text(const uint8_t *at, struct buf *text, struct raw *ret)
{
    int64_t v;

    buf_clear(text);
    if (*at == ETW_T_STRING) {
        size_t len = wire_u16(at + 1), ascii = 0;
        while (ascii < len && at[3 + ascii] < 0x80)
            ascii++;
        for (size_t i = 0; i < len && ascii < len; i++)
            buf_utf8(text, at[3 + i]);
        *ret = ascii < len ? raw_of(buf_view(text)) : raw_bytes(at + 3, len);
        return true;
    }
    if (!wire_list(&at))
        return false;
    for (const uint8_t *el; (el = wire_list_next(&at));) {
        if (!wire_int(el, &v) || v < 0 || v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
            return false;
        buf_utf8(text, (uint32_t)v);
    }
    *ret = raw_of(buf_view(text));
    return true;
}

static void read_place(const uint8_t *file, const uint8_t *line, struct mfa *ret, struct buf *text)
{
    struct raw raw;
    uint64_t size;

    if (!wire_int(line, &ret->line) || ret->line <= 0)
        return;
    if (wire_bin(file, &raw, &size) || read_text(file, text, &raw))
        ret->file = raw;
}

/* Reads the location [{file,F},{line,L}] of a stack trace. */
static void read_location(const struct event *e, const uint8_t *at, struct mfa *ret, struct buf *text)
{
    const uint8_t *file = NULL, *line = NULL, *first;
    uint32_t arity;

    for (const uint8_t *el; (el = wire_list_next(&at));) {
        if (wire_tuple(el, &arity, &first) != 2)
            continue;
        if (wire_is_atom(&e->env, first, "file"))
            file = wire_skip(first);
        else if (wire_is_atom(&e->env, first, "line"))
            line = wire_skip(first);
    }
    if (file && line)
        read_place(file, line, ret, text);
}

bool mfa_read(const struct event *e, const uint8_t *at, struct mfa *ret, struct buf *file)
{
    uint32_t arity;
    const uint8_t *p, *list;
    int64_t n = wire_tuple(at, &arity, &p);

    *ret = (struct mfa){.arity = -1};
    if ((n != 3 && n != 4) || (int64_t)arity != n || !wire_atom(&e->env, p, &ret->module))
        return false;
    p = wire_skip(p);
    if (!wire_atom(&e->env, p, &ret->function))
        return false;
    p = wire_skip(p);
    if (!wire_int(p, &ret->arity)) {
        list = p;
        if (*p != ETW_T_STRING && !wire_list(&list))
            return false;
        ret->args = p;
        ret->arity = -1;
    }
    if (n == 4 && file) {
        p = wire_skip(p);
        list = p;
        const uint8_t *first;
        if (wire_tuple(p, &arity, &first) == 2 && arity == 2)
            read_place(first, wire_skip(first), ret, file);
        else if (*p != ETW_T_STRING && wire_list(&list))
            read_location(e, list, ret, file);
    }
    return true;
}

struct raw mfa_base_name(struct raw path)
{
    const char *at = raw_view(path).at;

    for (size_t i = path.len; i-- > 0;)
        if (at[i] == '/')
            return raw_bytes(at + i + 1, path.len - i - 1);
    return path;
}

int64_t mfa_arity(const struct mfa *m, bool *ret_cut)
{
    const uint8_t *at = m->args;
    int64_t args = 0;

    *ret_cut = false;
    if (!at)
        return m->arity;
    if (*at == ETW_T_STRING)
        return wire_u16(at + 1);
    if (wire_list(&at))
        while (wire_list_next(&at))
            args++;
    *ret_cut = *at == ETW_T_CUT;
    return args;
}
