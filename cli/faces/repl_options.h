/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores the values of the options of a tracing command. In the interactive mode, each option is a setting of the same
 * name, and the row of the option says which values it accepts. This file only reads and writes the values;
 * repl_settings.h makes a change effective.
 */
#ifndef ETRACE_REPL_OPTIONS_H
#define ETRACE_REPL_OPTIONS_H

#include "../commands/groups.h"
#include "../commands/opts.h"
#include "../ground/buf.h"
#include "../ground/mem.h"

struct repl_options {
    struct node_opts node;
    struct what_opts what;
    struct limit_opts limit;
    struct recorder_opts recorder;
    struct view_opts view;
    struct arena arena; /* owns the texts of all values until the session ends, even after a value has changed */
};

/* An option that is a setting of the interactive mode. */
struct repl_option {
    const struct opt_group *group;
    const struct opt *row;
    size_t offset; /* offset in struct repl_options at which the struct of the group begins */
};

/* Finds a setting by name; also accepts :greps for --grep. */
bool repl_option_find(const char *name, struct repl_option *ret);
const struct opt *repl_setting_row(const char *name); /* returns NULL if there is no such setting */
void repl_options_each(void (*each)(void *data, const char *name, const char *help), void *data);

/*
 * The old value of an option while it is being changed. Owns the old list until the change ends with repl_option_undo()
 * or repl_option_keep().
 */
struct repl_old_value {
    char bytes[sizeof(struct texts)];
    struct texts list;
};

/*
 * Sets the option to the value in `text`, or to its default if `text` is empty. Returns false, with an error, if the
 * option does not accept the value.
 */
bool repl_option_change(struct repl_options *o, const struct repl_option *which, char *text,
                        struct repl_old_value *ret_old, struct err *e);
void repl_option_undo(struct repl_options *o, const struct repl_option *which, struct repl_old_value *old);
void repl_option_keep(struct repl_old_value *old);

void repl_options_list(const struct repl_options *o, struct buf *to);
/* In the text of the error, replaces options by the settings of the same name: --size becomes :size. */
void repl_options_reword(struct err *e);

#endif
