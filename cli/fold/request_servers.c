/* SPDX-License-Identifier: Apache-2.0 */
#include "request_servers.h"

/* A name without what only one of the languages writes: 'Elixir.Shop', Shop, :shop, :"a shop". */
static struct str plain_name(struct str name)
{
    if (name.len > 1 && name.at[0] == ':')
        name = (struct str){name.at + 1, name.len - 1};
    if (name.len > 1 && (name.at[0] == '\'' || name.at[0] == '"') && name.at[name.len - 1] == name.at[0])
        name = (struct str){name.at + 1, name.len - 2};
    if (name.len > 7 && !memcmp(name.at, "Elixir.", 7))
        name = (struct str){name.at + 7, name.len - 7};
    return name;
}

/* Whether the text is the pid, the name or the callback module of a server. */
static bool is_server(const struct request_keys *keys, const struct request_server *server, struct str wanted)
{
    const struct tracee *who = &server->who;

    if (str_same(wanted, safe_view(tracee_safe_text(who))))
        return true;
    wanted = plain_name(wanted);
    if (who->name_len && str_same(wanted, plain_name(safe_view(tracee_safe_name(who)))))
        return true;
    return server->label && str_same(wanted, plain_name(request_key_bytes(keys, server->label)));
}

bool request_servers_has(struct request_servers *s, const struct request_keys *keys,
                         const struct request_server *server)
{
    for (size_t i = 0; i < s->count; i++)
        if (is_server(keys, server, s->items[i])) {
            s->seen[i] = true;
            return true;
        }
    return false;
}
