/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of exits: why processes exit, and what their exits do to other processes. Prints a line for each exit, and
 * its consequences below this line. Repeated exits of one group (fold/death_groups.h) become one line with their
 * number.
 */
#include "../ground/number.h"
#include "../ground/utf8.h"
#include "death_view.h"
#include "grid.h"
#include "line.h"
#include "missing.h"

#define BELOW_MOST 12   /* lines below an exit; --json shows all */
#define LEVELS_MOST 12  /* levels of lines below an exit; --json shows all */
#define REASON_LEAST 16 /* least width of a reason before the text that follows it in the line */
#define QUIETEST 4

/* A line that is cut at the edge of the terminal. */
struct edge {
    struct buf *to;
    const struct paint *paint;
    size_t room; /* columns that are left in the line; SIZE_MAX: not a terminal */
};

static struct edge edge_of(const struct death_view *v)
{
    return (struct edge){v->sink.out, &v->paint, v->sink.look.width ? v->sink.look.width : SIZE_MAX};
}

/*
 * Prints as much of the text as fits into `most` columns and into the line. A text that was cut at the end of the line
 * ends in an ellipsis, and nothing can follow it.
 */
static void put_cut(struct edge *line, enum paint_what what, struct str text, size_t most)
{
    const size_t room = MIN(line->room, most), width = utf8_width(text.at, text.len);

    if (!room)
        return;
    if (what)
        paint_begin(line->paint, line->to, what);
    grid_cut(line->to, text, room);
    if (what)
        paint_end(line->paint, line->to);
    line->room -= line->room == SIZE_MAX ? 0 : MIN(width, room);
    if (width > room && most >= line->room)
        line->room = 0;
}

static void put_text(struct edge *line, const char *text)
{
    put_cut(line, PAINT_NONE, (struct str){text, strlen(text)}, SIZE_MAX);
}

static void put_process(struct death_view *v, struct edge *line, const struct tracee *who)
{
    buf_clear(&v->cell);
    death_put_process(&v->cell, who);
    put_cut(line, PAINT_PID, buf_view(&v->cell), SIZE_MAX);
}

static void put_who(struct death_view *v, struct edge *line, const struct death *x)
{
    buf_clear(&v->cell);
    death_put_who(v, &v->cell, x);
    put_cut(line, PAINT_PID, buf_view(&v->cell), SIZE_MAX);
}

static void put_node(struct death_view *v, struct edge *line, const struct death *x, const struct event_node *node)
{
    buf_clear(&v->cell);
    death_put_node(&v->cell, x, node);
    put_cut(line, PAINT_NODE, buf_view(&v->cell), SIZE_MAX);
}

static void put_after(struct death_view *v, struct edge *line, const struct death *x, int64_t mono_ns)
{
    put_text(line, " (");
    buf_clear(&v->cell);
    print_duration(&v->cell, death_after(x, mono_ns));
    put_cut(line, PAINT_DURATION, buf_view(&v->cell), SIZE_MAX);
    put_text(line, ")");
}

/* Puts the time, and the node if there are several. */
static void put_head(struct death_view *v, struct edge *line, const struct event *at)
{
    buf_clear(&v->cell);
    clock_put(&v->clock, &v->cell, at);
    put_cut(line, PAINT_TIME, buf_view(&v->cell), SIZE_MAX);
    put_text(line, " ");
    if (v->sink.look.nodes) {
        put_cut(line, PAINT_NODE, safe_view(at->node->name), SIZE_MAX);
        put_text(line, " ");
    }
}

static void put_reason(struct death_view *v, struct edge *line, const struct death *x, size_t most)
{
    put_cut(line, PAINT_FAILURE, (struct str){"exit ", 5}, SIZE_MAX);
    buf_clear(&v->cell);
    death_put_reason(v, &v->cell, x->node, x->reason);
    put_cut(line, PAINT_NONE, buf_view(&v->cell), most);
}

/* Prints the cause of an exit that no other exit has caused. A normal exit needs no cause. */
static void put_cause(struct death_view *v, struct buf *to, const struct death *x)
{
    const char *in = " in ";

    switch (x->cause) {
    case DEATH_ENDED:
        return;
    case DEATH_SIGNAL:
        buf_puts(to, x->key.killed ? "by " : "exit signal of ");
        if (!x->by.text_len)
            break;
        death_put_node(to, x, x->by_node);
        death_put_process(to, &x->by);
        if (x->away.id) {
            buf_puts(to, " to ");
            death_put_away(to, x);
        }
        break;
    case DEATH_EXIT:
    case DEATH_ERROR:
        buf_puts(to, x->error ? "error" : "own exit");
        break;
    case DEATH_UNKNOWN:
        buf_puts(to, "cause unknown");
        in = ": ";
        break;
    case DEATH_LINK:
    case DEATH_SAME:
    case DEATH_CALL:
        break;
    }
    const size_t from = to->len;
    buf_puts(to, in);
    if (death_put_place(v, to, x))
        return;
    to->len = from;
    if (x->cause != DEATH_UNKNOWN || !x->away.id)
        return;
    buf_puts(to, "; it was linked to ");
    death_put_away(to, x);
}

/* ---- what followed ---- */

struct below {
    struct death_view *v;
    const struct death *x;
    size_t left;    /* number of lines that are still to be printed */
    unsigned level; /* number of exits above `x` in its tree */
};

static bool is_told(const struct death *x, const struct death_heir *h)
{
    if (death_has_child(x, h->node, &h->who))
        return false;
    return h->node != x->node || (!(x->cause == DEATH_SIGNAL && x->by_node == h->node && x->by.id == h->who.id) &&
                                  !(x->again.by_known && x->again.by.id == h->who.id));
}

static size_t count_below(const struct death *x)
{
    size_t n = x->more_heirs != 0;

    for (const struct death *child = x->first; child; child = child->next)
        n++;
    for (size_t i = 0; i < x->nheirs; i++)
        n += is_told(x, &x->heirs[i]);
    n += x->again.known;
    return n;
}

/* Begins a line below the line of the exit. `v->line` has the characters with which all these lines begin. */
static struct edge begin_below(struct below *b)
{
    struct edge line = edge_of(b->v);

    b->left--;
    put_cut(&line, PAINT_TIME, buf_view(&b->v->line), SIZE_MAX);
    put_cut(&line, PAINT_TIME, raw_view(raw_text(b->left ? "├ " : "└ ")), SIZE_MAX);
    return line;
}

static void put_below(struct death_view *v, const struct death *x, const char *cause, unsigned level);

static void put_child(struct below *b, const struct death *child)
{
    static const char *const ways[] =
        {[DEATH_LINK] = "link", [DEATH_SAME] = "link?", [DEATH_CALL] = "its call", [DEATH_EXIT] = "link"};
    struct death_view *v = b->v;
    struct edge line = begin_below(b);
    const size_t indent = v->line.len;

    if (child->cause == DEATH_SIGNAL) {
        put_process(v, &line, &child->by);
    } else {
        put_text(&line, ways[child->cause]);
    }
    put_text(&line, " -> ");
    put_node(v, &line, b->x, child->node);
    put_who(v, &line, child);
    put_after(v, &line, b->x, death_time(b->x, child->node, child->mono_ns, child->wall_ns));
    if (!exit_reason_same(&child->key, &b->x->key)) {
        put_text(&line, child->cause == DEATH_EXIT ? ", then " : " ");
        put_reason(v, &line, child, SIZE_MAX);
    }
    buf_char(line.to, '\n');
    buf_puts(&v->line, b->left ? "│ " : "  ");
    put_below(v, child, NULL, b->level + 1);
    v->line.len = indent;
}

static void put_heir(struct below *b, const struct death_heir *h)
{
    struct edge line = begin_below(b);

    put_text(&line, h->monitor ? "monitor -> " : "link -> ");
    put_node(b->v, &line, b->x, h->node);
    put_process(b->v, &line, &h->who);
    put_after(b->v, &line, b->x, h->mono_ns);
    put_text(&line, h->monitor ? "" : ", traps exits");
    buf_char(line.to, '\n');
}

static void put_again(struct below *b, const struct death_again *again)
{
    struct edge line = begin_below(b);

    if (again->named) {
        put_text(&line, again->by_known ? "restarted by " : "restarted as ");
        put_process(b->v, &line, again->by_known ? &again->by : &again->as);
        put_after(b->v, &line, b->x, again->mono_ns);
    } else {
        put_process(b->v, &line, &again->by);
        put_text(&line, " then started ");
        put_process(b->v, &line, &again->as);
        put_after(b->v, &line, b->x, again->mono_ns);
    }
    buf_char(line.to, '\n');
}

/* Prints how many lines are left out, as the last line below an exit. */
static void put_rest(struct below *b, size_t lines)
{
    struct edge line = begin_below(b);

    buf_clear(&b->v->cell);
    buf_printf(&b->v->cell, "and %zu more", lines);
    put_cut(&line, PAINT_TIME, buf_view(&b->v->cell), SIZE_MAX);
    buf_char(line.to, '\n');
}

/*
 * Prints the lines below the line of an exit. `cause` becomes the first of them if the line of the exit had no room for
 * it; NULL: it had room. `level` is that of struct below.
 */
static void put_below(struct death_view *v, const struct death *x, const char *cause, unsigned level)
{
    const size_t n = count_below(x) + (cause != NULL), most = MIN(n, BELOW_MOST), room = most - (n > most);
    struct below b = {v, x, most, level};
    size_t done = 0;

    if (n && level == LEVELS_MOST) {
        size_t all = n;
        for (const struct death *child = x->first; child; child = child->next)
            all += child->others;
        b.left = 1;
        put_rest(&b, all);
        return;
    }

    if (cause) {
        struct edge line = begin_below(&b);
        put_text(&line, cause);
        buf_char(line.to, '\n');
        done++;
    }
    /* a restart is more important than the lines that are left out, so it comes first */
    if (x->again.known && n > most) {
        put_again(&b, &x->again);
        done++;
    }
    for (const struct death *child = x->first; child && done < room; child = child->next, done++)
        put_child(&b, child);
    for (size_t i = 0; i < x->nheirs && done < room; i++)
        if (is_told(x, &x->heirs[i])) {
            put_heir(&b, &x->heirs[i]);
            done++;
        }
    if (x->more_heirs && done < room) {
        put_rest(&b, x->more_heirs);
        done++;
    }
    if (x->again.known && n == most)
        put_again(&b, &x->again);
    if (n > most)
        put_rest(&b, n - room);
}

static void put_tree(struct death_view *v, const struct death *root)
{
    const struct event at = death_moment(root);
    struct edge line = edge_of(v);
    struct buf cause = {0};

    put_head(v, &line, &at);
    put_who(v, &line, root);
    put_text(&line, " ");
    put_cause(v, &cause, root);
    buf_clear(&v->cell);
    death_put_reason(v, &v->cell, root->node, root->reason);
    const size_t after = cause.len ? utf8_width(cause.data, cause.len) + 2 : 0,
                 reason = utf8_width(v->cell.data, v->cell.len) + 5;
    const bool fits = line.room == SIZE_MAX || MIN(reason, REASON_LEAST + 5) + after <= line.room;
    put_reason(v, &line, root, fits && line.room != SIZE_MAX ? line.room - after - 5 : SIZE_MAX);
    if (fits && cause.len) {
        put_text(&line, ", ");
        put_cut(&line, PAINT_ORIGIN, buf_view(&cause), SIZE_MAX);
    }
    buf_char(line.to, '\n');
    buf_clear(&v->line);
    buf_puts(&v->line, "  ");
    put_below(v, root, fits ? NULL : buf_cstr(&cause), 0);
    buf_release(&cause);
}

/* ---- exits again and again ---- */

/* Prints the reasons, the most frequent ones first, as many as fit before a text of `after` columns. */
static void put_reasons(struct death_view *v, struct edge *line, const struct death_group *g, size_t after)
{
    const struct death_reason *by_times[DEATH_REASONS];
    const bool always = g->nreasons == 1 && !g->other_reasons;
    const size_t n = death_reasons_sorted(g, by_times);

    for (size_t i = 0; i < n; i++) {
        buf_clear(&v->cell);
        buf_puts(&v->cell, i ? ", " : always ? "always " : "");
        if (!always)
            buf_printf(&v->cell, "%llu x ", (unsigned long long)by_times[i]->times);
        death_put_reason(v, &v->cell, g->node, by_times[i]->term);
        const size_t spare = MIN(line->room, after + (i + 1 < n ? 3 : 0)),
                     room = line->room == SIZE_MAX ? SIZE_MAX : line->room - spare;
        if (i && utf8_width(v->cell.data, v->cell.len) > room) {
            put_text(line, ", …");
            return;
        }
        put_cut(line, PAINT_NONE, buf_view(&v->cell), MAX(room, REASON_LEAST));
    }
    if (g->other_reasons) {
        buf_clear(&v->cell);
        buf_printf(&v->cell, ", %llu x others", (unsigned long long)g->other_reasons);
        put_cut(line, PAINT_NONE, buf_view(&v->cell), SIZE_MAX);
    }
}

/* Prints `feed: 20 exits in 2.0s, always {shutdown,_}; restarted by feed_sup`. */
static void put_group(void *ctx, const struct death_group *g)
{
    struct death_view *v = ctx;
    struct edge line = edge_of(v);
    struct buf rest = {0};
    const bool timed = g->label != LABEL_OTHERS;
    const struct event at = {.node = g->node, .mono_ns = g->last_ns, .wall_ns = g->last_wall_ns};

    if (g->node)
        put_head(v, &line, &at);
    buf_clear(&v->cell);
    death_put_group(v, &v->cell, g);
    put_cut(&line, PAINT_PID, buf_view(&v->cell), SIZE_MAX);
    buf_clear(&v->cell);
    buf_printf(&v->cell, ": %llu exit%s", (unsigned long long)g->times, PLURAL(g->times));
    if (timed) {
        buf_puts(&v->cell, " in ");
        print_duration(&v->cell, MAX(g->last_ns - g->first_ns, 0));
    }
    buf_puts(&v->cell, ", ");
    put_cut(&line, PAINT_NONE, buf_view(&v->cell), SIZE_MAX);
    if (g->restarts && g->restarter.text_len) {
        buf_puts(&rest, "; restarted by ");
        if (g->restarter.name_len)
            buf_add(&rest, g->restarter.name, g->restarter.name_len);
        else
            death_put_process(&rest, &g->restarter);
    }
    if (g->others)
        buf_printf(&rest, "; %llu exit%s of others with them", (unsigned long long)g->others, PLURAL(g->others));
    put_reasons(v, &line, g, utf8_width(rest.data ? rest.data : "", rest.len));
    put_cut(&line, PAINT_NONE, buf_view(&rest), SIZE_MAX);
    buf_char(line.to, '\n');
    buf_release(&rest);
}

static void on_show(struct death_view *v, const struct death *root, const struct death_group *g, bool fresh)
{
    (void)g;
    death_groups_tell(&v->groups, root->wall_ns + DEATH_SETTLE_NS, put_group, v);
    if (fresh)
        put_tree(v, root);
}

/* ---- the view ---- */

static bool open_died(struct sink *sink, struct err *e)
{
    struct death_view *v = (struct death_view *)sink;

    (void)e;
    death_view_init(v);
    clock_init(&v->clock, sink->look.time);
    v->show = on_show;
    return true;
}

static void event_died(struct sink *sink, const struct event *e)
{
    struct death_view *v = (struct death_view *)sink;

    death_view_event(sink, e);
    death_groups_tell(&v->groups, e->wall_ns, put_group, v);
    for (enum etw_loss l = 0; e->kind == ETW_LOST && l < ETW_LOSSES; l++)
        if (e->lost[l]) {
            paint_begin(&v->paint, sink->out, PAINT_LOSS);
            line_loss(sink->out, e, l, e->lost[l]);
            paint_end(&v->paint, sink->out);
            buf_char(sink->out, '\n');
        }
    if (e->kind == ETW_DOWN || e->kind == ETW_UP) {
        line_node(sink->out, e);
        buf_char(sink->out, '\n');
    }
}

static bool passed_died(struct sink *sink)
{
    struct death_view *v = (struct death_view *)sink;
    const bool waits = deaths_passed(&v->deaths);

    death_groups_passed(&v->groups, put_group, v);
    return waits || v->groups.folding;
}

/* Prints `412 normal exits not shown: 300 x shop_courier:deliver/1, 80 x rpc`. */
static void put_quiet(struct death_view *v, struct buf *to)
{
    const struct death_group *most[QUIETEST + 1];
    const size_t n = death_groups_quietest(&v->groups, most, QUIETEST);

    if (!v->groups.quiet)
        return;
    struct edge line = edge_of(v);
    buf_clear(&v->cell);
    buf_printf(&v->cell, "%llu normal exit%s not shown: ", (unsigned long long)v->groups.quiet,
               PLURAL(v->groups.quiet));
    for (size_t i = 0; i < n; i++) {
        buf_printf(&v->cell, "%s%llu x ", i ? ", " : "", (unsigned long long)most[i]->quiet);
        death_put_group(v, &v->cell, most[i]);
    }
    put_cut(&line, PAINT_NONE, buf_view(&v->cell), SIZE_MAX);
    buf_char(to, '\n');
}

static void put_counted(struct buf *to, uint64_t n, const char *what)
{
    if (n)
        buf_printf(to, "*** %llu %s ***\n", (unsigned long long)n, what);
}

static void end_died(struct sink *sink, const struct totals *totals)
{
    struct death_view *v = (struct death_view *)sink;
    struct buf *to = sink->out;

    deaths_end(&v->deaths);
    death_groups_tell(&v->groups, INT64_MAX, put_group, v);
    if (!v->shown)
        buf_puts(to, v->groups.quiet                       ? "every exit was normal\n"
                     : v->choice && v->choice->names.count ? "no such process has exited\n"
                                                           : "no process has exited\n");
    put_quiet(v, to);
    put_counted(to, v->deaths.hurried, "exits shown early: too many processes exited at once");
    put_counted(to, v->deaths.lives.forgotten, "processes forgotten: their names and links are not known");
    put_counted(to, v->deaths.lives.unlinked, "links not kept: there were too many");
    missing_report(to, totals, "");
}

const struct sink_type sink_died = {
    .name = "died",
    .about = "why processes exit, and what their exits do to others",
    .item = "exit",
    .brief = "text",
    .size = sizeof(struct death_view),
    .flags = SINK_LINES | SINK_ANONYMOUS | SINK_PAIRS,
    .open = open_died,
    .event = event_died,
    .passed = passed_died,
    .end = end_died,
    .release = death_view_release,
};
