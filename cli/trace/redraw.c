/* SPDX-License-Identifier: Apache-2.0 */
#include "redraw.h"

#include "live.h"

/*
 * The write function of the view of standard output while it is redirected. While the table is on the screen, collects
 * the text for draw().
 */
static bool write_table(void *output, struct buf *bytes)
{
    struct redraw *r = output;

    if (r->due < 0)
        return r->original.write(r->original.output, bytes);
    buf_str(&r->table->text, buf_view(bytes));
    buf_clear(bytes);
    return true;
}

void redraw_begin(struct redraw *r, struct ctx *ctx, struct live_table *table, struct view *view)
{
    *r = (struct redraw){.ctx = ctx, .table = table, .due = -1};
    if (!view)
        return;
    r->original = *view;
    view->write = write_table;
    view->output = r;
}

bool redraw_step(struct redraw *r, struct pipeline *p, int64_t ran_ms, bool *ret_fresh)
{
    struct live_table *t = r->table;

    if (r->due < 0) {
        ctx_keep(r->ctx, true);
        t->open(t->data);
        r->due = loop_now();
    }
    const bool due = loop_now() >= r->due || t->again;
    *ret_fresh = due && !t->paused;
    t->again = false;
    if (due)
        r->due = loop_now() + t->interval_ms;
    if (*ret_fresh) {
        buf_clear(&t->text);
        t->ran_ms = ran_ms;
        t->totals = pipeline_totals(p);
        pipeline_snapshot(p);
    }
    return t->draw(t->data, *ret_fresh);
}

void redraw_close(struct redraw *r)
{
    if (!r->table || r->due < 0)
        return;
    r->due = -1;
    r->table->close(r->table->data);
    ctx_keep(r->ctx, false);
    buf_release(&r->table->text);
}
