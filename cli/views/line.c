/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include "../erlang/wire_order.h"
#include "../events/info.h"
#include "../events/names.h"
#include "../events/notice.h"
#include "../lang/spec.h"
#include "line_info.h"

static inline bool is_elixir(const struct event *e, enum terms_style style)
{
    return style == TERMS_ELIXIR || (style != TERMS_ERLANG && (e->node->elixir || (e->fun && e->fun->is_elixir)));
}

const struct printer *line_printer(const struct event *e, enum terms_style style)
{
    return is_elixir(e, style) ? &printer_elixir : &printer_erlang;
}

static inline void line_put_who(struct buf *to, const struct event *e, const struct paint *paint)
{
    const struct tracee *w = e->who;

    paint_begin(paint, to, PAINT_PID);
    char *p = buf_room(to, sizeof(w->text) + sizeof(w->name) + 2);
    memcpy(p, w->text, sizeof(w->text)); /* a copy of constant size needs no call */
    to->len += w->text_len;
    if (w->name_len) {
        p = to->data + to->len;
        *p++ = '(';
        memcpy(p, w->name, sizeof(w->name));
        p[w->name_len] = ')';
        to->len += w->name_len + 2u;
    }
    paint_end(paint, to);
}

void line_who(struct buf *to, const struct event *e, const struct paint *paint)
{
    line_put_who(to, e, paint);
}

/*
 * Prints another process like line_who(), with its name if that is known. Prints a term that is not a local pid as a
 * term.
 */
static const uint8_t *put_other(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at)
{
    uint64_t id;
    const struct tracee *t;

    if (!wire_pid(at, &id))
        return p->term(to, &e->env, at);
    buf_room(to, 40);
    to->len += print_tracee(to->data + to->len, id);
    if ((t = event_who(e, id)) && t->name_len) {
        buf_char(to, '(');
        buf_add(to, t->name, t->name_len);
        buf_char(to, ')');
    }
    return wire_skip(at);
}

static inline void line_put_fun(struct buf *to, const struct event *e, enum terms_style style)
{
    if (likely(e->fun))
        buf_short(to, is_elixir(e, style) ? e->fun->elixir : e->fun->erl);
    else
        buf_puts(to, "undefined");
}

void line_fun(struct buf *to, const struct event *e, enum terms_style style)
{
    line_put_fun(to, e, style);
}

void line_fun_name(struct buf *to, const struct event *e, enum terms_style style)
{
    if (!e->fun) {
        buf_puts(to, "undefined");
        return;
    }
    bool elixir = style == TERMS_ELIXIR || (style != TERMS_ERLANG && e->fun->is_elixir);
    buf_str(to, elixir ? e->fun->elixir : e->fun->erl);
}

static void put_fun_arity(struct buf *to, const struct event *e, enum terms_style style)
{
    line_put_fun(to, e, style);
    if (e->fun) {
        buf_char(to, '/');
        print_u64(to, e->arity);
    }
}

static inline void line_put_args(struct buf *to, const struct event *e, const struct printer *p)
{
    const uint8_t *at = e->terms.at;

    if (p->terms && likely(!e->args_shown)) {
        p->terms(to, &e->env, at, e->nterms);
        return;
    }
    for (unsigned i = 0; i < e->nterms; i++) {
        if (i)
            buf_add(to, ", ", 2);
        if (event_shows_arg(e, i)) {
            at = p->term(to, &e->env, at);
        } else {
            buf_char(to, '_');
            at = wire_skip(at);
        }
    }
}

void line_args(struct buf *to, const struct event *e, const struct printer *p)
{
    line_put_args(to, e, p);
}

static inline void line_put_call(struct buf *to, const struct event *e, const struct printer *p, enum terms_style style)
{
    if (!event_shows_args(e)) {
        put_fun_arity(to, e, style);
        return;
    }
    line_put_fun(to, e, style);
    buf_char(to, '(');
    line_put_args(to, e, p);
    buf_char(to, ')');
}

void line_call(struct buf *to, const struct event *e, const struct printer *p, enum terms_style style)
{
    line_put_call(to, e, p, style);
}

/* ---- functions inside terms ---- */

static void line_put_name(struct buf *to, struct raw module, struct raw name, bool elixir)
{
    if (elixir) {
        fun_elixir(to, module, name);
    } else {
        erlang_print_atom(to, module);
        buf_char(to, ':');
        erlang_print_atom(to, name);
    }
}

void line_function_name(struct buf *to, struct raw module, struct raw name, int64_t arity, enum terms_style style)
{
    line_put_name(to, module, name, style == TERMS_ELIXIR || (style != TERMS_ERLANG && elixir_is_module(module)));
    buf_char(to, '/');
    print_i64(to, arity);
}

void line_mfa_name(struct buf *to, const struct mfa *m, enum terms_style style)
{
    bool cut;

    line_function_name(to, m->module, m->function, mfa_arity(m, &cut), style);
}

void line_mfa(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at)
{
    struct mfa m;
    struct buf file = {0};

    if (!mfa_read(e, at, &m, &file)) {
        p->term(to, &e->env, at);
    } else {
        line_put_name(to, m.module, m.function, p == &printer_elixir || elixir_is_module(m.module));
        if (m.args) {
            const uint8_t *el, *list = m.args;
            bool first = true;
            buf_char(to, '(');
            if (*list == ETW_T_STRING) {
                for (size_t i = 0; i < wire_u16(m.args + 1); i++) {
                    if (i)
                        buf_add(to, ", ", 2);
                    print_u64(to, m.args[3 + i]);
                }
            } else {
                for (wire_list(&list); (el = wire_list_next(&list)); first = false) {
                    if (!first)
                        buf_add(to, ", ", 2);
                    p->term(to, &e->env, el);
                }
                if (*list == ETW_T_CUT)
                    buf_puts(to, first ? "…" : ", …");
            }
            buf_char(to, ')');
        } else {
            buf_char(to, '/');
            print_i64(to, m.arity);
        }
        if (m.file.len) {
            buf_char(to, ' ');
            print_safe(to, mfa_base_name(m.file));
            buf_char(to, ':');
            print_i64(to, m.line);
        }
    }
    buf_release(&file);
}

bool line_exception(const struct event *e, struct raw *ret_class, const uint8_t **ret_reason)
{
    static const char *const classes[] = {"error", "exit", "throw"};
    uint32_t arity;
    const uint8_t *p;

    if (wire_tuple(e->terms.at, &arity, &p) != 2 || arity != 2)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        if (wire_is_atom(&e->env, p, classes[i])) {
            *ret_class = raw_text(classes[i]);
            *ret_reason = wire_skip(p);
            return true;
        }
    }
    return false;
}

/* ---- whole lines ---- */

static enum paint_what line_colour(const struct event *e)
{
    if (e->kind == ETW_EXCEPTION_FROM || e->kind == ETW_SEND_NOPROC)
        return PAINT_FAILURE;
    if (e->kind == ETW_SEND || e->kind == ETW_RECEIVE)
        return PAINT_MESSAGE;
    return event_is_result(e) ? PAINT_RESULT : PAINT_KIND;
}

static void put_kind(struct buf *to, const struct event *e, const struct paint *paint)
{
    const struct event_kind *kind = &event_kinds[e->kind];
    struct raw event;

    paint_begin(paint, to, line_colour(e));
    if (e->kind == ETW_SYSTEM && wire_atom(&e->env, e->terms.at, &event))
        print_safe(to, event);
    else
        buf_puts(to, event_is_result(e) ? kind->json : kind->tag);
    paint_end(paint, to);
    buf_char(to, ' ');
}

static void line_put_duration(struct buf *to, const struct event *e, const struct paint *paint)
{
    if (e->dur_ns < 0)
        return;
    buf_char(to, ' ');
    paint_begin(paint, to, PAINT_DURATION);
    print_duration(to, e->dur_ns);
    paint_end(paint, to);
}

void line_stack(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at)
{
    const uint8_t *el;

    if (!wire_list(&at)) {
        p->term(to, &e->env, at);
        return;
    }
    for (bool first = true; (el = wire_list_next(&at)); first = false) {
        if (!first)
            buf_add(to, " < ", 3);
        line_mfa(to, e, p, el);
    }
    if (*at == ETW_T_CUT)
        buf_puts(to, " < …");
}

/* Appends what the probe has collected with the event: caller, stack and so on. */
static void put_extras(struct buf *to, const struct event *e, const struct printer *p, const struct paint *paint)
{
    if (e->caller) {
        paint_begin(paint, to, PAINT_ORIGIN);
        buf_add(to, " by ", 4);
        line_mfa(to, e, p, e->caller);
        paint_end(paint, to);
    }
    if (e->stack) {
        paint_begin(paint, to, PAINT_ORIGIN);
        buf_add(to, " stack ", 7);
        line_stack(to, e, p, e->stack);
        paint_end(paint, to);
    }
    if (e->dump) {
        buf_add(to, " dump ", 6);
        p->term(to, &e->env, e->dump);
    }
    if (e->user) {
        buf_add(to, " -> ", 4);
        p->term(to, &e->env, e->user);
    }
}

/* Prints `label 17 send 0>1 to <0.85.0> message`, where 0>1 is the previous and the current serial. */
static void put_seq_trace(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at)
{
    struct seq_info s;
    const uint8_t *info = wire_skip(at);

    p->term(to, &e->env, at);
    buf_char(to, ' ');
    if (!seq_info_read(e, info, &s)) {
        p->term(to, &e->env, info);
        return;
    }
    print_safe(to, s.what);
    buf_char(to, ' ');
    print_i64(to, s.prev);
    buf_char(to, '>');
    print_i64(to, s.cur);
    if (!s.prints) {
        buf_puts(to, s.receives ? " from " : " to ");
        put_other(to, e, p, s.receives ? s.from : s.to);
    }
    buf_char(to, ' ');
    p->term(to, &e->env, s.msg);
}

void line_loss(struct buf *to, const struct event *e, enum etw_loss reason, uint64_t count)
{
    buf_puts(to, "*** ");
    print_u64(to, count);
    if (reason == ETW_LOST_OVERWRITTEN && !e->gap) {
        buf_puts(to, count == 1 ? " event is in no snapshot ***" : " events are in no snapshot ***");
        return;
    }
    if (reason == ETW_LOST_OVERWRITTEN) {
        buf_puts(to,
                 count == 1 ? " event before this was overwritten ***" : " events before this were overwritten ***");
        return;
    }
    buf_puts(to, count == 1 ? " event lost here (" : " events lost here (");
    buf_puts(to, event_losses[reason]);
    buf_puts(to, ") ***");
}

void line_node(struct buf *to, const struct event *e)
{
    buf_puts(to, "*** node ");
    buf_safe(to, e->node->name);
    buf_puts(to, e->kind == ETW_DOWN ? " went down ***" : " is back ***");
}

static void put_tokens(struct buf *to, const struct notice_tokens *t)
{
    if (!t->known)
        buf_puts(to,
                 "processes may still have trace tokens of this trace, because a process blocked the search for them");
    if (t->held)
        buf_printf(to, "%lld process%s kept a trace token of this trace", (long long)t->held, PLURAL_ES(t->held));
    if (t->queued)
        buf_printf(to, "%s%lld process%s may get one from a waiting message", t->held ? "; " : "", (long long)t->queued,
                   PLURAL_ES(t->queued));
    buf_puts(to, "; seq_trace:reset_trace() on the node removes all tokens, including those of others");
}

void line_share(struct buf *to, int64_t hundredths)
{
    buf_printf(to, hundredths % 100 ? "%lld.%02lld" : "%lld", (long long)(hundredths / 100),
               (long long)(hundredths % 100));
}

static void put_overhead(struct buf *to, const struct notice_overhead *o, enum terms_style style)
{
    if (!o->functions) {
        buf_puts(to, "tracing took ");
        line_share(to, o->taken);
        buf_puts(to, "% of the schedulers' time (limit ");
        line_share(to, o->limit);
        buf_puts(to, "%)");
        if (o->calls)
            buf_printf(to, "; %lld call%s came too fast for that and %s not traced", (long long)o->calls,
                       PLURAL(o->calls), o->calls == 1 ? "was" : "were");
        return;
    }
    buf_printf(to, "%lld function%s called too often for --overhead ", (long long)o->functions,
               o->functions == 1 ? " is" : "s are");
    line_share(to, o->limit);
    buf_puts(to, "%: only counted; busiest: ");
    line_mfa_name(to, &o->busiest, style);
    buf_printf(to, " with %lld calls a second", (long long)o->calls);
}

/* Prints the notice that a self-check failed. The reason is an atom, or a binary with the text of a term. */
static void put_unchecked(struct buf *to, const struct event *e)
{
    const uint8_t *at = wire_skip(e->terms.at);
    struct raw text;
    uint64_t size;

    buf_puts(to, "the self-check failed (");
    if (wire_bin(at, &text, &size))
        print_safe(to, text);
    else
        erlang_print(to, &e->env, at);
    buf_puts(to, "): until it works again, reloaded modules are not traced, and etrace does not notice if somebody "
                 "stops the trace");
}

void line_put_skipped(struct buf *to, uint64_t times)
{
    buf_printf(to, "the condition of a snapshot held %llu more time%s too soon after the last one",
               (unsigned long long)times, PLURAL(times));
}

/* Prints how far a snapshot of the flight recorder reaches back, from {From, Microseconds}. */
static void put_snapshot(struct buf *to, const struct event *e)
{
    int64_t from, us;

    if (!event_begins_snapshot(e, &from, &us)) {
        buf_puts(to, "a snapshot of the last events");
    } else if (!from) {
        buf_puts(to, "a snapshot of every event so far");
    } else {
        buf_puts(to, "a snapshot of the last ");
        print_duration(to, us < INT64_MAX / 1000 ? us * 1000 : INT64_MAX);
    }
}

/*
 * Prints the notices `restarted` {Name, Pid} and `exited` Name, which are about the processes of -P, and `exited` Pid,
 * which is about the last one of them. Returns false for any other notice.
 */
static bool put_followed(struct buf *to, const struct event *e, const struct printer *p)
{
    const uint8_t *at = wire_skip(e->terms.at);
    uint32_t arity;

    if (wire_is_atom(&e->env, e->terms.at, "exited")) {
        const bool last = wire_class(at) == WIRE_PID;
        buf_puts(to, last ? "process " : "");
        p->term(to, &e->env, at);
        buf_puts(to, last ? " has exited: nothing is left to trace" : LINE_EXITED);
        return true;
    }
    if (!wire_is_atom(&e->env, e->terms.at, "restarted") || wire_tuple(at, &arity, &at) != 2 || arity != 2)
        return false;
    at = p->term(to, &e->env, at);
    buf_puts(to, LINE_RESTARTED);
    p->term(to, &e->env, at);
    return true;
}

void line_notice(struct buf *to, const struct event *e, enum terms_style style)
{
    struct notice_overhead overhead;
    struct notice_tokens tokens;
    struct mfa m;

    if (notice_tokens(e, &tokens)) {
        put_tokens(to, &tokens);
        return;
    }
    if (notice_overhead(e, &overhead)) {
        put_overhead(to, &overhead, style);
        return;
    }

    if (wire_is_atom(&e->env, e->terms.at, "guard") && wire_is_atom(&e->env, wire_skip(e->terms.at), "returns")) {
        buf_puts(to, "calls are no longer traced: too many calls of a function in one process have not returned, and "
                     "the node could not tell recursion from a loop by the stack of the process");
        return;
    }
    if (wire_is_atom(&e->env, e->terms.at, "snapshot")) {
        put_snapshot(to, e);
        return;
    }
    int64_t skipped;
    if (wire_is_atom(&e->env, e->terms.at, "snapshot_skipped") && wire_int(wire_skip(e->terms.at), &skipped)) {
        line_put_skipped(to, (uint64_t)MAX(skipped, 0));
        return;
    }
    if (notice_endless(e, &m)) {
        line_mfa_name(to, &m, style);
        buf_puts(to, " calls itself in a loop: its calls are traced without results from now on");
        return;
    }
    if (notice_root_loops(e, &m)) {
        line_mfa_name(to, &m, style);
        buf_puts(to, " calls itself in a loop: calls of roots in its loops are not shown from now on");
        return;
    }
    if (wire_is_atom(&e->env, e->terms.at, "unchecked")) {
        put_unchecked(to, e);
        return;
    }
    if (put_followed(to, e, line_printer(e, style)))
        return;
    const uint8_t *at = erlang_print(to, &e->env, e->terms.at);
    buf_char(to, ' ');
    erlang_print(to, &e->env, at);
}

static void put_result(struct buf *to, const struct event *e, const struct printer *p)
{
    const uint8_t *reason;
    struct raw class;

    if (e->kind != ETW_EXCEPTION_FROM) {
        buf_add(to, " = ", 3);
        p->term(to, &e->env, e->terms.at);
        return;
    }
    buf_char(to, ' ');
    if (line_exception(e, &class, &reason)) {
        p->atom(to, class);
        buf_char(to, ':');
        p->term(to, &e->env, reason);
    } else {
        p->term(to, &e->env, e->terms.at);
    }
}

static void put_returned(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint)
{
    paint_begin(paint, to, PAINT_FUN);
    put_fun_arity(to, e, style);
    paint_end(paint, to);
}

void line_result_head(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint)
{
    line_put_who(to, e, paint);
    buf_char(to, ' ');
    put_kind(to, e, paint);
    put_returned(to, e, style, paint);
}

void line_result_tail(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint)
{
    const struct printer *p = line_printer(e, style);

    put_result(to, e, p);
    if (e->ms.at < e->ms.end)
        put_extras(to, e, p, paint);
}

static inline const uint8_t *put_event_term(struct buf *to, const struct event *e, const struct printer *p,
                                            enum event_term_type type, const uint8_t *at)
{
    switch (type) {
    case EVENT_TERM:
        return p->term(to, &e->env, at);
    case EVENT_PROCESS:
        return put_other(to, e, p, at);
    case EVENT_MFA:
        if (*at)
            line_mfa(to, e, p, at);
        else
            to->len--; /* the term 0 means that no Erlang function ran: removes the space before it */
        break;
    case EVENT_INFO:
        info_line(to, e, p, at);
        break;
    case EVENT_NO_TERM:
        break;
    }
    return wire_skip(at);
}

static void put_two_terms(struct buf *to, const struct event *e, const struct printer *p, const struct event_kind *kind)
{
    const uint8_t *second = put_event_term(to, e, p, kind->terms[0].type, e->terms.at);

    buf_char(to, ' ');
    put_event_term(to, e, p, kind->terms[1].type, second);
}

/*
 * Prints the sender. If no process has sent the message, the VM gives the source instead of the sender's node: the
 * clock service for a timer, or for an expired `after`, whose message is `timeout`.
 */
static void put_sender(struct buf *to, const struct event *e, const struct printer *p)
{
    const uint8_t *other = e->sender ? e->sender : e->sender_node;

    if (!other || (!e->sender && wire_is_atom(&e->env, other, "undefined")))
        return;
    buf_add(to, "from ", 5);
    if (!e->sender && wire_is_atom(&e->env, other, "clock_service"))
        buf_puts(to, "a timer");
    else
        put_other(to, e, p, other);
    buf_char(to, ' ');
}

/*
 * Prints the terms of the event's frame in their order. Does not read properties (property.c): a result also has the
 * properties of its call, which are already in the line of the call, and a property has no place in a line.
 */
void line_event(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint)
{
    const struct printer *p = line_printer(e, style);
    const struct event_kind *kind = &event_kinds[e->kind];
    const uint8_t *at = e->terms.at;

    if (likely(e->kind == ETW_CALL && !paint->on))
        buf_add(to, "call ", 5);
    else
        put_kind(to, e, paint);
    switch (kind->layout) {
    case ETW_LAYOUT_CALL:
        paint_begin(paint, to, PAINT_FUN);
        line_put_call(to, e, p, style);
        paint_end(paint, to);
        break;
    case ETW_LAYOUT_RETURN:
        put_returned(to, e, style, paint);
        put_result(to, e, p);
        line_put_duration(to, e, paint);
        break;
    case ETW_LAYOUT_RETURN_TO:
        put_fun_arity(to, e, style);
        break;
    case ETW_LAYOUT_EXTRA_TERM:
        if (e->kind == ETW_SEND)
            buf_add(to, "to ", 3);
        put_two_terms(to, e, p, kind);
        break;
    case ETW_LAYOUT_TERM:
        if (e->kind == ETW_RECEIVE)
            put_sender(to, e, p);
        put_event_term(to, e, p, kind->terms[0].type, at);
        line_put_duration(to, e, paint);
        break;
    case ETW_LAYOUT_TERM_EXTRA:
        if (e->kind == ETW_OPEN) {
            line_mfa(to, e, p, wire_skip(at));
            buf_add(to, " by ", 4);
            put_other(to, e, p, at);
            break;
        }
        if (e->kind == ETW_SPAWNED)
            buf_add(to, "by ", 3);
        put_two_terms(to, e, p, kind);
        break;
    case ETW_LAYOUT_TAG_TERM: /* put_kind() printed the tag */
        put_event_term(to, e, p, kind->terms[1].type, wire_skip(at));
        line_put_duration(to, e, paint);
        break;
    case ETW_LAYOUT_LABEL:
        put_seq_trace(to, e, p, at);
        break;
    case ETW_LAYOUT_OWN: /* line_notice(), line_loss() and line_node() print these */
    case ETW_LAYOUT_LOST:
    case ETW_LAYOUT_TALLY:
    case ETW_LAYOUT_NO_FRAME:
        break;
    }
    if (e->ms.at < e->ms.end)
        put_extras(to, e, p, paint);
}

void line_place(struct buf *to, const struct event *e, bool node, const struct paint *paint)
{
    if (node) {
        paint_str(paint, to, PAINT_NODE, safe_view(e->node->name));
        buf_char(to, ' ');
    }
    if (unlikely(e->spec && e->spec->label.len)) {
        paint_begin(paint, to, PAINT_KIND);
        buf_char(to, '[');
        buf_safe(to, e->spec->label);
        buf_puts(to, "] ");
        paint_end(paint, to);
    }
}

static void put_own_end(struct buf *to, const struct event *e, bool node, const struct paint *paint)
{
    paint_end(paint, to);
    if (node) {
        buf_char(to, ' ');
        buf_safe(to, e->node->name);
    }
    buf_char(to, '\n');
}

void line_own(struct buf *to, const struct event *e, const struct look *look, const struct paint *paint)
{
    struct notice_tokens tokens;

    if (e->kind == ETW_LOST) {
        for (enum etw_loss l = 0; l < ETW_LOSSES; l++) {
            if (!e->lost[l])
                continue;
            paint_begin(paint, to, PAINT_LOSS);
            line_loss(to, e, l, e->lost[l]);
            put_own_end(to, e, look->nodes, paint);
        }
    } else if (e->kind == ETW_NOTICE && !event_is_expected(e) && !notice_tokens(e, &tokens)) {
        /* Trace tokens are reported at the end of the output. */
        paint_begin(paint, to, PAINT_LOSS);
        buf_puts(to, "*** ");
        line_notice(to, e, look->terms);
        buf_puts(to, " ***");
        put_own_end(to, e, look->nodes, paint);
    } else if (e->kind == ETW_DOWN || e->kind == ETW_UP) {
        paint_begin(paint, to, PAINT_LOSS);
        line_node(to, e);
        put_own_end(to, e, false, paint);
    }
}

void line_body(struct buf *to, const struct event *e, enum terms_style style, const struct paint *paint)
{
    line_put_who(to, e, paint);
    buf_char(to, ' ');
    line_event(to, e, style, paint);
}
