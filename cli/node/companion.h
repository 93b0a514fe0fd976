/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that etrace sends to a node: the module, the NIF and interpreted expressions. nif/pack.escript writes it
 * into companion_data.c at build time, so the program contains it as constant bytes.
 */
#ifndef ETRACE_COMPANION_H
#define ETRACE_COMPANION_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "../ground/macros.h"

/* The variants of the module (nif/etrace_tracer.erl). A smaller variant loads and unloads faster. */
enum companion_variant {
    COMPANION_WHOLE,     /* everything; only this variant counts calls (etrace top) and completes names */
    COMPANION_TRACE,     /* traces; answers no question ({ask, What}) */
    COMPANION_QUESTIONS, /* answers questions; has neither the NIF nor a trace session, and sends no batches */
    COMPANION_VARIANTS
};

struct companion_module {
    const unsigned char *beam; /* the module in the oldest encoding, with the placeholder name etrace_00000000_0 */
    size_t beam_len;
    bool loads_nif; /* the libraries go with it */
    /* MD5 of the module and the libraries that go with it. The node compares it with what it received. */
    unsigned char md5[16];
};

struct companion {
    struct companion_module modules[COMPANION_VARIANTS];
    /*
     * The list [{Architecture, compressed NIF}] in the external term format, with the version byte 131. A node of an
     * architecture that is not in the list uses the fallback tracer.
     */
    const unsigned char *libraries;
    size_t libraries_len;
    /* The interpreted expressions. Each is one term in the external term format, with the version byte 131. */
    const unsigned char *janitor; /* loads the companion, and unloads it at the end */
    size_t janitor_len;
    const unsigned char *ask; /* calls one function (rpc.h) */
    size_t ask_len;
    const unsigned char *sweep; /* unloads the companions of this build that have no process */
    size_t sweep_len;
    /*
     * First 8 hex digits of `sum`. The names of modules contain them, so that different builds never collide on a node.
     */
    char hash[9];
    char sum[65];              /* SHA-256 of the modules, the libraries and the janitor */
    const char *architectures; /* the architectures of the libraries, separated by blanks */
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
