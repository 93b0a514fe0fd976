/* SPDX-License-Identifier: Apache-2.0 */
/* Starts programs. The caller waits for their end. */
#ifndef ETRACE_SPAWN_H
#define ETRACE_SPAWN_H

#include <sys/types.h>

/*
 * Starts a program in a new process. The new process first sets its signals and its stack size as a shell would, and
 * calls prepare(). Returns 0, or the errno if the program could not be started.
 */
int spawn_program(char **argv, void (*prepare)(void *data), void *data, pid_t *ret_pid);

/* Returns a file descriptor that is readable when the process has ended, or -1 with errno. */
int spawn_end(pid_t pid);

#endif
