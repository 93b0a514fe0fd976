/* SPDX-License-Identifier: Apache-2.0 */
/* etrace ls: lists the functions that selectors select on a node, page by page, with the names of their arguments. */
#include <string.h>

#include "../erlang/etf_write.h"
#include "../erlang/term_json.h"
#include "../events/names.h"
#include "../ground/utf8.h"
#include "../trace/arg_names.h"
#include "../trace/request.h"
#include "cmd.h"

#define NAMED_MOST 2000 /* without --args, do not name arguments if there are more functions */
#define CHUNK_MOST (16u << 20)
#define COLUMN 40
#define BACKLOG_FULL (1u << 20)

struct ls_opts {
    bool json, args, no_args;
    struct texts files;
    bool allow_empty;
};

#define ROW(...) OPT_ROW(struct ls_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW(0, "args", NULL, OPT_FLAG, args, "print the names of arguments, even for very many functions"),
    ROW(0, "no-args", NULL, OPT_FLAG, no_args, "do not print the names of arguments"),
    ROW(0, "json", NULL, OPT_FLAG, json, "one object per line"),
    ROW('f', "file", "FILE", OPT_TEXTS, files, "read selectors from a file; - is standard input"),
    ROW(0, "allow-empty", NULL, OPT_FLAG, allow_empty, "do not fail if no function matches"),
};
static const struct opt_group ls_group = {"Output", rows, ARRAY_LEN(rows)};

struct ls {
    struct ctx *ctx;
    const struct ls_opts *o;
    struct request request;
    struct funs funs;
    struct arg_names names;
    struct buf module; /* the module of `names` */
    uint64_t shown;
};

/* ---- the names of arguments ---- */

/* Reads a chunk of a module part by part. False: no chunk, for any reason; the names stay unknown. */
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

static void know_module(struct ls *l, struct peer *p, struct str module)
{
    struct buf chunk = {0};

    if (str_same(buf_view(&l->module), module))
        return;
    buf_clear(&l->module);
    buf_str(&l->module, module);
    arg_names_release(&l->names);
    arg_names_init(&l->names);
    if (read_chunk(l, p, buf_view(&l->module), &chunk))
        arg_names_read(&l->names, buf_view(&chunk));
    buf_release(&chunk);
}

/* ---- lines ---- */

static void text_line(struct buf *b, const struct fun *fun, int arity, bool exported, const struct arg_name *args)
{
    size_t from = b->len;

    buf_str(b, fun_text(fun));
    buf_printf(b, "/%d", arity);
    if (!exported || args) {
        size_t width = utf8_width(b->data + from, b->len - from);
        buf_printf(b, "%*s  ", width < COLUMN ? (int)(COLUMN - width) : 0, "");
        if (!exported)
            buf_puts(b, args ? "local " : "local");
        if (args)
            buf_printf(b, "(%.*s)", (int)args->text.len, args->text.at);
    }
    buf_char(b, '\n');
}

static void json_line(struct buf *b, const char *node, const struct fun *fun, int arity, bool exported,
                      const struct arg_name *args)
{
    json_begin_record(b, "function");
    json_put_text(b, "node", node);
    json_ready(b, fun->json);
    json_put_int(b, "a", arity);
    json_put_bool(b, "exported", exported);
    if (args)
        json_put_string(b, "args", raw_of(args->text));
    json_end_record(b);
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

static bool await_output(struct ls *l)
{
    struct err e;
    bool closed;

    while (out_backlog(l->ctx->out, BACKLOG_FULL) > BACKLOG_FULL && !l->ctx->interrupts &&
           !out_failed(l->ctx->out, &closed, &e))
        loop_step(&l->ctx->loop, loop_now() + 20);
    loop_step(&l->ctx->loop, 0);
    return l->ctx->interrupts || out_failed(l->ctx->out, &closed, &e);
}

/* Prints the rows of one page. `at` is the last row afterwards. */
static bool show_page(struct ls *l, struct peer *p, struct etf page, size_t n, bool named, struct place *at)
{
    const char *node = session_node(p->session)->name;
    struct buf line = {0};

    while (n-- && !await_output(l)) {
        if (!take_row(&page, at)) {
            buf_release(&line);
            return false;
        }
        const struct fun *fun = funs_get(&l->funs, raw_of(buf_view(&at->module)), raw_of(buf_view(&at->function)));
        if (!fun)
            continue;
        if (named)
            know_module(l, p, buf_view(&at->module));
        const struct arg_name *args = named ? arg_names_find(&l->names, buf_view(&at->function), (int)at->arity) : NULL;
        if (l->o->json) {
            json_line(&line, node, fun, (int)at->arity, at->exported, args);
        } else {
            if (l->request.peers.count > 1)
                buf_printf(&line, "%s ", node);
            text_line(&line, fun, (int)at->arity, at->exported, args);
        }
        out_take(l->ctx->out, &line);
        l->shown++;
    }
    buf_release(&line);
    return true;
}

/* Asks {ls, After, {arm, …}} until there are no more pages. */
static bool cmd_ls_list(struct ls *l, struct peer *p, struct str selection, struct err *e)
{
    struct buf request = {0}, page = {0};
    struct place at = {0};
    bool more = true, ok = true;

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
        buf_clear(&page); /* questions about argument names replace the answer */
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
    struct err e;
    int status = 0;

    arena_init(&arena);
    funs_init(&l.funs);
    arg_names_init(&l.names);
    bool ok = request_check(ctx, &what, words, &arena, &texts, &e) && request_open(&l.request, ctx, node, &e);
    for (size_t i = 0; ok && i < l.request.peers.count; i++) {
        struct peer *p = &l.request.peers.items[i];
        struct buf selection = {0};
        struct exprs exprs;

        exprs_init(&exprs);
        ok = request_selection(&selection, &exprs, &what, &texts, session_node(p->session), &e) &&
             cmd_ls_list(&l, p, buf_view(&selection), &e);
        if (!ok)
            request_empty(words, session_node(p->session)->name, &e);
        exprs_release(&exprs);
        buf_release(&selection);
    }
    if (!ok && !await_output(&l))
        status = ctx_fail(ctx, &e);
    request_close(&l.request);
    texts_release(&texts);
    arena_release(&arena);
    arg_names_release(&l.names);
    funs_release(&l.funs);
    buf_release(&l.module);
    return status;
}

static int cmd_ls_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct ls_opts o = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node}, {&ls_group, &o}, {&talk_group, &talk}};
    struct texts words = {0};
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        if (words.count || o.files.count) {
            status = ls_run(ctx, &o, &node, &words);
        } else {
            struct err e;
            err_set(&e, ERR_USAGE, "no functions to list");
            err_hint(&e, "for example etrace ls 'lists:*sort*', etrace ls 'app(kernel)'");
            status = ctx_fail(ctx, &e);
        }
    }
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] = "  etrace ls lists                     the functions of a module\n"
                            "  etrace ls 'MyApp.*.handle_*/_' | fzf\n"
                            "\nA line is module:function/arity, `local` where it is not exported, and the names\n"
                            "of the arguments if the module's file has them.\n";

static const struct opt_group *const groups[] = {&node_group, &ls_group, &talk_group, NULL};
const struct cmd cmd_ls = {
    .name = "ls",
    .usage = "[-n NODE] SELECTOR...",
    .summary = "Lists the functions on a node that selectors match",
    .about = about,
    .run = cmd_ls_run,
    .groups = groups,
};
