/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes a command line from the rows of the commands and options, from epmd and from a live node. A child process
 * asks the node, and the completion waits for it at most 100 ms. Later answers are cached for the next time, in files
 * that only the user can read ($XDG_CACHE_HOME/etrace).
 */
#ifndef ETRACE_COMPLETE_H
#define ETRACE_COMPLETE_H

#include "../ground/buf.h"

/*
 * Takes the words before the current one (without the program) and the text of the current one so far. Appends
 * candidates, one a line. An empty line says that the current word is part of an expression, so no file name, and that
 * nothing is known to complete it.
 */
void complete(const char *const *words, size_t count, const char *current, struct buf *ret);

#endif
