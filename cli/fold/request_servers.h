/* SPDX-License-Identifier: Apache-2.0 */
/* Selects servers by pids, registered names and callback modules, as a user writes them in Erlang or Elixir. */
#ifndef ETRACE_REQUEST_SERVERS_H
#define ETRACE_REQUEST_SERVERS_H

#include "request_pairs.h"

struct request_servers {
    const struct str *items;
    bool *seen; /* one for each: a request to it was seen */
    size_t count;
    bool used; /* a view reads them */
};

/* Returns true for a server that was selected, and marks its item as seen. */
bool request_servers_has(struct request_servers *s, const struct request_keys *keys,
                         const struct request_server *server);

#endif
