/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes a command line from the tables of commands and options, from epmd and from a live node. A child process
 * asks the node, and the completion waits only a moment for it. The child writes a late answer to a cache file for the
 * next completion. Only the user can read the cache files ($XDG_CACHE_HOME/etrace).
 */
#ifndef ETRACE_COMPLETE_H
#define ETRACE_COMPLETE_H

#include "../ground/buf.h"

/*
 * Appends the candidates for the current word, one per line. `words` are the words before it, without the name of the
 * program; `current` is the part of the word that is typed so far. An empty line means: the word belongs to an
 * expression for which there are no candidates, so the shell must not complete file names.
 */
void complete(const char *const *words, size_t count, const char *current, struct buf *ret);

#endif
