/* Room for the stacks of this process, whatever limit it was started with. */
#ifndef ETRACE_STACK_H
#define ETRACE_STACK_H

#include "err.h"

/*
 * To be called before any thread is started. A stack that may grow too little ends the process with a signal, so a low limit is
 * raised as far as that is allowed, and false is returned where it is still too low. Threads have stacks of one size, whatever
 * the limit: one that is very high would take as much of the address space for each.
 */
bool stack_ready(struct err *e);

void stack_give_back(void); /* the limit as it was, for a program that is started */

#endif
