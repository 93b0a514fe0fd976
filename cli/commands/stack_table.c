/* SPDX-License-Identifier: Apache-2.0 */
#include "stack_table.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/term_print.h"
#include "../ground/json.h"
#include "../ground/mem.h"
#include "../ground/utf8.h"
#include "../views/grid.h"
#include "refresh.h"

/* ---- lines ---- */

struct placed_group {
    const struct stack_group *group;
    const struct one_stack *stack;
    const char *behaviour;
};

static int line_order(const struct placed_group *a, const struct placed_group *b)
{
    int by_behaviour = strcmp(a->behaviour ? a->behaviour : "", b->behaviour ? b->behaviour : "");

    if (by_behaviour || (a->behaviour && a->stack->node == b->stack->node))
        return by_behaviour;
    if (a->behaviour)
        return a->stack->node < b->stack->node ? -1 : 1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

static int placed_order(const void *a, const void *b)
{
    const struct placed_group *x = a, *y = b;
    int by_line = line_order(x, y);

    if (by_line)
        return by_line;
    if (x->group->looks != y->group->looks)
        return x->group->looks < y->group->looks ? 1 : -1;
    return x->group < y->group ? -1 : x->group > y->group;
}

static int shown_order(const void *a, const void *b)
{
    const struct stack_line *x = a, *y = b;

    if (!x->behaviour != !y->behaviour)
        return x->behaviour ? 1 : -1;
    if (x->looks != y->looks)
        return x->looks < y->looks ? 1 : -1;
    return x->stack < y->stack ? -1 : x->stack > y->stack;
}

static bool line_admits(const struct stack_table *t, const struct stack_line *x);

struct stack_lines stack_lines(const struct stack_table *t)
{
    const struct stack_groups *g = t->groups;
    struct placed_group *placed = mem_alloc((g->count + 1) * sizeof(*placed));
    struct stack_lines l = {
        .items = mem_alloc((g->count + 1) * sizeof(*l.items)),
        .groups = mem_alloc((g->count + 1) * sizeof(*l.groups)),
    };
    size_t n = 0;

    for (size_t i = 0; i < g->count; i++) {
        const struct stack_group *x = &g->items[i];
        const struct one_stack *s = &g->stacks[x->stack];
        placed[n++] = (struct placed_group){x, s, s->idle && !t->all ? look_behaviour(g->frames + s->first, s->count, &x->initial) : NULL};
    }
    qsort(placed, n, sizeof(*placed), placed_order);
    for (size_t i = 0, end; i < n; i = end) {
        struct stack_line line = {placed[i].behaviour, placed[i].stack, l.groups + i, 0, 0, 0};
        for (end = i; end < n && !line_order(&placed[i], &placed[end]); end++) {
            l.groups[end] = placed[end].group;
            line.ngroups++;
            line.looks += placed[end].group->looks;
            line.waited_ms = MAX(line.waited_ms, placed[end].group->waited_ms);
        }
        l.looks += line.looks;
        l.all++;
        if (!t->filter || !*t->filter || line_admits(t, &line))
            l.items[l.count++] = line;
    }
    qsort(l.items, l.count, sizeof(*l.items), shown_order);
    free(placed);
    return l;
}

void stack_lines_release(struct stack_lines *l)
{
    free(l->items);
    free(l->groups);
}

/* ---- who has a stack ---- */

/* Tells the processes of a group from those of others. */
struct stack_label {
    struct raw module;              /* of what they began with, or of the callbacks of their behaviour */
    const struct look_frame *frame; /* the function that they began with; NULL: the module says enough */
    bool otp; /* the module is not the user's */
    uint64_t looks;
};

/* False: only the names of the processes tell them from others. */
static bool group_label(const struct stack_groups *g, const struct stack_group *x, bool idle, struct stack_label *ret)
{
    const struct one_stack *s = &g->stacks[x->stack];

    *ret = (struct stack_label){.looks = x->looks};
    if (idle)
        return look_subject(g->frames + s->first, s->count, &x->initial, &ret->module);
    if (!x->initial.fun || look_is_init(&x->initial, &ret->module))
        return x->initial.fun;
    ret->module = x->initial.fun->module;
    ret->frame = &x->initial;
    return true;
}

static int label_order(const void *a, const void *b)
{
    const struct stack_label *x = a, *y = b;
    int by_module = str_order(raw_view(x->module), raw_view(y->module));

    if (by_module || !x->frame || !y->frame)
        return by_module ? by_module : !x->frame - !y->frame;
    if (x->frame->fun != y->frame->fun)
        return x->frame->fun->serial < y->frame->fun->serial ? -1 : 1;
    return x->frame->arity < y->frame->arity ? -1 : x->frame->arity > y->frame->arity;
}

/* The user's modules come first: OTP has many processes of one kind. */
static int label_rank(const void *a, const void *b)
{
    const struct stack_label *x = a, *y = b;

    if (x->otp != y->otp)
        return x->otp ? 1 : -1;
    return x->looks != y->looks ? (x->looks < y->looks ? 1 : -1) : label_order(a, b);
}

/* The labels of a line in the order of the table. The caller frees the array. */
static struct stack_label *labels_of(const struct stack_table *t, const struct stack_line *x, size_t *ret_count)
{
    struct stack_label *labels = mem_alloc((x->ngroups + 1) * sizeof(*labels));
    size_t n = 0, kept = 0;

    for (size_t i = 0; i < x->ngroups; i++)
        n += group_label(t->groups, x->groups[i], x->behaviour, &labels[n]);
    qsort(labels, n, sizeof(*labels), label_order);
    for (size_t i = 0; i < n; i++) {
        if (kept && !label_order(&labels[kept - 1], &labels[i]))
            labels[kept - 1].looks += labels[i].looks;
        else
            labels[kept++] = labels[i];
    }
    for (size_t i = 0; i < kept; i++)
        labels[i].otp = look_is_otp(labels[i].module);
    qsort(labels, kept, sizeof(*labels), label_rank);
    *ret_count = kept;
    return labels;
}

/* Appends the labels of a line, with `names` those of the first processes without a label, too. */
static void put_labels(const struct stack_table *t, const struct stack_line *x, bool names, struct buf *to)
{
    struct stack_label none;
    size_t n;
    struct stack_label *labels = labels_of(t, x, &n);
    const char *mark = "  ";
    uint64_t unnamed = 0;

    for (size_t i = 0; i < n; i++, mark = ", ") {
        buf_puts(to, mark);
        if (labels[i].frame)
            look_frame_print(to, labels[i].frame);
        else
            look_module_print(to, labels[i].module);
        if (labels[i].looks > 1 && !t->samples)
            buf_printf(to, " ×%llu", (unsigned long long)labels[i].looks);
    }
    free(labels);
    for (size_t i = 0; i < x->ngroups && names; i++) {
        const struct stack_group *g = x->groups[i];
        if (group_label(t->groups, g, x->behaviour, &none))
            continue;
        size_t shown = MIN(g->nprocesses, STACK_PIDS);
        for (size_t k = 0; k < shown; k++, mark = ", ") {
            buf_puts(to, mark);
            buf_puts(to, g->processes[k].name[0] ? g->processes[k].name : g->processes[k].pid);
        }
        unnamed += g->looks - MIN(g->looks, shown);
    }
    if (unnamed && !t->samples)
        buf_printf(to, "%s%llu more", mark, (unsigned long long)unnamed);
}

/* Whether the outermost function of the stack says all that the labels of its processes could say. */
static bool labels_are_known(const struct stack_table *t, const struct stack_line *x)
{
    const struct look_frame *frames = t->groups->frames + x->stack->first;
    struct stack_label label;

    for (size_t i = 0; i < x->ngroups; i++)
        if (group_label(t->groups, x->groups[i], false, &label) &&
            !(x->stack->count && x->groups[i]->initial.fun == frames[x->stack->count - 1].fun))
            return false;
    return true;
}

#define WAITED_LEAST 1000 /* ms: a shorter wait is not worth its place */

static void put_processes(const struct stack_table *t, const struct stack_line *x, struct buf *to)
{
    size_t n = 0;

    for (size_t i = 0; i < x->ngroups; i++)
        for (size_t k = 0; k < x->groups[i]->nprocesses && n < STACK_PIDS_ALL; k++) {
            buf_puts(to, n++ ? " " : "  ");
            look_process_print(to, &x->groups[i]->processes[k]);
        }
    if (!t->samples && x->looks > n)
        buf_printf(to, " and %llu more", (unsigned long long)(x->looks - n));
}

/* Appends the longest wait, labels unless the stack says the same, and the processes if they are few or all are wanted. */
static void put_who(const struct stack_table *t, const struct stack_line *x, struct buf *to)
{
    size_t known = 0;

    for (size_t i = 0; i < x->ngroups; i++)
        known += x->groups[i]->nprocesses;
    const bool few = t->all || (t->samples ? known < STACK_PIDS : x->looks <= STACK_PIDS);
    if (!x->behaviour && x->waited_ms >= WAITED_LEAST) {
        buf_puts(to, "  for ");
        print_duration(to, x->waited_ms * 1000000);
    }
    if (x->behaviour || (!few && !labels_are_known(t, x)))
        put_labels(t, x, !few, to);
    if (few)
        put_processes(t, x, to);
}

/* ---- text ---- */

#define COUNT_WIDTH 8
#define STATUS_WIDTH 9

static void put_stack(const struct stack_table *t, const struct stack_line *x, struct buf *to)
{
    const struct look_frame *frames = t->groups->frames + x->stack->first;

    if (x->behaviour) {
        buf_puts(to, x->behaviour);
        return;
    }
    if (!x->stack->count)
        buf_puts(to, "(no Erlang function)");
    for (size_t i = 0; i < x->stack->count; i++) {
        buf_puts(to, i ? " < " : "");
        look_frame_print(to, &frames[i]);
    }
}

static const char *line_status(const struct stack_line *x)
{
    return x->behaviour ? "idle" : x->stack->status;
}

/* Widths of the columns of nodes and states. */
struct stack_columns {
    unsigned node, status;
};

/* Without a terminal, the columns are as wide as their texts. */
static struct stack_columns columns_of_stacks(const struct stack_table *t, const struct stack_lines *l, size_t n)
{
    struct stack_columns c = {0, STATUS_WIDTH - 1};

    for (size_t i = 0; i < n && !t->columns; i++) {
        const char *node = t->names[l->items[i].stack->node];
        c.node = MAX(c.node, (unsigned)utf8_width(node, strlen(node)));
        c.status = MAX(c.status, (unsigned)strlen(line_status(&l->items[i])));
    }
    return c;
}

static void put_stack_line(const struct stack_table *t, const struct stack_columns *c, const struct stack_line *x, uint64_t all,
                     struct buf *to)
{
    struct buf count = {0}, stack = {0}, who = {0};
    unsigned room = t->columns > COUNT_WIDTH + STATUS_WIDTH + 2 ? t->columns - COUNT_WIDTH - STATUS_WIDTH - 2 : 20;
    const char *status = line_status(x);

    if (t->samples)
        buf_printf(&count, "%.1f%%", all ? 100.0 * (double)x->looks / (double)all : 0);
    else
        print_u64(&count, x->looks);
    buf_printf(to, "%*s", (int)(COUNT_WIDTH - MIN(count.len, COUNT_WIDTH)), "");
    paint_str(&t->paint, to, PAINT_DURATION, buf_view(&count));
    buf_char(to, ' ');
    if (t->nnodes > 1) {
        const char *node = t->names[x->stack->node];
        unsigned wide = (unsigned)utf8_width(node, strlen(node));
        buf_printf(to, "%s%*s ", node, (int)(c->node - MIN(wide, c->node)), "");
    }
    paint_str(&t->paint, to, stack_rests(x->stack->status) ? PAINT_TIME : PAINT_KIND, (struct str){status, strlen(status)});
    buf_printf(to, "%*s", (int)(c->status + 1 - MIN(strlen(status), c->status)), "");
    put_stack(t, x, &stack);
    put_who(t, x, &who);
    paint_begin(&t->paint, to, PAINT_FUN);
    unsigned least = x->behaviour ? 20 : room / 2; /* for the stack, if both are long */
    size_t wide = MIN(utf8_width(who.data, who.len), room - MIN(room, least));
    if (t->columns)
        grid_cut(to, buf_view(&stack), room - (unsigned)wide);
    else
        buf_str(to, buf_view(&stack));
    paint_end(&t->paint, to);
    paint_begin(&t->paint, to, PAINT_NAME);
    if (t->columns)
        grid_cut(to, buf_view(&who), x->behaviour ? room - MIN(room, (unsigned)utf8_width(stack.data, stack.len)) : room / 2);
    else
        buf_str(to, buf_view(&who));
    paint_end(&t->paint, to);
    buf_release(&count);
    buf_release(&stack);
    buf_release(&who);
}

/* The filter also finds text that does not fit into the line. */
static bool line_admits(const struct stack_table *t, const struct stack_line *x)
{
    struct buf b = {0};

    if (t->nnodes > 1) /* else the node is not shown, and its name would match every row */
        buf_printf(&b, "%s ", t->names[x->stack->node]);
    buf_printf(&b, "%s ", line_status(x));
    put_stack(t, x, &b);
    put_who(t, x, &b);
    bool admits = refresh_matches(t->filter, buf_view(&b));
    buf_release(&b);
    return admits;
}

size_t stack_table_text(const struct stack_table *t, const char *end, struct buf *to)
{
    struct stack_table plain = *t; /* in reverse there are no colours: their ends would end the reverse, too */
    struct stack_lines l = stack_lines(t);
    size_t shown = t->most && l.count > t->most ? t->most : l.count, others = l.all - shown;
    struct stack_columns c = columns_of_stacks(t, &l, shown);
    const size_t chosen = t->chosen == SIZE_MAX || !shown ? SIZE_MAX : MIN(t->chosen, shown - 1);
    uint64_t looks = l.looks;

    plain.paint.on = false;
    for (size_t i = 0; i < shown; i++) {
        buf_puts(to, i == chosen ? "\033[7m" : "");
        put_stack_line(i == chosen ? &plain : t, &c, &l.items[i], l.looks, to);
        buf_puts(to, i == chosen ? "\033[0m" : "");
        buf_puts(to, end);
        looks -= l.items[i].looks;
    }
    looks += t->groups->left_out;
    if (looks && t->samples)
        buf_printf(to, "%7.1f%% in %zu other stacks%s", 100.0 * (double)looks / (double)(l.looks + t->groups->left_out), others, end);
    else if (looks)
        buf_printf(to, "%8llu in %zu other stacks%s", (unsigned long long)looks, others, end);
    stack_lines_release(&l);
    return shown;
}

/* ---- JSON ---- */

static void put_initial_json(const struct stack_table *t, const struct stack_group *x, struct buf *to)
{
    if (!x->initial.fun)
        return;
    json_value(to);
    json_open_object(to);
    json_ready(to, x->initial.fun->json);
    json_key(to, "a"), json_int(to, x->initial.arity);
    json_key(to, t->samples ? "samples" : "count"), json_uint(to, x->looks);
    json_end_object(to);
}

void stack_table_json(const struct stack_table *t, struct buf *to)
{
    struct stack_table each = *t;

    each.all = true;
    struct stack_lines l = stack_lines(&each);
    for (size_t i = 0; i < l.count && (!t->most || i < t->most); i++) {
        const struct stack_line *x = &l.items[i];
        size_t n = 0;
        json_begin_record(to, "stack");
        json_key(to, "node"), json_text(to, t->names[x->stack->node]);
        json_key(to, "status"), json_text(to, x->stack->status);
        json_key(to, "idle"), json_bool(to, x->stack->idle);
        json_key(to, t->samples ? "samples" : "count"), json_uint(to, x->looks);
        json_key(to, "stack"), json_begin_array(to);
        for (size_t k = 0; k < x->stack->count; k++)
            look_frame_json(to, &t->groups->frames[x->stack->first + k]);
        json_end_array(to);
        json_key(to, "initial"), json_begin_array(to);
        for (size_t k = 0; k < x->ngroups; k++)
            put_initial_json(t, x->groups[k], to);
        json_end_array(to);
        json_key(to, "waited_ms"), json_int(to, x->waited_ms);
        json_key(to, "processes"), json_begin_array(to);
        for (size_t k = 0; k < x->ngroups; k++)
            for (size_t p = 0; p < x->groups[k]->nprocesses && n < (t->all ? STACK_PIDS_ALL : STACK_PIDS); p++, n++)
                look_process_json(to, &x->groups[k]->processes[p]);
        json_end_array(to);
        json_end_record(to);
    }
    stack_lines_release(&l);
}
