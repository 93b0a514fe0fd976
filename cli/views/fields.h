/* SPDX-License-Identifier: Apache-2.0 */
/* Prints properties of events that the user selects by name: the columns of csv, and --format. */
#ifndef ETRACE_FIELDS_H
#define ETRACE_FIELDS_H

#include "../fold/property.h"
#include "clock.h"

struct fields;

/* Parses "time,pid,mfa". Returns NULL, with an error, if a field is unknown. */
struct fields *fields_list(const char *list, struct err *e);
/* Parses "{time} {pid}: {mfa}"; {{ and }} are literal braces. */
struct fields *fields_format(const char *format, struct err *e);
void fields_free(struct fields *f);

/* Returns the PROPERTY_ bits of the fields of a format, or of a list if the format is NULL. */
unsigned fields_uses(const char *list, const char *format);

size_t fields_count(const struct fields *f);
const char *fields_name(const struct fields *f, size_t index);
/* Returns true if no value of the field contains a space, quote or comma. */
bool fields_is_plain(const struct fields *f, size_t index);
void fields_put(struct fields *f, size_t index, struct buf *to, struct clock *clock, const struct event *e,
                enum terms_style style);

enum property fields_property(const struct fields *f, size_t index);
/* Prints the field of a loss: type, count, reason or node. Returns true if the field identifies the row as a loss. */
bool fields_put_loss(struct fields *f, size_t index, struct buf *to, const struct event *e, enum etw_loss reason);

/* Prints a formatted line, or the values separated by tabs, without a newline. */
void fields_line(struct fields *f, struct buf *to, struct clock *clock, const struct event *e, enum terms_style style);

#endif
