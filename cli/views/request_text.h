/* SPDX-License-Identifier: Apache-2.0 */
/* Prints parts of requests. Keys (fold/request_key.h) are printed in Erlang or Elixir. */
#ifndef ETRACE_REQUEST_TEXT_H
#define ETRACE_REQUEST_TEXT_H

#include "../fold/request_pairs.h"

/*
 * Prints a key, such as count, {reserve,_,_} or 'Elixir.Shop'. A function is always printed in Elixir, because it
 * belongs to a task, and only Elixir has tasks.
 */
void request_put_key(struct buf *to, const struct request_keys *keys, uint32_t key, bool elixir);
/* Prints 3 x handle_call(count). */
void request_put_busy(struct buf *to, const struct request_keys *keys, const struct request_busy *b, bool elixir);
void request_put_process(struct buf *to, const struct tracee *t); /* <0.84.0>(cart) */
void request_put_ns(struct buf *to, int64_t ns);                  /* prints a duration, and `-` for -1 */

#endif
