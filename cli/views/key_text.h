/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the keys of folds. A fold stores its keys as bytes and numbers, and each view prints the keys in its own
 * style.
 */
#ifndef ETRACE_KEY_TEXT_H
#define ETRACE_KEY_TEXT_H

#include "../fold/process_list.h"
#include "../fold/stats.h"

void stat_name(const struct stat *s, struct buf *to); /* includes the node if the figures are for one node */
/* Appends <0.84.0>(cart), with the node if there are several nodes. */
void process_list_label(const struct process_list *r, uint32_t number, struct buf *to);
/* Appends a line about the events that the list has left out, if there are any. `what` names them: "call". */
void process_list_missing(const struct process_list *r, const char *what, struct buf *to);

#endif
