/* SPDX-License-Identifier: Apache-2.0 */
#include "ps_rows.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/etf_fields.h"
#include "../erlang/term_print.h"
#include "../ground/json.h"
#include "../ground/mem.h"
#include "../ground/utf8.h"
#include "../views/grid.h"

const char *const ps_figures[PS_FIGURES] = {"queue", "memory", "binaries", "reductions"};

void ps_node_release(struct ps_node *n)
{
    free(n->rows);
    free(n->silent);
    *n = (struct ps_node){0};
}

void ps_node_forget(struct ps_node *n)
{
    n->known = false;
    n->count = n->nsilent = 0;
    n->since_us = -1;
    memset(n->total, 0, sizeof(n->total));
}

/* ---- answers ---- */

static bool take_bin(struct etf *r, char *to, size_t size)
{
    struct raw text;

    if (!etf_get_bin(r, &text))
        return false;
    safe_copy(to, size, text);
    return true;
}

static bool take_relatives(struct etf *r, struct ps_names *x)
{
    size_t n;

    if (!r->at)
        return true;
    if (!etf_get_list(r, &n) || n > PS_ANCESTORS)
        return false;
    for (x->count = 0; x->count < n; x->count++)
        if (!take_bin(r, x->items[x->count], sizeof(x->items[0])))
            return false;
    return !n || etf_get_nil(r);
}

static bool take_stack(struct etf *r, struct ps_row *x, struct funs *funs)
{
    size_t n;

    if (!etf_get_list(r, &n) || n > PS_FRAMES)
        return false;
    for (x->nstack = 0; x->nstack < n; x->nstack++)
        if (!look_frame_read(r, funs, &x->stack[x->nstack]))
            return false;
    return !n || etf_get_nil(r);
}

/* A row that is being read. Its lists are decoded after the other members. */
struct ps_answer {
    struct ps_row row;
    struct etf ancestors, callers, stack, initial;
};

bool ps_row_read(struct etf *r, struct ps_row *x, struct funs *funs)
{
#define FIELD(what, key, ...) ETF_##what(struct ps_answer, key, __VA_ARGS__)
    static const struct etf_field fields[] = {
        FIELD(TEXT, "pid", row.process.pid),
        FIELD(TEXT, "name", row.process.name),
        FIELD(TERM, "initial", initial),
        FIELD(BOOL, "idle", row.idle),
        FIELD(TEXT, "application", row.application),
        FIELD(TEXT, "status", row.status),
        FIELD(TERM, "ancestors", ancestors),
        FIELD(TERM, "callers", callers),
        FIELD(TERM, "stack", stack),
        FIELD(INTS, "growth", row.growth, PS_FIGURES),
        FIELD(INT, "queue", row.figures[PS_QUEUE]),
        FIELD(INT, "memory", row.figures[PS_MEMORY]),
        FIELD(INT, "binaries", row.figures[PS_BINARIES]),
        FIELD(BOOL, "least", row.least),
        FIELD(BOOL, "about", row.about),
        FIELD(INT, "reductions", row.figures[PS_REDUCTIONS]),
        FIELD(INT, "total_heap", row.total_heap),
        FIELD(INT, "old_heap", row.old_heap),
        FIELD(INT, "stack_size", row.stack_bytes),
        FIELD(INT, "fragments", row.fragments),
    };
#undef FIELD
    struct ps_answer a = {.row = *x};
    bool ok = etf_get_fields(r, fields, ARRAY_LEN(fields), &a);

    *x = a.row;
    x->known = x->status[0];
    return ok && (!a.initial.at || look_frame_read(&a.initial, funs, &x->initial)) &&
           take_relatives(&a.ancestors, &x->ancestors) && take_relatives(&a.callers, &x->callers) &&
           (!a.stack.at || take_stack(&a.stack, x, funs));
}

bool ps_node_read(struct ps_node *n, unsigned index, const struct look_answer *a, struct funs *funs, struct err *e)
{
    struct etf rows = a->rows;
    size_t count = 0;
    bool ok = etf_get_list(&rows, &count) && count <= 10000;

    n->rows = mem_grow(n->rows, &n->cap, (ok ? count : 0) + 1, sizeof(*n->rows));
    n->count = 0;
    for (size_t i = 0; ok && i < count; i++) {
        n->rows[i] = (struct ps_row){.node = index};
        if ((ok = ps_row_read(&rows, &n->rows[i], funs)))
            n->count++;
    }
    memcpy(n->total, a->total, sizeof(n->total));
    n->since_us = a->since_us;
    n->known = ok;
    return ok || err_set(e, ERR_RUN, "the node's answer about its processes is malformed");
}

/* ---- order ---- */

/* The order of rows whose values in the column of --sort are equal. */
static int ps_order(const void *a, const void *b)
{
    const struct ps_row *x = *(const struct ps_row *const *)a, *y = *(const struct ps_row *const *)b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return strcmp(x->process.pid, y->process.pid);
}

const char *ps_holder(const struct ps_row *x)
{
    /* Memory outside the heap: messages and the process structure. */
    int64_t outside = x->figures[PS_MEMORY] - x->total_heap;
    int64_t messages = x->figures[PS_QUEUE] ? x->fragments + MAX(outside, 0) : 0;
    const struct {
        const char *name;
        int64_t bytes;
    } parts[] = {
        {"heap", x->total_heap - x->old_heap - x->stack_bytes - x->fragments},
        {"old heap", x->old_heap},
        {"stack", x->stack_bytes},
        {"messages", messages},
        {"binaries", x->figures[PS_BINARIES]},
    };
    size_t most = 0;

    for (size_t i = 1; i < ARRAY_LEN(parts); i++)
        if (parts[i].bytes > parts[most].bytes)
            most = i;
    return x->known ? parts[most].name : "";
}

bool ps_put_idle(const struct ps_row *x, struct buf *to)
{
    struct raw subject;

    if (!x->idle)
        return false;
    const char *behaviour = look_behaviour(x->stack, x->nstack, &x->initial);
    buf_puts(to, "idle");
    if (look_subject(x->stack, x->nstack, &x->initial, &subject)) {
        buf_char(to, ' ');
        look_module_print(to, subject, look_in_elixir(x->stack, x->nstack));
    }
    if (strcmp(behaviour, "other") != 0)
        buf_printf(to, " (%s)", behaviour);
    return true;
}

static void ps_put_frames(const struct ps_row *x, struct buf *to)
{
    for (unsigned i = 0; i < x->nstack; i++) {
        buf_puts(to, i ? " < " : "");
        look_frame_print(to, &x->stack[i]);
    }
}

static void ps_put_stack(const struct ps_row *x, struct buf *to)
{
    if (!x->known) {
        buf_puts(to, "(no answer)");
        return;
    }
    if (ps_put_idle(x, to))
        return;
    if (strcmp(x->status, "waiting"))
        buf_printf(to, "%s ", x->status);
    ps_put_frames(x, to);
}

/* Returns the rows of all nodes. The caller frees the array. */
static const struct ps_row **ps_rows_of(const struct ps_table *t, size_t *ret_count)
{
    size_t n = 0, all = 0;

    for (size_t i = 0; i < t->count; i++)
        all += t->nodes[i].count;
    const struct ps_row **rows = mem_alloc((all + 1) * sizeof(struct ps_row *));
    for (size_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < t->nodes[i].count; k++)
            rows[n++] = &t->nodes[i].rows[k];
    qsort(rows, n, sizeof(*rows), ps_order);
    *ret_count = n;
    return rows;
}

/* ---- text ---- */

/* Appends a number in the first unit in which it is less than `most`. Each unit is `step` times the previous one. */
static void put_scaled(struct buf *to, int64_t number, bool sign, double most, double step, const char *const units[5])
{
    double value = (double)(number < 0 ? -number : number);
    size_t unit = 0;

    while (value >= most && unit < 4) {
        value /= step;
        unit++;
    }
    buf_puts(to, number < 0 ? "-" : sign && number > 0 ? "+" : "");
    buf_printf(to, unit && value < 9.95 ? "%.1f%s" : "%.0f%s", value, units[unit]);
}

void ps_put_bytes(struct buf *to, int64_t bytes, bool sign)
{
    put_scaled(to, bytes, sign, 999.5, 1024, (const char *const[]){" B", " KB", " MB", " GB", " TB"});
}

void ps_put_memory(struct buf *to, int64_t bytes, bool least)
{
    if (least)
        buf_char(to, '>');
    ps_put_bytes(to, bytes, false);
}

void ps_put_binaries(struct buf *to, const struct ps_row *x)
{
    if (x->about)
        buf_char(to, '~');
    ps_put_bytes(to, x->figures[PS_BINARIES], false);
}

void ps_put_count(struct buf *to, int64_t count, bool sign)
{
    put_scaled(to, count, sign, 9999.5, 1000, (const char *const[]){"", "k", "M", "G", "T"});
}

static void put_figure(const struct ps_table *t, const struct ps_row *x, enum ps_figure s, struct grid_cell *cell)
{
    const int64_t value = t->growth ? x->growth[s] : x->figures[s];
    struct buf *to = &cell->text;

    /* Only if a node chooses its rows by binaries does it measure those of all processes, and how they grow. */
    if (s == PS_BINARIES && (x->least || (t->kept != PS_BINARIES && (t->growth || !x->known))))
        return;
    if (cell->as != GRID_TEXT)
        print_i64(to, value);
    else if (s == PS_BINARIES && !t->growth)
        ps_put_binaries(to, x);
    else if (s == PS_MEMORY && !t->growth)
        ps_put_memory(to, value, x->least);
    else if (s == PS_MEMORY || s == PS_BINARIES)
        ps_put_bytes(to, value, t->growth);
    else
        ps_put_count(to, value, t->growth);
}

enum ps_column {
    PS_COL_NODE,
    PS_COL_PID,
    PS_COL_NAME,
    PS_COL_FIGURES,
    PS_COL_HOLDS = PS_COL_FIGURES + PS_FIGURES,
    PS_COL_APPLICATION,
    PS_COL_PROCESS,
    PS_COL_DOES,
    PS_COL_INITIAL,
    PS_COL_STATUS,
    PS_COL_STACK,
    PS_COLUMNS
};

#define PS_FIGURE(name) .number = true, .title = name, .key = name, .paint = PAINT_KIND
static const struct grid_column columns[PS_COLUMNS] = {
    [PS_COL_NODE] = {.key = "node"},
    [PS_COL_PID] = {.key = "pid"},
    [PS_COL_NAME] = {.key = "name"},
    [PS_COL_FIGURES + PS_QUEUE] = {PS_FIGURE("queue"), .least = 7, .rank = 6},
    [PS_COL_FIGURES + PS_MEMORY] = {PS_FIGURE("memory"), .least = 9, .rank = 7},
    [PS_COL_FIGURES + PS_BINARIES] = {PS_FIGURE("binaries"), .least = 10, .rank = 5},
    [PS_COL_FIGURES + PS_REDUCTIONS] = {PS_FIGURE("reductions"), .least = 11, .rank = 4},
    [PS_COL_HOLDS] = {.title = "holds", .key = "holds", .least = 8, .rank = 3, .paint = PAINT_TIME},
    [PS_COL_APPLICATION] = {.title = "application", .key = "application", .rank = 2, .paint = PAINT_NAME},
    [PS_COL_PROCESS] = {.title = "process", .paint = PAINT_PID},
    [PS_COL_DOES] = {.title = "does", .keep = 24, .rank = 1, .paint = PAINT_FUN},
    [PS_COL_INITIAL] = {.key = "initial"},
    [PS_COL_STATUS] = {.key = "status"},
    [PS_COL_STACK] = {.key = "stack"},
};

const struct grid_table ps_columns = GRID_TABLE(columns);

static const struct {
    const char *title, *key;
} growth_names[PS_FIGURES] = {
    [PS_QUEUE] = {"+queue", "queue_growth"},
    [PS_MEMORY] = {"+memory", "memory_growth"},
    [PS_BINARIES] = {"+binaries", "binaries_growth"},
    [PS_REDUCTIONS] = {"+reductions", "reductions_growth"},
};

/* The state of a table while it is printed. */
struct ps_grid {
    const struct ps_table *table;
    const struct ps_row **rows;
    struct grid_column columns[PS_COLUMNS];
    struct grid grid;
};

static void ps_put_cell(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct ps_table *t = ((const struct ps_grid *)data)->table;
    const struct ps_row *x = ((const struct ps_grid *)data)->rows[row];

    switch (column) {
    case PS_COL_HOLDS:
        buf_puts(&cell->text, ps_holder(x));
        break;
    case PS_COL_APPLICATION:
        buf_puts(&cell->text, x->application);
        break;
    case PS_COL_PROCESS:
        if (t->count > 1)
            buf_printf(&cell->text, "%s ", t->names[x->node]);
        look_process_print(&cell->text, &x->process);
        break;
    case PS_COL_DOES:
        ps_put_stack(x, &cell->text);
        break;
    case PS_COL_NODE:
        buf_puts(&cell->text, t->names[x->node]);
        break;
    case PS_COL_PID:
        buf_puts(&cell->text, x->process.pid);
        break;
    case PS_COL_NAME:
        buf_puts(&cell->text, x->process.name);
        break;
    case PS_COL_INITIAL:
        if (x->initial.fun)
            look_frame_print(&cell->text, &x->initial);
        break;
    case PS_COL_STATUS:
        buf_puts(&cell->text, x->status);
        break;
    case PS_COL_STACK:
        ps_put_frames(x, &cell->text);
        break;
    default:
        put_figure(t, x, (enum ps_figure)(column - PS_COL_FIGURES), cell);
        if (column + 1 == ((const struct ps_grid *)data)->grid.sorted)
            cell->paint = PAINT_DURATION;
        break;
    }
}

static void ps_put_id(const void *data, size_t row, struct buf *to)
{
    const struct ps_row *x = ((const struct ps_grid *)data)->rows[row];

    buf_printf(to, "%u %s", x->node, x->process.pid);
}

static void ps_grid_init(struct ps_grid *x, const struct ps_table *t)
{
    *x = (struct ps_grid){.table = t};
    x->grid = (struct grid){x->columns,          PS_COLUMNS,        ps_put_cell,      x,
                            .width = t->columns, .paint = t->paint, .name = ps_put_id};
    x->rows = ps_rows_of(t, &x->grid.nrows);
    memcpy(x->columns, columns, sizeof(columns));
    grid_order(&x->grid, &t->sort);
    for (enum ps_figure s = 0; t->growth && s < PS_FIGURES; s++) {
        x->columns[PS_COL_FIGURES + s].title = growth_names[s].title;
        x->columns[PS_COL_FIGURES + s].key = growth_names[s].key;
    }
    grid_show(&x->grid, t->window);
}

static void ps_grid_release(struct ps_grid *x)
{
    grid_release(&x->grid);
    free(x->rows);
}

static void ps_put_rows(const struct ps_table *t, enum grid_as as, struct buf *to)
{
    struct ps_grid x;

    ps_grid_init(&x, t);
    if (as == GRID_TEXT)
        grid_text(&x.grid, to);
    else
        grid_data(&x.grid, as, NULL, to);
    ps_grid_release(&x);
}

const struct ps_row *ps_table_chosen(const struct ps_table *t)
{
    const struct ps_row *found = NULL;
    struct ps_grid x;

    ps_grid_init(&x, t);
    if (x.grid.marked)
        found = x.rows[grid_row(&x.grid, x.grid.marked - 1)];
    ps_grid_release(&x);
    return found;
}

/* Returns an empty grid that says how the rows are sorted. */
static struct grid ps_order_of(const struct ps_table *t)
{
    struct grid g = {.columns = columns, .ncolumns = PS_COLUMNS};

    grid_order(&g, &t->sort);
    grid_release(&g);
    return g;
}

static bool ps_sorts_by_figure(const struct grid *g)
{
    return g->sorted > PS_COL_FIGURES && g->sorted <= PS_COL_FIGURES + PS_FIGURES;
}

bool ps_table_figure(const struct ps_table *t, enum ps_figure *ret)
{
    const struct grid g = ps_order_of(t);

    *ret = ps_sorts_by_figure(&g) ? (enum ps_figure)(g.sorted - 1 - PS_COL_FIGURES) : PS_MEMORY;
    return ps_sorts_by_figure(&g) && g.descends;
}

void ps_table_text(const struct ps_table *t, struct buf *to)
{
    ps_put_rows(t, GRID_TEXT, to);
    for (size_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < t->nodes[i].nsilent; k++) {
            buf_puts(to, "no answer  ");
            look_process_print(to, &t->nodes[i].silent[k]);
            buf_char(to, '\n');
        }
}

void ps_table_title(const struct ps_table *t, struct buf *to)
{
    int64_t total[5] = {0}, since = -1;
    size_t known = 0, first = 0;

    for (size_t i = t->count; i-- > 0;) {
        known += t->nodes[i].known;
        first = t->nodes[i].known ? i : first;
        for (size_t k = 0; k < 5; k++)
            total[k] += t->nodes[i].total[k];
        since = MAX(since, t->nodes[i].since_us);
    }
    /* Puts the order first, because a narrow terminal cuts the end of the line. */
    const struct grid g = ps_order_of(t);
    const bool grown = t->growth && ps_sorts_by_figure(&g);
    buf_printf(to, "sorted by %s%s", grown ? "growth of " : "", grid_column_name(&columns[g.sorted - 1]));
    if (grown && since >= 0)
        buf_printf(to, " in %.1fs", (double)since / 1e6);
    if (known == 1)
        buf_printf(to, " · %s", t->names[first]);
    else
        buf_printf(to, " · %zu nodes", known);
    buf_printf(to, " · %lld process%s · ", (long long)total[0], PLURAL_ES(total[0]));
    ps_put_bytes(to, total[1 + PS_MEMORY], false);
    buf_printf(to, " · %lld message%s in queues", (long long)total[1 + PS_QUEUE], PLURAL(total[1 + PS_QUEUE]));
}

/* ---- JSON ---- */

static void json_figures(struct buf *to, const int64_t figures[PS_FIGURES], bool binaries)
{
    for (size_t i = 0; i < PS_FIGURES; i++)
        if (i != PS_BINARIES || binaries)
            json_put_int(to, ps_figures[i], figures[i]);
}

void ps_json_names(const struct ps_names *x, const char *key, struct buf *to)
{
    json_put_array(to, key);
    for (unsigned i = 0; i < x->count; i++)
        json_text(to, x->items[i]);
    json_end_array(to);
}

void ps_json_initial(const struct ps_row *x, struct buf *to)
{
    struct buf text = {0};

    if (!x->initial.fun)
        return;
    look_frame_print(&text, &x->initial);
    json_put_string(to, "initial", raw_of(buf_view(&text)));
    buf_release(&text);
}

static void json_heap(const struct ps_row *x, struct buf *to)
{
    json_put_int(to, "total_heap", x->total_heap);
    json_put_int(to, "old_heap", x->old_heap);
    json_put_int(to, "stack_size", x->stack_bytes);
    json_put_int(to, "fragments", x->fragments);
}

static void ps_json(const struct ps_table *t, const struct ps_row *x, struct buf *to)
{
    json_begin_record(to, "process");
    json_put_text(to, "node", t->names[x->node]);
    json_put_text(to, "pid", x->process.pid);
    if (x->process.name[0])
        json_put_text(to, "name", x->process.name);
    json_figures(to, x->figures, !x->least && (x->known || t->kept == PS_BINARIES));
    if (x->least)
        json_put_bool(to, "memory_estimated", true);
    if (x->about && !x->least)
        json_put_bool(to, "binaries_estimated", true);
    if (x->known) {
        ps_json_initial(x, to);
        if (x->application[0])
            json_put_text(to, "application", x->application);
        ps_json_names(&x->ancestors, "ancestors", to);
        if (x->callers.count)
            ps_json_names(&x->callers, "callers", to);
        json_put_text(to, "status", x->status);
        json_put_array(to, "stack");
        for (unsigned i = 0; i < x->nstack; i++)
            look_frame_json(to, &x->stack[i]);
        json_end_array(to);
        if (!x->least)
            json_heap(x, to);
        json_put_text(to, "holds", ps_holder(x));
    }
    if (t->nodes[x->node].since_us >= 0) {
        json_put_object(to, "growth");
        json_figures(to, x->growth, t->kept == PS_BINARIES);
        json_end_object(to);
    }
    json_end_record(to);
}

static void ps_table_json(const struct ps_table *t, struct buf *to)
{
    struct ps_grid x;

    ps_grid_init(&x, t);
    for (size_t i = 0; i < grid_end(&x.grid); i++)
        ps_json(t, x.rows[grid_row(&x.grid, i)], to);
    ps_grid_release(&x);
    for (size_t i = 0; i < t->count; i++) {
        const struct ps_node *n = &t->nodes[i];
        if (!n->known)
            continue;
        json_begin_record(to, "processes");
        json_put_text(to, "node", t->names[i]);
        json_put_int(to, "count", n->total[0]);
        json_figures(to, n->total + 1, t->kept == PS_BINARIES);
        if (n->since_us >= 0)
            json_put_int(to, "elapsed_us", n->since_us);
        json_put_array(to, "silent");
        for (size_t k = 0; k < n->nsilent; k++)
            look_process_json(to, &n->silent[k]);
        json_end_array(to);
        json_end_record(to);
    }
}

void ps_table_data(const struct ps_table *t, enum grid_as as, struct buf *to)
{
    if (as == GRID_JSON)
        ps_table_json(t, to);
    else
        ps_put_rows(t, as, to);
}
