/* SPDX-License-Identifier: Apache-2.0 */
/* For the views that show each request: its text, its time and where its caller is. */
#ifndef ETRACE_REQUEST_EACH_H
#define ETRACE_REQUEST_EACH_H

#include "request_view.h"

/*
 * For struct request_pairs: keeps the request as text of at most 200 bytes, in the language of the server, which a
 * later event may tell. At most REQUESTS_OPEN of them are kept at once.
 */
void request_keep_text(void *ctx, struct request *r, const struct term_env *env, const uint8_t *request);
struct str request_kept_text(const struct request *r); /* empty: the request was not captured */
/* The clocks print the time of an event: that of the first one of the request. */
struct event request_moment(const struct request *r);
/* Whether the caller is on another node than the server. */
bool request_is_far(const struct request *r);

#endif
