/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools of `etrace mcp`. Each tool is a row of a table: its command and its parameters. The list of tools with
 * their schemas, the check of arguments and the command line all come from this row.
 */
#ifndef ETRACE_MCP_TOOLS_H
#define ETRACE_MCP_TOOLS_H

#include "../ground/json_read.h"
#include "cmd.h"
#include "mcp_rules.h"

enum mcp_type { MCP_TEXT, MCP_INTEGER, MCP_CHOICE };

/* How the server itself uses a parameter. It only passes other parameters to the command. */
enum mcp_role {
    MCP_PLAIN,      /* no special use */
    MCP_NODE,       /* name of the node, which the rules must allow */
    MCP_PROCESS,    /* a process, which must not be named by a registry of the application */
    MCP_EXPRESSION, /* an expression, which the rules must allow */
    MCP_RECORDING,  /* a recording, which the rules must allow */
    MCP_BY,         /* keys to count by; ignored if the expression has keys of its own */
    MCP_SECONDS,    /* a time, which the time budget limits */
    MCP_ROWS,       /* a number of rows, which the event budget limits; the answer has at most as many rows */
};

struct mcp_param {
    const char *name;
    enum mcp_type type;
    enum mcp_role role;
    bool required;
    const char *about;
    const char *option;  /* the option for the value; NULL: the value is passed as a word, or only limits the answer */
    const char *unit;    /* a unit to append to the value; NULL: none */
    const char *choices; /* for MCP_CHOICE: the values, as "a|b" */
    const char *preset;  /* the default of the value; NULL: the option is left out */
    int64_t least, most; /* for MCP_INTEGER: the range of values */
};

struct mcp_tool {
    const char *name, *title, *about;
    const struct cmd *command;
    const char *fixed; /* an option that every call passes, such as "--json"; NULL: none */
    enum mcp_use use;
    bool text;        /* the command prints plain text; false: a JSON object on each line */
    bool free;        /* the command asks no node, so the budgets do not apply */
    bool lists_nodes; /* each row is about a node; rows about nodes that the rules do not allow are dropped */
    bool messages;    /* shows terms of messages, which belong to no module */
    bool cuts;        /* the command has no option for the limit, so the server drops the rows beyond it */
    const char *main; /* types of the rows to which no limit applies, as ",summary,table,"; "": none */
    int found;        /* an exit status beside 0 that is not a failure */
    const struct mcp_param *params;
    size_t nparams;
};

#define MCP_PARAMS_MOST 8

const struct mcp_tool *mcp_tool_find(struct raw name); /* returns NULL if there is no such tool */

/* Puts the member "tools", an array of all tools with their schemas. */
void mcp_tools_put(struct buf *to);

/* The arguments of a call, set by mcp_tool_read(). The arena of the call owns the texts. */
struct mcp_arguments {
    const char *values[MCP_PARAMS_MOST]; /* values by the index of the parameter, with defaults; NULL: not given */
    /* the node that the rules have chosen; NULL: the options of the server select it */
    const char *node;
    int64_t seconds, rows; /* 0: the tool has no such parameter, or the call has no value for it */
    bool has_keys;         /* the expression has keys of its own */
};

/* Checks the arguments in `given` and sets *ret. `given` is an object; NULL: the call has no arguments. */
bool mcp_tool_read(const struct mcp_tool *tool, const struct json *given, struct arena *a, struct mcp_arguments *ret,
                   struct err *e);

/*
 * Returns false, with an error, if the rules of the user do not allow the arguments. Sets args->node and the path of a
 * recording, which may be in the arena.
 */
bool mcp_tool_allowed(const struct mcp_tool *tool, const struct mcp_rules *rules, struct arena *a,
                      struct mcp_arguments *args, struct err *e);

/* Options of the server that it passes to the commands. */
struct mcp_passed {
    const struct node_opts *node;
    const struct texts *redact;
    int64_t overhead; /* in hundredths of a percent */
};

/* Appends the command and its arguments to *ret. The arena owns them. */
void mcp_tool_words(const struct mcp_tool *tool, const struct mcp_arguments *args, const struct mcp_passed *passed,
                    struct arena *a, struct texts *ret);

#endif
