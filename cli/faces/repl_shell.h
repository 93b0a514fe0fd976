/* SPDX-License-Identifier: Apache-2.0 */
/* Runs commands of etrace that are not about the session, such as `etrace ls`, as :commands, such as :ls. */
#ifndef ETRACE_REPL_SHELL_H
#define ETRACE_REPL_SHELL_H

#include "../commands/cmd.h"
#include "repl_parts.h"

/*
 * Runs the command with the arguments in `rest`, on the current node. The command owns the terminal and Ctrl-C until it
 * ends.
 */
int repl_shell(const struct repl_parts *r, const struct cmd *c, char *rest);

#endif
