/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MD5. The node derives names of files with it (tracer_files.hrl), and inject.c computes the same names. Not for
 * security.
 */
#ifndef ETRACE_MD5_H
#define ETRACE_MD5_H

#include "../ground/macros.h"

#define MD5_BYTES 16

void md5(struct str text, unsigned char ret[static MD5_BYTES]);

#endif
