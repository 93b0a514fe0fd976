/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a match specification to a program that the tracer can run instead (enum etw_step in nif/etrace_wire.h). It
 * supports heads of variables, constants, tuples, lists and maps; guards that compare these variables with constants or
 * test their type, and never raise an exception; and bodies that only show or hide the call. The match specification
 * still defines the meaning: if there is no program, or the node cannot run it, the node gets the specification.
 */
#ifndef ETRACE_MATCH_PROGRAM_H
#define ETRACE_MATCH_PROGRAM_H

#include "../erlang/term.h"

/*
 * Returns {Least, Most, Steps}, a program for calls with Least to Most arguments. Returns NULL if a program cannot
 * express the specification, or if the specification takes every call.
 */
term_t program_of(term_t match_spec, struct arena *a);

/* Prints one line for each step, with the prefix `first` for the first line and `other` for the rest. */
void program_print(term_t program, const char *first, const char *other, struct buf *b);

#endif
