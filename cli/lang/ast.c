/* SPDX-License-Identifier: Apache-2.0 */
/* Converts offsets to places in the text of a probe, makes terms of trees, and searches a tree for a variable. */
#include "comp.h"

size_t ast_place(const struct ast_probe *p, size_t at)
{
    if (!p->alternatives)
        return at - p->from;
    const size_t before = p->alternatives->own_from - p->from, own = p->own_to - p->own_from;
    if (at >= p->rest_from)
        return before + own + (at - p->rest_from);
    return at >= p->own_from ? before + MIN(at - p->own_from, own) : MIN(at - p->from, before);
}

term_t ast_term(struct arena *a, const struct ast *n, const term_t *items, term_t tail)
{
    return n->type == A_TUPLE ? term_tuple(a, n->count, items)
           : n->type == A_MAP ? term_map(a, n->count / 2, items)
                              : term_list(a, n->count, items, tail);
}

bool ast_mentions(const struct ast *n, struct str var)
{
    if (n->type == A_VAR)
        return str_same(n->text, var);
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i] && ast_mentions(n->items[i], var))
            return true;
    return n->tail && ast_mentions(n->tail, var);
}
