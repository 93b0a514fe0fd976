/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the keys of requests (fold/request_key.h), and what a server was busy with, in Erlang or Elixir. */
#ifndef ETRACE_REQUEST_TEXT_H
#define ETRACE_REQUEST_TEXT_H

#include "../fold/request_rows.h"

/* count, {reserve,_,_}, 'Elixir.Shop'. A function is printed in Elixir, because only Elixir has tasks. */
void request_put_key(struct buf *to, const struct request_keys *keys, uint32_t key, bool elixir);
/* 3 x handle_call(count) */
void request_put_busy(struct buf *to, const struct request_keys *keys, const struct request_busy *b, bool elixir);

#endif
