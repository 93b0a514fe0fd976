/* SPDX-License-Identifier: Apache-2.0 */
#include "rejections.h"

#include <stdlib.h>

#include "../erlang/wire_order.h"
#include "../ground/mem.h"
#include "../views/line.h"

#define EXAMPLE_MOST 300 /* bytes of an example in a sentence */
#define NUMBER_MOST 4096

/* The kind of events that a condition has rejected. */
enum rejected { REJECTED_CALLS, REJECTED_RESULTS, REJECTED_MESSAGES, REJECTED_EVENTS };

struct rejection {
    const struct where *condition; /* NULL: `grep` */
    const struct grep *grep;
    enum rejected what; /* REJECTED_EVENTS if the events are of several kinds */
    uint64_t events;    /* 0: only the node has rejected events */
    struct buf nearest; /* the encoded number that comes nearest to the constant; empty: none */
    bool of_nodes;      /* `nearest` is also that of the events that only the nodes have rejected */
    struct buf example; /* the line of the first event; empty: none */
};

static const struct term_env no_names;

void rejections_release(struct rejections *r)
{
    for (size_t i = 0; i < r->count; i++) {
        buf_release(&r->items[i].nearest);
        buf_release(&r->items[i].example);
    }
    free(r->items);
}

static struct rejection *rejections_find(struct rejections *r, const struct where *condition, const struct grep *grep)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->items[i].condition == condition && r->items[i].grep == grep)
            return &r->items[i];
    r->items = mem_grow(r->items, &r->cap, r->count + 1, sizeof(*r->items));
    r->items[r->count] = (struct rejection){.condition = condition, .grep = grep};
    return &r->items[r->count++];
}

static enum rejected rejected_kind(const struct event *e)
{
    return e->kind == ETW_CALL                                                           ? REJECTED_CALLS
           : event_is_result(e)                                                          ? REJECTED_RESULTS
           : e->kind == ETW_SEND || e->kind == ETW_SEND_NOPROC || e->kind == ETW_RECEIVE ? REJECTED_MESSAGES
                                                                                         : REJECTED_EVENTS;
}

static void count_event(struct rejection *x, const struct event *e)
{
    const enum rejected what = rejected_kind(e);

    x->what = x->events && x->what != what ? REJECTED_EVENTS : what;
    x->events++;
}

static void keep_example(struct rejection *x, const struct event *e, enum terms_style style)
{
    static const struct paint plain = {false};

    if (!x->example.len)
        line_body(&x->example, e, style, &plain);
}

/*
 * Returns the value that a condition compares with a constant by its size, or NULL. *ret_up: larger values come nearer
 * to the constant.
 */
static const struct where *compared_value(const struct where *c, bool *ret_up)
{
    if (c->type != WHERE_CALL || c->count != 2)
        return NULL;
    const bool turned = c->items[0]->type == WHERE_CONST, up = c->fn == FN_GT || c->fn == FN_GE;
    if (c->items[!turned]->type != WHERE_CONST || (!up && c->fn != FN_LT && c->fn != FN_LE))
        return NULL;
    *ret_up = up != turned;
    return c->items[turned];
}

/* Keeps the number if it is the nearest one so far. */
static void keep_nearest(struct rejection *x, struct value v, bool up)
{
    const enum wire_order nearer = up ? WIRE_LESS : WIRE_GREATER;

    if (x->nearest.len && wire_compare(&no_names, (const uint8_t *)x->nearest.data, v.env, v.at, false) != nearer)
        return;
    buf_clear(&x->nearest);
    if (!wire_copy(&x->nearest, v.env, (struct wire){v.at, wire_skip(v.at)}, NUMBER_MOST))
        buf_clear(&x->nearest);
}

/* Returns the first part of a conjunction that rejects the event. */
static const struct where *rejecting_part(struct wheres *w, const struct where *c, const struct event *e)
{
    for (size_t i = 0; c->type == WHERE_CALL && c->fn == FN_ANDALSO && i < c->count; i++)
        if (c->items[i]->text.len && where_holds(w, c->items[i], e) == FILTER_FAIL)
            return c->items[i];
    return c;
}

void rejections_add(struct rejections *r, struct wheres *w, const struct where *condition, const struct event *e)
{
    bool up = false;

    condition = rejecting_part(w, condition, e);
    const struct where *of = compared_value(condition, &up);
    const struct value v = of ? where_value_of(w, of, e) : VALUE_FAIL;
    struct rejection *x = rejections_find(r, condition, NULL);

    count_event(x, e);
    if (v.state == VALUE_TERM && wire_class(v.at) == WIRE_NUMBER)
        keep_nearest(x, v, up);
    keep_example(x, e, r->style);
}

void rejections_add_grep(struct rejections *r, const struct grep *grep, const struct event *e)
{
    struct rejection *x = rejections_find(r, NULL, grep);

    count_event(x, e);
    keep_example(x, e, r->style);
}

/* Returns true if the condition compares the duration with a constant, and fails for this duration. */
static bool rejects_duration(const struct where *c, int64_t ns)
{
    bool up;
    const struct where *of = compared_value(c, &up);

    if (!of || of->type != WHERE_NAME || of->property != PROPERTY_dur)
        return false;
    const int64_t with = c->items[of == c->items[0]]->constant->integer;
    return (up ? ns < with : ns > with) || (ns == with && (c->fn == FN_GT || c->fn == FN_LT));
}

static void add_time(struct rejections *r, const struct where *condition, const struct notice_times *times)
{
    struct arena a;
    bool up = false;

    compared_value(condition, &up);
    const int64_t ns = up ? times->most_ns : times->least_ns;
    if (!rejects_duration(condition, ns))
        return;
    arena_init(&a);
    struct rejection *x = rejections_find(r, condition, NULL);
    x->what = x->events ? x->what : REJECTED_RESULTS;
    keep_nearest(x, value_int(&a, ns), up);
    x->of_nodes = true;
    arena_release(&a);
}

void rejections_add_times(struct rejections *r, const struct where *const *conditions, size_t n,
                          const struct notice_times *times)
{
    for (size_t i = 0; i < n; i++) {
        const struct where *c = conditions[i];
        add_time(r, c, times);
        for (size_t k = 0; c->type == WHERE_CALL && c->fn == FN_ANDALSO && k < c->count; k++)
            add_time(r, c->items[k], times);
    }
}

/* ---- sentences ---- */

static void put_nearest(const struct rejection *x, struct buf *to)
{
    const uint8_t *number = (const uint8_t *)x->nearest.data;
    bool up = false;
    const enum where_kind kind = compared_value(x->condition, &up)->kind;
    int64_t n = 0;

    if (kind == WT_DURATION && wire_whole(number, &n)) {
        buf_puts(to, up ? ": the longest took " : ": the shortest took ");
        print_duration(to, n);
        return;
    }
    buf_puts(to, up ? ": the largest was " : ": the smallest was ");
    erlang_print(to, &no_names, number);
    if (kind == WT_SIZE)
        buf_puts(to, " bytes");
}

static void put_example(const struct rejection *x, struct buf *to)
{
    size_t len = x->example.len;

    for (len = MIN(len, EXAMPLE_MOST); len < x->example.len && (x->example.data[len] & 0xc0) == 0x80;)
        len--;
    buf_puts(to, ", such as ");
    buf_add(to, x->example.data, len);
    if (len < x->example.len)
        buf_puts(to, "…");
}

bool rejections_put(const struct rejections *r, size_t index, bool some, struct buf *to)
{
    static const char *const names[] = {"call", "result", "message", "event"};

    if (r->passed || index >= r->count)
        return false;
    const struct rejection *x = &r->items[index];
    if (x->condition)
        buf_printf(to, "'%.*s' rejected ", (int)x->condition->text.len, x->condition->text.at);
    else
        buf_printf(to, "%s--grep '%s' rejected ", x->grep->invert ? "--invert " : "", x->grep->regex);
    if (some)
        buf_printf(to, "%ss", names[x->what]);
    else
        buf_printf(to, "%llu %s%s", (unsigned long long)x->events, names[x->what], PLURAL(x->events));
    if (x->nearest.len && (x->of_nodes || !some))
        put_nearest(x, to);
    else if (x->example.len)
        put_example(x, to);
    return true;
}
