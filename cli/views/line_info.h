/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the info terms of the VM as short text: the property lists of collections, heaps and time slices, and the
 * tuples of sequential traces. Prints any other term unchanged.
 */
#ifndef ETRACE_LINE_INFO_H
#define ETRACE_LINE_INFO_H

#include "line.h"

/* Prints the info of a collection or a system event. */
void info_line(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at);

#endif
