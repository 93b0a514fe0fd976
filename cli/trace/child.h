/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a command to trace its node (`etrace … -- COMMAND`). Holds the command's first node until it is traced, passes
 * signals on and reports the exit status.
 *
 * The command shares the terminal and the process group: it reads the keys, and Ctrl-C reaches it as usual. An
 * expression in ERL_AFLAGS holds the node. erl evaluates it before the rest of its command line. The expression makes
 * sure that the node has a name, and sends name and cookie through a socket in a directory that only this user can
 * enter. It then waits until etrace lets it go on or ends. It first restores the environment, so that nodes which the
 * node starts are not held. Releases and iex need an earlier hold (boot_hold.h).
 */
#ifndef ETRACE_CHILD_H
#define ETRACE_CHILD_H

#include <sys/types.h>

#include "boot_hold.h"
#include "ctx.h"
#include "settings.h"

struct child {
    struct ctx *ctx;
    pid_t pid;
    char dir[96]; /* the private directory; a later etrace removes it if this one is killed; empty: none */
    int lock;     /* descriptor that locks `dir` while this process lives; -1: none */
    const struct node_opts *node_opts;  /* TLS options for the node; NULL: without TLS */
    struct loop_fd listener, talk, end; /* fd -1: not open */
    /* `ends` listens for the node when it ends, `rest` is that connection; fd -1: not open. */
    struct loop_fd ends, rest;
    char rest_path[120];   /* path of the socket `ends` */
    struct buf leftover;   /* bytes from `rest` */
    int64_t rest_until;    /* loop_now() time when to stop waiting for more of `leftover` */
    struct buf said;       /* input from the held node so far */
    char node[600];        /* name of the held node; empty: no node is held yet */
    char cookie_file[120]; /* a file in `dir` until child_go(); empty: none */
    /*
     * An expression for the node to evaluate after the hold. The hold then comes after the node's own arguments. NULL:
     * the hold comes before them.
     */
    const char *late;
    bool boots;   /* the command is a release or iex: `boot` holds the node if it can */
    bool unnamed; /* the node has no name of its own, so etrace gives it a name */
    struct boot_hold boot;
    bool ended;
    int status; /* exit status of the command as a shell reports it: 128 + N if signal N ended it */
};

/* Creates the private directory and its socket. child_release() removes it with the files that etrace put there. */
bool child_init(struct child *c, struct ctx *ctx, struct err *e);
void child_release(struct child *c);
/* Removes the directory and kills a `late` node, for an exit without unwinding. A no-op without a child. */
void child_panic(void);

/* Starts the command. The caller may set `late` and `node_opts` first. */
bool child_start(struct child *c, char **argv, struct err *e);

/* Serves the loop until a node is held. Returns false if the command has ended or a signal asks etrace to end. */
bool child_wait_node(struct child *c);
void child_go(struct child *c); /* lets the node go on and deletes its cookie file */

/*
 * Returns the batches that the node sends when it ends. Call it after the session has ended: it serves the loop until
 * they are complete.
 */
struct str child_leftover(struct child *c);

void child_signal(struct child *c, int signal);

/* Waits until the command ends, passes signals on meanwhile, and returns the exit status. */
int child_wait(struct child *c);

#endif
