/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has what views need that show each request: the text of the request, its time, and whether its caller is on another
 * node.
 */
#ifndef ETRACE_REQUEST_EACH_H
#define ETRACE_REQUEST_EACH_H

#include "request_view.h"

/*
 * For captured() of struct request_pairs. Keeps the request as text of at most 200 bytes, in the language of the
 * server, which a later event may change. At most REQUESTS_OPEN texts are kept at once.
 */
void request_keep_text(void *ctx, struct request *r, const struct term_env *env, const uint8_t *request);
struct str request_kept_text(const struct request *r); /* empty if the request was not captured */
/* Returns an event with the time of the request's first event, for the clocks. */
struct event request_moment(const struct request *r);
/* Returns true if the caller is on another node than the server. */
bool request_is_far(const struct request *r);

#endif
