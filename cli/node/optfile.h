/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a file for -ssl_dist_optfile: [{server, [Option]}, {client, [Option]}]. Takes the client options for
 * certificates, keys and verification. Ignores all other options, such as funs and ciphers.
 */
#ifndef ETRACE_OPTFILE_H
#define ETRACE_OPTFILE_H

#include "tls.h"

#define OPTFILE_TEXT 4096

struct optfile {
    struct tls_options options; /* points into the texts below, so do not copy this struct */
    char ca[OPTFILE_TEXT], cert[OPTFILE_TEXT], key[OPTFILE_TEXT], password[OPTFILE_TEXT], host[OPTFILE_TEXT];
};

bool optfile_read(const char *path, struct optfile *ret, struct err *e);
void optfile_wipe(struct optfile *o); /* erases everything, because of the password */

#endif
