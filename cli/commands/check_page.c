/* SPDX-License-Identifier: Apache-2.0 */
#include "check_page.h"

#include <string.h>

#include "../ground/json.h"
#include "../ground/number.h"
#include "../ground/utf8.h"

/* An answer of the node is late if it takes this long. One process that does not answer delays it by 200 ms only. */
#define LATE_MS 1000

static const struct check_facts *check_last(const struct check_page *p)
{
    return &p->seen->facts[CHECK_FACTS - 1];
}

/* Prints a time as 41 s, 12 min, 5 h or 3 d. */
static void check_put_time(uint64_t ms, struct buf *to)
{
    static const struct {
        uint64_t ms;
        const char *unit;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}};
    size_t u = 0;

    while (u + 1 < ARRAY_LEN(units) && ms < 2 * units[u].ms)
        u++;
    buf_printf(to, "%llu %s", (unsigned long long)(ms / units[u].ms), units[u].unit);
}

/* ---- the findings ---- */

enum { NODE, SEVERITY, KIND, PID, NAME, TEXT, COMMAND };
static const struct grid_column columns[] = {
    [NODE] = {.key = "node"}, [SEVERITY] = {.key = "severity"}, [KIND] = {.key = "kind"},       [PID] = {.key = "pid"},
    [NAME] = {.key = "name"}, [TEXT] = {.key = "text"},         [COMMAND] = {.key = "command"},
};

const struct grid_table check_columns = GRID_TABLE(columns);

static void check_put_cell(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct check_page *p = data;
    const struct check_finding *f = &p->findings->items[row];

    switch (column) {
    case NODE:
        buf_puts(&cell->text, p->seen->name);
        break;
    case SEVERITY:
        if (cell->as == GRID_ORDER)
            buf_printf(&cell->text, "%d", f->severity);
        else
            buf_puts(&cell->text, check_severities[f->severity]);
        break;
    case KIND:
        buf_puts(&cell->text, check_kinds[f->kind]);
        break;
    case PID:
        buf_puts(&cell->text, f->process.pid);
        break;
    case NAME:
        buf_puts(&cell->text, f->process.name);
        break;
    case TEXT:
        buf_str(&cell->text, buf_view(&f->text));
        break;
    default:
        buf_str(&cell->text, buf_view(&f->command.text));
        break;
    }
}

/* Makes the grid of the findings. The caller must call grid_release(). */
static struct grid check_grid(const struct check_page *p)
{
    struct grid g = {columns,        ARRAY_LEN(columns),  check_put_cell,           p,
                     p->findings->n, .width = p->columns, .continued = p->continued};

    grid_order(&g, &(struct grid_sort){p->sort, NULL});
    return g;
}

/* ---- text ---- */

/* Prints a time in seconds, with tenths. */
static void check_put_tenths(int64_t ms, struct buf *to)
{
    buf_printf(to, "%lld.%llds", (long long)(ms / 1000), (long long)(ms / 100 % 10));
}

static void check_put_head(const struct check_page *p, struct buf *to)
{
    struct buf b = {0};

    buf_printf(&b, " · OTP %s · %lld processes · up ", p->otp, (long long)p->seen->total[0]);
    check_put_time(p->uptime_ms, &b);
    buf_puts(&b, " · looked at in ");
    check_put_tenths(p->took_ms, &b);
    if (p->slowest_ms >= LATE_MS) {
        buf_puts(&b, ", answered late: after up to ");
        check_put_tenths(p->slowest_ms, &b);
    }
    if (p->seen->trace && p->seen->trace->on) {
        buf_puts(&b, ", traced for ");
        print_duration(&b, check_traced_ms(p->seen->trace) / 100 * 100000000);
    }
    paint_str(&p->paint, to, PAINT_NODE, (struct str){p->seen->name, strlen(p->seen->name)});
    buf_str(to, buf_view(&b));
    buf_char(to, '\n');
    buf_release(&b);
}

/* Returns how many processors the VM has used on average between the first and the last answer; -1: unknown. */
static double check_processors(const struct check_page *p)
{
    const struct check_facts *first = &p->seen->facts[0], *last = check_last(p);
    const int64_t us = last->clock[0] - first->clock[0];

    return first->cpu_ms >= 0 && last->cpu_ms >= 0 && us > 0
               ? (double)MAX(last->cpu_ms - first->cpu_ms, 0) * 1000 / (double)us
               : -1;
}

static void check_put_figures(const struct check_page *p, struct buf *to)
{
    const struct check_facts *f = check_last(p);
    const int64_t *n = f->figures;
    int64_t tables = 0;

    for (size_t i = 0; i < f->ntables; i++)
        tables += f->tables[i].memory;
    if (!check_count(p->findings))
        buf_puts(to, "nothing found · ");
    if (check_processors(p) >= 0)
        buf_printf(to, "uses %.1f processors · ", check_processors(p));
    buf_printf(to, "run queue %lld on %lld scheduler%s · memory ", (long long)f->busy[0], (long long)f->busy[1],
               PLURAL(f->busy[1]));
    ps_put_bytes(to, n[CHECK_USED], false);
    buf_puts(to, ", of processes ");
    ps_put_bytes(to, p->seen->total[2], false);
    buf_puts(to, ", of the largest tables ");
    ps_put_bytes(to, tables, false);
    buf_printf(to, " · %lld messages in queues · %lld of %lld atoms · %lld ports", (long long)p->seen->total[1],
               (long long)n[CHECK_ATOMS], (long long)n[CHECK_ATOMS + 1], (long long)n[CHECK_PORTS]);
}

#define INDENT 3

static void check_put_finding(const struct check_page *p, const struct check_finding *f, struct buf *to)
{
    static const char *const marks[] = {"!!", "! ", ". "};
    static const enum paint_what paints[] = {PAINT_FAILURE, PAINT_LOSS, PAINT_TIME};
    struct str command = buf_view(&f->command.text);

    paint_str(&p->paint, to, paints[f->severity], (struct str){marks[f->severity], 2});
    buf_char(to, ' ');
    size_t end = grid_wrap(to, buf_view(&f->text), INDENT, INDENT, p->columns),
           width = utf8_width(command.at, command.len);
    if (command.len) {
        if (end + 2 + width > p->columns && p->columns)
            buf_printf(to, "\n%*s", INDENT, "");
        else
            buf_printf(to, "%*s", p->columns ? (int)(p->columns - end - width) : 2, "");
        paint_str(&p->paint, to, PAINT_COMMAND, command);
    }
    buf_char(to, '\n');
}

void check_page_text(const struct check_page *p, struct buf *to)
{
    struct grid g = check_grid(p);
    struct buf b = {0};

    check_put_head(p, to);
    for (size_t i = 0; i < g.nrows; i++)
        check_put_finding(p, &p->findings->items[grid_row(&g, i)], to);
    grid_release(&g);
    check_put_figures(p, &b);
    buf_puts(to, ".  ");
    grid_wrap(to, buf_view(&b), INDENT, INDENT, p->columns);
    buf_char(to, '\n');
    buf_release(&b);
}

/* ---- for programs ---- */

static void check_json(const struct check_page *p, struct buf *to)
{
    const struct check_facts *f = check_last(p);
    static const struct {
        const char *key;
        enum check_figure figure;
    } figures[] = {
        {"processes", CHECK_PROCESSES}, {"process_limit", CHECK_PROCESSES + 1},
        {"ports", CHECK_PORTS},         {"port_limit", CHECK_PORTS + 1},
        {"atoms", CHECK_ATOMS},         {"atom_limit", CHECK_ATOMS + 1},
        {"tables", CHECK_TABLES},       {"memory", CHECK_USED},
        {"memory_left", CHECK_LEFT},
    };

    json_begin_record(to, "check");
    json_put_text(to, "node", p->seen->name);
    json_put_uint(to, "findings", check_count(p->findings));
    json_put_text(to, "otp", p->otp);
    json_put_uint(to, "uptime_ms", p->uptime_ms);
    json_put_int(to, "elapsed_us", p->took_ms * 1000);
    json_put_int(to, "slowest_us", p->slowest_ms * 1000);
    if (p->seen->trace)
        json_put_int(to, "traced_us", check_traced_ms(p->seen->trace) * 1000);
    for (size_t i = 0; i < ARRAY_LEN(figures); i++)
        json_put_int(to, figures[i].key, f->figures[figures[i].figure]);
    json_put_int(to, "messages", p->seen->total[1]);
    json_put_int(to, "run_queue", f->busy[0]);
    json_put_int(to, "schedulers", f->busy[1]);
    if (check_processors(p) >= 0) {
        json_key(to, "processors");
        json_real(to, check_processors(p));
    }
    json_end_record(to);
}

void check_page_data(const struct check_page *p, enum grid_as as, struct buf *to)
{
    struct grid g = check_grid(p);

    grid_data(&g, as, "finding", to);
    grid_release(&g);
    if (as == GRID_JSON)
        check_json(p, to);
}
