/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the figures of tables of counted events, for the text, JSON and CSV of these tables. */
#ifndef ETRACE_GROUP_TEXT_H
#define ETRACE_GROUP_TEXT_H

#include "../erlang/term_print.h"
#include "../fold/group_table.h"
#include "sink.h"

/* Returns the printer for the keys of a table. */
const struct printer *group_printer(const struct groups *g, enum terms_style style);

/* Prints a part of the key, or `-` if the event lacks this value. */
void group_put_part(struct buf *to, const struct groups *g, const struct group *row, size_t part,
                    const struct printer *printer);

/* Prints a duration in microseconds with a fraction, or another number with all its digits, for programs. */
void group_put_value(struct buf *to, struct group_number n, bool duration);
/* Prints a duration with a unit, or another number with two decimals, for people. */
void group_put_short(struct buf *to, struct group_number n, bool duration);

/*
 * A column of figures. Each aggregate has one column, but quantiles have three. With `drawn`, a histogram has none,
 * because it is drawn below the table.
 */
struct group_column {
    size_t aggregate;
    unsigned percent; /* 50, 90 or 99 for quantiles, else 0 */
};
#define GROUP_COLUMNS (3 * SPEC_AGGREGATES_MAX)
size_t group_columns(const struct groups *g, bool drawn, struct group_column ret[GROUP_COLUMNS]);
bool group_column_value(const struct groups *g, const struct group *row, struct group_column c,
                        struct group_number *ret);
void group_column_name(struct buf *to, const struct groups *g, struct group_column c);

#endif
