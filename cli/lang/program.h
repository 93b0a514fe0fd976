/*
 * What the tracer itself can decide in the place of a match specification (enum etw_step in nif/etrace_wire.h): heads of
 * variables, constants, tuples, lists and maps; guards that compare these variables with constants or ask for their type,
 * none of which can fail; bodies that do nothing but show the call, or hide it. The specification stays what is meant: where
 * there is no such program, or the node cannot have it, the specification is what it is given.
 */
#ifndef ETRACE_LANG_PROGRAM_H
#define ETRACE_LANG_PROGRAM_H

#include "../erlang/term.h"

/* {Least, Most, Steps}; NULL: the specification says more than that, or takes every call. */
term_t program_of(term_t match_spec, struct arena *a);

/* A line for each step; what stands in front of the first one, and of the others. */
void program_print(term_t program, const char *first, const char *other, struct buf *b);

#endif
