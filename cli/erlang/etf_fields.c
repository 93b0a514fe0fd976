/* SPDX-License-Identifier: Apache-2.0 */
#include "etf_fields.h"

#include "term_print.h"

static bool take_ints(struct etf *r, size_t count, int64_t *to)
{
    bool ok = etf_get_tuple(r, count);

    for (size_t i = 0; ok && i < count; i++)
        ok = etf_get_int(r, &to[i]);
    return ok;
}

static bool take_text(struct etf *r, char *to, size_t size)
{
    struct etf_head h;
    struct raw text;

    if (!etf_peek(r, &h) || !(h.type == ETF_ATOM ? etf_get_atom(r, &text) : etf_get_bin(r, &text)))
        return false;
    safe_copy(to, size, text);
    return true;
}

static bool take_field(struct etf *r, const struct etf_field *f, char *to)
{
    switch (f->type) {
    case ETF_FIELD_INT:
        return etf_get_int(r, (int64_t *)(void *)(to + f->at));
    case ETF_FIELD_INTS:
        return take_ints(r, f->size, (int64_t *)(void *)(to + f->at));
    case ETF_FIELD_TERM:
        return etf_take(r, (struct etf *)(void *)(to + f->at));
    case ETF_FIELD_TEXT:
        return take_text(r, to + f->at, f->size);
    case ETF_FIELD_BOOL:
        *(bool *)(to + f->at) = etf_is_atom(r, "true");
        return etf_skip(r);
    }
    return false;
}

bool etf_get_fields(struct etf *r, const struct etf_field *fields, size_t count, void *to)
{
    struct raw key;
    size_t pairs = 0, i;
    bool ok = etf_get_map(r, &pairs);

    while (ok && pairs--) {
        if (!etf_get_atom(r, &key))
            return false;
        for (i = 0; i < count && !raw_is(key, fields[i].key);)
            i++;
        ok = i < count ? take_field(r, &fields[i], to) : etf_skip(r);
    }
    return ok;
}
