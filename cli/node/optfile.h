/*
 * The file that -ssl_dist_optfile names: [{server, [Option]}, {client, [Option]}]. Of the client's options those are taken
 * that say whom to trust and who one is; what else stands there (funs, ciphers, …) is passed over.
 */
#ifndef ETRACE_OPTFILE_H
#define ETRACE_OPTFILE_H

#include "tls.h"

#define OPTFILE_TEXT 4096

struct optfile {
    struct tls_options options; /* its texts stand below */
    char ca[OPTFILE_TEXT], cert[OPTFILE_TEXT], key[OPTFILE_TEXT], password[OPTFILE_TEXT], host[OPTFILE_TEXT];
};

bool optfile_read(const char *path, struct optfile *ret, struct err *e);
void optfile_wipe(struct optfile *o); /* a password may be in it */

#endif
