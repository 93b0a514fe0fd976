/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the addresses of a host. An ordinary build asks the resolver of the C library (hosts_system.c). That resolver
 * loads plug-ins, which a static program cannot do, so a static build uses c-ares (hosts_ares.c).
 */
#ifndef ETRACE_HOSTS_H
#define ETRACE_HOSTS_H

#include "net.h"

bool hosts_parse(const char *text, struct addrs *ret); /* reads an address in digits; asks no name server */

/*
 * Waits for name servers, without a deadline. Returns NET_UNKNOWN if there is no such host, and NET_TIMEOUT if no name
 * server answered.
 */
enum net_status hosts_find(const char *host, struct addrs *ret);

#endif
