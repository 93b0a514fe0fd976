/* SPDX-License-Identifier: Apache-2.0 */
/* etrace ls: lists the functions that selectors match on a node, page by page, with the names of their arguments. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../erlang/etf_write.h"
#include "../events/names.h"
#include "../ground/json.h"
#include "../ground/mem.h"
#include "../ground/tty.h"
#include "../trace/arg_names.h"
#include "../trace/request.h"
#include "../views/grid_order.h"
#include "cmd.h"

#define NAMED_MOST 2000 /* limit for the number of functions whose arguments are named without --args */
#define CHUNK_MOST (16u << 20)
#define BACKLOG_FULL (1u << 20)

enum { COL_AT, COL_NODE, COL_M, COL_F, COL_A, COL_EXPORTED, COL_ARGS, COL_FUNCTION, COL_DETAILS, COLUMNS };

static const struct grid_column columns[COLUMNS] = {
    [COL_AT] = {.title = "", .keep = GRID_WHOLE},
    [COL_NODE] = {.key = "node"},
    [COL_M] = {.key = "m"},
    [COL_F] = {.key = "f"},
    [COL_A] = {.key = "a", .number = true},
    [COL_EXPORTED] = {.key = "exported", .number = true},
    [COL_ARGS] = {.key = "args"},
    [COL_FUNCTION] = {.title = "", .least = 40, .keep = GRID_WHOLE},
    [COL_DETAILS] = {.title = "", .wraps = true},
};

static const struct grid_table ls_table = GRID_TABLE(columns);

struct ls_opts {
    bool json, args, no_args;
    int as; /* enum grid_as */
    const char *sort;
    struct texts files;
    bool allow_empty;
};

#define ROW(...) OPT_ROW(struct ls_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW(0, "args", NULL, OPT_FLAG, args, "print the names of arguments, even for very many functions"),
    ROW(0, "no-args", NULL, OPT_FLAG, no_args, "do not print the names of arguments"),
    ROW(0, "json", NULL, OPT_FLAG, json, "one object per line"),
    ROW(0, "as", GRID_AS, OPT_CHOICE, as, "the format: text, --json, or columns for spreadsheets"),
    OPT_SORT(struct ls_opts, sort, "module by module", &ls_table),
    ROW('f', "file", "FILE", OPT_TEXTS, files, "read selectors from a file; - is standard input"),
    ROW(0, "allow-empty", NULL, OPT_FLAG, allow_empty, "do not fail if no function matches"),
};
static const struct opt_group ls_group = {"Output", rows, ARRAY_LEN(rows)};

struct ls_row {
    const struct fun *fun;
    int64_t arity;
    bool exported;
    const char *args; /* in ls.texts; NULL: the names are unknown or not wanted */
};

/* The state of the command. `names` is about one module at a time, and so is `rows` unless --sort collects a node. */
struct ls {
    struct ctx *ctx;
    const struct ls_opts *o;
    struct request request;
    struct funs funs;
    uint64_t left_out; /* number of functions for which `funs` had no room */
    struct arg_names names;
    struct buf module; /* the module that `names` is about */
    struct ls_row *rows;
    size_t n, cap;
    struct arena texts;
    bool begun; /* some rows were printed already */
};

/* ---- the names of arguments ---- */

/*
 * Reads a chunk of the object code of a module in several requests. Returns false on any failure; the names of
 * arguments are then unknown.
 */
static bool read_chunk(struct ls *l, struct peer *p, struct str module, struct buf *ret)
{
    struct buf request = {0};
    struct etf r;
    struct raw id, part;
    int64_t size = 1;
    struct err e;
    bool ok = true;

    while (ok && ret->len < (size_t)size) {
        buf_clear(&request);
        request_begin(&request, "chunk", 2);
        etf_bin(&request, module.at, module.len);
        etf_int(&request, (int64_t)ret->len);
        ok = request_node(&l->request, p, buf_view(&request), &r, &e) && etf_get_tuple(&r, 3) && etf_get_bin(&r, &id) &&
             etf_get_int(&r, &size) && size >= 0 && size <= CHUNK_MOST && etf_get_bin(&r, &part) && part.len;
        if (ok)
            buf_str(ret, raw_view(part));
    }
    buf_release(&request);
    return ok;
}

/* Begins the next module: drops the argument names of the previous one. If `named`, reads those of this module. */
static void begin_module(struct ls *l, struct peer *p, struct str module, bool named)
{
    struct buf chunk = {0};

    buf_clear(&l->module);
    buf_str(&l->module, module);
    arg_names_release(&l->names);
    arg_names_init(&l->names);
    if (named && read_chunk(l, p, buf_view(&l->module), &chunk))
        arg_names_read(&l->names, buf_view(&chunk));
    buf_release(&chunk);
}

/* ---- rows ---- */

struct ls_rows {
    const char *node;
    const struct ls_row *items;
};

static void ls_put_cell(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct ls_rows *all = data;
    const struct ls_row *x = &all->items[row];

    switch (column) {
    case COL_AT:
    case COL_NODE:
        buf_puts(&cell->text, all->node);
        break;
    case COL_M:
        grid_put_name(cell, x->fun->module);
        break;
    case COL_F:
        grid_put_name(cell, x->fun->name);
        break;
    case COL_A:
        json_int(&cell->text, x->arity);
        break;
    case COL_EXPORTED:
        json_bool(&cell->text, x->exported);
        break;
    case COL_ARGS:
        if (x->args)
            grid_put_name(cell, raw_text(x->args));
        break;
    case COL_FUNCTION:
        buf_str(&cell->text, fun_text(x->fun));
        buf_printf(&cell->text, "/%lld", (long long)x->arity);
        break;
    default:
        buf_puts(&cell->text, x->exported ? "" : x->args ? "local " : "local");
        if (x->args)
            buf_printf(&cell->text, "(%s)", x->args);
        break;
    }
}

/* Prints the collected rows and drops them. */
static void ls_print(struct ls *l, const char *node)
{
    const struct ls_rows all = {node, l->rows};
    struct grid_column own[COLUMNS];
    struct grid g = {own, COLUMNS, ls_put_cell, &all, l->n, .continued = l->begun};
    struct buf b = {0};

    memcpy(own, columns, sizeof(own));
    own[COL_AT].hidden = l->request.peers.count == 1;
    g.width = tty_is(STDOUT_FILENO) ? tty_columns(STDOUT_FILENO) : 0;
    grid_order(&g, &(struct grid_sort){l->o->sort, NULL});
    grid_print(&g, (enum grid_as)l->o->as, "function", &b);
    grid_release(&g);
    arena_release(&l->texts);
    arena_init(&l->texts);
    l->begun = true;
    l->n = 0;
    out_take(l->ctx->out, &b);
    buf_release(&b);
}

struct place {
    struct buf module, function;
    int64_t arity;
    bool exported;
};

static bool take_row(struct etf *r, struct place *at)
{
    struct raw module, function;

    if (!etf_get_tuple(r, 4) || !etf_get_bin(r, &module) || !etf_get_bin(r, &function) || !etf_get_int(r, &at->arity))
        return false;
    buf_clear(&at->module);
    buf_str(&at->module, raw_view(module));
    buf_clear(&at->function);
    buf_str(&at->function, raw_view(function));
    at->exported = etf_is_atom(r, "true");
    return etf_skip(r);
}

/* Serves the loop until `until`, and renews the leases of the sessions, because a pager may wait for long. */
static void ls_step(struct ls *l, int64_t until)
{
    if (!peers_step(&l->request.peers, until))
        loop_step(&l->ctx->loop, until);
}

static bool await_output(struct ls *l)
{
    struct err e;
    bool closed;

    while (out_backlog(l->ctx->out, BACKLOG_FULL) > BACKLOG_FULL && !l->ctx->interrupts &&
           !out_failed(l->ctx->out, &closed, &e))
        ls_step(l, loop_now() + 20);
    ls_step(l, 0);
    return l->ctx->interrupts || out_failed(l->ctx->out, &closed, &e);
}

/* Prints the rows of one page, module by module. Sets *at to the last row. */
static bool show_page(struct ls *l, struct peer *p, struct etf page, size_t n, bool named, struct place *at)
{
    const char *node = session_node(p->session)->name;
    bool ok = true;

    while (ok && n-- && !await_output(l)) {
        ok = take_row(&page, at);
        const struct fun *fun =
            ok ? funs_get(&l->funs, raw_of(buf_view(&at->module)), raw_of(buf_view(&at->function))) : NULL;
        l->left_out += ok && !fun;
        if (!fun)
            continue;
        if (!str_same(buf_view(&l->module), buf_view(&at->module))) {
            if (!l->o->sort)
                ls_print(l, node);
            begin_module(l, p, buf_view(&at->module), named);
        }
        l->rows = mem_grow(l->rows, &l->cap, l->n + 1, sizeof(*l->rows));
        const struct arg_name *args = arg_names_find(&l->names, buf_view(&at->function), (int)at->arity);
        l->rows[l->n++] = (struct ls_row){fun, at->arity, at->exported,
                                          args ? arena_strndup(&l->texts, args->text.at, args->text.len) : NULL};
    }
    if (!l->o->sort) {
        ls_print(l, node);
        funs_release(&l->funs); /* only rows refer to them, and a large system has more than one table can hold */
        funs_init(&l->funs);
    }
    return ok;
}

/* Sends {ls, After, {arm, …}} for each page until the last one has arrived. */
static bool cmd_ls_list(struct ls *l, struct peer *p, struct str selection, struct err *e)
{
    struct buf request = {0}, page = {0};
    struct place at = {0};
    bool more = true, ok = true;

    buf_clear(&l->module); /* the node may have another version of the module than the previous node */
    while (ok && more && !await_output(l)) {
        struct etf r, whole;
        int64_t total;
        size_t n;

        buf_clear(&request);
        request_begin(&request, "ls", 2);
        if (!at.module.len) {
            etf_atomz(&request, "none");
        } else {
            etf_tuple(&request, 3);
            etf_bin(&request, at.module.data, at.module.len);
            etf_bin(&request, at.function.data, at.function.len);
            etf_int(&request, at.arity);
        }
        buf_str(&request, selection);
        if (!(ok = request_node(&l->request, p, buf_view(&request), &r, e)))
            break;
        buf_clear(&page); /* the page is copied, because requests for argument names overwrite it */
        buf_add(&page, r.at, (size_t)(r.end - r.at));
        etf_open(&r, page.data, page.len);
        whole = r;
        ok = etf_get_tuple(&whole, 3) && etf_skip(&whole) && etf_get_int(&whole, &total);
        more = ok && etf_is_atom(&whole, "true");
        bool named = !l->o->no_args && (l->o->args || total <= NAMED_MOST);
        ok = ok && etf_get_tuple(&r, 3) && etf_get_list(&r, &n) && show_page(l, p, r, n, named, &at);
        more = more && n;
        if (!ok)
            err_set(e, ERR_RUN, "the node's list of functions is malformed");
    }
    if (l->o->sort && ok)
        ls_print(l, session_node(p->session)->name);
    buf_release(&at.module);
    buf_release(&at.function);
    buf_release(&request);
    buf_release(&page);
    return ok;
}

static int ls_run(struct ctx *ctx, const struct ls_opts *o, const struct node_opts *node, const struct texts *words)
{
    struct what_opts what = {.files = o->files, .allow_empty = o->allow_empty};
    struct ls l = {.ctx = ctx, .o = o};
    struct texts texts = {0};
    struct arena arena;
    struct err e, lack = {0};
    bool matched = false;
    int status = 0;

    arena_init(&arena);
    arena_init(&l.texts);
    funs_init(&l.funs);
    arg_names_init(&l.names);
    bool ok = request_check(ctx, &what, words, &arena, &texts, &e) && request_open(&l.request, ctx, node, &e);
    for (size_t i = 0; ok && i < l.request.peers.count; i++) {
        struct peer *p = &l.request.peers.items[i];
        struct buf selection = {0};
        struct exprs exprs;

        if (!p->session) /* --cluster found a node that was not reached, or the node has two names */
            continue;
        exprs_init(&exprs);
        ok = request_selection(&selection, &exprs, &what, &texts, session_node(p->session), false, &e) &&
             cmd_ls_list(&l, p, buf_view(&selection), &e);
        matched |= ok;
        if (!ok) {
            request_empty(words, session_node(p->session)->name, &e);
            ok = peer_leave_out(p, &e);
            lack = e;
        }
        exprs_release(&exprs);
        buf_release(&selection);
    }
    if (l.left_out)
        ctx_warn(ctx, "%llu functions are not listed, because their names do not fit into memory: leave out --sort",
                 (unsigned long long)l.left_out);
    if ((!ok || (lack.status && !matched)) && !await_output(&l))
        status = ctx_fail(ctx, ok ? &lack : &e);
    request_close(&l.request);
    texts_release(&texts);
    arena_release(&arena);
    arena_release(&l.texts);
    arg_names_release(&l.names);
    funs_release(&l.funs);
    buf_release(&l.module);
    free(l.rows);
    return status;
}

static int cmd_ls_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct ls_opts o = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node}, {&ls_group, &o}, {&talk_group, &talk}};
    struct texts words = {0};
    struct err e;
    char **rest;
    int status = 0;

    if (!argv[0])
        return cmd_nodes.run(ctx, &cmd_nodes, argv);
    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        if (!cmd_format(o.json, &o.as, &e)) {
            status = ctx_fail(ctx, &e);
        } else if (words.count || o.files.count) {
            status = ls_run(ctx, &o, &node, &words);
        } else {
            err_set(&e, ERR_USAGE, "no functions to list");
            err_hint(&e, "for example etrace ls 'lists:*sort*', etrace ls 'app(kernel)'; etrace nodes lists nodes");
            status = ctx_fail(ctx, &e);
        }
    }
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] = "  etrace ls lists                     the functions of a module\n"
                            "  etrace ls 'MyApp.*.handle_*/_' | fzf\n"
                            "  etrace ls                           nodes, as etrace nodes\n"
                            "\nA line is module:function/arity, `local` where it is not exported, and the names\n"
                            "of the arguments if the module's file has them.\n";

static const struct opt_group *const groups[] = {&node_group, &ls_group, &talk_group, NULL};
const struct cmd cmd_ls = {
    .name = "ls",
    .usage = "[-n NODE] [SELECTOR...]",
    .summary = "Lists the functions on a node that selectors match",
    .about = about,
    .run = cmd_ls_run,
    .groups = groups,
};
