/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a call of a tool: the rows that the command printed, cut to MCP_ANSWER_MOST bytes of the line that the
 * client gets. It is one JSON object, as the text of the result. Every text that comes from a node is in a string of
 * that object: a row that is no JSON becomes a string, too.
 *
 * Rows leave out what the assistant does not need: the version, the monotonic clock, and the node if all have the same.
 * The answer keeps each row as it will be on the line, so the bytes that are counted are the bytes that are sent.
 */
#ifndef ETRACE_MCP_ANSWER_H
#define ETRACE_MCP_ANSWER_H

#include "../ground/lines.h"
#include "mcp_tools.h"

#define MCP_ANSWER_MOST 32768 /* bytes of a line, with its end */

struct mcp_answer_row {
    size_t at, len; /* in `rows` */
    bool main;      /* no limit leaves it out */
};

struct mcp_answer {
    const struct mcp_tool *tool;
    const struct mcp_rules *rules; /* for tools that list nodes: the others are left out. NULL: all */
    char node[256]; /* the node that the rows are about; the caller may set it, the first row corrects it */
    size_t most;    /* limit for the rows beside the main ones; 0: none */
    struct lines lines;
    struct buf rows, messages;
    struct buf lean, scratch; /* a row on its way */
    struct mcp_answer_row *items;
    size_t count, cap;
    size_t others; /* rows in `items` that are not main */
    size_t beyond; /* rows beyond `most` */
    size_t left;   /* rows for which there was no room */
    size_t hidden; /* rows of nodes that are not allowed */
    struct arena arena;
};

void mcp_answer_init(struct mcp_answer *x, const struct mcp_tool *tool);
void mcp_answer_release(struct mcp_answer *x);

void mcp_answer_output(struct mcp_answer *x, struct str bytes);  /* takes standard output of the command */
void mcp_answer_message(struct mcp_answer *x, struct str bytes); /* takes its standard error */
void mcp_answer_end(struct mcp_answer *x);                       /* takes the last line, even if it has no end */

size_t mcp_answer_read(const struct mcp_answer *x); /* returns how many rows the command printed */

/*
 * Appends the members "content" and "isError" of the result. `error`: why the call failed, or NULL; `budget`: a note
 * about the budgets, or NULL. `used`: bytes of the line beside these members.
 */
void mcp_answer_put(struct mcp_answer *x, const char *error, const char *budget, size_t used, struct buf *to);

#endif
