/* SPDX-License-Identifier: Apache-2.0 */
#include "why_watch.h"

#include "../trace/exprs.h"

void why_watch_release(struct why_watch *w)
{
    buf_release(&w->who);
}

bool why_watch_begin(struct why_watch *w, const struct look_process *process, unsigned node,
                     const struct session_node *there, struct err *e)
{
    const char *pid = process->pid;
    const struct texts procs = {.items = &pid, .count = 1};

    buf_release(&w->who);
    *w = (struct why_watch){.process = *process, .node = node};
    return exprs_whom(&procs, there, &w->who, e);
}

void why_watch_request(struct why_watch *w, struct buf *to)
{
    w->waits = true;
    why_request(to, buf_view(&w->who), false, true);
}

bool why_watch_answer(struct why_watch *w, struct etf answer, struct funs *funs, struct err *e)
{
    w->waits = false;
    if (!why_read(answer, &w->look, funs, e))
        return false;
    w->look.at = loop_now();
    if (!w->look.chain[0].process.name[0]) /* a process that has exited has no name */
        w->look.chain[0].process = w->process;
    why_sample(&w->samples, &w->look);
    return true;
}

void why_watch_text(const struct why_watch *w, const struct why_page *page, struct buf *to)
{
    static const struct why_senders none;
    struct why_page p = *page;

    if (!w->samples.looks) {
        look_process_print(to, &w->process);
        buf_puts(to, " …\n");
        return;
    }
    p.look = &w->look;
    p.samples = &w->samples;
    p.senders = &none;
    why_page_text(&p, to);
}
