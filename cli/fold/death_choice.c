/* SPDX-License-Identifier: Apache-2.0 */
#include "death_choice.h"

#include "../events/process_name.h"

/* Whether the text is the pid, the name or the callback module of the process. */
static bool exit_is_of(const struct death *x, struct str wanted)
{
    if (str_same(wanted, safe_view(tracee_safe_text(&x->who))))
        return true;
    wanted = process_name_plain(wanted);
    if (x->who.name_len && str_same(wanted, process_name_plain(safe_view(tracee_safe_name(&x->who)))))
        return true;
    return x->initial && str_same(wanted, process_name_plain(raw_view(x->initial->module)));
}

static bool tree_is_named(struct death_choice *c, const struct death *x)
{
    bool found = false;

    for (size_t i = 0; i < c->count; i++)
        if (exit_is_of(x, c->names[i]))
            found = c->seen[i] = true;
    for (const struct death *child = x->first; child; child = child->next)
        found |= tree_is_named(c, child);
    return found;
}

bool death_selected(struct death_choice *c, const struct death *root)
{
    return !c || !c->count || tree_is_named(c, root);
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
    return (c && (c->all || c->count)) || !tree_is_quiet(root);
}
