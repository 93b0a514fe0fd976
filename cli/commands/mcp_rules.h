/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides what the clients of `etrace mcp` may look at: nodes, modules, recordings and expressions. The user makes the
 * rules, with the options of the command and the file of --allow; a client cannot change them.
 *
 * Nodes: those of -n and of the lines `node`. Without both, the nodes of this host, because a cookie may go to another
 * host only if the user has named it. Modules: those of the lines `module`; without such lines, all.
 */
#ifndef ETRACE_MCP_RULES_H
#define ETRACE_MCP_RULES_H

#include "../ground/buf.h"
#include "../ground/err.h"
#include "../ground/mem.h"
#include "../trace/settings.h"

struct mcp_rules {
    const struct node_opts *node; /* the options of the command; borrowed */
    struct arena arena;           /* of the patterns */
    struct texts nodes, modules, recordings;
};

/* Reads the file of --allow, unless `path` is NULL. Call mcp_rules_release() in any case. */
bool mcp_rules_init(struct mcp_rules *r, const struct node_opts *node, const char *path, struct err *e);
void mcp_rules_release(struct mcp_rules *r);

/*
 * Chooses the node of a call. `asked` is the name that the client gave, or NULL. *ret is the name to pass on; NULL: the
 * options select the node, or it is the only node of this host. After false, e says which line would allow it.
 */
bool mcp_rules_node(const struct mcp_rules *r, const char *asked, const char **ret, struct err *e);

/* Returns true if a call may name this node. */
bool mcp_rules_allow_node(const struct mcp_rules *r, const char *name);

bool mcp_rules_recording(const struct mcp_rules *r, const char *path, struct err *e);

/* The purpose of an expression. */
enum mcp_use {
    MCP_USE_NONE,    /* the tool takes no expression */
    MCP_USE_EXPLAIN, /* the tool only explains it */
    MCP_USE_TRACE,
    MCP_USE_COUNT, /* counts events by keys */
    MCP_USE_TOP,   /* the VM counts; nothing limits its cost but the number of functions */
};

/*
 * Compiles the expression and checks that it only reads, and only from allowed modules. *ret_by: it has keys of its
 * own.
 */
bool mcp_rules_expression(const struct mcp_rules *r, enum mcp_use use, const char *text, bool *ret_by, struct err *e);

#endif
