/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes settings. Every option of a tracing command is a setting with its long name, and a change takes effect at
 * once.
 */
#ifndef ETRACE_REPL_SETTINGS_H
#define ETRACE_REPL_SETTINGS_H

#include "repl_parts.h"

/* Changes the setting with this name and sets *ret_status. Returns false if there is no such setting. */
bool repl_setting(const struct repl_parts *r, const char *name, char *rest, int *ret_status);

#endif
