/* SPDX-License-Identifier: Apache-2.0 */
/* Implements waiting and errors for all parts of the interactive mode. */
#include "repl_base.h"

void repl_step(struct repl_base *b, int64_t until)
{
    b->serve(b->serve_data, until);
}

void repl_wake(struct repl_base *b)
{
    b->timer.due = 0;
}

int repl_fail(struct repl_base *b, const struct err *e)
{
    struct err here = *e;

    repl_options_reword(&here);
    int status = ctx_fail(b->ctx, &here);

    if (!b->status)
        b->status = status;
    return status;
}

bool repl_interrupted(struct repl_base *b)
{
    bool yes = b->ctx->interrupts > 0;

    if (!b->leaving)
        b->ctx->interrupts = 0;
    return yes;
}
