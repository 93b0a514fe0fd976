/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds the values of the options of a tracing command. In the interactive mode, each option is a setting of the same
 * name, and the row of the option says what values it takes. This file only reads and writes values; repl_settings.h
 * makes them effective.
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
    bool reattach;      /* a lost node is attached again when it is reachable */
    struct arena arena; /* owns the texts of all values, old ones too, until the session ends */
};

/* An option that is a setting of the interactive mode. */
struct repl_option {
    const struct opt_group *group;
    const struct opt *row;
    size_t offset; /* byte offset of the group's values in struct repl_options */
};

bool repl_option_find(const char *name, struct repl_option *ret); /* finds a setting; accepts :greps for --grep, too */
const struct opt *repl_setting_row(const char *name);             /* returns NULL if no setting has this name */
void repl_options_each(void (*each)(void *data, const char *name, const char *help), void *data);

/*
 * The value of an option before a change. Owns the old list until repl_option_undo() or repl_option_keep() ends the
 * change.
 */
struct repl_old_value {
    char bytes[sizeof(struct texts)];
    struct texts list;
};

/*
 * Sets the option from `text`, or to its default if `text` is empty. Returns false, with an error, if `text` is no
 * value of the option.
 */
bool repl_option_change(struct repl_options *o, const struct repl_option *which, char *text,
                        struct repl_old_value *ret_old, struct err *e);
void repl_option_undo(struct repl_options *o, const struct repl_option *which, struct repl_old_value *old);
void repl_option_keep(struct repl_old_value *old);

void repl_options_list(const struct repl_options *o, struct buf *to);
/* Changes the names of options in the error to those of settings: --size becomes :size. */
void repl_options_reword(struct err *e);

#endif
