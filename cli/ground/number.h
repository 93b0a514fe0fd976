/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints numbers: integers (only the size of one with more than 1700 bytes), floats with the fewest digits that read
 * back to the same value, durations.
 */
#ifndef ETRACE_NUMBER_H
#define ETRACE_NUMBER_H

#include "buf.h"

#define FLOAT_ROOM 48
char *print_float(char *to, double value);     /* writes at most FLOAT_ROOM bytes; returns the end */
char *print_digits(char *to, int64_t value);   /* writes at most 20 bytes; returns the end */
char *print_natural(char *to, uint64_t value); /* like print_digits(), for unsigned values */
void print_u64(struct buf *to, uint64_t value);
void print_i64(struct buf *to, int64_t value);
void print_big(struct buf *to, const uint8_t *magnitude, size_t bytes, bool negative); /* lowest byte first */
void print_micros(char *to, uint32_t micros); /* writes the six digits of a fraction of a second */
void print_us(struct buf *to, int64_t ns);    /* prints microseconds with a fraction; nothing if ns is negative */
/* Prints a duration with a unit, such as 812ns, 575us, 12.3ms or 1.04s. */
void print_duration(struct buf *to, int64_t ns);

#endif
