/* SPDX-License-Identifier: Apache-2.0 */
/* The json view: one JSON object per line for each event. The member names are stable, because scripts depend on
 * them. */
#include <assert.h>
#include <stdio.h>

#include "../erlang/term_json.h"
#include "../lang/spec.h"
#include "clock.h"
#include "line.h"
#include "line_info.h"
#include "property.h"

/* A property that the events of a kind have in JSON. */
struct member {
    property_getter *get; /* NULL: the end of a list */
    size_t len;
    char key[16]; /* ,"name": */
};

struct json {
    struct sink sink;
    struct member members[2][ETW_KINDS][12]; /* of events without and with what the probe collected */
    bool parts[ETW_KINDS];                   /* put_parts() has more members */
    struct clock clock;
    struct buf file; /* scratch for the file name in a caller */
    struct buf node; /* cached text `,"node":"...","pid":"` for the node `named` */
    const struct event_node *named;
    size_t named_len;
    struct buf mono; /* cached digits of mono_billions */
    int64_t mono_billions;
};

#define ADD(to, literal) buf_add(to, literal, sizeof(literal) - 1)

/* Whether the first term of this kind is a property, and so are all its terms. */
static bool has_property(size_t kind)
{
    for (size_t i = 0; i < PROPERTIES; i++)
        if (property_rows[i].json >> kind & 1 && !strcmp(property_rows[i].name, event_kinds[kind].terms[0].name))
            return true;
    return false;
}

/* Lists the members of each kind in the order of the rows. */
static void list_members(struct json *j)
{
    struct member all[PROPERTIES];

    for (size_t i = 0; i < PROPERTIES; i++) {
        int len = snprintf(all[i].key, sizeof(all[i].key), ",\"%s\":", property_rows[i].name);
        assert(len > 0 && (size_t)len < sizeof(all[i].key));
        all[i].len = (size_t)len;
        all[i].get = property_getters[i];
    }
    for (size_t kind = 0; kind < ETW_KINDS; kind++) {
        size_t n[2] = {0};
        for (size_t i = 0; i < PROPERTIES; i++)
            for (size_t with = property_rows[i].uses & PROPERTY_COLLECTED ? 1 : 0; with < 2; with++)
                if (property_rows[i].json >> kind & 1)
                    j->members[with][kind][n[with]++] = all[i];
        assert(n[1] < ARRAY_LEN(j->members[1][kind]));
        j->parts[kind] = event_kinds[kind].terms[0].name && !has_property(kind);
    }
}

static bool open_json(struct sink *sink, struct err *e)
{
    struct json *j = (struct json *)sink;

    (void)e;
    j->mono_billions = -1;
    clock_init_iso(&j->clock);
    list_members(j);
    return true;
}

/* ---- pieces ---- */

static void put_quoted_safe(struct buf *to, struct safe text)
{
    buf_char(to, '"');
    size_t from = to->len;
    buf_safe(to, text);
    json_escape_tail(to, from);
    buf_char(to, '"');
}

/* Writes a term as a string in its language's syntax, or as a JSON structure. */
static const uint8_t *put_term(struct json *j, struct buf *to, const struct event *e, const struct printer *p,
                               const uint8_t *at)
{
    if (j->sink.look.terms == TERMS_JSON)
        return json_term(to, &e->env, at);
    uint8_t tag = *at;
    buf_char(to, '"');
    size_t from = to->len;
    at = p->term(to, &e->env, at);
    if (tag > ETW_T_FLOAT) /* numbers need no escapes */
        json_escape_tail(to, from);
    buf_char(to, '"');
    return at;
}

static void put_key(struct buf *to, const char *key, size_t len)
{
    char *p = buf_room(to, len + 4);

    p[0] = ',', p[1] = '"';
    memcpy(p + 2, key, len);
    p[len + 2] = '"', p[len + 3] = ':';
    to->len += len + 4;
}

static const uint8_t *member(struct json *j, const struct event *e, const struct printer *p, const char *key,
                             const uint8_t *at)
{
    put_key(j->sink.out, key, strlen(key));
    return put_term(j, j->sink.out, e, p, at);
}

static void sink_json_put_args(struct json *j, const struct event *e, const struct printer *p)
{
    struct buf *to = j->sink.out;
    const uint8_t *at = e->terms.at;

    buf_char(to, '[');
    for (unsigned i = 0; i < e->nterms; i++) {
        if (i)
            buf_char(to, ',');
        if (likely(event_shows_arg(e, i))) {
            at = put_term(j, to, e, p, at);
        } else {
            ADD(to, "null");
            at = wire_skip(at);
        }
    }
    buf_char(to, ']');
}

static void sink_json_put_fun(struct buf *to, const struct event *e)
{
    if (!e->fun)
        return;
    buf_char(to, ',');
    buf_short(to, e->fun->json);
    ADD(to, ",\"a\":");
    print_u64(to, e->arity);
}

/* Writes microseconds, with nanoseconds as the fraction. */
static void put_micros(struct buf *to, int64_t ns)
{
    print_i64(to, ns / 1000);
    unsigned rest = (unsigned)(ns % 1000);
    if (rest) {
        char *p = buf_room(to, 4);
        p[0] = '.', p[1] = (char)('0' + rest / 100), p[2] = (char)('0' + rest / 10 % 10), p[3] = (char)('0' + rest % 10);
        to->len += rest % 10 ? 4 : rest % 100 ? 3 : 2;
    }
}

static void sink_json_put_function(struct buf *to, const struct line_mfa *m)
{
    ADD(to, "\"m\":");
    json_quote(to, m->module);
    ADD(to, ",\"f\":");
    json_quote(to, m->function);
}

/* Writes "m", "f", "a" or "args", "file" and "line" of an MFA tuple. False: another term. */
static bool mfa_members(struct json *j, const struct event *e, const struct printer *p, const uint8_t *at)
{
    struct buf *to = j->sink.out;
    struct line_mfa m;

    if (!line_read_mfa(e, at, &m, &j->file))
        return false;
    sink_json_put_function(to, &m);
    if (m.args) {
        ADD(to, ",\"args\":[");
        const uint8_t *el, *list = m.args;
        if (*list == ETW_T_STRING) {
            for (size_t i = 0; i < wire_u16(m.args + 1); i++)
                buf_printf(to, j->sink.look.terms == TERMS_JSON ? "%s%u" : "%s\"%u\"", i ? "," : "", m.args[3 + i]);
        } else {
            wire_list(&list);
            for (bool first = true; (el = wire_list_next(&list)); first = false) {
                if (!first)
                    buf_char(to, ',');
                put_term(j, to, e, p, el);
            }
        }
        buf_char(to, ']');
    } else {
        ADD(to, ",\"a\":");
        print_i64(to, m.arity);
    }
    if (m.file.len) {
        ADD(to, ",\"file\":");
        json_quote(to, m.file);
        ADD(to, ",\"line\":");
        print_i64(to, m.line);
    }
    return true;
}

static void put_mfa(struct json *j, const struct event *e, const struct printer *p, const uint8_t *at)
{
    struct buf *to = j->sink.out;

    buf_char(to, ',');
    if (!mfa_members(j, e, p, at)) {
        to->len--;
        if (*at) /* 0: in no Erlang function */
            member(j, e, p, "mfa", at);
    }
}

static void put_place(struct json *j, const struct event *e, const struct printer *p, const uint8_t *at)
{
    struct buf *to = j->sink.out;

    buf_char(to, '{');
    if (!mfa_members(j, e, p, at)) {
        to->len--;
        put_term(j, to, e, p, at);
    } else {
        buf_char(to, '}');
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
    buf_char(to, '[');
    for (bool first = true; (el = wire_list_next(&list)); first = false) {
        if (!first)
            buf_char(to, ',');
        put_place(j, e, p, el);
    }
    buf_char(to, ']');
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

/* Writes an atom in the language's syntax, as put_term() does. */
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
        put_quoted_safe(to, typed_text(v));
        break;
    case PROPERTY_IS_NAME:
        json_quote(to, typed_name(v));
        break;
    case PROPERTY_IS_ATOM:
        put_atom(j, e, p, typed_name(v));
        break;
    case PROPERTY_IS_TRACEE:
    case PROPERTY_IS_PID:
        put_quoted_safe(to, tracee_safe_text(e->who));
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
        ADD(to, "null"); /* no row with such a value has JSON */
        break;
    }
}

static void put_member_key(struct buf *to, const struct member *m)
{
    memcpy(buf_room(to, sizeof(m->key)), m->key, sizeof(m->key)); /* a copy of constant size needs no call */
    to->len += m->len;
}

/* Writes a member for each property in the list that the event has. */
static void put_properties(struct json *j, const struct event *e, const struct printer *p, const struct member *m)
{
    for (; m->get; m++) {
        struct typed_value v = m->get(e);
        const struct event *of = typed_of(v, e);
        if (likely(v.type == PROPERTY_IS_TERM)) {
            put_member_key(j->sink.out, m);
            put_term(j, j->sink.out, of, p, v.at);
        } else if (v.type == PROPERTY_IS_TERMS ? event_shows_args(of)
                                               : v.type != PROPERTY_IS_ABSENT && (v.type != PROPERTY_IS_UNKNOWN || v.at)) {
            put_member_key(j->sink.out, m);
            put_value(j, of, p, v);
        }
    }
}

/* Writes [{heap_size,233},{in,{m,f,1}},...] as an object, and anything else as a term. */
static void put_info(struct json *j, const struct event *e, const struct printer *p, const uint8_t *at)
{
    struct buf *to = j->sink.out;
    const uint8_t *list = at, *el, *first;
    size_t from = to->len;
    uint32_t arity;
    struct raw name;
    int64_t value;
    bool any = false;

    ADD(to, ",\"info\":{");
    if (*at == ETW_T_LIST && wire_list(&list)) {
        for (; (el = wire_list_next(&list)); any = true) {
            if (wire_tuple(el, &arity, &first) != 2 || !wire_atom(&e->env, first, &name))
                break;
            if (any)
                buf_char(to, ',');
            json_quote(to, name);
            buf_char(to, ':');
            if (wire_int(wire_skip(first), &value))
                print_i64(to, value);
            else
                put_term(j, to, e, p, wire_skip(first));
        }
        if (any && !el) {
            buf_char(to, '}');
            return;
        }
    }
    to->len = from;
    member(j, e, p, "info", at);
}

static void put_seq_trace(struct json *j, const struct event *e, const struct printer *p)
{
    struct buf *to = j->sink.out;
    struct seq_info s;
    const uint8_t *info = member(j, e, p, "label", e->terms.at);

    if (!seq_info_read(e, info, &s)) {
        member(j, e, p, "info", info);
        return;
    }
    ADD(to, ",\"what\":");
    json_quote(to, s.what);
    ADD(to, ",\"prev\":");
    print_i64(to, s.prev);
    ADD(to, ",\"cur\":");
    print_i64(to, s.cur);
    member(j, e, p, "from", s.from);
    if (!s.prints)
        member(j, e, p, "to", s.to);
    member(j, e, p, "msg", s.msg);
}

/* ---- the objects ---- */

#define PUT(p, literal) (memcpy(p, literal, sizeof(literal) - 1), (p) + sizeof(literal) - 1)

static char *sink_json_put(char *p, const char *text, size_t len)
{
    memcpy(p, text, len);
    return p + len;
}

/* Writes the members that all objects share. Caches text that rarely changes between events. */
static void sink_json_begin(struct json *j, const struct event *e, const char *type, size_t type_len)
{
    struct buf *to = j->sink.out;
    int64_t billions = e->mono_ns / 1000000000;

    if (unlikely(j->named != e->node || j->named_len != e->node->name.len)) {
        buf_clear(&j->node);
        ADD(&j->node, ",\"node\":");
        put_quoted_safe(&j->node, e->node->name);
        j->named = e->node;
        j->named_len = e->node->name.len;
    }
    if (unlikely(j->mono_billions != billions)) {
        buf_clear(&j->mono);
        print_i64(&j->mono, billions);
        j->mono_billions = billions;
    }
    char *p = buf_room(to, 256 + j->node.len);
    p = PUT(p, "{\"v\":1,\"type\":\"");
    p = sink_json_put(p, type, type_len);
    p = PUT(p, "\",\"ts\":\"");
    to->len = (size_t)(p - to->data);
    clock_put_iso(&j->clock, to, e);
    ADD(to, "\",\"mono_ns\":");
    if (likely(billions)) { /* the cached digits include the sign, but 0 has none */
        int64_t nanos = e->mono_ns % 1000000000;
        uint32_t rest = (uint32_t)(nanos < 0 ? -nanos : nanos);
        buf_str(to, buf_view(&j->mono));
        p = buf_room(to, 16);
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

    char *p = buf_room(to, sizeof(w->text) + 16);
    p = PUT(p, ",\"pid\":\"");
    memcpy(p, w->text, sizeof(w->text));
    p += w->text_len;
    *p++ = '"';
    to->len = (size_t)(p - to->data);
    if (w->name_len) {
        ADD(to, ",\"name\":");
        put_quoted_safe(to, tracee_safe_name(w));
    }
    if (unlikely(e->spec && e->spec->label.len)) {
        ADD(to, ",\"probe\":");
        put_quoted_safe(to, e->spec->label);
    }
}

/* Names the endless function of a notice. */
static void put_endless(struct json *j, const struct event *e)
{
    struct buf *to = j->sink.out;
    struct line_mfa m;

    if (!line_endless(e, &m))
        return;
    ADD(to, ",");
    sink_json_put_function(to, &m);
    ADD(to, ",\"a\":");
    print_i64(to, m.arity);
}

static void sink_json_own_event(struct json *j, const struct event *e)
{
    struct buf *to = j->sink.out;
    struct raw tag;

    switch ((enum etw_kind)e->kind) {
    case ETW_LOST:
        for (enum etw_loss l = 0; l < ETW_LOSSES; l++) {
            if (!e->lost[l])
                continue;
            sink_json_begin(j, e, "lost", 4);
            ADD(to, ",\"count\":");
            print_u64(to, e->lost[l]);
            buf_printf(to, ",\"reason\":\"%s\"}\n", event_losses[l]);
        }
        break;
    case ETW_HELLO:
        sink_json_begin(j, e, "attached", 8);
        if (e->node->otp.len) {
            ADD(to, ",\"otp\":");
            put_quoted_safe(to, e->node->otp);
        }
        ADD(to, "}\n");
        break;
    case ETW_NOTICE:
        if (event_is_expected(e))
            break;
        if (wire_is_atom(&e->env, e->terms.at, "rearmed")) {
            sink_json_begin(j, e, "rearmed", 7);
        } else {
            sink_json_begin(j, e, "notice", 6);
            ADD(to, ",\"tag\":");
            if (wire_atom(&e->env, e->terms.at, &tag))
                json_quote(to, tag);
            else
                put_term(j, to, e, &printer_erlang, e->terms.at);
        }
        member(j, e, &printer_erlang, "info", wire_skip(e->terms.at));
        put_endless(j, e);
        ADD(to, "}\n");
        break;
    case ETW_DOWN:
    case ETW_UP:
        if (e->kind == ETW_DOWN)
            sink_json_begin(j, e, "node_down", 9);
        else
            sink_json_begin(j, e, "node_up", 7);
        if (e->node->why.len) {
            ADD(to, ",\"reason\":");
            put_quoted_safe(to, e->node->why);
        }
        ADD(to, "}\n");
        break;
    case ETW_NAME:
    case ETW_TALLY:
    case ETW_TICK:
#define TRACED(name, ...) case ETW_##name:
#define PROBED(name, ...) case ETW_##name:
#include "event_kinds.def"
        break;
    }
}

static inline const uint8_t *put_event_term(struct json *j, const struct event *e, const struct printer *p,
                                            const struct event_term *term, const uint8_t *at)
{
    switch (term->type) {
    case EVENT_TERM:
    case EVENT_PROCESS:
        put_key(j->sink.out, term->name, term->len);
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

/* Writes the terms of the event that are no properties. */
static void put_parts(struct json *j, const struct event *e, const struct printer *p)
{
    const struct event_kind *kind = &event_kinds[e->kind];
    const uint8_t *at = e->terms.at;

    switch (kind->layout) {
    case ETW_LAYOUT_LABEL:
        put_seq_trace(j, e, p);
        break;
    case ETW_LAYOUT_TERM:
        put_event_term(j, e, p, &kind->terms[0], at);
        break;
    case ETW_LAYOUT_EXTRA_TERM:
    case ETW_LAYOUT_TERM_EXTRA:
    case ETW_LAYOUT_TAG_TERM:
        at = put_event_term(j, e, p, &kind->terms[0], at);
        put_event_term(j, e, p, &kind->terms[1], at);
        break;
    case ETW_LAYOUT_CALL:
    case ETW_LAYOUT_RETURN:
    case ETW_LAYOUT_RETURN_TO:
    case ETW_LAYOUT_OWN: /* not here: sink_json_own_event() */
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
    if (e->kind == ETW_CALL)
        sink_json_begin(j, e, "call", 4);
    else
        sink_json_begin(j, e, event_kinds[e->kind].json, strlen(event_kinds[e->kind].json));
    sink_json_put_who(to, e);
    sink_json_put_fun(to, e);
    if (j->parts[e->kind])
        put_parts(j, e, p);
    put_properties(j, e, p, j->members[e->ms.at < e->ms.end][e->kind]);
    if (e->flags & ETW_F_CUT)
        ADD(to, ",\"cut\":true");
    ADD(to, "}\n");
}

static void put_losses(struct buf *to, const uint64_t lost[static ETW_LOSSES])
{
    bool any = false;

    for (size_t l = 0; l < ETW_LOSSES; l++) {
        if (!lost[l])
            continue;
        buf_printf(to, "%s\"%s\":%llu", any ? "," : "", event_losses[l], (unsigned long long)lost[l]);
        any = true;
    }
}

static void end_json(struct sink *s, const struct totals *t)
{
    struct buf *to = s->out;
    bool any;

    buf_printf(to, "{\"v\":1,\"type\":\"summary\",\"seen\":%llu,\"shown\":%llu,\"filtered\":%llu,\"lost\":{",
               (unsigned long long)t->seen, (unsigned long long)t->shown, (unsigned long long)t->filtered);
    put_losses(to, t->lost);
    buf_printf(to, "},\"missing\":%llu,\"truncated\":%llu,\"incomplete\":%llu,\"filter_errors\":%llu,\"undecided\":%llu,\"complete\":%s",
               (unsigned long long)t->missing, (unsigned long long)t->truncated, (unsigned long long)t->incomplete,
               (unsigned long long)t->filter_errors, (unsigned long long)t->undecided, t->complete ? "true" : "false");
    if (t->tokens)
        buf_printf(to, ",\"tokens\":%llu", (unsigned long long)t->tokens);
    any = false;
    for (size_t i = 0; i < t->nnodes; i++) {
        const struct totals_node *n = &t->nodes[i];
        if (!n->node || !n->node->name.len)
            continue; /* a gap in the node numbers of a recording, or a node that never arrived */
        buf_puts(to, any ? ",{\"node\":" : ",\"nodes\":[{\"node\":");
        any = true;
        put_quoted_safe(to, n->node->name);
        buf_printf(to, ",\"seen\":%llu,\"shown\":%llu,\"filtered\":%llu,\"lost\":{", (unsigned long long)n->seen,
                   (unsigned long long)n->shown, (unsigned long long)n->filtered);
        put_losses(to, n->lost);
        buf_printf(to, "},\"missing\":%llu,\"complete\":%s}", (unsigned long long)n->missing,
                   n->complete ? "true" : "false");
    }
    buf_puts(to, any ? "]}\n" : "}\n");
}

static void release_json(struct sink *s)
{
    struct json *j = (struct json *)s;

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
