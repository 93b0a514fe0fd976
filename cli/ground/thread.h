/* SPDX-License-Identifier: Apache-2.0 */
/* Starts threads. */
#ifndef ETRACE_THREAD_H
#define ETRACE_THREAD_H

#include <pthread.h>

#include "macros.h"

/*
 * Starts a thread that blocks all signals except those for its own faults, so that the main thread gets them. `ret` is
 * for pthread_join(); if it is NULL, the thread is detached. Returns false if no thread could be created.
 */
bool thread_start(pthread_t *ret, void *(*run)(void *data), void *data);

#endif
