/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the exits to show, by names of processes as a user writes them in Erlang or Elixir, or by pids. */
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
 * Returns true if the tree is to be shown: death_selected() returns true and, if the user chose neither names nor all
 * exits, the tree has an exit that is abnormal, or whose process was replaced by a process with its name.
 */
bool death_chosen(struct death_choice *c, const struct death *root);
/*
 * Returns true if the tree has an exit of a process that the user chose by its name. Without names, or if `c` is NULL,
 * returns true for every tree. Sets `seen` of each name that the tree contains.
 */
bool death_selected(struct death_choice *c, const struct death *root);

#endif
