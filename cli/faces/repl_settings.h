/* Settings: every option of a tracing command under its long name, which takes effect at once. */
#ifndef ETRACE_REPL_SETTINGS_H
#define ETRACE_REPL_SETTINGS_H

#include "repl_parts.h"

/* false: no setting has that name. */
bool repl_setting(const struct repl_parts *r, const char *name, char *rest, int *ret_status);

#endif
