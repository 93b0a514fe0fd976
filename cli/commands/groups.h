/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the groups of options that several commands share. A command lists its groups and gives each the struct that
 * the parser fills. Only the rows of a group know the names of the options.
 */
#ifndef ETRACE_GROUPS_H
#define ETRACE_GROUPS_H

#include "../trace/settings.h"
#include "opts.h"

extern const struct opt_group node_group;     /* fills struct node_opts */
extern const struct opt_group tls_group;      /* fills struct node_opts: only the TLS options */
extern const struct opt_group what_group;     /* fills struct what_opts */
extern const struct opt_group limit_group;    /* fills struct limit_opts */
extern const struct opt_group view_group;     /* fills struct view_opts */
extern const struct opt_group screen_group;   /* fills struct view_opts: the screen of a live trace */
extern const struct opt_group line_group;     /* fills struct view_opts: conditions, terms and times of lines of text */
extern const struct opt_group assert_group;   /* fills struct assert_opts */
extern const struct opt_group recorder_group; /* fills struct recorder_opts */
extern const struct opt_group snapshot_group; /* fills struct recorder_opts: for a trace that ends by itself */

struct talk_opts {
    int quiet;
    bool help;
};
extern const struct opt_group talk_group;

#endif
