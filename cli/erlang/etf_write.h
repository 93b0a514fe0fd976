/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the external term format, one function for each kind of term. No function can fail. After the head of a tuple
 * or map the caller must write as many elements as the head says. After the head of a list with n elements it must
 * write n terms and etf_nil() or another tail.
 */
#ifndef ETRACE_ETF_WRITE_H
#define ETRACE_ETF_WRITE_H

#include "../ground/buf.h"

void etf_version(struct buf *b); /* writes the version byte 131, once, before a top-level term */
void etf_atom(struct buf *b, struct str name);
void etf_atomz(struct buf *b, const char *name);
void etf_int(struct buf *b, int64_t value);
void etf_big(struct buf *b, struct str decimal); /* takes any number of digits, with a leading '-' if negative */
void etf_float(struct buf *b, double value);
void etf_bin(struct buf *b, const void *bytes, size_t len);
void etf_bits(struct buf *b, const void *bytes, size_t len, unsigned last_bits);
void etf_tuple(struct buf *b, size_t arity);
void etf_list(struct buf *b, size_t count); /* writes nothing for count 0; follow with etf_nil() */
void etf_nil(struct buf *b);
void etf_map(struct buf *b, size_t pairs);
void etf_pid(struct buf *b, struct str node, uint32_t id, uint32_t serial, uint32_t creation);
void etf_port(struct buf *b, struct str node, uint64_t id, uint32_t creation);
void etf_ref(struct buf *b, struct str node, uint32_t creation, const uint32_t *words, size_t nwords);
void etf_export(struct buf *b, struct str module, struct str function, int arity);

#endif
