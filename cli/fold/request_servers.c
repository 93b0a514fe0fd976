/* SPDX-License-Identifier: Apache-2.0 */
#include "request_servers.h"

#include "../events/process_name.h"

bool request_servers_has(struct request_servers *s, const struct request_keys *keys,
                         const struct request_server *server)
{
    const struct str module = server->label ? request_key_bytes(keys, server->label) : (struct str){0};

    for (size_t i = 0; i < s->count; i++)
        if (process_is_named(&server->who, module, s->items[i])) {
            s->seen[i] = true;
            return true;
        }
    return false;
}
