/*
 * A command that is started to be traced (`etrace … -- COMMAND`): its first node is held until it is traced, its signals
 * and its end are passed on.
 *
 * The command shares the terminal and the process group: it reads the keys, and Ctrl-C reaches it as without us. The node is
 * held by an expression in ERL_AFLAGS, which erl evaluates before it does what its command line says: it makes sure that the
 * node has a name, tells it and its cookie through a socket in a directory that only this user can enter, and waits for the
 * word to go on, or for our end. It puts the environment back first, so that what the node starts is not held. What
 * would be too late for that is held earlier (boot_hold.h).
 */
#ifndef ETRACE_CHILD_H
#define ETRACE_CHILD_H

#include <sys/types.h>

#include "boot_hold.h"
#include "ctx.h"
#include "groups.h"

struct child {
    struct ctx *ctx;
    pid_t pid;
    char dir[96]; /* removed in the end, or by who comes next; empty: none */
    int lock;     /* on it, for as long as we live; -1: none */
    const struct node_opts *node_opts; /* how it speaks; NULL: without TLS */
    struct loop_fd listener, talk, end; /* fd -1: none */
    struct buf said;      /* what the node that is held has said so far */
    char node[600];       /* its name; empty: none is held yet */
    char cookie_file[120]; /* in `dir`; for as long as it is needed */
    const char *late;      /* what the node evaluates after it was held, when its own words come before; NULL: it is held first */
    bool boots;            /* its node is held by `boot` */
    bool unnamed;          /* and gets a name from us */
    struct boot_hold boot;
    bool ended;
    int status; /* of the command as a shell would say: 128 + N when signal N ended it */
};

/* The private directory, for what the command needs to find there; child_release() removes it, and of what is in it what is carried. */
bool child_init(struct child *c, struct ctx *ctx, struct err *e);
void child_release(struct child *c);
void child_panic(void); /* the same at once, for a program that ends without unwinding; harmless without one */

/* May be preceded by setting `late` and `node_opts`. */
bool child_start(struct child *c, char **argv, struct err *e);

/* Serves the loop until a node is held (true), or the command has ended or was asked to. */
bool child_wait_node(struct child *c);
void child_go(struct child *c); /* the node goes on; its cookie is forgotten */

void child_signal(struct child *c, int signal);

/* Waits for the end of the command, passing on signals, and returns its status. */
int child_wait(struct child *c);

#endif
