/* SPDX-License-Identifier: Apache-2.0 */
#include "thread.h"

#include <signal.h>

/* Faults stay unblocked: a blocked fault ends the process before its handler can restore the terminal. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

bool thread_start(pthread_t *ret, void *(*run)(void *data), void *data)
{
    sigset_t others, before;
    pthread_t thread;

    sigfillset(&others);
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        sigdelset(&others, faults[i]);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    bool ok = !pthread_create(&thread, NULL, run, data);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ok && ret)
        *ret = thread;
    else if (ok)
        pthread_detach(thread);
    return ok;
}
