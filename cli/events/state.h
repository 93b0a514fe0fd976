/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and reads the parts of a checkpoint: numbers in LEB128, times as eight bytes, and texts, each after its
 * length.
 *
 * The bytes of a recording are untrusted. A read beyond the end sets `bad` and returns 0 or an empty text, so a reader
 * may check `bad` once after several reads.
 */
#ifndef ETRACE_STATE_H
#define ETRACE_STATE_H

#include "../erlang/term_print.h"

struct state_in {
    const char *at, *end;
    bool bad;
};

void state_number(struct buf *to, uint64_t v);
void state_time(struct buf *to, int64_t v);
void state_text(struct buf *to, struct str text);

uint64_t state_read_number(struct state_in *in);
uint64_t state_read_count(struct state_in *in, uint64_t max); /* sets `bad` if the number is larger than `max` */
int64_t state_read_time(struct state_in *in);
struct str state_read_text(struct state_in *in, size_t max);

#endif
