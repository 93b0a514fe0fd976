/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads regular files whose size is limited, such as files of options. Never waits: a pipe, a terminal or a directory
 * is an error. Pipes of expressions are read elsewhere (trace/exprs_read.c).
 *
 * `shown` names the file in errors, which begin with "cannot read SHOWN: ".
 */
#ifndef ETRACE_SMALL_FILE_H
#define ETRACE_SMALL_FILE_H

#include "buf.h"
#include "err.h"

/* Opens a regular file. Returns -1, with an error, for a file that cannot be read. */
int small_file_open(const char *path, const char *shown, enum err_status status, struct err *e);

/*
 * Appends the rest of a regular file to `to`, up to `most` bytes. A longer rest is an error. Makes room for all bytes
 * at once, so that a file with secrets leaves no copies in memory. The caller closes the file and erases the buffer.
 */
bool small_file_read_fd(int fd, const char *shown, size_t most, struct buf *to, enum err_status status, struct err *e);
bool small_file_read(const char *path, const char *shown, size_t most, struct buf *to, enum err_status status,
                     struct err *e);

bool small_file_fits(size_t len, const char *shown, size_t most, enum err_status status, struct err *e);

#endif
