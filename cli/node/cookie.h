/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the cookie by the rules of OTP, and wipes it from memory.
 *
 * cookie_read() reads the given file. Without one it reads $HOME/.erlang.cookie, or else
 * $XDG_CONFIG_HOME/erlang/.erlang.cookie (~/.config if the variable is unset). On success the caller owns the cookie
 * and calls cookie_wipe() right after the handshake. On failure nothing is left to wipe.
 */
#ifndef ETRACE_COOKIE_H
#define ETRACE_COOKIE_H

#include "../ground/err.h"

#define COOKIE_MAX 511

struct cookie {
    char text[COOKIE_MAX + 1]; /* NUL-terminated */
    char path[4096];           /* the file, for messages; cookie_wipe() keeps it */
};

bool cookie_read(const char *file_or_null, struct cookie *ret, struct err *e);
void cookie_wipe(struct cookie *c);

#endif
