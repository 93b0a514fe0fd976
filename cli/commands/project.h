/*
 * Where the project of a node that boots has its compiled modules. mix and rebar3 put these directories into the code path
 * only later, so a node that is held at its beginning does not find them by itself.
 *
 * The node's own command line, working directory and environment say which project it is and which build of it, whatever
 * started the node: a shell, env, a script, iex -S mix.
 */
#ifndef ETRACE_PROJECT_H
#define ETRACE_PROJECT_H

#include "../ground/buf.h"

/* Appends the directories that exist, each with a ':' behind it; nothing when it is no project of mix or rebar3. */
void project_paths(long vm, struct buf *ret_paths);

#endif
