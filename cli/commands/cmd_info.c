/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace info: shows which trace sessions trace a function, a process, a port, messages, new processes, loaded code or
 * system events.
 */
#include <string.h>

#include "../erlang/etf_write.h"
#include "../erlang/term_json.h"
#include "../events/names.h"
#include "../trace/request.h"
#include "../trace/who.h"
#include "cmd.h"

struct info_opts {
    bool json;
};

#define ROW(...) OPT_ROW(struct info_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW(0, "json", NULL, OPT_FLAG, json, "one object per line, for each target and each session that traces it"),
};
static const struct opt_group info_group = {"Output", rows, ARRAY_LEN(rows)};

struct info {
    struct ctx *ctx;
    const struct info_opts *o;
    struct request request;
    struct funs funs;
};

/* ---- the question ---- */

static const char *const events[] = {"send", "receive", "new", "new_processes", "new_ports", "on_load", "system"};

/*
 * Returns true if the word is the name of a process, not an event, a pid or a port. Other words are selectors of
 * functions.
 */
static bool is_name(const char *word, struct arena *a, struct str *ret)
{
    struct err e;
    term_t t;
    bool plain = strcspn(word, ":/(*") == strlen(word) && !strchr(word, ' ');

    if ((!plain && *word != '\'' && *word != ':') ||
        !lang_term((struct str){word, strlen(word)}, SPEC_ERLANG, a, &t, &e) || t->type != TERM_ATOM)
        return false;
    *ret = t->text;
    return true;
}

static void put_target(struct buf *b, const char *how, struct str text)
{
    etf_tuple(b, 2);
    etf_atomz(b, how);
    etf_bin(b, text.at, text.len);
}

static bool put_question(struct buf *b, struct exprs *exprs, const char *word, const struct session_node *node,
                         struct err *e)
{
    struct what_opts what = {0};
    struct texts words = {.items = &word, .count = 1};
    struct who who;
    struct str name;

    request_begin(b, "info", 1);
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (!strcmp(word, events[i])) {
            etf_atomz(b, word);
            return true;
        }
    if (*word == '<' || *word == '#') {
        if (who_parse(word, &exprs->arena, &who) && who.kind == ARM_WHO_PID) /* also #PID<0.84.0> */
            put_target(b, "pid", who.text);
        else
            put_target(b, *word == '#' ? "port" : "pid", (struct str){word, strlen(word)});
        return true;
    }
    if (is_name(word, &exprs->arena, &name)) {
        put_target(b, "name", name);
        return true;
    }
    return request_selection(b, exprs, &what, &words, node, false, e);
}

/* ---- the answer ---- */

/* Reads the subject of a line of the answer: a function {M, F, A}, {Text, Name} or Text. */
static bool take_subject(struct info *x, struct etf *r, struct buf *text, struct buf *json)
{
    struct etf_head h;
    struct raw a, b;
    int64_t arity;

    if (!etf_peek(r, &h))
        return false;
    if (h.type == ETF_BIN) {
        if (!etf_get_bin(r, &a))
            return false;
        print_safe(text, a);
        json_put_string(json, "target", a);
        return true;
    }
    if (!etf_next(r, &h) || h.type != ETF_TUPLE || !etf_get_bin(r, &a) || !etf_get_bin(r, &b))
        return false;
    if (h.count == 3) {
        const struct fun *fun = funs_get(&x->funs, a, b);
        if (!etf_get_int(r, &arity) || !fun)
            return false;
        buf_str(text, fun_text(fun));
        buf_printf(text, "/%lld", (long long)arity);
        json_put_string(json, "target", raw_of(buf_view(text)));
        json_ready(json, fun->json);
        json_put_int(json, "a", arity);
        return true;
    }
    print_safe(text, a);
    json_put_string(json, "target", a);
    if (b.len) {
        buf_char(text, '(');
        print_safe(text, b);
        buf_char(text, ')');
        json_put_string(json, "name", b);
    }
    return true;
}

/* Prints a counter: {Calls, Sum, Processes, [{Pid, Name, Calls, Sum}]}. */
static bool put_counter(struct etf *r, bool time, bool json, struct buf *to)
{
    int64_t calls, sum, processes;
    struct raw pid, name;
    size_t n;

    if (!etf_get_tuple(r, 4) || !etf_get_int(r, &calls) || !etf_get_int(r, &sum) || !etf_get_int(r, &processes) ||
        !etf_get_list(r, &n))
        return false;
    const char *unit = time ? "us" : "words";
    if (json) {
        json_begin_object(to);
        json_put_int(to, "calls", calls);
        json_put_int(to, unit, sum);
        json_put_int(to, "processes", processes);
        json_put_array(to, "largest");
    } else {
        buf_printf(to, "%lld call%s, ", (long long)calls, PLURAL(calls));
        if (time)
            print_duration(to, sum * 1000);
        else
            buf_printf(to, "%lld words", (long long)sum);
        buf_printf(to, " in %lld process%s", (long long)processes, PLURAL_ES(processes));
    }
    for (size_t i = 0; i < n; i++) {
        if (!etf_get_tuple(r, 4) || !etf_get_bin(r, &pid) || !etf_get_bin(r, &name) || !etf_get_int(r, &calls) ||
            !etf_get_int(r, &sum))
            return false;
        if (!json)
            continue;
        json_begin_object(to);
        json_put_string(to, "pid", pid);
        if (name.len)
            json_put_string(to, "name", name);
        json_put_int(to, "calls", calls);
        json_put_int(to, unit, sum);
        json_end_object(to);
    }
    if (json)
        json_end_array(to), json_end_object(to);
    return !n || etf_get_nil(r);
}

static bool put_texts(struct etf *r, bool json, struct buf *to)
{
    struct raw text;
    size_t n;

    if (!etf_get_list(r, &n))
        return false;
    if (json)
        json_begin_array(to);
    else if (!n)
        buf_puts(to, "none");
    for (size_t i = 0; i < n; i++) {
        if (!etf_get_bin(r, &text))
            return false;
        if (json) {
            json_string(to, text);
        } else {
            buf_puts(to, i ? " " : "");
            print_safe(to, text);
        }
    }
    if (json)
        json_end_array(to);
    return !n || etf_get_nil(r);
}

static bool cmd_info_put_value(struct etf *r, struct raw item, bool json, struct buf *to)
{
    struct etf_head h;

    if (!etf_peek(r, &h))
        return false;
    switch (h.type) {
    case ETF_TUPLE:
        return put_counter(r, item.len == strlen("call_time"), json, to);
    case ETF_LIST:
    case ETF_NIL:
        return put_texts(r, json, to);
    case ETF_BIN:
        if (json)
            json_string(to, h.text);
        else
            print_safe(to, h.text);
        return etf_skip(r);
    case ETF_INT:
        buf_printf(to, "%lld", (long long)h.integer);
        return etf_skip(r);
    case ETF_ATOM:
        buf_puts(to, etf_is_atom(r, "true") ? "true" : etf_is_atom(r, "false") ? "false" : json ? "null" : "none");
        return etf_skip(r);
    case ETF_BIG:
    case ETF_EXPORT:
    case ETF_FLOAT:
    case ETF_FUN:
    case ETF_MAP:
    case ETF_PID:
    case ETF_PORT:
    case ETF_REF:
    case ETF_STRING:
        break;
    }
    return false;
}

/* Prints a session: {Name, Number, Client, [{Item, Value}]}. */
static bool put_session(struct info *x, struct etf *r, const char *node, const struct buf *subject, struct buf *to)
{
    struct raw name, client, item;
    int64_t id;
    size_t n;
    bool json = x->o->json;

    if (!etf_get_tuple(r, 4) || !etf_get_bin(r, &name) || !etf_get_int(r, &id) || !etf_get_bin(r, &client) ||
        !etf_get_list(r, &n))
        return false;
    if (json) {
        json_begin_record(to, "info");
        json_put_text(to, "node", node);
        json_ready(to, buf_view(subject));
        json_put_string(to, "session", name);
        json_key(to, "id");
        if (id < 0)
            json_null(to);
        else
            json_int(to, id);
        if (client.len)
            json_put_string(to, "client", client);
    } else {
        buf_puts(to, "  session ");
        print_safe(to, name);
        if (id >= 0)
            buf_printf(to, " %lld", (long long)id);
        if (client.len) {
            buf_puts(to, " of ");
            print_safe(to, client);
        }
        buf_char(to, '\n');
    }
    for (size_t i = 0; i < n; i++) {
        if (!etf_get_tuple(r, 2) || !etf_get_atom(r, &item))
            return false;
        struct buf value = {0};
        bool off = etf_is_atom(r, "false");
        bool ok = cmd_info_put_value(r, item, json, &value);
        if (json) {
            json_key_raw(to, item), json_ready(to, buf_view(&value));
        } else if (!off) {
            buf_puts(to, "    ");
            size_t from = to->len;
            print_safe(to, item);
            buf_printf(to, "%*s %s\n", (int)(16 - MIN(to->len - from, 16)), "", buf_cstr(&value));
        }
        buf_release(&value);
        if (!ok)
            return false;
    }
    if (json)
        json_end_record(to);
    return !n || etf_get_nil(r);
}

static bool cmd_info_show(struct info *x, struct etf r, const char *node, struct err *e)
{
    struct buf b = {0};
    size_t n = 0, sessions;
    bool ok = etf_get_list(&r, &n);

    for (size_t i = 0; ok && i < n; i++) {
        struct buf text = {0}, json = {0};
        ok = etf_get_tuple(&r, 2) && take_subject(x, &r, &text, &json) && etf_get_list(&r, &sessions);
        if (ok && !x->o->json) {
            if (x->request.peers.count > 1)
                buf_printf(&b, "%s ", node);
            buf_str(&b, buf_view(&text));
            buf_puts(&b, sessions ? "\n" : "  nothing traces it\n");
        }
        for (size_t k = 0; ok && k < sessions; k++)
            ok = put_session(x, &r, node, &json, &b);
        ok = ok && (!sessions || etf_get_nil(&r));
        buf_release(&text);
        buf_release(&json);
    }
    if (ok)
        out_take(x->ctx->out, &b);
    else
        err_set(e, ERR_RUN, "the node's answer is malformed");
    buf_release(&b);
    return ok;
}

/* ---- the command ---- */

static bool show_one(struct info *x, struct peer *p, const char *word, struct err *e)
{
    const struct session_node *node = session_node(p->session);
    struct texts words = {.items = &word, .count = 1};
    struct buf b = {0};
    struct exprs exprs;
    struct etf r;

    exprs_init(&exprs);
    bool asked_ok = put_question(&b, &exprs, word, node, e);
    bool ok = asked_ok && request_node(&x->request, p, buf_view(&b), &r, e);
    if (asked_ok && !ok) {
        request_empty(&words, node->name, e);
        if (e->status == ERR_EMPTY && !e->hint[0] && !strchr(word, '/')) /* perhaps the user did not mean a function */
            err_hint(e, "a function is M:F/A, a process <0.1.0> or its registered name, a port #Port<0.1>; else one of "
                        "send, receive, new, on_load, system");
    }
    ok = ok && cmd_info_show(x, r, node->name, e);
    exprs_release(&exprs);
    buf_release(&b);
    return ok;
}

static int info_run(struct ctx *ctx, const struct info_opts *o, const struct node_opts *node, const struct texts *words)
{
    struct info x = {.ctx = ctx, .o = o};
    struct err e, lack = {0};
    bool shown = false;

    funs_init(&x.funs);
    bool ok = request_open(&x.request, ctx, node, &e);
    for (struct peer *p = NULL; ok && (p = peers_next(&x.request.peers, p));)
        for (size_t k = 0; ok && k < words->count; k++) {
            ok = show_one(&x, p, words->items[k], &e);
            shown |= ok;
            if (ok)
                continue;
            ok = peer_leave_out(p, &e);
            lack = e;
        }
    int status = !ok ? ctx_fail(ctx, &e) : lack.status && !shown ? ctx_fail(ctx, &lack) : 0;
    request_close(&x.request);
    funs_release(&x.funs);
    return status;
}

static int cmd_info_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct info_opts o = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node}, {&info_group, &o}, {&talk_group, &talk}};
    struct texts words = {0};
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        if (words.count) {
            status = info_run(ctx, &o, &node, &words);
        } else {
            struct err e;
            err_set(&e, ERR_USAGE, "no target given");
            err_hint(&e, "a function (lists:seq/2), a process (<0.84.0>, kernel_sup), a port (#Port<0.3>), send, "
                         "receive, new, on_load, system");
            status = ctx_fail(ctx, &e);
        }
    }
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const char about[] = "TARGET is a function, or a pattern that selects some; a process by pid or\n"
                            "registered name; a port; or one of send, receive, new, new_processes, new_ports,\n"
                            "on_load, system.\n";

static const struct opt_group *const groups[] = {&node_group, &info_group, &talk_group, NULL};
const struct cmd cmd_info = {
    .name = "info",
    .usage = "[-n NODE] TARGET...",
    .summary = "Shows which sessions trace a function, a process, a port, ...",
    .about = about,
    .run = cmd_info_run,
    .aside = true,
    .groups = groups,
};
