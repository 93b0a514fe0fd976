/* Floor-internal: what there is to say of the functions that a compiled probe of calls selects. */
#ifndef ETRACE_LANG_CALLS_H
#define ETRACE_LANG_CALLS_H

#include "comp.h"

void warn_calls(struct comp *c, const struct spec *s);

#endif
