/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for the cookie of a node in the places where the node itself may have it from, in this order:
 *
 *   1. --cookie-file; then nothing else is tried
 *   for a node of this host whose process /proc shows, what its process was given:
 *   2. -setcookie among its arguments, which include vm.args, ERL_AFLAGS, ERL_FLAGS and ERL_ZFLAGS
 *   3. RELEASE_COOKIE in its environment
 *   4. releases/COOKIE below the RELEASE_ROOT of its environment
 *   5. .erlang.cookie in its home directory, else in its XDG directory
 *   for each node:
 *   6. $RELEASE_COOKIE in our environment
 *   7. our own .erlang.cookie, else that of our XDG directory
 *
 * With ssh, /proc and the files of 2 to 5 are those of the other host, read by the user of ssh, and so is, before 6:
 *   .erlang.cookie in the home directory of that user, else in the XDG directory
 *
 * Nodes log a refused connection, so equal cookies are tried once, and at most COOKIES_TRIES different ones.
 *
 *     cookies_begin(&s, file, ospid);
 *     while ((c = cookies_next(&s)))     reads a source only when those before it were refused, or had to be kept
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
    struct ssh *ssh;  /* the host of that process; NULL: this one */
    long ospid;       /* 0: the node's process is unknown */
    unsigned next;    /* the next source */
    bool bytes;       /* the last cookie was tried as text in UTF-8; its bytes come next (cookie_narrow()) */
    struct cookie tried[COOKIES_TRIES];
    size_t count;
    struct err why; /* the first source that has no usable cookie; status 0: none */
};

bool cookies_hidden(long ospid); /* returns true if the environment and the files of this process are hidden from us */
void cookies_begin(struct cookies *s, const char *file, struct ssh *ssh, long ospid);
const struct cookie *cookies_next(struct cookies *s); /* NULL: there is no other; valid until cookies_end() */
void cookies_keep(struct cookies *s);                 /* notes that the last cookie was not sent (trust.h) */
size_t cookies_sent(const struct cookies *s);         /* returns how many cookies were sent */
void cookies_end(struct cookies *s);                  /* wipes the cookies and keeps their sources */

/* Sets *e to the reason why there is no cookie, after the first cookies_next() has returned NULL. Returns false. */
bool cookies_none(const struct cookies *s, struct err *e);
/* Lists the sources of the cookies that were tried, separated by commas. */
void cookies_tried(const struct cookies *s, char *ret, size_t size);

#endif
