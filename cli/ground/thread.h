/* A thread that is started and left to itself. */
#ifndef ETRACE_THREAD_H
#define ETRACE_THREAD_H

#include "macros.h"

/* Signals are the main thread's, but for those of what goes wrong in this one. false: there is none left. */
bool thread_start(void *(*run)(void *data), void *data);

#endif
