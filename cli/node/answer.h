/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns Erlang terms that the companion sends into error messages. answer.c also defines session_error() of session.h.
 * Nothing here prints, or uses the state of a session.
 */
#ifndef ETRACE_ANSWER_H
#define ETRACE_ANSWER_H

#include "../erlang/etf.h"
#include "../ground/buf.h"
#include "../ground/err.h"

/*
 * Sets *e from the exit reason of the owner, the tracer's process on the node, which ended although nobody stopped the
 * trace.
 */
void answer_gone(struct etf reason, const char *node, struct err *e);

#endif
