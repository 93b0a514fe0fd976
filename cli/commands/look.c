/* SPDX-License-Identifier: Apache-2.0 */
#include "look.h"

#include <string.h>

#include "../erlang/etf_fields.h"
#include "../erlang/etf_write.h"
#include "../erlang/term_print.h"
#include "../ground/json.h"
#include "../trace/request.h"

#define PROGRESS_MS 500

static void look_pair(struct buf *b, const char *key, int64_t value)
{
    etf_atomz(b, key);
    etf_int(b, value);
}

static void look_pair_atom(struct buf *b, const char *key, const char *value)
{
    etf_atomz(b, key);
    etf_atomz(b, value);
}

void look_request(struct buf *b, const struct look_question *q)
{
    request_begin(b, "look", 1);
    etf_map(b, q->sort ? 9 : 6);
    look_pair_atom(b, "what", q->what);
    etf_atomz(b, "who");
    buf_str(b, q->who);
    look_pair_atom(b, "anew", q->anew ? "true" : "false");
    look_pair(b, "most", (int64_t)q->most);
    look_pair(b, "share", q->share);
    look_pair(b, "patience", q->patience_ms);
    if (q->sort) {
        look_pair_atom(b, "sort", q->sort);
        look_pair_atom(b, "growth", q->growth ? "true" : "false");
        look_pair(b, "rows", (int64_t)q->rows);
    }
}

void look_names_add(struct buf *pids, const char *pid)
{
    etf_tuple(pids, 2);
    etf_atomz(pids, "pid");
    etf_bin(pids, pid, strlen(pid));
}

void look_names_request(struct buf *b, const struct buf *pids, size_t n, int patience_ms)
{
    struct buf list = {0};

    etf_list(&list, n);
    buf_str(&list, buf_view(pids));
    etf_nil(&list);
    look_request(b, &(struct look_question){
                        .what = "names",
                        .who = buf_view(&list),
                        .anew = true,
                        .most = n,
                        .share = 100,
                        .patience_ms = patience_ms,
                    });
    buf_release(&list);
}

void look_progress(struct ctx *ctx, int64_t begun, int64_t left)
{
    if (left > 0 && loop_now() - begun >= PROGRESS_MS)
        ctx_progress(ctx, "%lld process%s left to look at", (long long)left, PLURAL_ES(left));
}

bool look_read(struct etf r, struct look_answer *ret, struct err *e)
{
#define FIELD(what, key, ...) ETF_##what(struct look_answer, key, __VA_ARGS__)
    static const struct etf_field fields[] = {
        FIELD(TERM, "silent", silent), FIELD(TERM, "functions", functions), FIELD(TERM, "stacks", stacks),
        FIELD(TERM, "rows", rows),     FIELD(TERM, "names", names),         FIELD(INTS, "total", total, 5),
        FIELD(INT, "looked", looked),  FIELD(INT, "left", left),            FIELD(INT, "us", us),
        FIELD(INT, "since", since_us),
    };
#undef FIELD

    *ret = (struct look_answer){.since_us = -1};
    return etf_get_fields(&r, fields, ARRAY_LEN(fields), ret) ||
           err_set(e, ERR_RUN, "the node's answer about its processes is malformed");
}

/* ---- functions and processes ---- */

bool look_frame_read(struct etf *r, struct funs *funs, struct look_frame *ret)
{
    struct raw module, function;
    int64_t arity;

    if (!etf_get_tuple(r, 3) || !etf_get_bin(r, &module) || !etf_get_bin(r, &function) || !etf_get_int(r, &arity))
        return false;
    *ret = (struct look_frame){funs_get(funs, module, function), (int)arity};
    return true;
}

void look_frame_print(struct buf *to, const struct look_frame *f)
{
    if (!f->fun) {
        buf_puts(to, "…");
        return;
    }
    buf_str(to, f->fun->is_elixir ? f->fun->elixir : f->fun->erl);
    buf_printf(to, "/%d", f->arity);
}

void look_frame_json(struct buf *to, const struct look_frame *f)
{
    json_value(to);
    json_open_object(to);
    if (f->fun)
        json_ready(to, f->fun->json);
    json_key(to, "a"), json_int(to, f->arity);
    json_end_object(to);
}

bool look_frame_is(const struct look_frame *f, const char *module, const char *name)
{
    return f->fun && raw_is(f->fun->module, module) && (!name || raw_is(f->fun->name, name));
}

const struct look_frame *look_own(const struct look_frame *stack, size_t n)
{
    static const char *const others[] = {
        "gen", "gen_server", "gen_statem", "gen_event", "proc_lib", "supervisor", "timer", "lists", "maps", "ets", "erlang",
        "io", "file", "rpc", "erpc", "sys", "prim_inet", "prim_file", "gen_tcp", "gen_udp", "inet", "ssl", "logger", "application_master",
        "Elixir.GenServer", "Elixir.Agent", "Elixir.Agent.Server", "Elixir.Task", "Elixir.Task.Supervised", "Elixir.Enum",
        "Elixir.Supervisor", "Elixir.DynamicSupervisor", "Elixir.Process", "Elixir.Stream",
    };

    for (size_t i = 0; i < n; i++) {
        bool other = !stack[i].fun;
        for (size_t k = 0; !other && k < ARRAY_LEN(others); k++)
            other = look_frame_is(&stack[i], others[k], NULL);
        if (!other)
            return &stack[i];
    }
    return NULL;
}

bool look_process_read(struct etf *r, struct look_process *ret)
{
    struct raw pid, name;

    if (!etf_get_tuple(r, 2) || !etf_get_bin(r, &pid) || !etf_get_bin(r, &name))
        return false;
    safe_copy(ret->pid, sizeof(ret->pid), pid);
    safe_copy(ret->name, sizeof(ret->name), name);
    return true;
}

struct look_list look_list(struct etf term)
{
    struct look_list l = {.rest = term};

    l.ok = etf_get_list(&l.rest, &l.left);
    return l;
}

bool look_list_next(struct look_list *l, struct look_process *ret)
{
    if (!l->ok || !l->left)
        return false;
    l->left--;
    return l->ok = look_process_read(&l->rest, ret);
}

void look_process_print(struct buf *to, const struct look_process *p)
{
    buf_puts(to, p->pid);
    if (p->name[0])
        buf_printf(to, "(%s)", p->name);
}

void look_process_json(struct buf *to, const struct look_process *p)
{
    json_value(to);
    json_open_object(to);
    json_key(to, "pid"), json_text(to, p->pid);
    if (p->name[0])
        json_key(to, "name"), json_text(to, p->name);
    json_end_object(to);
}
