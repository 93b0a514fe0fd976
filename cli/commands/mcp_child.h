/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command of etrace in a child process, for a call of a tool, and reads its output. The child ends in an orderly
 * way, as after Ctrl-C, when its time is over, when the call is cancelled, or when the server ends, even by a crash.
 */
#ifndef ETRACE_MCP_CHILD_H
#define ETRACE_MCP_CHILD_H

#include <sys/types.h>

#include "../ground/err.h"
#include "../ground/loop.h"
#include "../ground/texts.h"

/* The owner zeroes the struct and sets the members up to `ended`. */
struct mcp_child {
    struct loop *loop;
    void *data;
    void (*output)(void *data, struct str bytes);  /* gets standard output of the child */
    void (*message)(void *data, struct str bytes); /* gets standard error of the child */
    /* called when the child has ended and all its output was read; the owner may free the struct in it */
    void (*ended)(void *data);
    pid_t pid;  /* 0: not started */
    int status; /* exit status of the child, valid in ended(); -1: a signal ended it */
    bool late;  /* the child was stopped because its time was over */
    bool told;  /* SIGTERM was sent */
    struct loop_fd out, err, end;
    struct loop_timer timer;
};

/* Starts the command and its arguments in `words`. Stops it after `most_ms`. */
bool mcp_child_start(struct mcp_child *c, const struct texts *words, int64_t most_ms, struct err *e);

/* Sends SIGTERM, and SIGKILL if the child does not end in time. ended() is called later. */
void mcp_child_stop(struct mcp_child *c);

#endif
