/*
 * The cookie: read by OTP's own rules, held as short as possible.
 *
 * A given file is used as it is named; else $HOME/.erlang.cookie, else $XDG_CONFIG_HOME/erlang/.erlang.cookie (~/.config
 * without the variable). The caller wipes it with cookie_wipe() as soon as the handshake is over; a failure has wiped it.
 */
#ifndef ETRACE_COOKIE_H
#define ETRACE_COOKIE_H

#include "../ground/err.h"

#define COOKIE_MAX 511

struct cookie {
    char text[COOKIE_MAX + 1]; /* NUL-terminated */
    char path[4096];           /* where it was read, for messages; kept by cookie_wipe() */
};

bool cookie_read(const char *file_or_null, struct cookie *ret, struct err *e);
void cookie_wipe(struct cookie *c);

#endif
