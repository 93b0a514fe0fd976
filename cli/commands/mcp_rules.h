/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which nodes, modules, recordings and expressions clients of `etrace mcp` may use. The user sets the rules
 * with options of the command and with the file of --allow; a client cannot change them.
 *
 * Allowed nodes are those of -n and of `node` lines in the file. If there are neither, the nodes of this host are
 * allowed, because a cookie may go to another host only if the user has named the host. Allowed modules are those of
 * `module` lines; if there are none, all modules are.
 */
#ifndef ETRACE_MCP_RULES_H
#define ETRACE_MCP_RULES_H

#include "../ground/buf.h"
#include "../ground/err.h"
#include "../ground/mem.h"
#include "../trace/settings.h"

struct mcp_rules {
    const struct node_opts *node; /* the node options of the command; borrowed */
    struct arena arena;           /* owns the patterns */
    struct texts nodes, modules, recordings;
};

/*
 * Sets the rules from `node` and from the file `path`, which may be NULL. mcp_rules_release() must be called even after
 * a failure.
 */
bool mcp_rules_init(struct mcp_rules *r, const struct node_opts *node, const char *path, struct err *e);
void mcp_rules_release(struct mcp_rules *r);

/*
 * Chooses the node of a call. `asked` is the name that the client gave; NULL: none. Sets *ret to the name for the
 * command, which may be in the arena, or to NULL if the options select the node or it is the only node of this host.
 * Returns false if the rules do not allow the node; the error says which line in the file would allow it.
 */
bool mcp_rules_node(const struct mcp_rules *r, const char *asked, struct arena *a, const char **ret, struct err *e);

/* Returns true if the rules allow this node. */
bool mcp_rules_allow_node(const struct mcp_rules *r, const char *name);

/*
 * Decides by the real path of the recording, without links, `.` and `..`. Sets *ret to the path for the command, which
 * is the real one if there are rules, and then in the arena.
 */
bool mcp_rules_recording(const struct mcp_rules *r, const char *path, struct arena *a, const char **ret, struct err *e);

/*
 * Returns false, with an error, if the node would call a function of the application to find the process: {via, Module,
 * Name} calls Module:whereis_name(Name). The registries of OTP and Elixir only look up the name.
 */
bool mcp_rules_process(const char *text, struct err *e);

/*
 * Returns false, with an error, if only some modules are allowed. Messages and events such as exits are then refused,
 * because they belong to no module and show terms of any. `what` names them in the error.
 */
bool mcp_rules_no_module(const struct mcp_rules *r, const char *what, struct err *e);

/* How a tool uses its expression. */
enum mcp_use {
    MCP_USE_NONE,    /* the tool takes no expression */
    MCP_USE_EXPLAIN, /* the tool explains the expression and traces nothing */
    MCP_USE_TRACE,
    MCP_USE_COUNT, /* the tool counts events by keys */
    MCP_USE_TOP,   /* the tool uses the VM's counters, whose cost depends only on the number of functions */
};

/*
 * Compiles the expression. Returns false, with an error, if it changes anything on the node or selects modules that are
 * not allowed. Sets *ret_by to true if the expression has keys of its own (by).
 */
bool mcp_rules_expression(const struct mcp_rules *r, enum mcp_use use, const char *text, bool *ret_by, struct err *e);

#endif
