/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes messages to standard error without ever blocking, even on a stopped terminal (Ctrl-S) or a full pipe.
 *
 * Unwritten text waits in a bounded buffer. Lines beyond the bound are counted and dropped; a message reports their
 * number when there is room again. The owner polls `fd` for writing while `waiting` is not empty, and then calls
 * talk_on().
 */
#ifndef ETRACE_TALK_H
#define ETRACE_TALK_H

#include "buf.h"

struct talk {
    int fd;
    bool own; /* `fd` is our own non-blocking descriptor, not STDERR_FILENO */
    struct buf waiting;
    size_t left_out; /* lines dropped because `waiting` was full */
};

void talk_init(struct talk *t);
void talk_release(struct talk *t); /* drops waiting text */

void talk_say(struct talk *t, struct str lines);
void talk_on(struct talk *t);

#endif
