/* SPDX-License-Identifier: Apache-2.0 */
#include "units.h"

#include <string.h>
#include <strings.h>

#include "macros.h"

static const struct unit units[] = {
    {"ns", UNIT_DURATION, 1},     {"us", UNIT_DURATION, 1e3},   {"\xc2\xb5s", UNIT_DURATION, 1e3},
    {"ms", UNIT_DURATION, 1e6},   {"s", UNIT_DURATION, 1e9},    {"m", UNIT_DURATION, 60e9},
    {"min", UNIT_DURATION, 60e9}, {"h", UNIT_DURATION, 3600e9}, {"B", UNIT_SIZE, 1},
    {"kB", UNIT_SIZE, 1024},      {"KB", UNIT_SIZE, 1024},      {"KiB", UNIT_SIZE, 1024},
    {"MB", UNIT_SIZE, 1 << 20},   {"MiB", UNIT_SIZE, 1 << 20},  {"GB", UNIT_SIZE, 1 << 30},
    {"GiB", UNIT_SIZE, 1 << 30},
};

const struct unit *unit_find(struct str name, bool any_case)
{
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (name.len == strlen(units[i].name) && !(any_case ? strncasecmp : strncmp)(name.at, units[i].name, name.len))
            return &units[i];
    return NULL;
}
