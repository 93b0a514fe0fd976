/* SPDX-License-Identifier: Apache-2.0 */
/* etrace sessions: lists all trace sessions on a node. Can destroy one of them. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../erlang/etf_write.h"
#include "../erlang/term_print.h"
#include "../ground/json.h"
#include "../ground/mem.h"
#include "../ground/tty.h"
#include "../trace/request.h"
#include "../views/grid_order.h"
#include "cmd.h"

enum {
    COL_NODE,
    COL_ID,
    COL_NAME,
    COL_CLIENT,
    COL_AGE,
    COL_FUNCTIONS,
    COL_PROCESSES,
    COL_PORTS,
    COL_SOME_FUNCTIONS,
    COL_SOME_PROCESSES,
    COL_FLAGS,
    COL_EVENTS,
    COL_TRACER,
    COL_COMPLETE,
    COL_CONTENTS,
    COLUMNS
};

static const struct grid_column columns[COLUMNS] = {
    [COL_NODE] = {.key = "node"},
    [COL_ID] = {.title = "", .key = "id", .number = true, .least = 5},
    [COL_NAME] = {.title = "", .key = "name", .least = 8, .keep = GRID_WHOLE},
    [COL_CLIENT] = {.key = "client"},
    [COL_AGE] = {.key = "age_s", .number = true},
    [COL_FUNCTIONS] = {.key = "functions", .number = true},
    [COL_PROCESSES] = {.key = "processes", .number = true},
    [COL_PORTS] = {.key = "ports", .number = true},
    [COL_SOME_FUNCTIONS] = {.key = "some_functions"},
    [COL_SOME_PROCESSES] = {.key = "some_processes"},
    [COL_FLAGS] = {.key = "flags"},
    [COL_EVENTS] = {.key = "events"},
    [COL_TRACER] = {.key = "tracer"},
    [COL_COMPLETE] = {.key = "complete", .number = true},
    [COL_CONTENTS] = {.title = "", .wraps = true},
};

static const struct grid_table sessions_table = GRID_TABLE(columns);

struct sessions_opts {
    const char *destroy, *sort;
    bool yes, json;
    int as; /* enum grid_as */
};

#define ROW(...) OPT_ROW(struct sessions_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW(0, "destroy", "ID", OPT_TEXT, destroy, "destroy this session, whoever owns it; asks first"),
    ROW('y', "yes", NULL, OPT_FLAG, yes, "do not ask"),
    ROW(0, "json", NULL, OPT_FLAG, json, "one object per line"),
    ROW(0, "as", GRID_AS, OPT_CHOICE, as, "the format: text, --json, or columns for spreadsheets"),
    OPT_SORT(struct sessions_opts, sort, "as the node lists them", &sessions_table),
};
static const struct opt_group sessions_group = {"Sessions", rows, ARRAY_LEN(rows)};

/*
 * A row of the answer (nif/tracer_info.hrl). Its texts are raw text from the node, and its lists are not decoded yet.
 */
struct row {
    struct raw name, client, tracer;
    int64_t id, age; /* id -1: the legacy session; age -1: unknown */
    int64_t functions, processes, ports;
    struct etf function_list, process_list, flags, events;
    bool complete;
};

static bool read_row(struct etf *r, struct row *x)
{
    bool ok = etf_get_tuple(r, 13) && etf_get_bin(r, &x->name) && etf_get_int(r, &x->id) &&
              etf_get_bin(r, &x->client) && etf_get_int(r, &x->age) && etf_get_int(r, &x->functions) &&
              etf_take(r, &x->function_list) && etf_get_int(r, &x->processes) && etf_take(r, &x->process_list) &&
              etf_get_int(r, &x->ports) && etf_take(r, &x->flags) && etf_take(r, &x->events) &&
              etf_get_bin(r, &x->tracer);
    x->complete = ok && etf_is_atom(r, "true");
    return ok && etf_skip(r);
}

/* ---- what a session traces ---- */

static void cmd_sessions_part(struct buf *b, bool *first)
{
    buf_puts(b, *first ? "" : " · ");
    *first = false;
}

/* Appends the texts of a list with `between` between them. Returns their number. */
static size_t put_text_list(struct buf *b, struct etf list, const char *between)
{
    struct raw text;
    size_t n;

    if (!etf_get_list(&list, &n))
        return 0;
    for (size_t i = 0; i < n && etf_get_bin(&list, &text); i++) {
        buf_puts(b, i ? between : "");
        print_safe(b, text);
    }
    return n;
}

static void put_traced(struct buf *b, bool *first, int64_t n, const char *one, const char *many, struct etf some)
{
    if (n <= 0)
        return;
    cmd_sessions_part(b, first);
    buf_printf(b, "%lld %s", (long long)n, n == 1 ? one : many);
    if (n > 5)
        return;
    size_t before = b->len;
    buf_puts(b, ": ");
    if (!put_text_list(b, some, ", "))
        b->len = before;
}

static void put_contents(struct buf *b, const struct row *x)
{
    struct etf none = {0}, flags = x->flags;
    bool first = true;
    size_t n;

    if (x->id < 0) {
        cmd_sessions_part(b, &first);
        buf_puts(b, "erlang:trace/3 etc.");
    }
    if (x->client.len) {
        cmd_sessions_part(b, &first);
        buf_puts(b, "of ");
        print_safe(b, x->client);
    }
    if (x->age >= 0) {
        cmd_sessions_part(b, &first);
        buf_puts(b, "for ");
        print_duration(b, x->age * 1000000000);
    }
    bool before = first;
    size_t from = b->len;
    put_traced(b, &first, x->functions, "function", "functions", x->function_list);
    put_traced(b, &first, x->processes, "process", "processes", x->process_list);
    put_traced(b, &first, x->ports, "port", "ports", none);
    if (etf_get_list(&flags, &n) && n) {
        cmd_sessions_part(b, &first);
        buf_puts(b, "flags ");
        put_text_list(b, x->flags, " ");
    }
    struct etf events = x->events;
    if (etf_get_list(&events, &n) && n) {
        cmd_sessions_part(b, &first);
        put_text_list(b, x->events, " · ");
    }
    if (b->len == from) {
        first = before;
        cmd_sessions_part(b, &first);
        buf_puts(b, "traces nothing");
    }
    if (x->tracer.len) {
        cmd_sessions_part(b, &first);
        buf_puts(b, "to ");
        print_safe(b, x->tracer);
    }
    if (!x->complete) {
        cmd_sessions_part(b, &first);
        buf_puts(b, "not all processes were checked");
    }
}

/* ---- the table ---- */

struct sessions_rows {
    const char *node;
    struct row *items;
    size_t n, cap;
};

static void sessions_put_id(struct grid_cell *cell, int64_t id)
{
    if (id >= 0)
        json_int(&cell->text, id);
    else if (cell->as == GRID_JSON)
        json_null(&cell->text);
}

static void sessions_put_list(struct grid_cell *cell, struct etf list)
{
    struct raw text;
    size_t n;

    if (cell->as != GRID_JSON) {
        put_text_list(&cell->text, list, ", ");
        return;
    }
    cell->ready = true;
    json_open_array(&cell->text);
    if (etf_get_list(&list, &n))
        while (n-- && etf_get_bin(&list, &text))
            json_string(&cell->text, text);
    json_end_array(&cell->text);
}

static void sessions_put_cell(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct sessions_rows *all = data;
    const struct row *x = &all->items[row];

    switch (column) {
    case COL_NODE:
        grid_put_name(cell, raw_text(all->node));
        break;
    case COL_ID:
        sessions_put_id(cell, x->id);
        break;
    case COL_NAME:
        grid_put_name(cell, x->name);
        break;
    case COL_CLIENT:
    case COL_TRACER: {
        const struct raw name = column == COL_CLIENT ? x->client : x->tracer;
        if (name.len)
            grid_put_name(cell, name);
        break;
    }
    case COL_AGE:
        if (x->age >= 0)
            json_int(&cell->text, x->age);
        break;
    case COL_FUNCTIONS:
        json_int(&cell->text, x->functions);
        break;
    case COL_PROCESSES:
        json_int(&cell->text, x->processes);
        break;
    case COL_PORTS:
        json_int(&cell->text, x->ports);
        break;
    case COL_SOME_FUNCTIONS:
        sessions_put_list(cell, x->function_list);
        break;
    case COL_SOME_PROCESSES:
        sessions_put_list(cell, x->process_list);
        break;
    case COL_FLAGS:
        sessions_put_list(cell, x->flags);
        break;
    case COL_EVENTS:
        sessions_put_list(cell, x->events);
        break;
    case COL_COMPLETE:
        json_bool(&cell->text, x->complete);
        break;
    default:
        put_contents(&cell->text, x);
        break;
    }
}

/* Prints the sessions of a node. `first`: no other node was printed before. `several`: print the name of the node. */
static void sessions_print(struct ctx *ctx, const struct sessions_opts *o, const struct sessions_rows *x, bool first,
                           bool several)
{
    struct grid g = {columns, COLUMNS, sessions_put_cell, x, x->n, .continued = !first};
    struct buf b = {0};

    g.width = tty_is(STDOUT_FILENO) ? tty_columns(STDOUT_FILENO) : 0;
    if (several && x->n && o->as == GRID_TEXT)
        buf_printf(&b, "%s\n", x->node);
    grid_order(&g, &(struct grid_sort){o->sort, NULL});
    grid_print(&g, (enum grid_as)o->as, "session", &b);
    grid_release(&g);
    out_take(ctx->out, &b);
    buf_release(&b);
}

/* ---- ending a session ---- */

/* The answer to a question on the terminal. */
struct said {
    char first;      /* its first byte; 0: none was read yet */
    bool line, over; /* line: the end of the line was read; over: nothing more is to be read */
};

static void sessions_on_input(void *owner)
{
    struct said *x = owner;
    char bytes[64];
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0 && !x->first)
        x->first = bytes[0];
    x->line = n > 0 && memchr(bytes, '\n', (size_t)n);
    x->over = n <= 0 || x->line;
}

/* Prints a question, and waits for the answer while the session with the node goes on. */
static struct said sessions_ask_user(struct request *a, struct str question)
{
    const struct ctx *ctx = a->peers.ctx;
    struct said said = {0};
    struct loop_fd in = {.fd = STDIN_FILENO, .want_read = true, .ready = sessions_on_input, .owner = &said};

    ssize_t n = write(STDERR_FILENO, question.at, question.len);
    loop_add(&a->peers.ctx->loop, &in);
    while (!said.over && !ctx->interrupts && peers_step(&a->peers, -1))
        continue;
    loop_remove(&a->peers.ctx->loop, &in);
    if (!said.line)
        n = write(STDERR_FILENO, "\n", 1); /* a message begins in a line of its own */
    (void)n;
    return said;
}

/* Returns true if the user agrees. Otherwise *e has an error, or its status is 0 if the user has answered no. */
static bool sessions_confirmed(struct request *a, const struct peer *p, int64_t id, const struct row *found,
                               struct err *e)
{
    struct buf b = {0};

    buf_printf(&b, "session %lld on %s: ", (long long)id, session_node(p->session)->name);
    print_safe(&b, found->name);
    buf_puts(&b, " · ");
    put_contents(&b, found);
    buf_puts(&b, "\ndestroy it? [y/N] ");
    const struct said said = sessions_ask_user(a, buf_view(&b));
    buf_release(&b);
    *e = p->why;
    if (a->peers.ctx->interrupts)
        return err_set(e, ERR_RUN, "interrupted: the session was not destroyed");
    return !e->status && tolower((unsigned char)said.first) == 'y';
}

static bool destroy_session(struct ctx *ctx, struct request *a, struct peer *p, int64_t id, const struct row *found,
                            bool yes, struct err *e)
{
    struct buf b = {0};
    struct etf r;

    if (!yes && !sessions_confirmed(a, p, id, found, e)) {
        if (!e->status)
            ctx_say(ctx, "the session was not destroyed");
        return !e->status;
    }
    request_begin(&b, "destroy", 1);
    etf_int(&b, id);
    bool ok = request_node(a, p, buf_view(&b), &r, e);
    buf_release(&b);
    if (ok)
        ctx_say(ctx, "session %lld on %s is destroyed", (long long)id, session_node(p->session)->name);
    return ok;
}

/* ---- the command ---- */

/* Requests the sessions of a node. `answer` owns the texts of the rows. */
static bool sessions_ask(struct request *a, struct peer *p, struct buf *answer, struct sessions_rows *ret,
                         struct err *e)
{
    struct buf request = {0};
    struct etf r;
    size_t n;

    request_begin(&request, "sessions", 0);
    bool ok = request_node(a, p, buf_view(&request), &r, e);
    buf_release(&request);
    if (!ok)
        return false;
    buf_add(answer, r.at, (size_t)(r.end - r.at)); /* copies the answer, because the next answer overwrites it */
    etf_open(&r, answer->data, answer->len);
    for (ok = etf_get_list(&r, &n); ok && n; n--) {
        ret->items = mem_grow(ret->items, &ret->cap, ret->n + 1, sizeof(*ret->items));
        ok = read_row(&r, &ret->items[ret->n]);
        ret->n += ok;
    }
    return ok || err_set(e, ERR_RUN, "the node's list of sessions is malformed");
}

static bool sessions_destroy(struct ctx *ctx, struct request *a, struct peer *p, int64_t id,
                             const struct sessions_rows *x, bool yes, struct err *e)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->items[i].id == id && x->items[i].name.len)
            return destroy_session(ctx, a, p, id, &x->items[i], yes, e);
    err_set(e, ERR_EMPTY, "there is no trace session %lld on %s", (long long)id, x->node);
    err_hint(e, "etrace sessions lists them");
    return false;
}

static bool one_node(struct ctx *ctx, const struct sessions_opts *o, struct request *a, struct peer *p, int64_t id,
                     struct err *e)
{
    struct sessions_rows x = {.node = session_node(p->session)->name};
    struct buf answer = {0};

    bool ok = sessions_ask(a, p, &answer, &x, e);
    if (ok && o->destroy)
        ok = sessions_destroy(ctx, a, p, id, &x, o->yes, e);
    else if (ok)
        sessions_print(ctx, o, &x, !p->index, a->peers.count > 1);
    free(x.items);
    buf_release(&answer);
    return ok;
}

static bool read_destroy(const struct sessions_opts *o, const struct node_opts *node, int64_t *ret_id, struct err *e)
{
    char *end;

    if (!o->destroy)
        return true;
    long long id = strtoll(o->destroy, &end, 10);
    if (!strcmp(o->destroy, "-") || !strcmp(o->destroy, "default") || !strcmp(o->destroy, "legacy")) {
        err_set(e, ERR_USAGE, "the default session is that of erlang:trace/3, and cannot be destroyed");
        err_hint(e, "on the node: erlang:trace(all, false, [all]), or dbg:stop()");
        return false;
    }
    if (*end || end == o->destroy || id < 0)
        return err_set(e, ERR_USAGE, "--destroy takes the number of a session, not '%s'", o->destroy);
    if (node->nodes.count > 1 || node->cluster)
        return err_set(e, ERR_USAGE, "--destroy is for one node");
    if (!o->yes && !(tty_is(STDIN_FILENO) && tty_is(STDERR_FILENO))) {
        err_set(e, ERR_USAGE, "--destroy asks for confirmation, but there is no terminal");
        err_hint(e, "--yes destroys it without a question");
        return false;
    }
    *ret_id = id;
    return true;
}

static int sessions_run(struct ctx *ctx, const struct sessions_opts *o, const struct node_opts *node)
{
    struct request a = {0};
    struct err e;
    int64_t id = -1;

    bool ok = read_destroy(o, node, &id, &e) && request_open(&a, ctx, node, &e);
    for (size_t i = 0; ok && i < a.peers.count; i++)
        ok = !a.peers.items[i].session || one_node(ctx, o, &a, &a.peers.items[i], id, &e);
    int status = ok ? 0 : ctx_fail(ctx, &e);
    request_close(&a);
    return status;
}

static int cmd_sessions_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct sessions_opts o = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node}, {&sessions_group, &o}, {&talk_group, &talk}};
    struct texts words = {0};
    struct err e;
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        if (cmd_no_words(ctx, self, &words,
                         "etrace sessions -n NODE, etrace info for what traces a function or a process", &status))
            status = cmd_format(o.json, &o.as, &e) ? sessions_run(ctx, &o, &node) : ctx_fail(ctx, &e);
    }
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] = "Prints a line for each session except its own: its number, name, owner and age\n"
                            "(if known), what it traces, and which process or module receives the events.\n"
                            "The session without a number is that of the older functions, erlang:trace/3 etc.\n";

static const struct opt_group *const groups[] = {&node_group, &sessions_group, &talk_group, NULL};
const struct cmd cmd_sessions = {
    .name = "sessions",
    .usage = "[-n NODE] [--destroy ID]",
    .summary = "Lists all trace sessions on a node",
    .about = about,
    .run = cmd_sessions_run,
    .aside = true,
    .groups = groups,
};
