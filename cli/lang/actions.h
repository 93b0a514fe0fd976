/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the actions (the words after `->`): rows of actions.def for the compiler, completion and the manual. */
#ifndef ETRACE_ACTIONS_H
#define ETRACE_ACTIONS_H

#include "functions.h"

enum action {
#define ACTION(id, ...) ACTION_##id,
#include "actions.def"
    ACTIONS,
    ACTION_NONE = -1,
};

enum action_how { HOW_RUN, HOW_PACK, HOW_SHOW, HOW_COUNT, HOW_UNSAFE };

struct action_row {
    const char *word;
    int least, most;
    unsigned places;
    enum action_how how;
    enum fn fn;
    const char *doc;
};

const struct action_row *action_row(enum action action);
enum action action_find(struct str word);

#endif
