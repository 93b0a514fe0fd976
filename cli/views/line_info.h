/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short text for the info terms of the VM: the property lists of collections, heaps and time slices, and the tuples of
 * sequential traces. Prints any other term unchanged.
 */
#ifndef ETRACE_LINE_INFO_H
#define ETRACE_LINE_INFO_H

#include "line.h"

/* Formats the info of a collection or a system event. */
void info_line(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at);

#endif
