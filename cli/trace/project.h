/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the compiled modules of a project for a node that boots. mix and rebar3 add the directories of these modules to
 * the code path only later, so a held node does not find the modules by itself.
 *
 * The node's command line, working directory and environment identify the project and its build, however the node was
 * started: by a shell, env, a script or iex -S mix.
 */
#ifndef ETRACE_PROJECT_H
#define ETRACE_PROJECT_H

#include "../ground/buf.h"

/*
 * Appends those directories of the project that exist, each followed by a colon. `vm` is the process id of the node.
 * Appends nothing if the node runs no project of mix or rebar3.
 */
void project_paths(long vm, struct buf *ret_paths);

#endif
