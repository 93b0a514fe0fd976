/* SPDX-License-Identifier: Apache-2.0 */
#include "top_rows.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/etf_fields.h"
#include "../erlang/term_print.h"
#include "../ground/mem.h"

const char *const top_kept_names[] = {"calls", "time", "memory", "name"};

void top_node_release(struct top_node *n)
{
    free(n->rows);
    *n = (struct top_node){0};
}

/* ---- answers ---- */

/*
 * Reads a row of all processes, {M, F, A, Calls, Micros, Words, CallCount}, or of one process, {M, F, A, Calls, Micros,
 * Words, Pid, Name, Alive}.
 */
static bool take_row(struct etf *r, struct top_row *x, struct funs *funs)
{
    struct etf_head h;
    struct raw module, function, pid, name;
    int64_t arity;

    if (!etf_next(r, &h) || h.type != ETF_TUPLE || (h.count != 7 && h.count != 9) || !etf_get_bin(r, &module) ||
        !etf_get_bin(r, &function) || !etf_get_int(r, &arity) || !etf_get_int(r, &x->calls) ||
        !etf_get_int(r, &x->us) || !etf_get_int(r, &x->words))
        return false;
    x->fun = funs_get(funs, module, function);
    x->arity = (int)arity;
    x->all = -1;
    if (h.count == 7)
        return etf_get_int(r, &x->all);
    if (!etf_get_bin(r, &pid) || !etf_get_bin(r, &name))
        return false;
    safe_copy(x->pid, sizeof(x->pid), pid);
    safe_copy(x->name, sizeof(x->name), name);
    x->alive = etf_is_atom(r, "true");
    return etf_skip(r);
}

static bool take_rows(struct etf *r, struct top_node *n, unsigned index, struct funs *funs)
{
    size_t count;

    if (!etf_get_list(r, &count) || count > 100000)
        return false;
    n->rows = mem_grow(n->rows, &n->cap, count + 1, sizeof(*n->rows));
    n->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct top_row x = {.node = index};
        if (!take_row(r, &x, funs))
            return false;
        if (x.fun)
            n->rows[n->count++] = x;
    }
    return !count || etf_get_nil(r);
}

/* An answer that is being read. Its rows are decoded after the other members. */
struct top_answer {
    struct top_node node;
    struct etf rows, moved;
    int64_t total[4];
};

bool top_node_read(struct top_node *n, unsigned index, struct etf r, struct funs *funs, struct err *e)
{
#define FIELD(what, key, ...) ETF_##what(struct top_answer, key, __VA_ARGS__)
    static const struct etf_field fields[] = {
        FIELD(INT, "functions", node.functions),
        FIELD(INT, "time", node.elapsed_us),
        FIELD(INT, "begun", node.begun),
        FIELD(INT, "more", node.unread),
        FIELD(INT, "anew", node.anew),
        FIELD(BOOL, "untraced", node.untraced),
        FIELD(TERM, "moved", moved),
        FIELD(TERM, "rows", rows),
        FIELD(INTS, "total", total, 4),
    };
#undef FIELD
    struct top_answer a = {.node = *n, .total = {n->more, n->calls, n->us, n->words}};
    bool ok = etf_get_fields(&r, fields, ARRAY_LEN(fields), &a);

    *n = a.node;
    n->moved_left = 0;
    if (a.moved.at && etf_get_list(&a.moved, &n->moved_left))
        n->moved = a.moved;
    n->more = a.total[0], n->calls = a.total[1], n->us = a.total[2], n->words = a.total[3];
    return (ok && (!a.rows.at || take_rows(&a.rows, n, index, funs))) ||
           err_set(e, ERR_RUN, "the node's counts are malformed");
}

bool top_node_moved(struct top_node *n, struct raw *ret_name, struct raw *ret_pid)
{
    if (!n->moved_left || !etf_get_tuple(&n->moved, 2) || !etf_get_bin(&n->moved, ret_name))
        return false;
    n->moved_left--;
    if (etf_get_bin(&n->moved, ret_pid))
        return true;
    *ret_pid = (struct raw){.len = 0};
    return etf_skip(&n->moved);
}

static bool take_counters(struct etf *r, unsigned *ret)
{
    struct raw name;
    size_t n;
    unsigned found = 0;

    if (!etf_get_list(r, &n))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!etf_get_atom(r, &name))
            return false;
        found |= raw_is(name, "call_time")     ? TOP_COUNT_TIME
                 : raw_is(name, "call_memory") ? TOP_COUNT_MEMORY
                                               : TOP_COUNT_CALLS;
    }
    *ret = found;
    return !n || etf_get_nil(r);
}

static void pass_on(struct raw text, void (*warn)(void *data, struct str text), void *data)
{
    struct buf kept = {0};

    warn(data, safe_view(safe_keep(&kept, text)));
    buf_release(&kept);
}

bool top_node_begun(struct top_node *n, struct etf r, uint64_t *ret_processes,
                    void (*warn)(void *data, struct str text), void *data, struct err *e)
{
    struct raw key, text;
    size_t pairs = 0, count;
    int64_t processes = 0;
    bool ok = etf_get_map(&r, &pairs);

    n->count = 0;
    n->more = n->calls = n->us = n->words = n->elapsed_us = n->begun = n->anew = 0;
    while (ok && pairs--) {
        if (!(ok = etf_get_atom(&r, &key)))
            break;
        if (raw_is(key, "counters")) {
            ok = take_counters(&r, &n->counters);
        } else if (raw_is(key, "functions")) {
            ok = etf_get_int(&r, &n->functions);
        } else if (raw_is(key, "processes")) {
            ok = etf_get_int(&r, &processes);
        } else if (raw_is(key, "warning")) {
            ok = etf_get_list(&r, &count);
            for (size_t i = 0; ok && i < count; i++)
                if ((ok = etf_get_bin(&r, &text)))
                    pass_on(text, warn, data);
            ok = ok && (!count || etf_get_nil(&r));
        } else {
            ok = etf_skip(&r);
        }
    }
    *ret_processes = (uint64_t)processes;
    return ok || err_set(e, ERR_RUN, "the node's answer to counting is malformed");
}

/* ---- order ---- */

static int by_name(const struct top_row *x, const struct top_row *y)
{
    int c = str_order(x->fun->erl, y->fun->erl);

    if (!c)
        c = x->arity - y->arity;
    if (!c)
        c = strcmp(x->pid, y->pid);
    return c ? c : (int)x->node - (int)y->node;
}

static int top_order(const void *a, const void *b)
{
    const struct top_row *x = *(const struct top_row *const *)a, *y = *(const struct top_row *const *)b;

    return x->calls != y->calls ? x->calls < y->calls ? 1 : -1 : by_name(x, y);
}

const struct top_row **top_rows(const struct top_node *nodes, size_t n, size_t *ret_count)
{
    size_t count = 0, all = 0;

    for (size_t i = 0; i < n; i++)
        all += nodes[i].count;
    const struct top_row **rows = mem_zalloc((all + 1) * sizeof(*rows));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < nodes[i].count; k++)
            rows[count++] = &nodes[i].rows[k];
    qsort(rows, count, sizeof(*rows), top_order);
    *ret_count = count;
    return rows;
}
