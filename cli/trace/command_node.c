/* SPDX-License-Identifier: Apache-2.0 */
#include "command_node.h"

#include <signal.h>

#include "../ground/command_line.h"
#include "assertions.h"
#include "child.h"
#include "target.h"
#include "together.h"

/* Checks the options and expressions before the command starts, as far as that is possible without a node. */
static bool makes_sense(const struct live_options *o, char **command, struct err *e)
{
    struct texts wheres = assertions_texts(&o->view->wheres, o->asserts);
    struct exprs exprs;
    struct target target;
    bool later;

    exprs_init(&exprs);
    exprs.find_record = exprs_later;
    exprs.find_data = &later;
    bool ok = exprs_compile(&exprs, o->what, o->words, &wheres, 0, e);
    exprs_release(&exprs);
    texts_release(&wheres);
    if (!ok)
        return false;
    if (!command[0]) {
        err_set(e, ERR_USAGE, "no command follows the --");
        err_hint(e, "for example etrace 'my_app:_' -- erl -s my_app");
        return false;
    }
    const struct node_opts *n = o->node;
    if (n->ssh) {
        err_set(e, ERR_USAGE, "--ssh does not go with -- COMMAND: etrace starts the command on this host");
        command_line_hint(e, "start it there, and trace its node: etrace --ssh", n->ssh, " -n NODE");
        return false;
    }
    const bool named = n->nodes.count || n->os_pid || n->port || n->cookie_file || n->cluster || n->reattach;
    if (!TOGETHER(e, KNOWN(COMMAND, true), KNOWN(NODE, named)))
        return false;
    ok = target_init(&target, o->node, NULL, e);
    target_release(&target);
    return ok;
}

int command_node_trace(struct ctx *ctx, const struct live_options *o, struct child *child)
{
    const char *name = child->node;
    struct node_opts node = *o->node;
    struct live_options mine = *o;

    node.nodes = (struct texts){.items = &name, .count = 1};
    node.cookie_file = child->cookie_file[0] ? child->cookie_file : NULL;
    mine.node = &node;
    mine.child = child;
    child->keeps_cookie = o->limit->ring.then.probes.count;
    int status = live_run(ctx, &mine, "text");
    /*
     * A trace that failed, or whose assertion failed, terminates the command. The end of a trace by a limit does not.
     */
    if (status)
        child_signal(child, SIGTERM);
    child_go(child);
    return status;
}

static int without_node(struct ctx *ctx, const struct child *child, const char *command)
{
    struct err e;

    if (child->status)
        err_set(&e, (enum err_status)child->status, "%s exited with status %d before it started a node", command,
                child->status);
    else
        err_set(&e, ERR_NODE, "%s exited without starting a node", command);
    err_hint(&e, "it must start erl, and pass on the environment that it gets from etrace");
    return ctx_fail(ctx, &e);
}

int command_node_run(struct ctx *ctx, const struct live_options *o, struct what_opts *what, char **command)
{
    struct child child;
    struct err e;
    int status, mine = 0;

    if (!makes_sense(o, command, &e))
        return ctx_fail(ctx, &e);
    what->allow_empty = what->available = true;
    ctx_share_terminal(ctx);
    bool ok = child_init(&child, ctx, &e);
    child.node_opts = o->node;
    if (!ok || !child_start(&child, command, &e)) {
        status = ctx_fail(ctx, &e);
    } else if (!child_wait_node(&child)) {
        status = without_node(ctx, &child, command[0]);
    } else {
        mine = command_node_trace(ctx, o, &child);
        status = child_wait(&child);
        status = mine ? mine : status;
    }
    child_release(&child);
    return status;
}
