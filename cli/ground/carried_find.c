/* SPDX-License-Identifier: Apache-2.0 */
#include "carried.h"

#include <string.h>

const struct carried *carried_find(const char *name)
{
    for (const struct carried *c = carried; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}
