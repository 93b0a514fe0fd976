/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of texts. It owns the array, and borrows the texts. */
#ifndef ETRACE_TEXTS_H
#define ETRACE_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

struct texts {
    const char **items;
    size_t count, cap;
    size_t nfiles; /* only for expressions: the last nfiles items are texts of files (exprs_texts()) */
};

void texts_add(struct texts *t, const char *text);
bool texts_has(const struct texts *t, const char *text);
void texts_release(struct texts *t);

#endif
