/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a map with atoms as keys into the members of a struct, by a table of rows. */
#ifndef ETRACE_ETF_FIELDS_H
#define ETRACE_ETF_FIELDS_H

#include "etf.h"

enum etf_field_type {
    ETF_FIELD_INT,  /* the member is an int64_t */
    ETF_FIELD_INTS, /* the member is an int64_t[size], and the value a tuple of integers */
    ETF_FIELD_TERM, /* the member is a struct etf, with which the caller reads the value later */
    ETF_FIELD_TEXT, /* the member is a char[size] that is safe to print, and the value a binary or an atom */
    ETF_FIELD_BOOL, /* the member is a bool */
};

struct etf_field {
    const char *key;
    enum etf_field_type type;
    size_t at, size;
};

/*
 * Reads the pairs of a map into the members of `to`. Skips keys that are not in `fields`. A member whose key is not in
 * the map keeps its value.
 */
bool etf_get_fields(struct etf *r, const struct etf_field *fields, size_t count, void *to);

#define ETF_INT(type, key, member)                                                                                     \
    {                                                                                                                  \
        key, ETF_FIELD_INT, offsetof(type, member), 0                                                                  \
    }
#define ETF_INTS(type, key, member, count)                                                                             \
    {                                                                                                                  \
        key, ETF_FIELD_INTS, offsetof(type, member), count                                                             \
    }
#define ETF_TERM(type, key, member)                                                                                    \
    {                                                                                                                  \
        key, ETF_FIELD_TERM, offsetof(type, member), 0                                                                 \
    }
#define ETF_TEXT(type, key, member)                                                                                    \
    {                                                                                                                  \
        key, ETF_FIELD_TEXT, offsetof(type, member), sizeof(((type *)0)->member)                                       \
    }
#define ETF_BOOL(type, key, member)                                                                                    \
    {                                                                                                                  \
        key, ETF_FIELD_BOOL, offsetof(type, member), 0                                                                 \
    }

#endif
