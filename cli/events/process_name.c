/* SPDX-License-Identifier: Apache-2.0 */
#include "process_name.h"

struct str process_name_plain(struct str name)
{
    if (name.len > 1 && name.at[0] == ':')
        name = (struct str){name.at + 1, name.len - 1};
    if (name.len > 1 && (name.at[0] == '\'' || name.at[0] == '"') && name.at[name.len - 1] == name.at[0])
        name = (struct str){name.at + 1, name.len - 2};
    if (name.len > 7 && !memcmp(name.at, "Elixir.", 7))
        name = (struct str){name.at + 7, name.len - 7};
    return name;
}

bool process_is_named(const struct tracee *who, struct str module, struct str text)
{
    if (str_same(text, safe_view(tracee_safe_text(who))))
        return true;
    text = process_name_plain(text);
    if (who->name_len && str_same(text, process_name_plain(safe_view(tracee_safe_name(who)))))
        return true;
    return module.len && str_same(text, process_name_plain(module));
}

bool process_names_have(struct process_names *n, const struct tracee *who, struct str module)
{
    bool found = false;

    for (size_t i = 0; i < n->count; i++)
        if (process_is_named(who, module, n->items[i]))
            found = n->seen[i] = true;
    return found;
}
