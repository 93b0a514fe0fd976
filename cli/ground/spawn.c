/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stack_size.h"

/* Executes the program in the new process. Writes errno to `failed` if that fails. */
static void become_program(char **argv, void (*prepare)(void *data), void *data, int failed)
{
    sigset_t none;

    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    stack_size_give_back();
    prepare(data);
    execvp(argv[0], argv);
    const int error = errno;
    const ssize_t n = write(failed, &error, sizeof error);
    (void)n;
    _exit(127);
}

int spawn_program(char **argv, void (*prepare)(void *data), void *data, pid_t *ret_pid)
{
    int failed[2], error = 0;

    signal(SIGCHLD, SIG_DFL); /* if SIGCHLD is ignored, waitpid() cannot return a status */
    if (pipe2(failed, O_CLOEXEC))
        return errno;
    const pid_t pid = fork();
    if (pid == 0)
        become_program(argv, prepare, data, failed[1]);
    if (pid < 0)
        error = errno;
    close(failed[1]);
    if (pid > 0 && read(failed[0], &error, sizeof error) == sizeof error)
        waitpid(pid, NULL, 0);
    close(failed[0]);
    *ret_pid = pid;
    return error;
}

int spawn_end(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0); /* sets FD_CLOEXEC */
}
