/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: every option of a tracing command is a setting with its long name. A change takes effect at once. */
#ifndef ETRACE_REPL_SETTINGS_H
#define ETRACE_REPL_SETTINGS_H

#include "repl_parts.h"

/* false: no setting has that name. */
bool repl_setting(const struct repl_parts *r, const char *name, char *rest, int *ret_status);

#endif
