/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the interactive mode. Lines come from a terminal or a pipe and use the same options, compiler, sessions and
 * views as the commands of the shell. Traced events go into the scrollback, and every view reads them from there.
 *
 * Each file keeps its state to itself and calls only files below it in this list; a test checks that no calls form a
 * cycle. Two calls lead upward, both through pointers that repl.c sets: repl_step(), because code that waits must let
 * everything else run, and the handlers for messages of nodes.
 *
 *   repl.c             makes the parts and connects them, reads lines, and runs the loop while the session waits
 *   repl_complete.c    completes the line for Tab
 *   repl_words.c       runs lines: expressions and :commands
 *   repl_settings.c    changes settings and makes them effective
 *   repl_shell.c       runs commands of the shell
 *   repl_views.c       shows events: the live view, other views of captured events, text for the terminal
 *   repl_files.c       writes the files of -o
 *   repl_recorder.c    makes the nodes record, and takes snapshots
 *   repl_probes.c      sends the nodes requests to trace the probes
 *   repl_reel.c        reads the scrollback for one view
 *   repl_nodes.c       attaches to nodes, detaches from them, and attaches again
 *   repl_base.c        waiting and errors, for all files above
 *   repl_options.c     the values of the options
 *   repl_probe_list.c  the list of probes
 *   repl_history.c     lines of earlier sessions
 *   repl_syntax.c      parses the text of a line
 *   editor.c           lets the user edit the line
 */
#ifndef ETRACE_REPL_H
#define ETRACE_REPL_H

#include "../commands/cmd.h"

extern const struct cmd cmd_repl;

#endif
