/* SPDX-License-Identifier: Apache-2.0 */
#include "request_servers.h"

#include "../events/process_name.h"

/* Whether the text is the pid, the name or the callback module of a server. */
static bool is_server(const struct request_keys *keys, const struct request_server *server, struct str wanted)
{
    const struct tracee *who = &server->who;

    if (str_same(wanted, safe_view(tracee_safe_text(who))))
        return true;
    wanted = process_name_plain(wanted);
    if (who->name_len && str_same(wanted, process_name_plain(safe_view(tracee_safe_name(who)))))
        return true;
    return server->label && str_same(wanted, process_name_plain(request_key_bytes(keys, server->label)));
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
