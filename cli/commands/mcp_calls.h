/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the calls of tools: checks each against the rules and the budgets, runs a few at the same time while others
 * wait, and passes their results to the owner. Writes the audit.
 *
 * A call is in one of these states (enum mcp_call_state): CALL_WAITS while CALLS_RUNNING other calls run; CALL_RUNS
 * while its command runs; CALL_CANCELLED after the client has cancelled it, until its command has ended without an
 * answer.
 */
#ifndef ETRACE_MCP_CALLS_H
#define ETRACE_MCP_CALLS_H

#include "../trace/ctx.h"
#include "mcp_answer.h"
#include "mcp_child.h"

struct mcp_call;

/* The owner sets the members up to `data`. */
struct mcp_calls {
    struct ctx *ctx;
    const struct mcp_rules *rules;
    struct mcp_passed passed;
    int64_t ms_most, rows_most; /* budgets for all calls together, in ms and in rows; 0: no limit */
    struct out *audit;          /* NULL: no audit is written */
    /* Sends the result of a call: a JSON object with all its members. */
    void (*reply)(void *data, const struct json *id, struct str result);
    /* returns the number of bytes of a reply beside the members of the result */
    size_t (*around)(void *data, const struct json *id);
    void *data;
    int64_t ms_used, rows_used;
    struct mcp_call *first; /* list of the calls, in the order in which they arrived */
};

/*
 * Begins a call. Moves *arena, which owns `id` and `arguments`, into the call, and leaves an empty arena. May call
 * reply() at once.
 */
void mcp_calls_begin(struct mcp_calls *c, const struct mcp_tool *tool, const struct json *id,
                     const struct json *arguments, struct arena *arena);

/* Returns true if a call with this id waits or runs. */
bool mcp_calls_has(const struct mcp_calls *c, const struct json *id);
void mcp_calls_cancel(struct mcp_calls *c, const struct json *id); /* does nothing if there is no call with this id */

/* Cancels all calls, and waits until their commands have ended. */
void mcp_calls_end(struct mcp_calls *c);

#endif
