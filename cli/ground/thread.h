/* SPDX-License-Identifier: Apache-2.0 */
/* Starts detached threads. */
#ifndef ETRACE_THREAD_H
#define ETRACE_THREAD_H

#include "macros.h"

/* The thread blocks all signals except its own faults, so the main thread gets all others. False: no thread could be
 * created. */
bool thread_start(void *(*run)(void *data), void *data);

#endif
