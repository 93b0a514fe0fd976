/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The groups of options that several commands share. A command lists the groups that it takes, each with the struct
 * that it fills; the rows are the only place that names an option.
 */
#ifndef ETRACE_GROUPS_H
#define ETRACE_GROUPS_H

#include "../trace/settings.h"
#include "opts.h"

extern const struct opt_group node_group;     /* struct node_opts */
extern const struct opt_group tls_group;      /* a part of node_group */
extern const struct opt_group what_group;     /* struct what_opts */
extern const struct opt_group limit_group;    /* struct limit_opts */
extern const struct opt_group view_group;     /* struct view_opts */
extern const struct opt_group assert_group;   /* struct assert_opts */
extern const struct opt_group recorder_group; /* struct recorder_opts */
extern const struct opt_group snapshot_group; /* the rest of it, for a trace that ends by itself */

struct talk_opts {
    int quiet;
    bool help;
};
extern const struct opt_group talk_group;

#endif
