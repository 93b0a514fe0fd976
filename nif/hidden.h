/* Variables of other files of the same library: reached at their place, not through a table that the loader fills. */
#ifndef ETRACE_HIDDEN_H
#define ETRACE_HIDDEN_H

#define HIDDEN __attribute__((visibility("hidden")))

#endif
