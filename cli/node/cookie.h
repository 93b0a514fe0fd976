/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one cookie by the rules of OTP, from a file, standard input or a text, and wipes it from memory. cookies.h says
 * which ones etrace tries.
 *
 * On success the caller owns the cookie and calls cookie_wipe() right after the handshake. On failure nothing is left
 * to wipe.
 */
#ifndef ETRACE_COOKIE_H
#define ETRACE_COOKIE_H

#include <sys/types.h>

#include "../ground/err.h"

#define COOKIE_MAX 511

/* The source of a cookie. It decides where the cookie may go (trust.h). */
enum cookie_owner {
    COOKIE_OWN,     /* our environment or our files */
    COOKIE_GIVEN,   /* --cookie-file */
    COOKIE_PROCESS, /* what the process of a node was given */
};

struct cookie {
    char text[COOKIE_MAX + 1]; /* NUL-terminated */
    enum cookie_owner owner;
    long ospid;     /* the process of COOKIE_PROCESS */
    bool kept;      /* not sent: the owner of the other end of the connection must not have it */
    char from[512]; /* its source, for messages; cookie_wipe() keeps it */
    unsigned open;  /* the mode of its file if other users can access it, else 0 */
};

/*
 * These return 1 if they have read a cookie, 0 if there is a cookie that cannot be used (*e says why), and -1 if there
 * is none (*e is unchanged).
 */
int cookie_read(const char *file, struct cookie *ret, struct err *e); /* follows symbolic links; "-": see below */
int cookie_read_own(struct cookie *ret, struct err *e);               /* the default files of OTP */
/* Reads `fd`, which it does not close. */
int cookie_read_fd(int fd, const char *from, struct cookie *ret, struct err *e);
/* Takes the cookie from the content of a file. */
int cookie_take_file(const char *bytes, size_t len, const char *from, struct cookie *ret, struct err *e);
/* Takes the cookie from an argument or a variable as it is, because OTP does not check it either. */
int cookie_take(const char *text, const char *from, struct cookie *ret, struct err *e);

/*
 * The file "-" is standard input. The first reader waits for its first line, which stays in memory until the program
 * ends: several nodes need it, and --reattach does. Safe for threads.
 */
bool cookie_is_typed(const char *file); /* returns true if it is "-", and standard input is a terminal */
void cookie_await(const char *file);    /* if it is "-", waits for that line; the file may be NULL */

void cookie_wipe(struct cookie *c);

/*
 * Replaces a text in UTF-8 by its characters as bytes (Latin-1), which a node with a locale in UTF-8 takes for its
 * cookie. A node with another locale takes the bytes as they are. Returns false if both are the same, or a node cannot
 * have such a cookie.
 */
bool cookie_narrow(struct cookie *c);

/* Hides our memory, which has the cookie and traced data, from core dumps and from other processes of this user. */
void cookie_protect(void);

/* Abbreviates the home directory to ~. */
void cookie_path_shown(const char *path, char *ret, size_t size);

#endif
