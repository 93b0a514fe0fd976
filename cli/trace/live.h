/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a live trace: sessions on nodes feed one pipeline until something ends the trace. Only this file decides why a
 * trace ends and turns the reason into the exit status.
 */
#ifndef ETRACE_LIVE_H
#define ETRACE_LIVE_H

#include "../node/session.h"
#include "settings.h"
#include "exprs.h"
#include "outputs.h"

struct child;

struct live_options {
    const struct node_opts *node;
    const struct what_opts *what;
    const struct limit_opts *limit;
    const struct view_opts *view;
    const struct assert_opts *asserts;
    const struct texts *words;
    struct child *child; /* the command whose node this is, held until it is traced; NULL: none */
};

/* Attaches, arms, streams and leaves. Reports all errors itself and returns the exit status. */
int live_run(struct ctx *ctx, const struct live_options *o, const char *default_view);

#endif
