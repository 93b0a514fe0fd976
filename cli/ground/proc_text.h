/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of /proc/PID whose texts end in NULs: cmdline and environ. */
#ifndef ETRACE_PROC_TEXT_H
#define ETRACE_PROC_TEXT_H

#include "../ground/buf.h"

/*
 * Reads the whole file into *b, and adds one NUL. Returns false if the file cannot be read or is larger than 256 KiB.
 */
bool proc_read(const char *pid, const char *name, struct buf *b);

/* Overwrites the bytes of *b and releases the buffer: arguments and environments of nodes can contain cookies. */
void proc_wipe(struct buf *b);

/* Returns the text after `text`, or NULL at the end. `text` is the first text (b->data) or an earlier result. */
const char *proc_next(const struct buf *b, const char *text);

bool proc_has(const struct buf *b, const char *wanted);

/* Returns the value of NAME in an environment, or NULL if it is not set. */
const char *proc_env(const struct buf *b, const char *name);

#endif
