/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a command to trace its node (`etrace … -- COMMAND`). Holds the command's first node until it is traced, passes
 * signals on and reports the exit status.
 *
 * The command shares the terminal and the process group: it reads the keys, and Ctrl-C reaches it as usual. An
 * expression in ERL_AFLAGS holds the node. erl evaluates it before the rest of its command line. The expression makes
 * sure that the node has a name, and sends name and cookie through a socket in a directory that only this user can
 * enter. It then waits until etrace lets it go on or ends. Before it waits, the expression restores the environment, so
 * that further nodes are not held. Releases and iex need an earlier hold (boot_hold.h).
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
    const struct node_opts *node_opts; /* options for TLS connections to the node; NULL: without TLS */
    /*
     * `listener`: the socket to which nodes connect; `talk`: the connection of the held node; `end` reports the end of
     * the command. fd -1: not open.
     */
    struct loop_fd listener, talk, end;
    /* `ends` accepts a connection from the node when the node ends; `rest` is this connection. fd -1: not open. */
    struct loop_fd ends, rest;
    char rest_path[120]; /* path of the socket on which `ends` listens */
    struct buf leftover; /* bytes from `rest` */
    int64_t rest_until;  /* loop_now() time at which etrace stops waiting for more bytes on `rest` */
    struct buf said;     /* input from the held node so far */
    char node[600];      /* name of the held node; empty: no node is held yet */
    /* path of the file with the cookie of the node, which child_go() deletes unless `keeps_cookie`; empty: none */
    char cookie_file[120];
    bool
        keeps_cookie; /* command_node_trace() sets it: the file stays until child_release(), for the traces of --then */
    /*
     * An expression that the node evaluates when it goes on; the node is then held after its own arguments are
     * evaluated. NULL: none, and the node is held before its own arguments.
     */
    const char *late;
    bool boots;   /* the command is a release or iex: `boot` holds the node if it can */
    bool unnamed; /* the node has no name of its own, so etrace gives it a name */
    struct boot_hold boot;
    bool ended;
    int status; /* exit status of the command as a shell reports it: 128 + N if signal N ended it */
};

/* Creates the private directory and its sockets. child_release() removes them, and the files that etrace put there. */
bool child_init(struct child *c, struct ctx *ctx, struct err *e);
void child_release(struct child *c);
/*
 * Removes the directory, and kills a node that has a `late` expression. For an exit that skips child_release(). A no-op
 * without a child.
 */
void child_panic(void);

/* Starts the command. The caller may set `late` and `node_opts` before. */
bool child_start(struct child *c, char **argv, struct err *e);

/* Serves the loop until a node is held. Returns false if the command has ended or a signal asks etrace to end. */
bool child_wait_node(struct child *c);
void child_go(struct child *c); /* lets the node go on and deletes its cookie file */

/*
 * Returns the batches that the node sends when it ends. Call it after the session has ended. Serves the loop until the
 * node has sent all of them, sends nothing for too long, or a signal ends the wait.
 */
struct str child_leftover(struct child *c);

void child_signal(struct child *c, int signal);

/* Waits until the command ends, passes signals on meanwhile, and returns the exit status. */
int child_wait(struct child *c);

#endif
