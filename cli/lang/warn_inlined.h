/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the warnings about the functions that a compiled probe selects. Internal to cli/lang. */
#ifndef ETRACE_WARN_INLINED_H
#define ETRACE_WARN_INLINED_H

#include "comp.h"

void warn_calls(struct comp *c, const struct spec *s);

#endif
