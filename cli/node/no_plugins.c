/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces, in a static program, the functions of the C library that load shared libraries. Such a library needs the
 * version of the C library that the program has, and may crash with another one. etrace calls none of these functions,
 * but libcrypto, libei and c-ares refer to them. All replacements fail.
 */
#include <errno.h>
#include <netdb.h>

#include "../ground/mem.h"

void *__wrap_dlopen(const char *file, int mode); /* the linker puts this function in the place of dlopen() */
void *__wrap_dlopen(const char *file UNUSED, int mode UNUSED)
{
    return NULL;
}

int getaddrinfo(const char *restrict host UNUSED, const char *restrict service UNUSED,
                const struct addrinfo *restrict hints UNUSED, struct addrinfo **restrict ret UNUSED)
{
    return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo *all UNUSED)
{
}

int getnameinfo(const struct sockaddr *restrict sa UNUSED, socklen_t len UNUSED, char *restrict host UNUSED,
                socklen_t host_size UNUSED, char *restrict service UNUSED, socklen_t service_size UNUSED,
                int flags UNUSED)
{
    return EAI_FAIL;
}

static struct hostent *no_host(void)
{
    h_errno = NO_RECOVERY;
    return NULL;
}

static int no_host_r(struct hostent **ret, int *ret_error)
{
    *ret = NULL;
    *ret_error = NO_RECOVERY;
    return ENOENT;
}

struct hostent *gethostbyname(const char *host UNUSED)
{
    return no_host();
}

struct hostent *gethostbyaddr(const void *addr UNUSED, socklen_t len UNUSED, int family UNUSED)
{
    return no_host();
}

int gethostbyname_r(const char *restrict host UNUSED, struct hostent *restrict entry UNUSED, char *restrict buf UNUSED,
                    size_t size UNUSED, struct hostent **restrict ret, int *restrict ret_error)
{
    return no_host_r(ret, ret_error);
}

int gethostbyaddr_r(const void *restrict addr UNUSED, socklen_t len UNUSED, int family UNUSED,
                    struct hostent *restrict entry UNUSED, char *restrict buf UNUSED, size_t size UNUSED,
                    struct hostent **restrict ret, int *restrict ret_error)
{
    return no_host_r(ret, ret_error);
}

struct servent *getservbyname(const char *name UNUSED, const char *protocol UNUSED)
{
    return NULL;
}

int getservbyport_r(int port UNUSED, const char *restrict protocol UNUSED, struct servent *restrict entry UNUSED,
                    char *restrict buf UNUSED, size_t size UNUSED, struct servent **restrict ret)
{
    *ret = NULL;
    return ENOENT;
}
