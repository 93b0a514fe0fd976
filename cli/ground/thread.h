/* SPDX-License-Identifier: Apache-2.0 */
/* Starts threads. */
#ifndef ETRACE_THREAD_H
#define ETRACE_THREAD_H

#include <pthread.h>

#include "macros.h"

/* The thread blocks all signals except its own faults, so the main thread gets all others, whatever it blocks now.
 * `ret` is for pthread_join(); NULL detaches the thread. False: no thread could be created. */
bool thread_start(pthread_t *ret, void *(*run)(void *data), void *data);

#endif
