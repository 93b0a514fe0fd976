/* SPDX-License-Identifier: Apache-2.0 */
#include "death_choice.h"

static bool mark_named_tree(struct death_choice *c, const struct death *x)
{
    const struct str module = x->initial ? raw_view(x->initial->module) : (struct str){0};
    bool found = process_names_have(&c->names, &x->who, module);

    for (const struct death *child = x->first; child; child = child->next)
        found |= mark_named_tree(c, child);
    return found;
}

bool death_selected(struct death_choice *c, const struct death *root)
{
    return !c || !c->names.count || mark_named_tree(c, root);
}

static bool tree_is_quiet(const struct death *x)
{
    if (!x->normal || x->again.named)
        return false;
    for (const struct death *child = x->first; child; child = child->next)
        if (!tree_is_quiet(child))
            return false;
    return true;
}

bool death_chosen(struct death_choice *c, const struct death *root)
{
    if (!death_selected(c, root))
        return false;
    return (c && (c->all || c->names.count)) || !tree_is_quiet(root);
}
