/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON view of exits: an object for each exit that no other exit has caused, and at the end an object for each
 * group of exiting processes.
 */
#include "../ground/json.h"
#include "death_view.h"
#include "line.h"
#include "missing.h"

static void member_safe(struct buf *to, const char *key, const char *text, size_t len)
{
    if (len)
        json_put_string(to, key, raw_of((struct str){text, len}));
}

static void member_us(struct buf *to, const char *key, int64_t ns)
{
    json_key(to, key);
    json_open_real(to, (double)ns / 1000);
}

static void member_flag(struct buf *to, const char *key, bool value)
{
    if (value)
        json_put_bool(to, key, true);
}

static void members_of(struct buf *to, const struct tracee *who, const char *pid, const char *name)
{
    member_safe(to, pid, who->text, who->text_len);
    member_safe(to, name, who->name, who->name_len);
}

static void member_reason(struct death_view *v, struct buf *to, const struct event_node *node, const uint8_t *reason)
{
    const struct event at = death_on(node);

    buf_clear(&v->cell);
    line_printer(&at, v->sink.look.terms)->term(&v->cell, &at.env, reason);
    member_safe(to, "reason", v->cell.data, v->cell.len);
}

/* Writes the member "node" with the name of `node`, unless the exit `x` happened on that node. */
static void member_node(struct buf *to, const struct death *x, const struct event_node *node)
{
    if (node != x->node)
        member_safe(to, "node", safe_view(node->name).at, safe_view(node->name).len);
}

static void member_heirs(struct buf *to, const struct death *x)
{
    if (!x->nheirs)
        return;
    json_put_array(to, "reached");
    for (size_t i = 0; i < x->nheirs; i++) {
        const struct death_heir *h = &x->heirs[i];
        json_begin_object(to);
        json_put_text(to, "by", h->monitor ? "monitor" : "link");
        member_node(to, x, h->node);
        members_of(to, &h->who, "pid", "name");
        member_us(to, "after_us", death_after(x, h->mono_ns));
        json_end_object(to);
    }
    json_end_array(to);
    if (x->more_heirs)
        json_put_uint(to, "reached_more", x->more_heirs);
}

static void member_again(struct buf *to, const struct death *x)
{
    if (!x->again.known)
        return;
    json_put_object(to, "restarted");
    json_put_bool(to, "named", x->again.named);
    members_of(to, &x->again.as, "pid", "name");
    if (x->again.by_known)
        members_of(to, &x->again.by, "by", "by_name");
    member_us(to, "after_us", death_after(x, x->again.mono_ns));
    json_end_object(to);
}

static void members_of_death(struct death_view *v, struct buf *to, const struct death *x)
{
    members_of(to, &x->who, "pid", "name");
    if (x->initial) {
        buf_clear(&v->cell);
        death_put_initial(v, &v->cell, x);
        member_safe(to, "initial", v->cell.data, v->cell.len);
    }
    members_of(to, &x->spawner, "parent", "parent_name");
    member_reason(v, to, x->node, x->reason);
    member_flag(to, "cut", x->cut);
    json_put_bool(to, "normal", x->normal);
    json_put_text(to, "cause", death_causes[x->cause]);
    if (x->cause == DEATH_SIGNAL)
        members_of(to, &x->by, "by", "by_name");
    if (x->cause == DEATH_SIGNAL && x->by_node && x->by_node != x->node)
        member_safe(to, "by_node", safe_view(x->by_node->name).at, safe_view(x->by_node->name).len);
    buf_clear(&v->cell);
    if (death_put_place(v, &v->cell, x))
        member_safe(to, "in", v->cell.data, v->cell.len);
    buf_clear(&v->cell);
    if (x->away.id && (x->cause == DEATH_UNKNOWN || x->cause == DEATH_SIGNAL)) {
        death_put_away(&v->cell, x);
        member_safe(to, "linked_to", v->cell.data, v->cell.len);
    }
    member_heirs(to, x);
    member_again(to, x);
    if (!x->first)
        return;
    json_put_array(to, "caused");
    for (const struct death *child = x->first; child; child = child->next) {
        json_begin_object(to);
        member_us(to, "after_us", death_after(x, death_time(x, child->node, child->mono_ns, child->wall_ns)));
        member_node(to, x, child->node);
        members_of_death(v, to, child);
        json_end_object(to);
    }
    json_end_array(to);
}

static void on_show(struct death_view *v, const struct death *root, const struct death_group *g, bool fresh)
{
    const struct event at = death_moment(root);
    struct buf *to = v->sink.out;

    (void)g;
    (void)fresh;
    json_begin_record(to, "death");
    json_key(to, "ts"), json_open_string(to);
    clock_put_iso(&v->clock, to, &at);
    json_close_string(to);
    json_put_safe(to, "node", root->node->name);
    members_of_death(v, to, root);
    json_end_record(to);
}

static void put_json_group(struct death_view *v, struct buf *to, const struct death_group *g)
{
    json_begin_record(to, "deaths");
    if (g->node)
        json_put_safe(to, "node", g->node->name);
    buf_clear(&v->cell);
    death_put_group(v, &v->cell, g);
    member_safe(to, "process", v->cell.data, v->cell.len);
    json_put_uint(to, "exits", g->times);
    json_put_uint(to, "normal_exits", g->quiet);
    if (g->times > 1 && g->node)
        member_us(to, "during_us", MAX(g->last_ns - g->first_ns, 0));
    json_put_array(to, "reasons");
    for (size_t i = 0; i < g->nreasons; i++) {
        json_begin_object(to);
        member_reason(v, to, g->node, g->reasons[i].term);
        json_put_uint(to, "exits", g->reasons[i].times);
        json_end_object(to);
    }
    json_end_array(to);
    if (g->other_reasons)
        json_put_uint(to, "other_reasons", g->other_reasons);
    json_put_uint(to, "caused", g->others);
    json_put_uint(to, "restarts", g->restarts);
    members_of(to, &g->restarter, "by", "by_name");
    json_end_record(to);
}

static void put_json_missing(struct death_view *v, struct buf *to, const struct totals *t)
{
    json_begin_record(to, "deaths_missing");
    json_put_uint(to, "early", v->deaths.hurried);
    json_put_uint(to, "forgotten", v->deaths.lives.forgotten);
    json_put_uint(to, "links", v->deaths.lives.unlinked);
    json_put_object(to, "lost");
    for (size_t l = 0; l < ETW_LOSSES; l++)
        if (t->lost[l])
            json_put_uint(to, event_losses[l], t->lost[l]);
    json_end_object(to);
    json_put_uint(to, "missing", t->missing);
    missing_json(to, t);
    json_end_record(to);
}

static bool open_diedjson(struct sink *sink, struct err *e)
{
    struct death_view *v = (struct death_view *)sink;

    (void)e;
    death_view_init(v);
    if (sink->look.terms != TERMS_ELIXIR) /* as in the JSON of events */
        sink->look.terms = TERMS_ERLANG;
    clock_init_iso(&v->clock);
    v->show = on_show;
    return true;
}

static void end_diedjson(struct sink *sink, const struct totals *totals)
{
    struct death_view *v = (struct death_view *)sink;

    deaths_end(&v->deaths);
    for (size_t i = 0; i < v->groups.n; i++)
        put_json_group(v, sink->out, &v->groups.items[i]);
    put_json_missing(v, sink->out, totals);
}

const struct sink_type sink_diedjson = {
    .name = "diedjson",
    .extensions = ".json .ndjson",
    .about = "one JSON object for each exit with those that it caused",
    .item = "exit",
    .brief = "json",
    .size = sizeof(struct death_view),
    .flags = SINK_LINES | SINK_ANONYMOUS | SINK_PAIRS,
    .open = open_diedjson,
    .event = death_view_event,
    .passed = death_view_passed,
    .end = end_diedjson,
    .release = death_view_release,
};
