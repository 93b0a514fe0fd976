/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the stack sizes of this process and its threads, independent of the inherited limit. */
#ifndef ETRACE_STACK_SIZE_H
#define ETRACE_STACK_SIZE_H

#include "err.h"

/*
 * Raises a low stack limit as far as the hard limit allows. Returns false if the limit is still too low: a stack
 * overflow would then end the process with a signal. Also gives threads stacks of a fixed size. By default a thread's
 * stack has the size of the limit, and a very high limit would use up the address space. Call it before any thread is
 * started.
 */
bool stack_size_ready(struct err *e);

void stack_size_give_back(void); /* restores the inherited limit, for a program that etrace starts */

#endif
