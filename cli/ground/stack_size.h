/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the stack sizes of this process and its threads, independent of the inherited limit. */
#ifndef ETRACE_STACK_SIZE_H
#define ETRACE_STACK_SIZE_H

#include "err.h"

/*
 * Call it before any thread is started. Raises a low stack limit as far as the hard limit allows; returns false if it
 * is still too low, because a stack overflow would end the process with a signal. Threads get stacks of a fixed size:
 * by default they would take the limit, and a very high one would use up the address space.
 */
bool stack_size_ready(struct err *e);

void stack_size_give_back(void); /* restores the inherited limit, for a program that etrace starts */

#endif
