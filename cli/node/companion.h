/*
 * What etrace carries for the node it traces. The definitions are in companion_data.c, which nif/pack.escript writes at
 * build time; the bytes are constant and live as long as the program.
 */
#ifndef ETRACE_COMPANION_H
#define ETRACE_COMPANION_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "../ground/macros.h"

struct companion {
    const unsigned char *beam; /* the module, in the oldest encoding, still named etrace_00000000_0 */
    size_t beam_len;
    const unsigned char *so; /* the NIF; empty in a build without one, and then the fallback tracer is used */
    size_t so_len;
    const unsigned char *janitor; /* the janitor's expressions, one term in the external term format (with its 131) */
    size_t janitor_len;
    const unsigned char *ask; /* expressions that call one function (rpc.h), likewise */
    size_t ask_len;
    const unsigned char *sweep; /* expressions that take away what nobody on the node answers for any more, likewise */
    size_t sweep_len;
    char hash[9]; /* 8 hex digits over module, NIF and janitor: what tells builds apart on a node */
    char sum[65]; /* the SHA-256 that it begins */
    unsigned char md5[16]; /* of module and NIF: every node can say whether they have come as they were sent */
};

extern const struct companion companion;

/* Whether a module or a registered process of that name can be a companion's: etrace_<8 hex digits>_<slot>. */
static inline bool companion_is_name(struct raw name)
{
    const char *at = raw_view(name).at;

    if (name.len != 17 || memcmp(at, "etrace_", 7) || at[15] != '_' || !strchr("0123456789ABCDEF", at[16]))
        return false;
    for (size_t i = 7; i < 15; i++)
        if (!at[i] || !strchr("0123456789abcdef", at[i]))
            return false;
    return at[16];
}

#endif
