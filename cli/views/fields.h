/* Properties of events chosen by name: the columns of csv, and --format. */
#ifndef ETRACE_FIELDS_H
#define ETRACE_FIELDS_H

#include "clock.h"

struct fields;

/* "time,pid,mfa". NULL: e names the word that is no field. */
struct fields *fields_list(const char *list, struct err *e);
/* "{time} {pid}: {mfa}" with {{ and }} for the braces themselves. */
struct fields *fields_format(const char *format, struct err *e);
void fields_free(struct fields *f);

size_t fields_count(const struct fields *f);
const char *fields_name(const struct fields *f, size_t index);
bool fields_is_plain(const struct fields *f, size_t index); /* its values have no space, quote or comma in them */
void fields_put(struct fields *f, size_t index, struct buf *to, struct clock *clock, const struct event *e,
                enum terms_style style);

/* The same of a loss: type, count, reason and node; true where it says that it is one. */
bool fields_put_loss(struct fields *f, size_t index, struct buf *to, const struct event *e, enum etw_loss reason);

/* A whole line of a format, or values with tabs between; without the newline. */
void fields_line(struct fields *f, struct buf *to, struct clock *clock, const struct event *e, enum terms_style style);

#endif
