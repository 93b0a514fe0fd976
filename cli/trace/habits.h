/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says what a user means by a command, an option or a view of another tool (habits.def). Nothing here compares letters:
 * see ground/near.h. lang/meant.h has the words of expressions.
 */
#ifndef ETRACE_HABITS_H
#define ETRACE_HABITS_H

#include "../ground/err.h"

struct sink_type;

enum habit_place { HABIT_COMMAND, HABIT_REPL, HABIT_OPTION, HABIT_VIEW };

/* Returns the right word, or a sentence with a blank, or NULL. */
const char *habit_meaning(enum habit_place place, struct str written);

/*
 * Returns the view that a word means: one with this name, one that writes files with this extension, or that of a row.
 * NULL: none.
 */
const struct sink_type *habit_view(struct str written);

/* Sets the hint about a command. `prefix` stands before the names of commands:
 * "etrace " or ":". False: no row has it. */
bool habit_command_hint(const char *written, const char *prefix, struct err *e);

#endif
