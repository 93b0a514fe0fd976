/* SPDX-License-Identifier: Apache-2.0 */
/* Selects exits by the names of processes, as a user writes them in Erlang or Elixir, and by pids. */
#ifndef ETRACE_DEATH_CHOICE_H
#define ETRACE_DEATH_CHOICE_H

#include "../events/process_name.h"
#include "deaths.h"

struct death_choice {
    struct process_names names;
    bool all;      /* normal exits are shown, too */
    uint64_t most; /* the trace ends after this many exits; 0: no limit */
};

/*
 * Returns true if the tree is to be shown: death_selected() holds, and, unless the user chose names or all exits, the
 * tree has an exit that is not normal or whose process was started again by its name. Marks the names as seen. `c`
 * NULL: every process is selected.
 */
bool death_chosen(struct death_choice *c, const struct death *root);
/* Returns true if the tree has an exit of a selected process. */
bool death_selected(struct death_choice *c, const struct death *root);

#endif
