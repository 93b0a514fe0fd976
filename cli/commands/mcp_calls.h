/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of tools: checks them against the rules and the budgets, runs some at the same time while others wait, and
 * hands over their results. Writes the audit.
 *
 *   WAITS      there are CALLS_RUNNING others that run
 *   RUNS       its command runs
 *   CANCELLED  the client has cancelled it, so its command ends without an answer
 */
#ifndef ETRACE_MCP_CALLS_H
#define ETRACE_MCP_CALLS_H

#include "../trace/ctx.h"
#include "mcp_answer.h"
#include "mcp_child.h"

struct mcp_call;

/* The owner sets the first members. */
struct mcp_calls {
    struct ctx *ctx;
    const struct mcp_rules *rules;
    struct mcp_passed passed;
    int64_t ms_most, rows_most; /* budgets of all calls together; 0: no limit */
    struct out *audit;          /* NULL: none */
    /* Takes the result of a call: the object with all its members. `used` is how many bytes surround the result. */
    void (*reply)(void *data, const struct json *id, struct str result);
    size_t (*around)(void *data, const struct json *id); /* the bytes of a reply beside the members of the result */
    void *data;
    int64_t ms_used, rows_used;
    struct mcp_call *first; /* in the order of their arrival */
};

/*
 * Begins a call. Takes the arena, in which `id` and `arguments` live, and leaves an empty one. The reply may come at
 * once.
 */
void mcp_calls_begin(struct mcp_calls *c, const struct mcp_tool *tool, const struct json *id,
                     const struct json *arguments, struct arena *arena);

bool mcp_calls_has(const struct mcp_calls *c, const struct json *id); /* returns true if a call has this id */
void mcp_calls_cancel(struct mcp_calls *c, const struct json *id);    /* does nothing if no call has this id */

/* Ends all calls, and waits until their commands have ended. */
void mcp_calls_end(struct mcp_calls *c);

#endif
