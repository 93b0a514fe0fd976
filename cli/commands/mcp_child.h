/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command of etrace in a process of its own, for a call of a tool, and reads what it prints. The process ends in
 * an orderly way, as after Ctrl-C, when its time is over, when the call is cancelled, and when this process ends,
 * however that happens.
 */
#ifndef ETRACE_MCP_CHILD_H
#define ETRACE_MCP_CHILD_H

#include <sys/types.h>

#include "../ground/err.h"
#include "../ground/loop.h"
#include "../ground/texts.h"

/* The owner zeroes it and sets the first members. */
struct mcp_child {
    struct loop *loop;
    void *data;
    void (*output)(void *data, struct str bytes);  /* of standard output */
    void (*message)(void *data, struct str bytes); /* of standard error */
    void (*ended)(void *data); /* the process has ended, everything was read; the owner may free the child */
    pid_t pid;                 /* 0: not started */
    int status;                /* for ended(): the exit status; -1: a signal ended the process */
    bool late;                 /* its time was over */
    bool told;                 /* it has got SIGTERM */
    struct loop_fd out, err, end;
    struct loop_timer timer;
};

/* `words`: the command and its arguments. Tells the process to end after `most_ms`. */
bool mcp_child_start(struct mcp_child *c, const struct texts *words, int64_t most_ms, struct err *e);

/* Tells the process to end, and kills it if it does not. ended() follows. */
void mcp_child_stop(struct mcp_child *c);

#endif
