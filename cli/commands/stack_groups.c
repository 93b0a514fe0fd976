/* SPDX-License-Identifier: Apache-2.0 */
#include "stack_groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../erlang/term_print.h"
#include "../ground/json.h"
#include "../ground/mem.h"
#include "../ground/utf8.h"
#include "refresh.h"
#include "top_table.h"

#define FRAMES_MAX 4000000 /* of all groups together */
#define NAMED_MOST 500     /* processes whose names are asked for */

void stack_groups_release(struct stack_groups *g)
{
    free(g->items);
    free(g->frames);
    table_release(&g->by_stack);
}

/* ---- collecting ---- */

static uint32_t group_hash(unsigned node, const char *status, const struct look_frame *frames, size_t n)
{
    uint32_t hash = hash_text(HASH_BEGIN ^ node, (struct str){status, strlen(status)});

    for (size_t i = 0; i < n; i++)
        hash = hash * 31u + (frames[i].fun ? frames[i].fun->hash : 0) + (uint32_t)frames[i].arity;
    return hash;
}

static bool same_stack(const struct look_frame *a, const struct look_frame *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i].fun != b[i].fun || a[i].arity != b[i].arity)
            return false;
    return true;
}

/* The group of a stack, which may be new. NULL: there are too many. */
static struct stack_group *group_of(struct stack_groups *g, unsigned node, const char *status,
                                    const struct look_frame *frames, size_t n)
{
    uint32_t hash = group_hash(node, status, frames, n);

    for (uint32_t step = 0, i; (i = table_next(&g->by_stack, hash, &step)) != TABLE_NONE;) {
        struct stack_group *x = &g->items[i];
        if (x->node == node && x->count == n && !strcmp(x->status, status) && same_stack(g->frames + x->first, frames, n))
            return x;
    }
    if (g->count == GROUPS_MAX || g->nframes + n > FRAMES_MAX)
        return NULL;
    g->items = mem_grow(g->items, &g->cap, g->count + 1, sizeof(*g->items));
    g->frames = mem_grow(g->frames, &g->frames_cap, g->nframes + n + 1, sizeof(*g->frames));
    struct stack_group *x = &g->items[g->count];
    *x = (struct stack_group){.node = node, .first = g->nframes, .count = n};
    snprintf(x->status, sizeof(x->status), "%s", status);
    memcpy(g->frames + g->nframes, frames, n * sizeof(*frames));
    g->nframes += n;
    table_add(&g->by_stack, hash, (uint32_t)g->count++);
    return x;
}

static void add_process(struct stack_group *x, struct raw pid)
{
    char text[32];

    safe_copy(text, sizeof(text), pid);
    for (unsigned i = 0; i < x->nprocesses; i++)
        if (!strcmp(x->processes[i].pid, text))
            return;
    if (x->nprocesses < GROUP_NAMES)
        memcpy(x->processes[x->nprocesses++].pid, text, sizeof(text));
}

/* {Status, [Function], Count, [Pid], Ms} */
static bool group_take(struct stack_groups *g, unsigned node, struct etf *r, const struct look_frame *functions,
                       size_t nfunctions)
{
    struct look_frame frames[GROUP_FRAMES];
    struct raw status, pid;
    struct etf_head h;
    struct etf pids;
    char text[24];
    size_t n = 0, npids;
    int64_t number, count, ms;

    if (!etf_get_tuple(r, 5) || !etf_get_atom(r, &status) || !etf_next(r, &h))
        return false;
    if (h.type == ETF_STRING) { /* a list of small integers */
        for (; n < h.text.len && n < GROUP_FRAMES; n++) {
            unsigned char byte = (unsigned char)raw_view(h.text).at[n];
            if (byte >= nfunctions)
                return false;
            frames[n] = functions[byte];
        }
    } else if (h.type == ETF_LIST) {
        for (size_t i = 0; i < h.count; i++) {
            if (!etf_get_int(r, &number) || number < 0 || (size_t)number >= nfunctions)
                return false;
            if (n < GROUP_FRAMES)
                frames[n++] = functions[number];
        }
        if (!etf_get_nil(r))
            return false;
    } else if (h.type != ETF_NIL) {
        return false;
    }
    if (!etf_get_int(r, &count) || !etf_take(r, &pids) || !etf_get_int(r, &ms) || count < 0)
        return false;
    safe_copy(text, sizeof(text), status);
    g->looks += (uint64_t)count;
    struct stack_group *x = group_of(g, node, text, frames, n);
    if (!x) {
        g->left_out += (uint64_t)count;
        return true;
    }
    x->looks += (uint64_t)count;
    x->waited_ms = MAX(x->waited_ms, ms);
    if (!etf_get_list(&pids, &npids))
        return false;
    while (npids--) {
        if (!etf_get_bin(&pids, &pid))
            return false;
        add_process(x, pid);
    }
    return true;
}

bool stack_groups_add(struct stack_groups *g, unsigned node, const struct look_answer *a, struct funs *funs, struct err *e)
{
    struct etf functions = a->functions, stacks = a->stacks;
    struct look_frame *frames = NULL;
    size_t nfunctions = 0, nstacks = 0;

    bool ok = etf_get_list(&functions, &nfunctions);
    if (ok)
        frames = mem_alloc((nfunctions + 1) * sizeof(*frames));
    for (size_t i = 0; ok && i < nfunctions; i++)
        ok = look_frame_read(&functions, funs, &frames[i]);
    ok = ok && etf_get_list(&stacks, &nstacks);
    for (size_t i = 0; ok && i < nstacks; i++)
        ok = group_take(g, node, &stacks, frames, nfunctions);
    free(frames);
    return ok || err_set(e, ERR_RUN, "the node's answer about its stacks is malformed");
}

/* ---- order ---- */

static int group_order(const void *a, const void *b)
{
    const struct stack_group *x = *(struct stack_group *const *)a, *y = *(struct stack_group *const *)b;

    if (x->looks != y->looks)
        return x->looks < y->looks ? 1 : -1;
    return x->first < y->first ? -1 : x->first > y->first;
}

struct stack_group **stack_groups_sorted(const struct stack_groups *g)
{
    struct stack_group **sorted = mem_alloc((g->count + 1) * sizeof(struct stack_group *));

    for (size_t i = 0; i < g->count; i++)
        sorted[i] = &g->items[i];
    qsort(sorted, g->count, sizeof(struct stack_group *), group_order);
    return sorted;
}

/* ---- names ---- */

bool stack_groups_ask_names(const struct stack_groups *g, unsigned node, int patience_ms, struct buf *to)
{
    struct stack_group **sorted = stack_groups_sorted(g);
    struct buf pids = {0};
    size_t n = 0;

    for (size_t i = 0; i < g->count && n < NAMED_MOST; i++)
        if (sorted[i]->node == node)
            for (unsigned k = 0; k < sorted[i]->nprocesses && n < NAMED_MOST; k++, n++)
                look_names_add(&pids, sorted[i]->processes[k].pid);
    free(sorted);
    if (n)
        look_names_request(to, &pids, n, patience_ms);
    buf_release(&pids);
    return n > 0;
}

bool stack_groups_named(struct stack_groups *g, unsigned node, struct etf names)
{
    struct look_list list = look_list(names);
    struct look_process one;

    while (look_list_next(&list, &one))
        for (size_t i = 0; i < g->count; i++)
            for (unsigned k = 0; g->items[i].node == node && k < g->items[i].nprocesses; k++)
                if (!strcmp(g->items[i].processes[k].pid, one.pid))
                    g->items[i].processes[k] = one;
    return list.ok;
}

/* ---- text ---- */

#define COUNT_WIDTH 8
#define STATUS_WIDTH 9
#define WAITED_LEAST 1000 /* ms: a shorter wait is not worth its place */

static void put_stack(const struct stack_table *t, const struct stack_group *x, struct buf *to)
{
    const struct look_frame *frames = t->groups->frames + x->first;

    if (!x->count)
        buf_puts(to, "(no Erlang function)");
    for (size_t i = 0; i < x->count; i++) {
        buf_puts(to, i ? " < " : "");
        look_frame_print(to, &frames[i]);
    }
}

/* Appends the processes of a group, if they are few, and the longest wait. */
static void put_who(const struct stack_group *x, bool samples, struct buf *to)
{
    if (x->waited_ms >= WAITED_LEAST) {
        buf_puts(to, "  for ");
        print_duration(to, x->waited_ms * 1000000);
    }
    if (samples ? x->nprocesses >= GROUP_NAMES : x->looks > x->nprocesses)
        return;
    for (unsigned i = 0; i < x->nprocesses; i++) {
        buf_puts(to, i ? " " : "  ");
        look_process_print(to, &x->processes[i]);
    }
}

/* Widths of the columns of nodes and states. */
struct stack_columns {
    unsigned node, status;
};

/* Without a terminal, the columns are as wide as their texts. */
static struct stack_columns columns_of_stacks(const struct stack_table *t, struct stack_group *const *rows, size_t n)
{
    struct stack_columns c = {0, STATUS_WIDTH - 1};

    for (size_t i = 0; i < n && !t->columns; i++) {
        const char *node = t->names[rows[i]->node];
        c.node = MAX(c.node, (unsigned)utf8_width(node, strlen(node)));
        c.status = MAX(c.status, (unsigned)strlen(rows[i]->status));
    }
    return c;
}

static void group_line(const struct stack_table *t, const struct stack_columns *c, const struct stack_group *x,
                       struct buf *to)
{
    struct buf count = {0}, stack = {0}, who = {0};
    unsigned room = t->columns > COUNT_WIDTH + STATUS_WIDTH + 2 ? t->columns - COUNT_WIDTH - STATUS_WIDTH - 2 : 20;

    if (t->samples)
        buf_printf(&count, "%.1f%%", t->groups->looks ? 100.0 * (double)x->looks / (double)t->groups->looks : 0);
    else
        print_u64(&count, x->looks);
    buf_printf(to, "%*s", (int)(COUNT_WIDTH - MIN(count.len, COUNT_WIDTH)), "");
    paint_str(&t->paint, to, PAINT_DURATION, buf_view(&count));
    buf_char(to, ' ');
    if (t->nnodes > 1) {
        const char *node = t->names[x->node];
        unsigned wide = (unsigned)utf8_width(node, strlen(node));
        buf_printf(to, "%s%*s ", node, (int)(c->node - MIN(wide, c->node)), "");
    }
    paint_str(&t->paint, to, strcmp(x->status, "waiting") ? PAINT_KIND : PAINT_TIME,
              (struct str){x->status, strlen(x->status)});
    buf_printf(to, "%*s", (int)(c->status + 1 - MIN(strlen(x->status), c->status)), "");
    put_stack(t, x, &stack);
    put_who(x, t->samples, &who);
    paint_begin(&t->paint, to, PAINT_FUN);
    if (t->columns) {
        size_t wide = utf8_width(who.data, who.len);
        top_cut(to, buf_view(&stack), wide < room / 2 ? room - (unsigned)wide : room / 2);
    } else {
        buf_str(to, buf_view(&stack));
    }
    paint_end(&t->paint, to);
    paint_begin(&t->paint, to, PAINT_NAME);
    if (t->columns)
        top_cut(to, buf_view(&who), room / 2);
    else
        buf_str(to, buf_view(&who));
    paint_end(&t->paint, to);
    buf_release(&count);
    buf_release(&stack);
    buf_release(&who);
}

/* The filter looks at the whole line, also at what is cut. */
static bool group_admits(const struct stack_table *t, const struct stack_group *x)
{
    struct buf b = {0};

    if (t->nnodes > 1) /* else the node is not shown, and its name would match every row */
        buf_printf(&b, "%s ", t->names[x->node]);
    buf_printf(&b, "%s ", x->status);
    put_stack(t, x, &b);
    put_who(x, t->samples, &b);
    bool admits = refresh_matches(t->filter, buf_view(&b));
    buf_release(&b);
    return admits;
}

struct stack_group **stack_table_rows(const struct stack_table *t, size_t *ret_count)
{
    struct stack_group **rows = stack_groups_sorted(t->groups);
    size_t n = 0;

    for (size_t i = 0; i < t->groups->count; i++)
        if (!t->filter || !*t->filter || group_admits(t, rows[i]))
            rows[n++] = rows[i];
    *ret_count = n;
    return rows;
}

void stack_table_text(const struct stack_table *t, const char *end, struct buf *to)
{
    const struct stack_groups *g = t->groups;
    struct stack_table plain = *t; /* in reverse there are no colours: their ends would end the reverse, too */
    size_t count;
    struct stack_group **rows = stack_table_rows(t, &count);
    size_t shown = t->most && count > t->most ? t->most : count;
    uint64_t looks = g->looks;
    struct stack_columns c = columns_of_stacks(t, rows, shown);

    plain.paint.on = false;
    for (size_t i = 0; i < shown; i++) {
        buf_puts(to, i == t->chosen ? "\033[7m" : "");
        group_line(i == t->chosen ? &plain : t, &c, rows[i], to);
        buf_puts(to, i == t->chosen ? "\033[0m" : "");
        buf_puts(to, end);
        looks -= rows[i]->looks;
    }
    if (looks && t->samples)
        buf_printf(to, "%7.1f%% in %zu other stacks%s", 100.0 * (double)looks / (double)g->looks, g->count - shown, end);
    else if (looks)
        buf_printf(to, "%8llu in %zu other stacks%s", (unsigned long long)looks, g->count - shown, end);
    free(rows);
}

/* ---- JSON ---- */

void stack_table_json(const struct stack_table *t, struct buf *to)
{
    const struct stack_groups *g = t->groups;
    struct stack_group **sorted = stack_groups_sorted(g);

    for (size_t i = 0; i < g->count && (!t->most || i < t->most); i++) {
        const struct stack_group *x = sorted[i];
        json_begin_record(to, "stack");
        json_key(to, "node"), json_text(to, t->names[x->node]);
        json_key(to, "status"), json_text(to, x->status);
        json_key(to, t->samples ? "samples" : "count"), json_uint(to, x->looks);
        json_key(to, "stack"), json_begin_array(to);
        for (size_t k = 0; k < x->count; k++)
            look_frame_json(to, &g->frames[x->first + k]);
        json_end_array(to);
        json_key(to, "waited_ms"), json_int(to, x->waited_ms);
        json_key(to, "processes"), json_begin_array(to);
        for (unsigned k = 0; k < x->nprocesses; k++)
            look_process_json(to, &x->processes[k]);
        json_end_array(to);
        json_end_record(to);
    }
    free(sorted);
}

/* ---- views of stacks ---- */

static void wire_text(struct buf *b, struct raw text)
{
    uint16_t len = (uint16_t)MIN(text.len, 1020);

    buf_char(b, (char)ETW_T_ATOMTEXT);
    buf_add(b, &len, sizeof(len));
    buf_add(b, raw_view(text).at, len);
}

/* The stack as the node sends it: a list of {M, F, A}. */
static void wire_stack(struct buf *b, const struct look_frame *frames, size_t n)
{
    buf_char(b, (char)ETW_T_LIST);
    for (size_t i = 0; i < n; i++) {
        if (!frames[i].fun)
            continue;
        buf_char(b, (char)(ETW_T_TUPLE0 + 3));
        wire_text(b, frames[i].fun->module);
        wire_text(b, frames[i].fun->name);
        int16_t arity = (int16_t)frames[i].arity;
        buf_char(b, (char)ETW_T_INT16);
        buf_add(b, &arity, sizeof(arity));
    }
    buf_char(b, (char)ETW_T_END);
}

void stack_groups_show(const struct stack_groups *g, const struct event_node *nodes, int64_t from_ns, int64_t to_ns,
                       struct sink *view)
{
    struct buf stack = {0};
    static const struct tracee nobody;

    for (size_t i = 0; i < g->count; i++) {
        const struct stack_group *x = &g->items[i];
        buf_clear(&stack);
        wire_stack(&stack, g->frames + x->first, x->count);
        view->type->event(view, &(struct event){
                                    .kind = ETW_CALL,
                                    .mono_ns = i ? to_ns : from_ns,
                                    .wall_ns = i ? to_ns : from_ns,
                                    .node = &nodes[x->node],
                                    .who = &nobody,
                                    .stack = (const uint8_t *)stack.data,
                                    .weight = x->looks,
                                    .dur_ns = -1,
                                });
    }
    buf_release(&stack);
}
