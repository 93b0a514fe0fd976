/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of the options of a tracing command, which the interactive mode lets the user change: each option is a
 * setting of the same name, and its row says what it takes. Here values are only read and written; repl_settings.h
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
    bool reattach;      /* a lost node is attached again when it is back */
    struct arena arena; /* owns the texts of values, until the session ends */
};

/* An option that is a setting. */
struct repl_option {
    const struct opt_group *group;
    const struct opt *row;
    size_t offset; /* offset of the group's values in struct repl_options */
};

bool repl_option_find(const char *name, struct repl_option *ret); /* accepts :greps for --grep, too */
const struct opt *repl_setting_row(const char *name);             /* NULL: no setting has that name */
void repl_options_each(void (*each)(void *data, const char *name, const char *help), void *data);

/* A value as it was before a change, which must be undone or kept: until then this owns the old list. */
struct repl_old_value {
    char bytes[sizeof(struct texts)];
    struct texts list;
};

/* Sets the option from `text`, or to its default if that is empty. false: `text` is wrong. */
bool repl_option_change(struct repl_options *o, const struct repl_option *which, char *text,
                        struct repl_old_value *ret_old, struct err *e);
void repl_option_undo(struct repl_options *o, const struct repl_option *which, struct repl_old_value *old);
void repl_option_keep(struct repl_old_value *old);

void repl_options_list(const struct repl_options *o, struct buf *to);
void repl_options_reword(struct err *e); /* writes options as settings: --size becomes :size */

#endif
