/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes settings: every option of a tracing command is a setting, named like the long option. A change takes effect
 * at once.
 */
#ifndef ETRACE_REPL_SETTINGS_H
#define ETRACE_REPL_SETTINGS_H

#include "repl_parts.h"

/* Changes the setting and sets *ret_status. Returns false if no setting has this name. */
bool repl_setting(const struct repl_parts *r, const char *name, char *rest, int *ret_status);

#endif
