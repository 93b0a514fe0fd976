/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the common work of all views of requests: feeds events to the pairs and figures (fold/request_pairs.h,
 * request_rows.h), and chooses the language.
 */
#ifndef ETRACE_REQUEST_VIEW_H
#define ETRACE_REQUEST_VIEW_H

#include "../fold/request_rows.h"
#include "clock.h"
#include "paint.h"
#include "sink.h"

struct request_view {
    struct sink sink;
    struct request_pairs pairs;
    struct request_rows rows;
    struct paint paint;
    struct clock clock;
    struct buf cell;
};

void request_view_init(struct request_view *q);
/* Callbacks for struct sink_type. */
bool request_view_open(struct sink *sink, struct err *e);
void request_view_event(struct sink *sink, const struct event *e);
void request_view_release(struct sink *sink);

/* Returns true if a text is printed in Elixir. `elixir`: the server is known to be written in Elixir. */
bool request_view_in_elixir(const struct request_view *q, bool elixir);
void request_view_put_key(const struct request_view *q, struct buf *to, uint32_t key, bool elixir);
void request_view_put_busy(const struct request_view *q, struct buf *to, const struct request_busy *b, bool elixir);

#endif
