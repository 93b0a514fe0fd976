/* SPDX-License-Identifier: Apache-2.0 */
#include "group_text.h"

#include <math.h>

#include "line.h"

/* Larger floats are printed with the fewest digits that read back as the same float. */
#define MOST_PLAIN 1e15

static const unsigned percents[] = {50, 90, 99};

const struct printer *group_printer(const struct groups *g, enum terms_style style)
{
    const bool elixir = style == TERMS_AUTO ? g->by->surface == SPEC_ELIXIR : style == TERMS_ELIXIR;

    return elixir ? &printer_elixir : &printer_erlang;
}

/* Returns true if the value is a name, such as that of a node, which other views print without quotes. */
static bool is_name(const struct where *w)
{
    static const enum property names[] = {PROPERTY_node, PROPERTY_name, PROPERTY_type, PROPERTY_m, PROPERTY_f};
    bool is = false;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        is = is || (w->type == WHERE_NAME && w->property == names[i]);
    return is;
}

void group_put_part(struct buf *to, const struct groups *g, const struct group *row, size_t part,
                    const struct printer *printer)
{
    const struct by_key *key = &g->by->keys[part];
    const uint8_t *at;
    const enum group_part is = group_part_of(row, part, &at);
    const struct event e = {.env = group_env(row)};
    struct raw name;

    if (is != GROUP_TERM)
        buf_puts(to, is == GROUP_ABSENT ? "-" : "(unknown)");
    else if (!key->tag && key->value->kind == WT_FUNCTION)
        line_mfa(to, &e, printer, at);
    else if (!key->tag && key->value->type == WHERE_NAME && key->value->property == PROPERTY_stack)
        line_stack(to, &e, printer, at);
    else if (!key->tag && is_name(key->value) && wire_atom(&e.env, at, &name))
        print_safe(to, name);
    else
        printer->term(to, &e.env, at);
}

static void put_real(struct buf *to, double d)
{
    to->len = (size_t)(print_float(buf_room(to, FLOAT_ROOM), d) - to->data);
}

void group_put_value(struct buf *to, struct group_number n, bool duration)
{
    if (n.real) {
        put_real(to, duration ? n.d / 1000 : n.d);
        return;
    }
    if (!duration) {
        print_i64(to, n.i);
        return;
    }
    if (n.i < 0)
        buf_char(to, '-');
    const uint64_t ns = n.i < 0 ? 0 - (uint64_t)n.i : (uint64_t)n.i;
    print_u64(to, ns / 1000);
    if (ns % 1000)
        buf_printf(to, ".%03u", (unsigned)(ns % 1000));
}

void group_put_short(struct buf *to, struct group_number n, bool duration)
{
    if (duration)
        print_duration(to, n.real ? (int64_t)n.d : n.i);
    else if (n.real && n.d != 0 && fabs(n.d) < 1)
        buf_printf(to, "%.3g", n.d);
    else if (n.real && fabs(n.d) < MOST_PLAIN)
        buf_printf(to, "%.2f", n.d);
    else if (n.real)
        put_real(to, n.d);
    else
        print_i64(to, n.i);
}

size_t group_columns(const struct groups *g, bool drawn, struct group_column ret[GROUP_COLUMNS])
{
    size_t n = 0;

    for (size_t i = 0; i < g->by->naggregates; i++) {
        const enum by_kind kind = g->by->aggregates[i].kind;
        if (kind == BY_HIST && drawn)
            continue;
        for (size_t k = 0; k < ARRAY_LEN(percents) && kind == BY_QUANTILES; k++)
            ret[n++] = (struct group_column){i, percents[k]};
        if (kind != BY_QUANTILES)
            ret[n++] = (struct group_column){i, 0};
    }
    return n;
}

bool group_column_value(const struct groups *g, const struct group *row, struct group_column c,
                        struct group_number *ret)
{
    return c.percent ? group_quantile(&row->sums[c.aggregate], c.percent, ret)
                     : group_aggregate(g, row, c.aggregate, ret);
}

void group_column_name(struct buf *to, const struct groups *g, struct group_column c)
{
    const struct str text = g->by->aggregates[c.aggregate].text;
    const size_t name = strlen(by_kind_names[BY_QUANTILES]);

    if (c.percent)
        buf_printf(to, "p%u%.*s", c.percent, (int)(text.len - name), text.at + name);
    else
        buf_str(to, text);
}
