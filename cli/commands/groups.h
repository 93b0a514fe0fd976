/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the groups of options that several commands share. A command lists the groups that it takes, each with the
 * struct that it fills. Only the rows name an option.
 */
#ifndef ETRACE_GROUPS_H
#define ETRACE_GROUPS_H

#include "../trace/settings.h"
#include "opts.h"

extern const struct opt_group node_group;   /* struct node_opts */
extern const struct opt_group tls_group;    /* the TLS options of node_group alone */
extern const struct opt_group what_group;   /* struct what_opts */
extern const struct opt_group limit_group;  /* struct limit_opts */
extern const struct opt_group view_group;   /* struct view_opts */
extern const struct opt_group screen_group; /* struct view_opts: the screen of a live trace */
extern const struct opt_group line_group;   /* the options of view_group for lines of text: conditions, terms, times */
extern const struct opt_group assert_group; /* struct assert_opts */
extern const struct opt_group recorder_group; /* struct recorder_opts */
extern const struct opt_group snapshot_group; /* the recorder options for a trace that ends by itself */

struct talk_opts {
    int quiet;
    bool help;
};
extern const struct opt_group talk_group;

#endif
