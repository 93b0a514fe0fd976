/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of /proc/PID whose texts end in NULs: cmdline and environ. */
#ifndef ETRACE_PROC_TEXT_H
#define ETRACE_PROC_TEXT_H

#include "../ground/buf.h"

/* Replaces *b by the whole file plus one NUL. False: it cannot be read or is larger than 256 KiB. */
bool proc_read(const char *pid, const char *name, struct buf *b);

/* Releases *b after clearing its bytes: arguments and environments of nodes can contain cookies. */
void proc_wipe(struct buf *b);

/* Returns the text after `text`, which must be one of the file; NULL at the end. b->data is the first one. */
const char *proc_next(const struct buf *b, const char *text);

bool proc_has(const struct buf *b, const char *wanted);

/* Returns the value of NAME in an environment; NULL: not set. */
const char *proc_env(const struct buf *b, const char *name);

#endif
