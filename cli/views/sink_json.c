/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The json view: one JSON object in each line for each event. The member names are stable, because scripts depend on
 * them.
 */
#include <assert.h>

#include "../erlang/term_json.h"
#include "../events/info.h"
#include "../events/notice.h"
#include "../fold/property.h"
#include "../fold/stats.h"
#include "../lang/spec.h"
#include "clock.h"
#include "line.h"
#include "missing.h"

/* A property that the events of a kind have in JSON. */
struct member {
    property_getter *get; /* NULL: the end of a list */
    struct json_key key;
};

struct json {
    struct sink sink;
    /* [0]: members of events without collected values; [1]: of events with collected values */
    struct member members[2][ETW_KINDS][12];
    struct json_key terms[ETW_KINDS][2];  /* names of the terms that are no properties */
    bool parts[ETW_KINDS];                /* put_parts() writes further members */
    struct buf heads[ETW_KINDS], rearmed; /* the beginning of an object of each kind, up to its type */
    struct clock clock;
    struct buf file; /* scratch for the file name of a caller */
    struct buf node; /* cached: the member for the node `named` */
    const struct event_node *named;
    size_t named_len;
    struct buf mono; /* cached: the digits of mono_billions */
    int64_t mono_billions;
};

/* Returns true if the first term of an event of this kind is a property. All terms of this kind are then properties. */
static bool has_property(size_t kind)
{
    for (size_t i = 0; i < PROPERTIES; i++)
        if (property_rows[i].json >> kind & 1 && !strcmp(property_rows[i].name, event_kinds[kind].terms[0].name))
            return true;
    return false;
}

/* Lists the members of each kind in the order of the rows of properties.def. */
static void list_members(struct json *j)
{
    for (size_t kind = 0; kind < ETW_KINDS; kind++) {
        size_t n[2] = {0};
        for (size_t i = 0; i < PROPERTIES; i++)
            for (size_t with = property_rows[i].uses & PROPERTY_COLLECTED ? 1 : 0; with < 2; with++)
                if (property_rows[i].json >> kind & 1) {
                    struct member *m = &j->members[with][kind][n[with]++];
                    m->get = property_getters[i];
                    json_key_init(&m->key, property_rows[i].name);
                }
        assert(n[1] < ARRAY_LEN(j->members[1][kind]));
        j->parts[kind] = event_kinds[kind].terms[0].name && !has_property(kind);
    }
}

static void write_head(struct buf *head, const char *type)
{
    json_begin_record(head, type);
    buf_room(head, BUF_SHORT);
}

static void write_kinds(struct json *j)
{
    for (size_t kind = 0; kind < ETW_KINDS; kind++) {
        if (!event_kinds[kind].json)
            continue;
        write_head(&j->heads[kind], event_kinds[kind].json);
        for (size_t i = 0; i < 2 && event_kinds[kind].terms[i].name; i++)
            json_key_init(&j->terms[kind][i], event_kinds[kind].terms[i].name);
    }
    write_head(&j->rearmed, "rearmed");
}

static bool open_json(struct sink *sink, struct err *e)
{
    struct json *j = (struct json *)sink;

    (void)e;
    j->mono_billions = -1;
    clock_init_iso(&j->clock);
    list_members(j);
    write_kinds(j);
    return true;
}

/* ---- pieces ---- */

/* Writes a term as a string in the syntax of the printer, or with --terms json as a JSON structure. */
static const uint8_t *put_term(struct json *j, struct buf *to, const struct event *e, const struct printer *p,
                               const uint8_t *at)
{
    if (j->sink.look.terms == TERMS_JSON)
        return json_term(to, &e->env, at);
    uint8_t tag = *at;
    json_open_string(to);
    size_t from = to->len;
    at = p->term(to, &e->env, at);
    if (tag > ETW_T_FLOAT) /* numbers need no escapes */
        json_escape_tail(to, from);
    json_close_string(to);
    return at;
}

static void sink_json_put_args(struct json *j, const struct event *e, const struct printer *p)
{
    struct buf *to = j->sink.out;
    const uint8_t *at = e->terms.at;

    json_open_array(to);
    for (unsigned i = 0; i < e->nterms; i++) {
        json_value(to);
        if (likely(event_shows_arg(e, i))) {
            at = put_term(j, to, e, p, at);
        } else {
            json_null(to);
            at = wire_skip(at);
        }
    }
    json_end_array(to);
}

static void sink_json_put_fun(struct buf *to, const struct event *e)
{
    if (!e->fun)
        return;
    json_next_ready(to, e->fun->json);
    json_next_key(to, "a");
    print_u64(to, e->arity);
}

/* Writes microseconds, with nanoseconds as the fraction. */
static void put_micros(struct buf *to, int64_t ns)
{
    print_i64(to, ns / 1000);
    unsigned rest = (unsigned)(ns % 1000);
    if (rest) {
        char *p = buf_room(to, 4);
        p[0] = '.', p[1] = (char)('0' + rest / 100), p[2] = (char)('0' + rest / 10 % 10),
        p[3] = (char)('0' + rest % 10);
        to->len += rest % 10 ? 4 : rest % 100 ? 3 : 2;
    }
}

static void put_byte(struct json *j, struct buf *to, uint8_t byte)
{
    bool quoted = j->sink.look.terms != TERMS_JSON;

    if (quoted)
        json_open_string(to);
    print_u64(to, byte);
    if (quoted)
        json_close_string(to);
}

/* Writes the arguments of an MFA tuple. A list of small integers may be encoded as a string. */
static void put_mfa_args(struct json *j, const struct event *e, const struct printer *p, const uint8_t *list)
{
    struct buf *to = j->sink.out;
    const uint8_t *el;

    json_put_array(to, "args");
    if (*list == ETW_T_STRING) {
        for (size_t i = 0; i < wire_u16(list + 1); i++) {
            json_value(to);
            put_byte(j, to, list[3 + i]);
        }
    } else {
        wire_list(&list);
        while ((el = wire_list_next(&list))) {
            json_value(to);
            put_term(j, to, e, p, el);
        }
    }
    json_end_array(to);
}

static void sink_json_put_function(struct buf *to, const struct mfa *m)
{
    json_put_string(to, "m", m->module);
    json_put_string(to, "f", m->function);
}

/* Writes "m", "f", "a" or "args", "file" and "line" of an MFA tuple. Returns false for another term. */
static bool mfa_members(struct json *j, const struct event *e, const struct printer *p, const uint8_t *at)
{
    struct buf *to = j->sink.out;
    struct mfa m;

    if (!mfa_read(e, at, &m, &j->file))
        return false;
    sink_json_put_function(to, &m);
    if (m.args)
        put_mfa_args(j, e, p, m.args);
    else
        json_put_int(to, "a", m.arity);
    if (m.file.len) {
        json_put_string(to, "file", m.file);
        json_put_int(to, "line", m.line);
    }
    return true;
}

static void put_mfa(struct json *j, const struct event *e, const struct printer *p, const uint8_t *at)
{
    if (mfa_members(j, e, p, at) || !*at) /* the term 0 means that no Erlang function ran */
        return;
    json_next_key(j->sink.out, "mfa");
    put_term(j, j->sink.out, e, p, at);
}

static void put_place(struct json *j, const struct event *e, const struct printer *p, const uint8_t *at)
{
    struct buf *to = j->sink.out;
    size_t from = to->len;

    json_open_object(to);
    if (mfa_members(j, e, p, at)) {
        json_end_object(to);
    } else {
        to->len = from;
        put_term(j, to, e, p, at);
    }
}

static void put_stack(struct json *j, const struct event *e, const struct printer *p, const uint8_t *at)
{
    struct buf *to = j->sink.out;
    const uint8_t *list = at, *el;

    if (!wire_list(&list)) {
        put_term(j, to, e, p, at);
        return;
    }
    json_open_array(to);
    while ((el = wire_list_next(&list))) {
        json_value(to);
        put_place(j, e, p, el);
    }
    json_end_array(to);
}

static void put_chars(struct json *j, const struct event *e, const struct printer *p, const uint8_t *at)
{
    struct raw text;
    uint64_t size;

    if (wire_bin(at, &text, &size))
        json_quote(j->sink.out, text);
    else
        put_term(j, j->sink.out, e, p, at);
}

/* Writes an atom as a term, like put_term(). */
static void put_atom(struct json *j, const struct event *e, const struct printer *p, struct raw name)
{
    uint8_t atom[3 + 1024];
    uint16_t len = (uint16_t)MIN(name.len, sizeof(atom) - 3);

    atom[0] = ETW_T_ATOMTEXT;
    memcpy(atom + 1, &len, sizeof(len));
    memcpy(atom + 3, raw_view(name).at, len);
    put_term(j, j->sink.out, e, p, atom);
}

static void put_value(struct json *j, const struct event *e, const struct printer *p, struct typed_value v)
{
    struct buf *to = j->sink.out;

    switch ((enum property_type)v.type) {
    case PROPERTY_IS_UNKNOWN:
    case PROPERTY_IS_TERM:
        put_term(j, to, e, p, v.at);
        break;
    case PROPERTY_IS_TERMS:
        sink_json_put_args(j, e, p);
        break;
    case PROPERTY_IS_INT:
    case PROPERTY_IS_DURATION:
        print_i64(to, v.number);
        break;
    case PROPERTY_IS_MICROS:
        put_micros(to, v.number);
        break;
    case PROPERTY_IS_TEXT:
        json_quote_safe(to, typed_text(v));
        break;
    case PROPERTY_IS_NAME:
        json_quote(to, typed_name(v));
        break;
    case PROPERTY_IS_ATOM:
        put_atom(j, e, p, typed_name(v));
        break;
    case PROPERTY_IS_TRACEE:
    case PROPERTY_IS_PID:
        json_quote_safe(to, tracee_safe_text(e->who));
        break;
    case PROPERTY_IS_PLACE:
        put_place(j, e, p, v.at);
        break;
    case PROPERTY_IS_STACK:
        put_stack(j, e, p, v.at);
        break;
    case PROPERTY_IS_CHARS:
        put_chars(j, e, p, v.at);
        break;
    case PROPERTY_IS_ABSENT:
    case PROPERTY_IS_LATER:
    case PROPERTY_IS_FUNCTION:
    case PROPERTY_IS_TIME:
    case PROPERTY_IS_TIMESTAMP:
    case PROPERTY_IS_WHO:
    case PROPERTY_IS_CALL:
    case PROPERTY_IS_LINE:
        json_null(to); /* no property of such a type is in JSON */
        break;
    }
}

/* Writes a member for each property of the list that the event has. */
static void put_properties(struct json *j, const struct event *e, const struct printer *p, const struct member *m)
{
    for (; m->get; m++) {
        struct typed_value v = m->get(e);
        const struct event *of = typed_of(v, e);
        if (likely(v.type == PROPERTY_IS_TERM)) {
            json_next_ready_key(j->sink.out, &m->key);
            put_term(j, j->sink.out, of, p, v.at);
        } else if (v.type == PROPERTY_IS_TERMS
                       ? event_shows_args(of)
                       : v.type != PROPERTY_IS_ABSENT && (v.type != PROPERTY_IS_UNKNOWN || v.at)) {
            json_next_ready_key(j->sink.out, &m->key);
            put_value(j, of, p, v);
        }
    }
}

/* Writes [{heap_size,233},{in,{m,f,1}},…] as an object, and any other term as a term. */
static void put_info(struct json *j, const struct event *e, const struct printer *p, const uint8_t *at)
{
    struct buf *to = j->sink.out;
    const uint8_t *list = at, *el, *first;
    size_t from = to->len;
    uint32_t arity;
    struct raw name;
    int64_t value;
    bool any = false;

    json_next_key(to, "info");
    json_open_object(to);
    if (*at == ETW_T_LIST && wire_list(&list)) {
        for (; (el = wire_list_next(&list)); any = true) {
            if (wire_tuple(el, &arity, &first) != 2 || !wire_atom(&e->env, first, &name))
                break;
            json_key_raw(to, name);
            if (wire_int(wire_skip(first), &value))
                print_i64(to, value);
            else
                put_term(j, to, e, p, wire_skip(first));
        }
        if (any && !el) {
            json_end_object(to);
            return;
        }
    }
    to->len = from;
    json_next_key(to, "info");
    put_term(j, to, e, p, at);
}

static void put_seq_trace(struct json *j, const struct event *e, const struct printer *p)
{
    struct buf *to = j->sink.out;
    struct seq_info s;

    json_next_key(to, "label");
    const uint8_t *info = put_term(j, to, e, p, e->terms.at);
    if (!seq_info_read(e, info, &s)) {
        json_next_key(to, "info");
        put_term(j, to, e, p, info);
        return;
    }
    json_put_string(to, "what", s.what);
    json_put_int(to, "prev", s.prev);
    json_put_int(to, "cur", s.cur);
    json_key(to, "from"), put_term(j, to, e, p, s.from);
    if (!s.prints)
        json_key(to, "to"), put_term(j, to, e, p, s.to);
    json_key(to, "msg"), put_term(j, to, e, p, s.msg);
}

/* ---- the objects ---- */

/* Writes the members that all objects have. Caches texts that rarely change from event to event. */
static void sink_json_begin(struct json *j, const struct event *e, struct str head)
{
    struct buf *to = j->sink.out;
    int64_t billions = e->mono_ns / 1000000000;

    if (unlikely(j->named != e->node || j->named_len != e->node->name.len)) {
        buf_clear(&j->node);
        json_next_key(&j->node, "node");
        json_quote_safe(&j->node, e->node->name);
        j->named = e->node;
        j->named_len = e->node->name.len;
    }
    if (unlikely(j->mono_billions != billions)) {
        buf_clear(&j->mono);
        print_i64(&j->mono, billions);
        j->mono_billions = billions;
    }
    buf_short(to, head);
    json_next_key_open_string(to, "ts");
    clock_put_iso(&j->clock, to, e);
    json_close_string(to);
    json_next_key(to, "mono_ns");
    /* `mono` has the sign and the seconds; without seconds it would lack the sign */
    if (likely(billions)) {
        int64_t nanos = e->mono_ns % 1000000000;
        uint32_t rest = (uint32_t)(nanos < 0 ? -nanos : nanos);
        buf_str(to, buf_view(&j->mono));
        char *p = buf_room(to, 16);
        p[0] = (char)('0' + rest / 100000000);
        print_micros(p + 1, rest / 100);
        print_micros(p + 3, rest);
        to->len += 9;
    } else {
        print_i64(to, e->mono_ns);
    }
    buf_str(to, buf_view(&j->node));
}

static void sink_json_put_who(struct buf *to, const struct event *e)
{
    const struct tracee *w = e->who;

    json_next_key_open_string(to, "pid");
    memcpy(buf_room(to, sizeof(w->text)), w->text, sizeof(w->text)); /* a copy of constant size needs no call */
    to->len += w->text_len;
    json_close_string(to);
    if (w->name_len) {
        json_next_key(to, "name");
        json_quote_safe(to, tracee_safe_name(w));
    }
    if (unlikely(e->spec && e->spec->label.len)) {
        json_next_key(to, "probe");
        json_quote_safe(to, e->spec->label);
    }
}

/* Writes the function of a notice about a function that calls itself in a loop. */
static void put_loop(struct json *j, const struct event *e)
{
    struct buf *to = j->sink.out;
    struct mfa m;

    if (!notice_endless(e, &m) && !notice_root_loops(e, &m))
        return;
    sink_json_put_function(to, &m);
    json_put_int(to, "a", m.arity);
}

/* Writes the figures of a notice about the budget. */
static void put_overhead(struct json *j, const struct event *e)
{
    struct buf *to = j->sink.out;
    struct notice_overhead o;

    if (!notice_overhead(e, &o))
        return;
    json_key(to, "limit"), line_share(to, o.limit);
    if (!o.functions) {
        json_key(to, "share"), line_share(to, o.taken);
        json_put_int(to, "rejected", o.calls);
        missing_untraced_json(to, &(struct totals_untraced){.any = true,
                                                            .unknown = o.untraced < 0,
                                                            .estimated = o.estimated,
                                                            .calls = (uint64_t)MAX(o.untraced, 0)});
        return;
    }
    json_put_int(to, "functions", o.functions);
    json_put_int(to, "rate", o.calls);
    sink_json_put_function(to, &o.busiest);
    json_put_int(to, "a", o.busiest.arity);
}

static void put_notice(struct json *j, const struct event *e, struct str head)
{
    struct buf *to = j->sink.out;
    struct raw tag;

    if (wire_is_atom(&e->env, e->terms.at, "rearmed")) {
        sink_json_begin(j, e, buf_view(&j->rearmed));
    } else {
        sink_json_begin(j, e, head);
        json_key(to, "tag");
        if (wire_atom(&e->env, e->terms.at, &tag))
            json_quote(to, tag);
        else
            put_term(j, to, e, &printer_erlang, e->terms.at);
    }
    json_key(to, "info"), put_term(j, to, e, &printer_erlang, wire_skip(e->terms.at));
    put_loop(j, e);
    put_overhead(j, e);
    json_end_record(to);
}

static void sink_json_own_event(struct json *j, const struct event *e)
{
    struct buf *to = j->sink.out;
    struct str head = buf_view(&j->heads[e->kind]);

    switch ((enum etw_kind)e->kind) {
    case ETW_LOST:
        for (enum etw_loss l = 0; l < ETW_LOSSES; l++) {
            if (!e->lost[l])
                continue;
            sink_json_begin(j, e, head);
            json_put_uint(to, "count", e->lost[l]);
            json_put_text(to, "reason", event_losses[l]);
            json_end_record(to);
        }
        break;
    case ETW_HELLO:
        sink_json_begin(j, e, head);
        if (e->node->otp.len)
            json_put_safe(to, "otp", e->node->otp);
        json_end_record(to);
        break;
    case ETW_NOTICE:
        if (event_is_expected(e))
            break;
        put_notice(j, e, head);
        break;
    case ETW_DOWN:
    case ETW_UP:
        sink_json_begin(j, e, head);
        if (e->node->why.len)
            json_put_safe(to, "reason", e->node->why);
        json_end_record(to);
        break;
    case ETW_NAME:
    case ETW_TALLY:
    case ETW_ROW:
    case ETW_TICK:
#define TRACED(name, ...) case ETW_##name:
#define PROBED(name, ...) case ETW_##name:
#include "event_kinds.def"
        break;
    }
}

static inline const uint8_t *put_event_term(struct json *j, const struct event *e, const struct printer *p,
                                            size_t index, const uint8_t *at)
{
    switch (event_kinds[e->kind].terms[index].type) {
    case EVENT_TERM:
    case EVENT_PROCESS:
        json_next_ready_key(j->sink.out, &j->terms[e->kind][index]);
        return put_term(j, j->sink.out, e, p, at);
    case EVENT_MFA:
        put_mfa(j, e, p, at);
        break;
    case EVENT_INFO:
        put_info(j, e, p, at);
        break;
    case EVENT_NO_TERM:
        break;
    }
    return wire_skip(at);
}

/* Writes those terms of the event that are not properties. */
static void put_parts(struct json *j, const struct event *e, const struct printer *p)
{
    const uint8_t *at = e->terms.at;

    switch (event_kinds[e->kind].layout) {
    case ETW_LAYOUT_LABEL:
        put_seq_trace(j, e, p);
        break;
    case ETW_LAYOUT_TERM:
        put_event_term(j, e, p, 0, at);
        break;
    case ETW_LAYOUT_EXTRA_TERM:
    case ETW_LAYOUT_TERM_EXTRA:
    case ETW_LAYOUT_TAG_TERM:
        at = put_event_term(j, e, p, 0, at);
        put_event_term(j, e, p, 1, at);
        break;
    case ETW_LAYOUT_CALL:
    case ETW_LAYOUT_RETURN:
    case ETW_LAYOUT_RETURN_TO:
    case ETW_LAYOUT_OWN: /* cannot happen: sink_json_own_event() writes these events */
    case ETW_LAYOUT_LOST:
    case ETW_LAYOUT_TALLY:
    case ETW_LAYOUT_NO_FRAME:
        break;
    }
}

static void event_json(struct sink *s, const struct event *e)
{
    struct json *j = (struct json *)s;
    struct buf *to = s->out;

    if (unlikely(!event_is_traced(e))) {
        sink_json_own_event(j, e);
        return;
    }
    const struct printer *p = s->look.terms == TERMS_ELIXIR ? &printer_elixir : &printer_erlang;
    sink_json_begin(j, e, buf_view(&j->heads[e->kind]));
    sink_json_put_who(to, e);
    sink_json_put_fun(to, e);
    if (j->parts[e->kind])
        put_parts(j, e, p);
    put_properties(j, e, p, j->members[e->ms.at < e->ms.end][e->kind]);
    if (e->flags & ETW_F_CUT)
        json_put_bool(to, "cut", true);
    json_end_record(to);
}

static void put_losses(struct buf *to, const uint64_t lost[static ETW_LOSSES])
{
    json_put_object(to, "lost");
    for (size_t l = 0; l < ETW_LOSSES; l++)
        if (lost[l])
            json_put_uint(to, event_losses[l], lost[l]);
    json_end_object(to);
}

static void put_node_totals(struct buf *to, const struct totals_node *n)
{
    json_begin_object(to);
    json_put_safe(to, "node", n->node->name);
    json_put_uint(to, "seen", n->seen);
    json_put_uint(to, "shown", n->shown);
    json_put_uint(to, "filtered", n->filtered);
    put_losses(to, n->lost);
    json_put_uint(to, "missing", n->missing);
    json_put_bool(to, "complete", n->complete);
    json_end_object(to);
}

/* Writes an object for a function with calls that were only counted. */
static void put_counted(struct buf *to, const struct stat *c)
{
    json_begin_record(to, "only_counted");
    if (c->fun) {
        json_put_string(to, "m", c->fun->module);
        json_put_string(to, "f", c->fun->name);
        json_put_uint(to, "a", c->arity);
    }
    json_put_uint(to, "calls", c->only_counted);
    json_put_bool(to, "estimated", c->estimated > 0);
    json_end_record(to);
}

static void end_json(struct sink *s, const struct totals *t)
{
    struct buf *to = s->out;
    bool any = false;

    for (size_t i = 0; i < t->ncounted; i++)
        put_counted(to, &t->counted[i]);
    json_begin_record(to, "summary");
    json_put_uint(to, "seen", t->seen);
    json_put_uint(to, "shown", t->shown);
    json_put_uint(to, "filtered", t->filtered);
    put_losses(to, t->lost);
    json_put_uint(to, "missing", t->missing);
    json_put_uint(to, "truncated", t->truncated);
    json_put_uint(to, "incomplete", t->incomplete);
    json_put_uint(to, "filter_errors", t->filter_errors);
    json_put_uint(to, "undecided", t->undecided);
    json_put_bool(to, "complete", t->complete);
    missing_json(to, t);
    missing_open_json(to, &t->open);
    if (t->tokens)
        json_put_uint(to, "tokens", t->tokens);
    for (size_t i = 0; i < t->nnodes; i++) {
        if (!t->nodes[i].node || !t->nodes[i].node->name.len)
            continue; /* a gap in the node numbers of a recording, or a node that never came */
        if (!any)
            json_put_array(to, "nodes");
        any = true;
        put_node_totals(to, &t->nodes[i]);
    }
    if (any)
        json_end_array(to);
    json_end_record(to);
}

static void release_json(struct sink *s)
{
    struct json *j = (struct json *)s;

    for (size_t kind = 0; kind < ETW_KINDS; kind++)
        buf_release(&j->heads[kind]);
    buf_release(&j->rearmed);
    buf_release(&j->file);
    buf_release(&j->node);
    buf_release(&j->mono);
}

const struct sink_type sink_json = {
    .name = "json",
    .extensions = ".json .ndjson",
    .about = "one JSON object for each event",
    .size = sizeof(struct json),
    .flags = SINK_LINES | SINK_ALONE | SINK_CALL_ARGS,
    .open = open_json,
    .event = event_json,
    .end = end_json,
    .release = release_json,
};
