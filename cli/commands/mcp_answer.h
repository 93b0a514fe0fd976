/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the answer to a call of a tool from the rows that the command prints. The answer is one JSON object, which the
 * result contains as a text. It is cut so that the line for the client has at most MCP_ANSWER_MOST bytes. All text from
 * a node is inside strings of the object: a row that is not JSON becomes a string.
 *
 * Rows omit members that the assistant does not need: the version, the monotonic clock, and the name of the node if it
 * is the same in all rows. The answer stores each row escaped, as it will be in the line, so that it counts the bytes
 * that are sent.
 */
#ifndef ETRACE_MCP_ANSWER_H
#define ETRACE_MCP_ANSWER_H

#include "../ground/lines.h"
#include "mcp_tools.h"

#define MCP_ANSWER_MOST 32768 /* limit for the bytes of the line, with the newline */

struct mcp_answer_row {
    size_t at, len; /* offset and length of the row in `rows` */
    bool main;      /* the limit `most` does not apply to the row */
};

struct mcp_answer {
    const struct mcp_tool *tool;
    /* for tools that list nodes: drop rows about nodes that these rules do not allow; NULL: drop none */
    const struct mcp_rules *rules;
    char node[256]; /* the node that the rows are about; the caller may set it, and the first row replaces it */
    size_t most;    /* limit for the rows that are not main; 0: no limit */
    struct lines lines;
    struct buf rows, messages;
    struct buf lean, scratch; /* scratch memory for one row */
    struct mcp_answer_row *items;
    size_t count, cap;
    size_t others; /* rows in `items` that are not main */
    size_t beyond; /* rows that were dropped because of `most` */
    size_t left;   /* rows that were dropped because there was no room */
    size_t hidden; /* rows that were dropped because their node is not allowed */
    struct arena arena;
};

void mcp_answer_init(struct mcp_answer *x, const struct mcp_tool *tool);
void mcp_answer_release(struct mcp_answer *x);

void mcp_answer_output(struct mcp_answer *x, struct str bytes);  /* adds standard output of the command */
void mcp_answer_message(struct mcp_answer *x, struct str bytes); /* adds standard error of the command */
void mcp_answer_end(struct mcp_answer *x);                       /* adds the last line if it lacks a newline */

size_t mcp_answer_read(const struct mcp_answer *x); /* returns the number of rows that count as printed */

/*
 * Appends the members "content" and "isError" of the result. `error` says why the call failed; NULL: it succeeded.
 * `budget` is a note about the budgets, or NULL. `used` is the number of bytes that the line needs beside these
 * members.
 */
void mcp_answer_put(struct mcp_answer *x, const char *error, const char *budget, size_t used, struct buf *to);

#endif
