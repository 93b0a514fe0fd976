/* SPDX-License-Identifier: Apache-2.0 */
/* Runs commands of the shell, such as `etrace ls`, as :commands, such as :ls. */
#ifndef ETRACE_REPL_SHELL_H
#define ETRACE_REPL_SHELL_H

#include "../commands/cmd.h"
#include "repl_parts.h"

/*
 * Runs the command with the words of `rest` and the current node. Until the command ends, it owns the terminal and
 * Ctrl-C.
 */
int repl_shell(const struct repl_parts *r, const struct cmd *c, char *rest);

#endif
