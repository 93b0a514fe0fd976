/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns Erlang terms of the companion into error messages. session_error() of session.h is defined in answer.c, too.
 * Nothing here prints or knows the state of a session.
 */
#ifndef ETRACE_ANSWER_H
#define ETRACE_ANSWER_H

#include "../erlang/etf.h"
#include "../ground/buf.h"
#include "../ground/err.h"

/* Sets *e from the exit reason of an owner that ended without a request to do so. */
void answer_gone(struct etf reason, const char *node, struct err *e);

#endif
