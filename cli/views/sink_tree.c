/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree view: calls indented below their callers. A call without inner events is one line that includes its result.
 * Otherwise the result has its own line, indented like the call. The view therefore holds back the line of a call until
 * the next event.
 */
#include "clock.h"
#include "line.h"
#include "missing.h"

struct tree {
    struct sink sink;
    struct clock clock;
    struct paint paint;
    struct buf waiting; /* the line of a call, which waits for the next event */
    struct buf origin;  /* the caller of this call, for the end of the line */
    uint64_t who;       /* the process of this call */
    unsigned node;
    const struct fun *fun;
    uint8_t arity;
};

static bool open_tree(struct sink *sink, struct err *e)
{
    struct tree *t = (struct tree *)sink;

    (void)e;
    t->paint.on = sink->look.colour;
    clock_init(&t->clock, sink->look.time);
    return true;
}

static void sink_tree_let_go(struct tree *t)
{
    if (!t->waiting.len)
        return;
    buf_str(t->sink.out, buf_view(&t->waiting));
    buf_str(t->sink.out, buf_view(&t->origin));
    buf_char(t->sink.out, '\n');
    buf_clear(&t->waiting);
}

static void put_head(struct tree *t, struct buf *to, const struct event *e)
{
    paint_begin(&t->paint, to, PAINT_TIME);
    clock_put(&t->clock, to, e);
    paint_end(&t->paint, to);
    buf_char(to, ' ');
    if (t->sink.look.nodes) {
        paint_str(&t->paint, to, PAINT_NODE, safe_view(e->node->name));
        buf_char(to, ' ');
    }
    line_who(to, e, &t->paint);
    buf_char(to, ' ');
    for (uint32_t i = 0; i < MIN(e->depth, 64u); i++)
        buf_add(to, "  ", 2);
}

/* Appends to the line of a result what follows the function: `= value 12us`. */
static void put_tree_result(struct tree *t, struct buf *to, const struct event *e)
{
    const struct printer *p = line_printer(e, t->sink.look.terms);
    const uint8_t *reason;
    struct raw class;

    if (e->kind == ETW_RETURN_FROM) {
        buf_add(to, " = ", 3);
        p->term(to, &e->env, e->terms.at);
    } else if (line_exception(e, &class, &reason)) {
        paint_begin(&t->paint, to, PAINT_FAILURE);
        buf_puts(to, " raised ");
        paint_end(&t->paint, to);
        p->atom(to, class);
        buf_char(to, ':');
        p->term(to, &e->env, reason);
    }
    if (e->dur_ns >= 0) {
        buf_char(to, ' ');
        paint_begin(&t->paint, to, PAINT_DURATION);
        print_duration(to, e->dur_ns);
        paint_end(&t->paint, to);
    }
}

static void sink_tree_put_call(struct tree *t, struct buf *to, const struct event *e)
{
    const struct printer *p = line_printer(e, t->sink.look.terms);

    put_head(t, to, e);
    paint_begin(&t->paint, to, PAINT_FUN);
    line_call(to, e, p, t->sink.look.terms);
    paint_end(&t->paint, to);
}

static void put_origin(struct tree *t, struct buf *to, const struct event *e)
{
    if (!e->caller)
        return;
    paint_begin(&t->paint, to, PAINT_ORIGIN);
    buf_add(to, " by ", 4);
    line_mfa(to, e, line_printer(e, t->sink.look.terms), e->caller);
    paint_end(&t->paint, to);
}

static void put_loss(struct tree *t, const struct event *e)
{
    for (enum etw_loss l = 0; l < ETW_LOSSES; l++) {
        if (!e->lost[l])
            continue;
        paint_begin(&t->paint, t->sink.out, PAINT_LOSS);
        line_loss(t->sink.out, e, l, e->lost[l]);
        paint_end(&t->paint, t->sink.out);
        buf_char(t->sink.out, '\n');
    }
}

static void event_tree(struct sink *s, const struct event *e)
{
    struct tree *t = (struct tree *)s;
    struct buf *to = s->out;

    if (event_is_result(e) && t->waiting.len && e->call && t->who == e->who->id && t->node == e->node->index &&
        t->fun == e->fun && t->arity == e->arity) {
        put_tree_result(t, &t->waiting, e);
        sink_tree_let_go(t);
        return;
    }
    sink_tree_let_go(t);
    if (e->kind == ETW_LOST) {
        put_loss(t, e);
    } else if (e->kind == ETW_DOWN || e->kind == ETW_UP) {
        line_node(to, e);
        buf_char(to, '\n');
    } else if (!event_is_traced(e)) {
        return;
    } else if (e->kind == ETW_CALL && e->expects_return) {
        sink_tree_put_call(t, &t->waiting, e);
        buf_clear(&t->origin);
        put_origin(t, &t->origin, e);
        t->who = e->who->id;
        t->node = e->node->index;
        t->fun = e->fun;
        t->arity = e->arity;
    } else if (e->kind == ETW_CALL) {
        sink_tree_put_call(t, to, e);
        put_origin(t, to, e);
        buf_char(to, '\n');
    } else if (event_is_result(e)) {
        put_head(t, to, e);
        buf_puts(to, "└ ");
        paint_begin(&t->paint, to, PAINT_FUN);
        line_fun(to, e, s->look.terms);
        buf_char(to, '/');
        print_u64(to, e->arity);
        paint_end(&t->paint, to);
        put_tree_result(t, to, e);
        buf_char(to, '\n');
    } else {
        put_head(t, to, e);
        line_event(to, e, s->look.terms, &t->paint);
        buf_char(to, '\n');
    }
}

static void end_tree(struct sink *s, const struct totals *totals)
{
    sink_tree_let_go((struct tree *)s);
    missing_counted(s->out, totals, "");
}

static void release_tree(struct sink *s)
{
    struct tree *t = (struct tree *)s;

    buf_release(&t->waiting);
    buf_release(&t->origin);
}

const struct sink_type sink_tree = {
    .name = "tree",
    .about = "calls indented under their callers",
    .without_results = "shows the calls as a list",
    .size = sizeof(struct tree),
    .flags = SINK_LINES | SINK_NESTED,
    .open = open_tree,
    .event = event_tree,
    .end = end_tree,
    .release = release_tree,
};
