/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interactive mode. Lines come from a terminal or a pipe and use the same options, compiler, sessions and views
 * as the commands of the shell. Traced events go into the scrollback, and every view reads them from there.
 *
 * Each file keeps its state to itself and calls only files below it in this list; a test checks that. Two calls lead
 * upward, both through pointers that repl.c sets: repl_step(), because code that waits must let everything else run,
 * and the handlers for messages of nodes.
 *
 *   repl.c             makes and wires the parts, reads lines, and is the one place that waits
 *   repl_complete.c    Tab
 *   repl_words.c       lines: expressions and :commands
 *   repl_settings.c    changes settings and applies them
 *   repl_shell.c       commands of the shell
 *   repl_views.c       the live view, other views of what was captured, text for the terminal
 *   repl_files.c       the files of -o
 *   repl_recorder.c    records on the nodes, and takes snapshots
 *   repl_probes.c      asks the nodes to trace the probes
 *   repl_reel.c        one view of the scrollback
 *   repl_nodes.c       attaching, leaving, attaching again
 *   repl_base.c        the state that all of these share
 *   repl_options.c     the values of the options
 *   repl_probe_list.c  probes as data
 *   repl_history.c     lines of earlier sessions
 *   repl_syntax.c      the text of a line
 *   line.c             the line editor
 */
#ifndef ETRACE_REPL_H
#define ETRACE_REPL_H

#include "../commands/cmd.h"

extern const struct cmd cmd_repl;

#endif
