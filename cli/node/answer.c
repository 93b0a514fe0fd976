/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

#include <stdio.h>
#include <string.h>

#include "../erlang/etf_print.h"
#include "../erlang/term_print.h"
#include "../ground/command_line.h"
#include "session.h"
#include "vms.h"

/* Appends a term as text for a message: about `most` bytes at most. */
static void term_text(struct etf *term, struct buf *ret, size_t most)
{
    etf_print(ret, term, &(struct etf_limits){.depth = 16, .items = most, .text = most, .all = most});
}

static void answer_killed(const char *node, struct err *e)
{
    err_set(e, ERR_RUN, "%s: the tracer process was killed, by somebody or for using too much memory", node);
}

/*
 * Sets *e from the reason {guard, {What, HowMuch}}: a limit was exceeded, so the owner ended the tracing by itself.
 * Returns false if the reason is another one.
 */
static bool stopped_by_guard(struct etf reason, const char *node, struct err *e)
{
    struct raw what;
    int64_t n;

    if (!etf_get_tuple(&reason, 2) || !etf_is_atom(&reason, "guard") || !etf_skip(&reason) ||
        !etf_get_tuple(&reason, 2) || !etf_get_atom(&reason, &what) || !etf_get_int(&reason, &n))
        return false;
    if (raw_is(what, "memory")) {
        err_set(e, ERR_GUARD, "%s ended the tracing: its memory has grown by %lld MiB since the trace started", node,
                (long long)(n >> 20));
        err_hint(e, "--memory BYTES raises the limit, --memory 0 removes it");
    } else {
        err_set(e, ERR_GUARD, "%s ended the tracing: the tracer without the NIF did not keep up, and lost %lld events",
                node, (long long)n);
    }
    return true;
}

void answer_gone(struct etf reason, const char *node, struct err *e)
{
    struct buf b = {0};

    if (etf_is_atom(&reason, "lease")) {
        err_set(e, ERR_GUARD, "%s ended the tracing: it received nothing from this etrace for 10 seconds", node);
    } else if (etf_is_atom(&reason, "killed") || etf_is_atom(&reason, "noproc") || etf_is_atom(&reason, "janitor")) {
        answer_killed(node, e);
    } else if (stopped_by_guard(reason, node, e)) {
        /* *e is set */
    } else if (etf_is_atom(&reason, "destroyed")) {
        err_set(e, ERR_RUN, "%s: somebody on the node has destroyed the trace session", node);
    } else if (etf_is_atom(&reason, "gone")) {
        err_set(e, ERR_RUN, "%s: somebody on the node has unloaded the tracer's code", node);
    } else {
        term_text(&reason, &b, 300);
        err_set(e, ERR_RUN, "%s: the tracer has ended: %s", node, buf_cstr(&b));
    }
    buf_release(&b);
}

/* ---- {error, Reason} ---- */

/*
 * The message for one reason, in which each %s stands for the next element of the reason's tuple. If the last element
 * is a list of similar names, these names become the hint.
 */
struct sentence {
    const char *reason;
    size_t arity; /* size of the reason's tuple; 0: the reason is an atom */
    enum err_status status;
    const char *text;
    const char *hint; /* the hint if the reason has no similar names; NULL: none */
};

static const struct sentence sentences[] = {
    {"otp", 2, ERR_NODE, "the node runs OTP %s; etrace needs OTP 27 or newer there", OLD_OTP_HINT},
    {"system_limit", 0, ERR_NODE, "16 sessions of this etrace build trace the node already, which is the maximum",
     NULL},
    {"atom_limit", 2, ERR_NODE,
     "the node has room for only %s more atoms; etrace does not attach, because a full atom table crashes the node",
     NULL},
    {"process_limit", 2, ERR_NODE, "the node has room for only %s more processes; etrace does not attach", NULL},
    {"memory_left", 2, ERR_NODE, "the node has only %s MiB of memory left; etrace does not attach", NULL},
    {"not_loaded", 2, ERR_NODE, "the node does not load the companion: %s", NULL},
    {"no_sessions", 0, ERR_NODE, "the module trace on the node is not the one of OTP: see code:which(trace) there",
     NULL},
    {"no_module", 3, ERR_EMPTY, "there is no module %s on the node", NULL},
    {"no_app", 3, ERR_EMPTY, "no application %s is loaded on the node", NULL},
    {"noproc", 2, ERR_EMPTY, "there is no process %s on the node", NULL},
    {"noproc", 3, ERR_EMPTY, "no process is registered as %s on the node", NULL},
    {"no_initial", 2, ERR_EMPTY, "no process on the node has the initial call %s", NULL},
    {"silent", 2, ERR_NODE, "process %s does not answer: it may be in a long native function",
     "etrace leaves such a process alone, because tracing it would block a scheduler of the node; try again later"},
    {"held", 0, ERR_NODE, "a long native function holds a scheduler of the node",
     "etrace does not stop the schedulers, because they would wait until it returns; try again later, or use -P"},
    {"many_processes", 2, ERR_USAGE, "-P selects more than %s processes for roots, the maximum with inside",
     "leave -P out, or select fewer processes"},
    {"no_registry", 2, ERR_EMPTY, "%s is not a name registry on the node: it has no working whereis_name/1", NULL},
    {"elsewhere", 3, ERR_EMPTY, "%s is a process of %s, not of this node", NULL},
    {"noport", 2, ERR_EMPTY, "there is no port %s on the node",
     "driver:NAME selects the ports of a driver, all selects every port"},
    {"no_driver", 3, ERR_EMPTY, "no port of the node has the driver %s",
     "@open shows what opens ports, and with which driver"},
    {"seq_taken", 0, ERR_NODE, "another system tracer of sequential tracing is already set on the node", NULL},
    {"dangerous", 2, ERR_GUARD, "etrace itself depends on %s: give its full name, or use --force", NULL},
    {"empty", 3, ERR_EMPTY, "%s matches no function on the node", NULL},
    {"bad_pattern", 4, ERR_USAGE, "invalid regular expression '%s': %s", NULL},
    {"bad_spec", 2, ERR_NODE, "the node rejects the match specification for %s", NULL},
    {"overlap", 3, ERR_USAGE, "the expressions that select %s overlap in more than %s ways",
     "put the conditions into one expression, as clauses, or into `where`"},
    {"many_variables", 2, ERR_USAGE, "the expressions that select one function have more than %s variables together",
     NULL},
    {"bad_spec", 0, ERR_NODE, "the node cannot read the match specification", NULL},
    {"bad_request", 0, ERR_RUN, "the node does not understand the request", NULL},
    {"busy", 0, ERR_RUN, "the node is still working on an earlier request", NULL},
    {"too_many_modules", 3, ERR_USAGE,
     "%s modules are too many to search for a record (%s at most): name one, as in mod#rec{}", NULL},
    {"killed", 0, ERR_GUARD, "the worker process on the node was killed, by somebody or for using too much memory",
     "if very many functions match, select fewer: one module or one application"},
    {"no_session", 2, ERR_EMPTY, "there is no trace session %s on the node", NULL},
    {"too_many", 3, ERR_USAGE, "%s functions are selected, but one answer can describe at most %s", NULL},
    {"too_large", 0, ERR_USAGE, "the answer would be too large: ask about fewer at once", NULL},
    {"not_counting", 0, ERR_RUN,
     "counting has stopped: the worker process on the node was killed, by somebody or for using too much memory", NULL},
    {"notsup", 2, ERR_NODE, "%s", NULL},
    {"gc_taken", 0, ERR_NODE,
     "another session traces garbage collection on the node, and two such sessions would crash it",
     "--unsafe traces it anyway"},
    {"bad_label", 0, ERR_NODE, "this label of a sequential trace token would crash the node",
     "a label is a small integer, an atom, self, or a variable by itself"},
};

#define PARTS 3

/*
 * Returns the name of a module, or a pattern for such names, without the prefix "Elixir." if an Elixir alias follows:
 * Elixir.Shop.* becomes Shop.*, but Elixir.foo stays.
 */
static struct raw strip_elixir(struct raw name)
{
    const char *at = raw_view(name).at;

    return name.len > 7 && !memcmp(at, "Elixir.", 7) && at[7] >= 'A' && at[7] <= 'Z' ? raw_bytes(at + 7, name.len - 7)
                                                                                     : name;
}

static void answer_part(struct etf *r, char to[200])
{
    struct buf b = {0};

    term_text(r, &b, 180);
    struct str text = raw_view(strip_elixir(raw_of(buf_view(&b))));
    snprintf(to, 200, "%.*s", (int)text.len, text.at);
    buf_release(&b);
}

/*
 * Sets the hint to a list of similar names, which is the last element of some reasons. Does nothing if `r` is at
 * another term.
 */
static void hint_near(struct etf r, struct err *e)
{
    struct buf b = {0};
    struct raw name;
    size_t n;

    if (!etf_get_list(&r, &n) || !n)
        return;
    for (size_t i = 0; i < n && etf_get_bin(&r, &name); i++) {
        name = strip_elixir(name);
        name.len = MIN(name.len, 120);
        buf_puts(&b, i == 0 ? "" : i + 1 < n ? ", " : " or ");
        print_safe(&b, name);
    }
    err_hint(e, "did you mean %s?", buf_cstr(&b));
    buf_release(&b);
}

/*
 * Sets *e from the reason {no_function, Module, Function, Low, High, [Near], Hidden}; Low and High bound the arity.
 * Returns false if the tuple is malformed.
 */
static bool no_function(struct etf *r, struct err *e)
{
    char module[200], function[200], arity[32] = "";
    int64_t low, high;
    struct etf near;
    bool hidden;

    answer_part(r, module);
    answer_part(r, function);
    if (!etf_get_int(r, &low) || !etf_get_int(r, &high) || !etf_take(r, &near))
        return false;
    hidden = etf_is_atom(r, "true");
    if (low == high)
        snprintf(arity, sizeof arity, "/%lld", (long long)low);
    if (hidden) {
        err_set(e, ERR_EMPTY, "%s:%s%s is not exported, so `global` sees no call of it", module, function, arity);
    } else {
        err_set(e, ERR_EMPTY, "%s has no function %s%s", module, function, arity);
        hint_near(near, e);
    }
    return true;
}

/*
 * Replaces each %s of a sentence by the next part. Does not use printf(): the format is not constant, and the parts
 * come from the node.
 */
static void set_sentence(const struct sentence *s, char parts[PARTS][200], struct err *e)
{
    struct buf b = {0};
    size_t next = 0;

    for (const char *c = s->text; *c; c++) {
        if (c[0] != '%' || next == PARTS) {
            buf_char(&b, *c);
        } else {
            buf_puts(&b, parts[next++]);
            c++;
        }
    }
    err_set(e, s->status, "%s", buf_cstr(&b));
    buf_release(&b);
}

static bool set_listed_reason(struct raw reason, size_t arity, struct etf r, struct err *e)
{
    char parts[PARTS][200] = {{0}};
    struct etf_head h;

    for (size_t i = 0; i < ARRAY_LEN(sentences); i++) {
        const struct sentence *s = &sentences[i];
        if (s->arity != arity || !raw_is(reason, s->reason))
            continue;
        size_t n = arity ? arity - 1 : 0;
        for (size_t j = 0; j < n && j < PARTS; j++) {
            bool near = j > 0 && etf_peek(&r, &h) && (h.type == ETF_LIST || h.type == ETF_NIL);
            if (near)
                break;
            answer_part(&r, parts[j]);
        }
        set_sentence(s, parts, e);
        if (s->hint)
            err_hint(e, "%s", s->hint);
        hint_near(r, e);
        if (raw_is(reason, "no_module") && strchr(parts[0], '@') && !e->hint[0])
            command_line_hint(e, "the name of a node follows -n, as in -n", parts[0], "");
        return true;
    }
    return false;
}

/* Sets *e from {stopping, Why}: the owner is ending the tracing. Why is `normal` if a client asked for the end. */
static void set_stopping(struct etf why, const char *node, struct err *e)
{
    if (etf_is_atom(&why, "normal"))
        err_set(e, ERR_RUN, "the tracing is ending");
    else
        answer_gone(why, node ? node : "the node", e);
}

bool session_error(const struct session_reply *reply, struct err *e)
{
    struct etf r = reply->term, whole = reply->term;
    struct etf_head h = {0};
    size_t arity = 0;
    struct buf b = {0};

    if (etf_next(&r, &h) && h.type == ETF_TUPLE && h.count) {
        arity = h.count;
        etf_next(&r, &h);
    }
    if (!r.failed && h.type == ETF_ATOM) {
        struct etf rest = r;
        if (raw_is(h.text, "no_function") && no_function(&rest, e))
            return false;
        if (raw_is(h.text, "stopping") && arity == 2) {
            set_stopping(r, reply->node, e);
            return false;
        }
        if (set_listed_reason(h.text, arity, r, e))
            return false;
    }
    term_text(&whole, &b, 300);
    err_set(e, ERR_RUN, "the node answers: %s", buf_cstr(&b));
    buf_release(&b);
    return false;
}
