/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the node options of a command into a target for node/. The texts are borrowed from the options. */
#ifndef ETRACE_TARGET_H
#define ETRACE_TARGET_H

#include "../node/optfile.h"
#include "../node/connect.h"
#include "settings.h"

struct target {
    struct node_target node;
    struct tls_options tls;
    struct optfile file;
};

/* Fills in *t, which then has pointers into itself and must not move. `name` may be NULL. */
bool target_init(struct target *t, const struct node_opts *o, const char *name, struct err *e);
/*
 * Returns the node for a command without --node: $ETRACE_NODE, or else $RELEASE_NODE. NULL: neither is set, or other
 * options select a node.
 */
const char *target_default(const struct node_opts *o);
void target_release(struct target *t);

#endif
