/* MD5, by which the node makes names (tracer_files.hrl); it protects nothing here. */
#ifndef ETRACE_MD5_H
#define ETRACE_MD5_H

#include "../ground/macros.h"

#define MD5_BYTES 16

void md5(struct str text, unsigned char ret[static MD5_BYTES]);

#endif
