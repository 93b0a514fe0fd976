/* SPDX-License-Identifier: Apache-2.0 */
/* Splits paths as text, without looking at the file system. */
#ifndef ETRACE_PATH_H
#define ETRACE_PATH_H

#include <string.h>

/* Returns the part after the last slash. */
static inline const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

#endif
