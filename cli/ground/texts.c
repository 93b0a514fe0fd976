/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

void texts_add(struct texts *t, const char *text)
{
    t->items = mem_grow(t->items, &t->cap, t->count + 1, sizeof(*t->items));
    t->items[t->count++] = text;
}

bool texts_has(const struct texts *t, const char *text)
{
    for (size_t i = 0; i < t->count; i++)
        if (!strcmp(t->items[i], text))
            return true;
    return false;
}

void texts_release(struct texts *t)
{
    free(t->items);
    *t = (struct texts){0};
}
