/* SPDX-License-Identifier: Apache-2.0 */
#include "stack_table.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/term_print.h"
#include "../ground/json.h"
#include "../ground/mem.h"
#include "ps_rows.h"

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

struct stack_lines {
    struct stack_line *items;
    size_t count;
    uint64_t looks; /* number of looks at processes in all lines */
    const struct stack_group **groups;
};

/*
 * Returns all lines: the most frequent first, those of idle processes last. The caller frees them with
 * stack_lines_release().
 */
static struct stack_lines stack_lines(const struct stack_table *t)
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
        placed[n++] =
            (struct placed_group){x, s,
                                  s->idle && !t->all ? look_behaviour(g->frames + s->first, s->count, &x->initial)
                                                     : NULL};
    }
    qsort(placed, n, sizeof(*placed), placed_order);
    for (size_t i = 0, end; i < n; i = end) {
        struct stack_line line = {placed[i].behaviour, placed[i].stack, l.groups + i, 0, 0, 0, 0};
        for (end = i; end < n && !line_order(&placed[i], &placed[end]); end++) {
            l.groups[end] = placed[end].group;
            line.ngroups++;
            line.looks += placed[end].group->looks;
            line.growth += placed[end].group->growth;
            line.waited_ms = MAX(line.waited_ms, placed[end].group->waited_ms);
        }
        l.looks += line.looks;
        l.items[l.count++] = line;
    }
    qsort(l.items, l.count, sizeof(*l.items), shown_order);
    free(placed);
    return l;
}

static void stack_lines_release(struct stack_lines *l)
{
    free(l->items);
    free(l->groups);
}

/* ---- who has a stack ---- */

/* A text that distinguishes the processes of a group from other processes in the same line. */
struct stack_label {
    struct raw module;              /* module of the initial function, or the callback module of the behaviour */
    const struct look_frame *frame; /* the initial function; NULL: show only the module */
    bool otp;                       /* the module belongs to OTP or Elixir */
    bool elixir;                    /* the module prints in Elixir */
    uint64_t looks;
};

/*
 * Sets *ret to the label of a group. Returns false if the group has none, so that only the names of its processes
 * distinguish it.
 */
static bool group_label(const struct stack_groups *g, const struct stack_group *x, bool idle, struct stack_label *ret)
{
    const struct one_stack *s = &g->stacks[x->stack];

    *ret = (struct stack_label){.looks = x->looks, .elixir = look_in_elixir(g->frames + s->first, s->count)};
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

/* Orders labels for the table: modules of the user come first, because OTP has many processes of the same kind. */
static int label_rank(const void *a, const void *b)
{
    const struct stack_label *x = a, *y = b;

    if (x->otp != y->otp)
        return x->otp ? 1 : -1;
    return x->looks != y->looks ? (x->looks < y->looks ? 1 : -1) : label_order(a, b);
}

/* Returns the labels of a line, sorted by label_rank(). The caller frees the array. */
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

/* Appends the labels of a line. With `names`, also appends names of some processes that have no label. */
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
            look_module_print(to, labels[i].module, labels[i].elixir);
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

/*
 * Returns true if labels would add nothing, because the outermost function of the stack is the initial function of all
 * processes.
 */
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

#define WAITED_LEAST 1000 /* in ms; shorter waits are not printed */

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

/*
 * Appends to a line: the longest wait; the labels, unless the stack already shows them; and the processes, if they are
 * few or the user wants all.
 */
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
#define STATUS_WIDTH 8
#define GROWTH_WIDTH 6

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

enum stack_column {
    STACK_COL_COUNT,
    STACK_COL_GROWTH,
    STACK_COL_STATE,
    STACK_COL_WAITED,
    STACK_COL_STATUS, /* the count, the growth and the state, for people */
    STACK_COL_NODE,
    STACK_COL_STACK,
    STACK_COLUMNS
};

static const struct grid_column columns[STACK_COLUMNS] = {
    [STACK_COL_COUNT] = {.also = "count", .number = true},
    [STACK_COL_GROWTH] = {.also = "growth", .number = true},
    [STACK_COL_STATE] = {.also = "status"},
    [STACK_COL_WAITED] = {.also = "waited_ms", .number = true},
    [STACK_COL_STATUS] = {.title = "", .least = COUNT_WIDTH + STATUS_WIDTH, .paint = PAINT_DURATION},
    [STACK_COL_NODE] = {.title = "", .also = "node", .rank = 1, .paint = PAINT_NODE},
    [STACK_COL_STACK] = {.title = "", .also = "stack", .paint = PAINT_FUN},
};

const struct grid_table stack_columns = GRID_TABLE(columns);

/* The state of a table while it is printed. */
struct stack_grid {
    const struct stack_table *table;
    struct stack_lines lines;
    struct grid_column columns[STACK_COLUMNS];
    struct grid grid;
};

static void stack_count(const struct stack_table *t, uint64_t looks, uint64_t all, struct buf *to)
{
    if (t->samples)
        buf_printf(to, "%*.1f%%", COUNT_WIDTH - 1, all ? 100.0 * (double)looks / (double)all : 0);
    else
        buf_printf(to, "%*llu", COUNT_WIDTH, (unsigned long long)looks);
}

/* Appends how the number of processes has grown, such as +12. */
static void stack_growth(const struct stack_table *t, int64_t growth, struct buf *to)
{
    struct buf b = {0};

    if (!t->groups->grown)
        return;
    if (growth)
        ps_put_count(&b, growth, true);
    buf_printf(to, " %*s", GROWTH_WIDTH, buf_cstr(&b));
    buf_release(&b);
}

static void put_stack_cell(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct stack_table *t = ((const struct stack_grid *)data)->table;
    const struct stack_lines *l = &((const struct stack_grid *)data)->lines;
    const struct stack_line *x = &l->items[row];

    switch (column) {
    case STACK_COL_STATUS:
        stack_count(t, x->looks, l->looks, &cell->text);
        stack_growth(t, x->growth, &cell->text);
        grid_tail(cell, stack_rests(x->stack->status) ? PAINT_TIME : PAINT_KIND);
        buf_printf(&cell->text, " %s", line_status(x));
        break;
    case STACK_COL_COUNT:
        print_u64(&cell->text, x->looks);
        break;
    case STACK_COL_GROWTH:
        print_i64(&cell->text, x->growth);
        break;
    case STACK_COL_STATE:
        buf_puts(&cell->text, line_status(x));
        break;
    case STACK_COL_WAITED:
        print_i64(&cell->text, x->waited_ms);
        break;
    case STACK_COL_NODE:
        buf_puts(&cell->text, t->names[x->stack->node]);
        break;
    default:
        put_stack(t, x, &cell->text);
        grid_tail(cell, PAINT_NAME);
        put_who(t, x, &cell->text);
        break;
    }
}

static void stack_put_id(const void *data, size_t row, struct buf *to)
{
    const struct stack_table *t = ((const struct stack_grid *)data)->table;
    const struct stack_line *x = &((const struct stack_grid *)data)->lines.items[row];

    buf_printf(to, "%u %s ", x->stack->node, line_status(x));
    put_stack(t, x, to);
}

static void stack_grid_init(struct stack_grid *x, const struct stack_table *t)
{
    *x = (struct stack_grid){.table = t, .lines = stack_lines(t)};
    memcpy(x->columns, columns, sizeof(columns));
    x->columns[STACK_COL_NODE].hidden = t->nnodes < 2;
    x->grid = (struct grid){x->columns,     STACK_COLUMNS,       put_stack_cell,    x,
                            x->lines.count, .width = t->columns, .paint = t->paint, .name = stack_put_id};
    grid_order(&x->grid, &t->sort);
    grid_show(&x->grid, t->window);
}

static void stack_grid_release(struct stack_grid *x)
{
    grid_release(&x->grid);
    stack_lines_release(&x->lines);
}

static const struct stack_line *stack_grid_line(const struct stack_grid *x, size_t row)
{
    return &x->lines.items[grid_row(&x->grid, row)];
}

/* Prints the number of processes in lines that are not shown. */
static void stack_put_rest(const struct stack_grid *x, struct buf *to)
{
    const struct stack_table *t = x->table;
    const size_t shown = grid_end(&x->grid) - x->grid.first, others = x->lines.count - shown;
    const uint64_t all = x->lines.looks + t->groups->left_out;
    uint64_t looks = all;

    for (size_t row = x->grid.first; row < grid_end(&x->grid); row++)
        looks -= stack_grid_line(x, row)->looks;
    if (!looks)
        return;
    stack_count(t, looks, all, to);
    if (t->groups->left_out)
        buf_puts(to, " in other stacks\n");
    else
        buf_printf(to, " in %zu other stack%s\n", others, PLURAL(others));
}

void stack_table_text(const struct stack_table *t, struct buf *to)
{
    struct stack_grid x;

    stack_grid_init(&x, t);
    grid_text(&x.grid, to);
    stack_put_rest(&x, to);
    stack_grid_release(&x);
}

bool stack_table_chosen(const struct stack_table *t, void (*use)(void *data, const struct stack_line *line), void *data)
{
    struct stack_grid x;

    stack_grid_init(&x, t);
    const bool found = x.grid.marked > 0;
    if (found)
        use(data, stack_grid_line(&x, x.grid.marked - 1));
    stack_grid_release(&x);
    return found;
}

/* ---- one line ---- */

static void details_frames(const struct stack_table *t, const struct one_stack *s, struct buf *to)
{
    buf_char(to, '\n');
    if (!s->count)
        buf_puts(to, "  (no Erlang function)\n");
    for (size_t i = 0; i < s->count; i++) {
        buf_puts(to, "  ");
        paint_begin(&t->paint, to, PAINT_FUN);
        look_frame_print(to, &t->groups->frames[s->first + i]);
        paint_end(&t->paint, to);
        buf_char(to, '\n');
    }
}

static void details_group(const struct stack_table *t, const struct stack_group *g, struct buf *to)
{
    buf_printf(to, "\n%llu process%s", (unsigned long long)g->looks, PLURAL_ES(g->looks));
    if (g->initial.fun) {
        buf_puts(to, " started as ");
        look_frame_print(to, &g->initial);
    }
    if (g->waited_ms >= WAITED_LEAST) {
        buf_puts(to, g->looks > 1 ? ", the longest wait " : ", waits for ");
        print_duration(to, g->waited_ms * 1000000);
    }
    buf_char(to, '\n');
    for (size_t i = 0; i < g->nprocesses; i++) {
        buf_puts(to, "  ");
        paint_begin(&t->paint, to, PAINT_PID);
        look_process_print(to, &g->processes[i]);
        paint_end(&t->paint, to);
        buf_char(to, '\n');
    }
    if (g->looks > g->nprocesses)
        buf_printf(to, "  and %llu more\n", (unsigned long long)(g->looks - g->nprocesses));
}

struct details {
    const struct stack_table *table;
    struct buf *to;
};

static void details_line(void *data, const struct stack_line *x)
{
    const struct stack_table *t = ((const struct details *)data)->table;
    struct buf *to = ((const struct details *)data)->to;

    buf_printf(to, "%llu process%s · %s", (unsigned long long)x->looks, PLURAL_ES(x->looks), line_status(x));
    if (x->behaviour)
        buf_printf(to, " · %s", x->behaviour);
    if (t->nnodes > 1)
        buf_printf(to, " · %s", t->names[x->stack->node]);
    buf_char(to, '\n');
    for (size_t i = 0; i < x->ngroups; i++) {
        if (!i || x->groups[i]->stack != x->groups[i - 1]->stack)
            details_frames(t, &t->groups->stacks[x->groups[i]->stack], to);
        details_group(t, x->groups[i], to);
    }
}

bool stack_table_details(const struct stack_table *t, struct buf *to)
{
    return stack_table_chosen(t, details_line, &(struct details){t, to});
}

/* ---- JSON ---- */

static void put_initial_json(const struct stack_table *t, const struct stack_group *x, struct buf *to)
{
    if (!x->initial.fun)
        return;
    json_begin_object(to);
    json_ready(to, x->initial.fun->json);
    json_put_int(to, "a", x->initial.arity);
    json_put_uint(to, t->samples ? "samples" : "count", x->looks);
    json_end_object(to);
}

void stack_table_json(const struct stack_table *t, struct buf *to)
{
    struct stack_table each = *t;
    struct stack_grid g;

    each.all = true;
    stack_grid_init(&g, &each);
    for (size_t i = 0; i < grid_end(&g.grid); i++) {
        const struct stack_line *x = stack_grid_line(&g, i);
        size_t n = 0;
        json_begin_record(to, "stack");
        json_put_text(to, "node", t->names[x->stack->node]);
        json_put_text(to, "status", x->stack->status);
        json_put_bool(to, "idle", x->stack->idle);
        json_put_uint(to, t->samples ? "samples" : "count", x->looks);
        if (t->groups->grown)
            json_put_int(to, "growth", x->growth);
        json_put_array(to, "stack");
        for (size_t k = 0; k < x->stack->count; k++)
            look_frame_json(to, &t->groups->frames[x->stack->first + k]);
        json_end_array(to);
        json_put_array(to, "initial");
        for (size_t k = 0; k < x->ngroups; k++)
            put_initial_json(t, x->groups[k], to);
        json_end_array(to);
        json_put_int(to, "waited_ms", x->waited_ms);
        json_put_array(to, "processes");
        for (size_t k = 0; k < x->ngroups; k++)
            for (size_t p = 0; p < x->groups[k]->nprocesses && n < (t->all ? STACK_PIDS_ALL : STACK_PIDS); p++, n++)
                look_process_json(to, &x->groups[k]->processes[p]);
        json_end_array(to);
        json_end_record(to);
    }
    stack_grid_release(&g);
}
