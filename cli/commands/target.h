/*
 * The node that options mean, in the words of the node floor. Texts are borrowed from the options.
 */
#ifndef ETRACE_TARGET_H
#define ETRACE_TARGET_H

#include "../node/optfile.h"
#include "../node/connect.h"
#include "groups.h"

struct target {
    struct node_target node;
    struct tls_options tls;
    struct optfile file;
};

/* `name` may be NULL. It points into itself: it must stay where it is. */
bool target_init(struct target *t, const struct node_opts *o, const char *name, struct err *e);
void target_release(struct target *t);

#endif
