/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes a command line from the rows of the commands and options, from epmd and from a live node. A child process
 * asks the node, and the completion waits for it for a moment only. Answers that come later are cached for the next
 * time, in files that only the user can read ($XDG_CACHE_HOME/etrace).
 */
#ifndef ETRACE_COMPLETE_H
#define ETRACE_COMPLETE_H

#include "../ground/buf.h"

/*
 * Appends the candidates for the current word, one in each line. `words` are the words before it (without the program),
 * and `current` is its text so far. An empty line means that the word is part of an expression for which nothing is
 * known, so the shell must not offer file names.
 */
void complete(const char *const *words, size_t count, const char *current, struct buf *ret);

#endif
