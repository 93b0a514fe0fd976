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
    etf_map(b, q->sort ? 9 : q->pids ? 7 : 6);
    look_pair_atom(b, "what", q->what);
    etf_atomz(b, "who");
    buf_str(b, q->who);
    look_pair_atom(b, "anew", q->anew ? "true" : "false");
    look_pair(b, "most", (int64_t)q->most);
    look_pair(b, "share", q->share);
    look_pair(b, "patience", q->patience_ms);
    if (q->pids)
        look_pair(b, "pids", (int64_t)q->pids);
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

bool look_stopped(const struct ctx *ctx, const char *node, struct err *e)
{
    if (!ctx->interrupts || !ctx->last_signal)
        return false;
    err_set(e, ERR_RUN, "%s: the look was stopped before it reached all processes, so nothing is shown", node);
    return true;
}

bool look_read(struct etf r, struct look_answer *ret, struct err *e)
{
#define FIELD(what, key, ...) ETF_##what(struct look_answer, key, __VA_ARGS__)
    static const struct etf_field fields[] = {
        FIELD(TERM, "silent", silent),  FIELD(TERM, "functions", functions),
        FIELD(TERM, "stacks", stacks),  FIELD(TERM, "suspects", suspects),
        FIELD(TERM, "rows", rows),      FIELD(TERM, "names", names),
        FIELD(INTS, "total", total, 5), FIELD(INT, "looked", looked),
        FIELD(INT, "left", left),       FIELD(INT, "us", us),
        FIELD(INT, "since", since_us),  FIELD(TERM, "reasons", reasons),
    };
#undef FIELD

    *ret = (struct look_answer){.since_us = -1};
    return etf_get_fields(&r, fields, ARRAY_LEN(fields), ret) ||
           err_set(e, ERR_RUN, "the node's answer about its processes is malformed");
}

/* ---- functions and processes ---- */

void look_funs_init(struct look_funs *f)
{
    funs_init(&f->erlang);
    funs_init(&f->elixir);
    f->elixir.elixir = true;
}

void look_funs_release(struct look_funs *f)
{
    funs_release(&f->erlang);
    funs_release(&f->elixir);
}

struct funs *look_funs_of(struct look_funs *f, const struct session_node *n)
{
    return n->elixir ? &f->elixir : &f->erlang;
}

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
    buf_str(to, fun_text(f->fun));
    buf_printf(to, "/%d", f->arity);
}

void look_module_print(struct buf *to, struct raw module, bool elixir)
{
    if (elixir || elixir_is_module(module))
        module_elixir(to, module);
    else
        erlang_print_atom(to, module);
}

void look_frame_json(struct buf *to, const struct look_frame *f)
{
    json_begin_object(to);
    if (f->fun)
        json_ready(to, f->fun->json);
    json_put_int(to, "a", f->arity);
    json_end_object(to);
}

bool look_frame_is(const struct look_frame *f, const char *module, const char *name)
{
    return f->fun && raw_is(f->fun->module, module) && (!name || raw_is(f->fun->name, name));
}

bool look_is_otp(struct raw module)
{
    /* clang-format off */
    static const char *const modules[] = {
        "alarm_handler", "application_controller", "application_master", "application_starter", "auth", "code",
        "code_server", "dets_server", "disk_log", "disk_log_server", "dist_util", "erl_distribution", "erl_epmd",
        "erl_init", "erl_prim_loader", "erl_signal_handler", "erlang", "erpc", "error_logger", "erts_code_purger",
        "erts_dirty_process_signal_handler", "erts_internal", "erts_literal_area_collector", "erts_trace_cleaner",
        "ets", "file", "file_io_server", "file_server", "gen", "gen_event", "gen_server", "gen_statem", "gen_tcp",
        "gen_udp", "global", "global_group", "group", "inet", "inet_db", "inet_gethost_native", "inet_tcp",
        "inet_tcp_dist", "init", "io", "kernel", "kernel_config", "kernel_refc", "lists", "logger", "logger_backend",
        "logger_disk_log_h", "logger_handler_watcher", "logger_olp", "logger_proxy", "logger_server", "logger_std_h",
        "logger_sup", "maps", "net_kernel", "pg", "prim_file", "prim_inet", "prim_socket", "prim_tty", "proc_lib",
        "release_handler", "rpc", "sasl", "socket", "socket_registry", "ssl", "standard_error", "supervisor",
        "supervisor_bridge", "sys", "timer", "user", "user_drv", "user_sup",
        "Elixir.Agent", "Elixir.Agent.Server", "Elixir.DynamicSupervisor", "Elixir.Enum", "Elixir.GenServer",
        "Elixir.Kernel.LexicalTracker", "Elixir.Module.ParallelChecker", "Elixir.Process", "Elixir.Registry.Partition",
        "Elixir.Registry.Supervisor", "Elixir.Stream", "Elixir.Supervisor", "Elixir.Supervisor.Default", "Elixir.Task",
        "Elixir.Task.Supervised", "Elixir.Task.Supervisor", "elixir_code_server", "elixir_config", "elixir_sup",
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_LEN(modules); i++)
        if (raw_is(module, modules[i]))
            return true;
    return false;
}

const struct look_frame *look_own(const struct look_frame *stack, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (stack[i].fun && !look_is_otp(stack[i].fun->module))
            return &stack[i];
    return NULL;
}

/* Returns true for a supervisor. proc_lib reports its initial call as supervisor:MODULE/1. */
static bool is_supervisor(const struct look_frame *f)
{
    return f->arity == 1 && (look_frame_is(f, "supervisor", NULL) || look_frame_is(f, "supervisor_bridge", NULL));
}

static const char other_loops[] = "other";

const char *look_behaviour(const struct look_frame *stack, size_t n, const struct look_frame *initial)
{
    static const char *const behaviours[] = {"gen_server", "gen_statem", "gen_event", "gen_server2",
                                             "gen_batch_server"};

    if (is_supervisor(initial) || look_frame_is(initial, "Elixir.DynamicSupervisor", NULL))
        return "supervisor";
    for (size_t i = 0; n && i < ARRAY_LEN(behaviours); i++)
        if (look_frame_is(&stack[0], behaviours[i], NULL))
            return behaviours[i];
    return n && look_frame_is(&stack[0], "erlang", "hibernate") ? "hibernates" : other_loops;
}

bool look_is_init(const struct look_frame *initial, struct raw *ret)
{
    if (!initial->fun || initial->arity != 1 || !(is_supervisor(initial) || raw_is(initial->fun->name, "init")))
        return false;
    *ret = is_supervisor(initial) ? initial->fun->name : initial->fun->module;
    return true;
}

bool look_subject(const struct look_frame *stack, size_t n, const struct look_frame *initial, struct raw *ret)
{
    const char *behaviour = look_behaviour(stack, n, initial);
    const struct look_frame *from = initial, *own = look_own(stack, n);

    if (look_is_init(initial, ret))
        return true;
    if (look_frame_is(initial, behaviour, NULL))
        return false; /* the process was started by the behaviour itself, not by a module of the user */
    if (!initial->fun && behaviour == other_loops && n)
        from = own ? own : &stack[0];
    if (from->fun)
        *ret = from->fun->module;
    return from->fun;
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
    json_begin_object(to);
    json_put_text(to, "pid", p->pid);
    if (p->name[0])
        json_put_text(to, "name", p->name);
    json_end_object(to);
}
