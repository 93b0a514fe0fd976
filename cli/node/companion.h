/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that etrace sends to a node: the module, the NIF and interpreted expressions, built into the program as
 * bytes. nif/pack.escript writes the definitions into companion_data.c at build time. The bytes are constant.
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
    /*
     * [{Architecture, the NIF, compressed}] in the external term format, with the version byte 131. A node of another
     * architecture uses the fallback tracer.
     */
    const unsigned char *libraries;
    size_t libraries_len;
    /* Interpreted expressions: each is one term in the external term format, with the version byte 131. */
    const unsigned char *janitor; /* the janitor */
    size_t janitor_len;
    const unsigned char *ask; /* the expressions that call one function (rpc.h) */
    size_t ask_len;
    const unsigned char *sweep; /* the expressions that unload companions of this build without a process */
    size_t sweep_len;
    char hash[9]; /* first 8 hex digits of `sum`; names of modules contain them, so builds never collide on a node */
    char sum[65]; /* SHA-256 of module, libraries and janitor */
    const char *architectures; /* of the libraries, separated by blanks */
    unsigned char md5[16];     /* MD5 of module and libraries; the node checks what it received with erlang:md5/1 */
};

extern const struct companion companion;

/* Returns true if the name has the form of a companion's module or process: etrace_<8 hex digits>_<slot>. */
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
