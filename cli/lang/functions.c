/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

#include <string.h>

static const struct fn_row rows[] = {
#define FN(id, name, least, most, types, places, otp, result, fails, doc)                                              \
    {name, least, most, types, places, otp, result, fails, doc},
#include "functions.def"
};

const struct fn_row *fn_row(enum fn fn)
{
    return &rows[fn];
}

static bool is_named(const struct fn_row *row, struct str name)
{
    return !strncmp(row->name, name.at, name.len) && !row->name[name.len];
}

enum fn fn_named(struct str name, enum fn after)
{
    for (int i = (int)after + 1; i < FN_COUNT; i++)
        if (is_named(&rows[i], name))
            return (enum fn)i;
    return FN_NONE;
}

enum fn fn_find(struct str name, size_t nargs)
{
    for (enum fn fn = fn_named(name, FN_NONE); fn != FN_NONE; fn = fn_named(name, fn))
        if (nargs >= (size_t)rows[fn].least && nargs <= (size_t)rows[fn].most)
            return fn;
    return FN_NONE;
}

unsigned fn_wants(enum fn fn, size_t arg)
{
    static const struct {
        char letter;
        unsigned types;
    } letters[] = {
        {'n', TY_INT | TY_FLOAT},
        {'i', TY_INT},
        {'b', TY_BOOL},
        {'a', TY_ATOM | TY_BOOL},
        {'l', TY_LIST},
        {'t', TY_TUPLE},
        {'m', TY_MAP},
        {'B', TY_BIN},
        {'z', TY_TUPLE | TY_BIN},
        {'x', TY_INT | TY_TUPLE},
        {'p', TY_PID | TY_PORT | TY_REF},
        {'r', TY_INT | TY_ATOM | TY_BOOL},
    };
    const char *types = rows[fn].types;
    size_t n = strlen(types);

    if (!n)
        return TY_ANY;
    for (size_t i = 0; i < ARRAY_LEN(letters); i++)
        if (letters[i].letter == types[MIN(arg, n - 1)])
            return letters[i].types;
    return TY_ANY;
}

const char *fn_type_name(unsigned types)
{
    static const struct {
        unsigned types;
        const char *name;
    } names[] = {
        {TY_INT, "an integer"},
        {TY_FLOAT, "a float"},
        {TY_INT | TY_FLOAT, "a number"},
        {TY_BOOL, "a boolean"},
        {TY_ATOM, "an atom"},
        {TY_ATOM | TY_BOOL, "an atom"},
        {TY_LIST, "a list"},
        {TY_TUPLE, "a tuple"},
        {TY_MAP, "a map"},
        {TY_BIN, "a binary"},
        {TY_PID, "a pid"},
        {TY_PORT, "a port"},
        {TY_REF, "a reference"},
        {TY_FUN, "a fun"},
        {TY_TUPLE | TY_BIN, "a tuple or a binary"},
        {TY_INT | TY_TUPLE, "an integer or a tuple"},
        {TY_PID | TY_PORT | TY_REF, "a pid, port or reference"},
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].types == types)
            return names[i].name;
    return NULL;
}
