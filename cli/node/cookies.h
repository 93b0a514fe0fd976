/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the cookies that a node may accept, where the node itself may have got its cookie. The sources, in this order:
 *
 *   1. --cookie-file; if it is given, no other source is tried
 *   if the node runs on this host and /proc shows its process:
 *   2. -setcookie among its arguments, which include vm.args, ERL_AFLAGS, ERL_FLAGS and ERL_ZFLAGS
 *   3. RELEASE_COOKIE in its environment
 *   4. releases/COOKIE below the RELEASE_ROOT of its environment
 *   5. .erlang.cookie in its home directory, else in its XDG directory
 *   for every node:
 *   6. $RELEASE_COOKIE in our environment
 *   7. .erlang.cookie in our home directory, else in our XDG directory
 *
 * With ssh, etrace reads 2 to 5 on the other host, as the user of ssh. Between 5 and 6 it also tries .erlang.cookie in
 * the home directory of that user on the other host, else in that user's XDG directory.
 *
 * Nodes log each refused connection. Therefore etrace tries equal cookies once, and at most COOKIES_TRIES different
 * ones.
 *
 *     cookies_begin(&s, file, ssh, ospid);
 *     while ((c = cookies_next(&s)))     reads a source only if the cookies before it were refused or withheld
 *         connect with c->text
 *     cookies_end(&s);
 */
#ifndef ETRACE_COOKIES_H
#define ETRACE_COOKIES_H

#include "cookie.h"
#include "ssh.h"

#define COOKIES_TRIES 4

struct cookies {
    const char *file; /* borrowed; NULL: no --cookie-file */
    struct ssh *ssh;  /* the ssh to the host of the node's process; NULL: this host */
    long ospid;       /* the node's process; 0: unknown */
    unsigned next;    /* index of the next source */
    /* The last cookie was tried as cookie_narrow() converts it; its unconverted bytes are tried next. */
    bool bytes;
    struct cookie tried[COOKIES_TRIES];
    size_t count;
    struct err why; /* why the first unusable source has no cookie; status 0: no source failed */
};

bool cookies_hidden(long ospid); /* returns true if /proc hides the environment of this process from us */
void cookies_begin(struct cookies *s, const char *file, struct ssh *ssh, long ospid);
/* Returns NULL after the last cookie; valid until cookies_end(). */
const struct cookie *cookies_next(struct cookies *s);
void cookies_keep(struct cookies *s); /* notes that trust.h withheld the last cookie */
/*
 * Returns true if the cookie is our own, also if it was read from the node's process: most nodes have the cookie file
 * of our home directory. With --ssh, a cookie of the node's process does not count.
 */
bool cookies_is_own(struct cookies *s, const struct cookie *c);
size_t cookies_sent(const struct cookies *s); /* returns how many cookies were sent */
void cookies_end(struct cookies *s);          /* wipes the cookies and keeps their sources */

/*
 * Sets *e to the reason why no source has a cookie, and returns false. Call it if the first cookies_next() returned
 * NULL.
 */
bool cookies_none(const struct cookies *s, struct err *e);
/* Lists the sources of the cookies that were sent, separated by commas. */
void cookies_tried(const struct cookies *s, char *ret, size_t size);

#endif
