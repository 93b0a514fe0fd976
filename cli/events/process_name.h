/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the names of processes and modules, which Erlang and Elixir write differently. */
#ifndef ETRACE_PROCESS_NAME_H
#define ETRACE_PROCESS_NAME_H

#include "event.h"

/* Returns the part of a name that both languages share: Shop for 'Elixir.Shop', and shop for :shop. */
struct str process_name_plain(struct str name);

/* Names of processes as a user writes them, in Erlang or Elixir: pids, printed names, or callback modules. */
struct process_names {
    const struct str *items;
    bool *seen; /* for each item: true if a process with this name was seen */
    size_t count;
    bool used; /* a view uses these names */
};

/*
 * Returns true if an item names the process, and sets `seen` of each such item. `module` is the callback module of the
 * process; empty if unknown.
 */
bool process_names_have(struct process_names *n, const struct tracee *who, struct str module);

/*
 * Returns true if the text is the pid, the name or the callback module of the process, in either language. `module` is
 * empty if unknown.
 */
bool process_is_named(const struct tracee *who, struct str module, struct str text);

#endif
