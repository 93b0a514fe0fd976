/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools of `etrace mcp`. A tool is a row: the command that it runs, and its parameters. The list of tools with
 * their schemas, the check of arguments and the words of the command all come from the row.
 */
#ifndef ETRACE_MCP_TOOLS_H
#define ETRACE_MCP_TOOLS_H

#include "../ground/json_read.h"
#include "cmd.h"
#include "mcp_rules.h"

enum mcp_type { MCP_TEXT, MCP_INTEGER, MCP_CHOICE };

/* The meaning of a parameter for the server itself; other parameters are for the command. */
enum mcp_role {
    MCP_PLAIN,      /* none */
    MCP_NODE,       /* the rules choose the node */
    MCP_EXPRESSION, /* the rules check it */
    MCP_RECORDING,  /* the rules check it */
    MCP_BY,         /* left out if the expression has keys of its own */
    MCP_SECONDS,    /* the time budget bounds it */
    MCP_ROWS,       /* the event budget bounds it; the answer has no more rows */
};

struct mcp_param {
    const char *name;
    enum mcp_type type;
    enum mcp_role role;
    bool required;
    const char *about;
    const char *option;  /* the option that takes the value; NULL: the value is a word, or only bounds the answer */
    const char *unit;    /* appended to the value of the option; NULL: nothing */
    const char *choices; /* MCP_CHOICE: "a|b" */
    const char *preset;  /* the value if the call has none; NULL: the option is left out */
    int64_t least, most; /* MCP_INTEGER */
};

struct mcp_tool {
    const char *name, *title, *about;
    const struct cmd *command;
    const char *fixed; /* an option that each call has, "--json"; NULL: none */
    enum mcp_use use;
    bool text;        /* the command prints text; otherwise a JSON object on each line */
    bool free;        /* the command asks no node for anything, so it costs nothing of the budgets */
    bool lists_nodes; /* the rows are nodes; those that the rules do not allow are left out */
    bool cuts;        /* the limit is not an option of the command: the server leaves out further rows */
    const char *main; /* the types of rows that no limit leaves out, as ",summary,table,"; "": none */
    int found;        /* an exit status that is no failure, beside 0 */
    const struct mcp_param *params;
    size_t nparams;
};

#define MCP_PARAMS_MOST 8

const struct mcp_tool *mcp_tool_find(struct raw name); /* NULL: there is no such tool */

/* Puts the member "tools": an array of all tools with their schemas. */
void mcp_tools_put(struct buf *to);

/* The arguments of a call, after mcp_tool_read(). Texts live in the arena of the call. */
struct mcp_arguments {
    const char *values[MCP_PARAMS_MOST]; /* by parameter, with presets; NULL: not given */
    const char *node;                    /* the node that the rules chose; NULL: the options of the server select it */
    int64_t seconds, rows;               /* 0: the tool has no such parameter, or the call left it open */
    bool has_keys;                       /* the expression has keys of its own */
};

/* Reads and checks the arguments: `given` is an object, or NULL for none. */
bool mcp_tool_read(const struct mcp_tool *tool, const struct json *given, struct arena *a, struct mcp_arguments *ret,
                   struct err *e);

/* Applies the rules of the user to the arguments. Sets ret->node. */
bool mcp_tool_allowed(const struct mcp_tool *tool, const struct mcp_rules *rules, struct mcp_arguments *args,
                      struct err *e);

/* The options of the server that the commands of tools get. */
struct mcp_passed {
    const struct node_opts *node;
    const struct texts *redact;
    int64_t overhead; /* hundredths of a percent */
};

/* Appends the command and its words. They live in the arena. */
void mcp_tool_words(const struct mcp_tool *tool, const struct mcp_arguments *args, const struct mcp_passed *passed,
                    struct arena *a, struct texts *ret);

#endif
