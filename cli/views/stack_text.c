/* SPDX-License-Identifier: Apache-2.0 */
#include "stack_text.h"

#include <stdlib.h>

#include "line.h"
#include "missing.h"

static void stack_text_put(struct buf *to, const struct stack_key *k, enum terms_style style)
{
    switch (k->type) {
    case STACK_ROOT:
        buf_puts(to, "all");
        break;
    case STACK_FUNCTION:
        line_function_name(to, k->module, k->name, k->arity, style);
        break;
    case STACK_NODE:
    case STACK_FILE:
        print_safe(to, k->name);
        break;
    }
}

void stack_texts_print(struct stack_texts *t, const struct stacks *s, enum terms_style style)
{
    buf_clear(&t->bytes);
    t->at = mem_realloc(t->at, s->nkeys * sizeof(*t->at));
    for (size_t i = 0; i < s->nkeys; i++) {
        t->at[i] = (uint32_t)t->bytes.len;
        stack_text_put(&t->bytes, &s->keys[i], style);
        buf_char(&t->bytes, '\0');
    }
}

void stack_texts_release(struct stack_texts *t)
{
    buf_release(&t->bytes);
    free(t->at);
}

void stack_text_missing(const struct stacks *s, struct buf *to, const struct totals *t, const char *prefix)
{
    missing_report(to, t, prefix);
    if (s->full)
        buf_printf(to, "%s*** too many stacks or processes: some calls are missing or counted in their callers ***\n",
                   prefix);
}
