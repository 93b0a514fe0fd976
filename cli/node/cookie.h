/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one cookie by the rules of OTP, from a file, standard input or a text. cookies.h says which cookies etrace
 * tries.
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
    COOKIE_OWN,     /* from our environment or our files */
    COOKIE_GIVEN,   /* from --cookie-file */
    COOKIE_PROCESS, /* from an argument, a variable or a file of the node's process */
};

struct cookie {
    char text[COOKIE_MAX + 1]; /* NUL-terminated */
    enum cookie_owner owner;
    long ospid;     /* the node's process, for COOKIE_PROCESS; else 0 */
    bool kept;      /* trust.h withheld the cookie, so it was not sent */
    char from[512]; /* the cookie's source, for messages; cookie_wipe() keeps it */
    unsigned open;  /* the mode of the cookie's file if other users can access it, else 0 */
};

/*
 * These five functions return 1 if they have read a cookie. They return 0 if there is a cookie that cannot be used (*e
 * says why), and -1 if there is none (*e is unchanged).
 */
/* Follows symbolic links; "-" is standard input. */
int cookie_read(const char *file, struct cookie *ret, struct err *e);
/* Reads the first that exists of OTP's default files. */
int cookie_read_own(struct cookie *ret, struct err *e);
/* Reads the cookie from the file `fd`, which stays open. */
int cookie_read_fd(int fd, const char *from, struct cookie *ret, struct err *e);
/* Takes the cookie from the content of a file. */
int cookie_take_file(const char *bytes, size_t len, const char *from, struct cookie *ret, struct err *e);
/* Takes the cookie from an argument or a variable unchanged, because OTP does not check it either. */
int cookie_take(const char *text, const char *from, struct cookie *ret, struct err *e);

/*
 * The cookie file "-" is standard input. The first reader waits for the first line of the input. The line stays in
 * memory until the program ends, because each node and each reconnect of --reattach needs it. Safe for threads.
 */
bool cookie_is_typed(const char *file); /* returns true if `file` is "-" and standard input is a terminal */
void cookie_await(const char *file);    /* waits for the line if `file` is "-"; accepts NULL */

void cookie_wipe(struct cookie *c);

/*
 * Converts the cookie's text from UTF-8 to Latin-1. A node whose locale is UTF-8 decodes its cookie to these bytes; a
 * node with another locale uses the bytes of its file as they are. Returns false and changes nothing if both forms are
 * equal, or if Latin-1 lacks a character of the text.
 */
bool cookie_narrow(struct cookie *c);

/*
 * Hides our memory, which contains the cookie and traced data, from core dumps and from other processes of this user.
 */
void cookie_protect(void);

/* Copies the path, with ~ in place of our home directory. */
void cookie_path_shown(const char *path, char *ret, size_t size);

#endif
