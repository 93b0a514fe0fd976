/*
 * What may come next on a command line: from the rows of the commands and their options, from epmd, and from a live node.
 * A node is asked in a process of its own, for which nobody waits longer than 100 ms; what it finds out later is kept for
 * the next time, in files that only the user can read ($XDG_CACHE_HOME/etrace).
 */
#ifndef ETRACE_COMPLETE_H
#define ETRACE_COMPLETE_H

#include "../ground/buf.h"

/* The words before the current one (without the program), and what there is of that one. Appends candidates, one a line. */
void complete(const char *const *words, size_t count, const char *current, struct buf *ret);

#endif
