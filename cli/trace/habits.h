/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what a user means by a command, an option or a view of another tool (habits.def). ground/near.h finds
 * misspelled words, lang/meant.h has the words of expressions.
 */
#ifndef ETRACE_HABITS_H
#define ETRACE_HABITS_H

#include "../ground/err.h"

struct sink_type;

enum habit_place { HABIT_COMMAND, HABIT_REPL, HABIT_OPTION, HABIT_VIEW };

/* Returns the word or sentence of etrace from habits.def; NULL: no row has the word. */
const char *habit_meaning(enum habit_place place, struct str written);

/*
 * Returns the view that habits.def gives for the word; else the view of this name; else a view that writes files with
 * this extension. NULL: none of them.
 */
const struct sink_type *habit_view(struct str written);

/*
 * Sets the hint about a command. `prefix` precedes the names of commands: "etrace " or ":". Returns false if no row has
 * the word.
 */
bool habit_command_hint(const char *written, const char *prefix, struct err *e);

#endif
