/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helps the views that show single requests: gives the text of a request, its time, and whether its caller is on
 * another node.
 */
#ifndef ETRACE_REQUEST_EACH_H
#define ETRACE_REQUEST_EACH_H

#include "request_view.h"

/*
 * The captured() callback of struct request_pairs. Keeps at most 200 bytes of the request as text, in the language of
 * the server. Prints the text again if a later event shows that the language is another one. At most REQUESTS_OPEN
 * texts are kept at once.
 */
void request_keep_text(void *ctx, struct request *r, const struct term_env *env, const uint8_t *request);
struct str request_kept_text(const struct request *r); /* empty if the request was not captured */
/* Returns an event that has only the time of the first known event of the request, for the clocks. */
struct event request_moment(const struct request *r);
/* Returns true if the caller is on another node than the server. */
bool request_is_far(const struct request *r);

#endif
