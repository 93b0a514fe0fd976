/*
 * Which expressions of one command can have an event in common, and what they do with it, as far as the text of the expressions
 * says. No node is asked: a function of an application or with a behaviour may or may not be one that another expression names.
 */
#ifndef ETRACE_OVERLAP_H
#define ETRACE_OVERLAP_H

#include "asked.h"

/* Appends a paragraph to *b, with the numbers of the probes from 1 on; nothing where no two of them meet. */
void overlap_explain(struct asked *asked, struct buf *b);

#endif
