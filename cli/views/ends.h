/* What every view says at its end about what is missing from it. */
#ifndef ETRACE_ENDS_H
#define ETRACE_ENDS_H

#include "sink.h"

/* Lines like `*** 812 events lost (rate) ***`, each behind `prefix`; nothing when nothing is missing. */
void ends_missing(struct buf *to, const struct totals *t, const char *prefix);

#endif
