/* SPDX-License-Identifier: Apache-2.0 */
#include "fields.h"

#include <stdlib.h>

#include "../erlang/term_json.h"
#include "../ground/mem.h"
#include "../ground/near.h"
#include "../pipeline/pairing.h"
#include "clock.h"
#include "line.h"

enum field {
#define FIELD(name, doc) FIELD_##name,
#include "fields.def"
    FIELDS,
};

static const char *const known[] = {
#define FIELD(name, doc) #name,
#include "fields.def"
};

struct item {
    enum field field; /* FIELDS: literal text */
    char *text;
};

struct fields {
    struct item *items;
    size_t n, cap;
    bool format;
    struct clock iso; /* for {ts} */
};

static void hint_names(struct err *e)
{
    char list[250] = "";

    for (size_t k = 0; k < FIELDS; k++) {
        strncat(list, k ? " " : "", sizeof(list) - strlen(list) - 1);
        strncat(list, known[k], sizeof(list) - strlen(list) - 1);
    }
    err_hint(e, "one of: %s", list);
}

static bool add_field(struct fields *f, const char *name, size_t len, struct err *e)
{
    size_t i = 0;

    while (i < FIELDS && (strlen(known[i]) != len || memcmp(known[i], name, len)))
        i++;
    if (i == FIELDS) {
        struct near near = near_start(name, len);
        err_set(e, ERR_USAGE, "there is no field '%.*s'", (int)MIN(len, (size_t)100), name);
        for (size_t k = 0; k < FIELDS; k++)
            near_try(&near, known[k]);
        if (near.best)
            err_hint(e, "did you mean %s?", near.best);
        else
            hint_names(e);
        return false;
    }
    f->items = mem_grow(f->items, &f->cap, f->n + 1, sizeof(*f->items));
    f->items[f->n++] = (struct item){.field = (enum field)i};
    return true;
}

static void add_text(struct fields *f, const struct buf *text)
{
    if (!text->len)
        return;
    f->items = mem_grow(f->items, &f->cap, f->n + 1, sizeof(*f->items));
    f->items[f->n++] = (struct item){.field = FIELDS, .text = mem_strndup(text->data, text->len)};
}

struct fields *fields_list(const char *list, struct err *e)
{
    struct fields *f = mem_zalloc(sizeof(*f));

    clock_init_iso(&f->iso);
    for (const char *at = list; at;) {
        size_t len = strcspn(at, ",");
        if (!add_field(f, at, len, e)) {
            fields_free(f);
            return NULL;
        }
        at = at[len] ? at + len + 1 : NULL;
    }
    return f;
}

struct fields *fields_format(const char *format, struct err *e)
{
    struct fields *f = mem_zalloc(sizeof(*f));
    struct buf text = {0};
    bool good = true;

    f->format = true;
    clock_init_iso(&f->iso);
    for (const char *at = format; *at && good; at++) {
        if ((at[0] == '{' && at[1] == '{') || (at[0] == '}' && at[1] == '}')) {
            buf_char(&text, *at++);
        } else if (at[0] == '\\' && (at[1] == 't' || at[1] == 'n' || at[1] == '\\')) {
            at++;
            buf_char(&text, *at == 't' ? '\t' : *at == 'n' ? '\n' : '\\');
        } else if (*at == '{') {
            const char *end = strchr(at, '}');
            add_text(f, &text);
            buf_clear(&text);
            if (!end)
                good = err_set(e, ERR_USAGE, "a { without its } in the format '%.200s'", format);
            else
                good = add_field(f, at + 1, (size_t)(end - at - 1), e);
            at = end ? end : at;
        } else {
            buf_char(&text, *at);
        }
    }
    add_text(f, &text);
    buf_release(&text);
    if (good)
        return f;
    fields_free(f);
    return NULL;
}

void fields_free(struct fields *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++)
        free(f->items[i].text);
    free(f->items);
    free(f);
}

size_t fields_count(const struct fields *f)
{
    return f->n;
}

const char *fields_name(const struct fields *f, size_t index)
{
    return f->items[index].field < FIELDS ? known[f->items[index].field] : "";
}

bool fields_is_plain(const struct fields *f, size_t index)
{
    switch (f->items[index].field) {
    case FIELD_ts:
    case FIELD_mono_ns:
    case FIELD_pid:
    case FIELD_type:
    case FIELD_a:
    case FIELD_dur_us:
    case FIELD_dur_ns:
    case FIELD_depth:
    case FIELD_size:
        return true;
    default:
        return false;
    }
}

/* ---- values ---- */

/* The printer for a single value. Unlike in a line, --terms json applies here. */
static const struct printer *value_printer(const struct event *e, enum terms_style style)
{
    return style == TERMS_JSON ? &printer_json : line_printer(e, style);
}

/* The call event: the event itself, or the call of a result if it was kept. */
static const struct event *call_of(const struct event *e)
{
    if (e->kind == ETW_CALL)
        return e;
    return event_is_result(e) && e->call ? e->call->event : NULL;
}

static void fields_put_value(struct buf *to, const struct event *e, enum terms_style style, const uint8_t *at)
{
    if (at)
        value_printer(e, style)->term(to, &e->env, at);
}

static bool is_send(const struct event *e)
{
    return e->kind == ETW_SEND || e->kind == ETW_SEND_NOPROC;
}

static const uint8_t *reason_of(const struct event *e)
{
    const uint8_t *reason = NULL;
    struct raw class;

    if (e->kind == ETW_EXCEPTION_FROM)
        line_exception(e, &class, &reason);
    else if (e->kind == ETW_EXIT || e->kind == ETW_CLOSED)
        reason = e->terms.at;
    return reason;
}

static void put_class(struct buf *to, const struct event *e)
{
    const uint8_t *reason;
    struct raw class;

    if (e->kind == ETW_EXCEPTION_FROM && line_exception(e, &class, &reason))
        print_safe(to, class);
}

static void put_micros(struct buf *to, int64_t ns)
{
    print_i64(to, ns / 1000);
    unsigned rest = (unsigned)(ns % 1000);
    char *p = buf_room(to, 4);
    p[0] = '.', p[1] = (char)('0' + rest / 100), p[2] = (char)('0' + rest / 10 % 10), p[3] = (char)('0' + rest % 10);
    to->len += 4;
}

static void fields_put_args(struct buf *to, const struct event *call, enum terms_style style)
{
    if (style != TERMS_JSON) {
        line_args(to, call, line_printer(call, style));
        return;
    }
    const uint8_t *at = call->terms.at;
    for (unsigned i = 0; i < call->nterms; i++) {
        buf_char(to, i ? ',' : '[');
        if (event_shows_arg(call, i))
            json_term(to, &call->env, at);
        else
            buf_puts(to, "null");
        at = wire_skip(at);
    }
    buf_puts(to, call->nterms ? "]" : "[]");
}

void fields_put(struct fields *f, size_t index, struct buf *to, struct clock *clock, const struct event *e,
                enum terms_style style)
{
    static const struct paint plain = {false};
    const struct event *c;

    switch (f->items[index].field) {
    case FIELD_time:
        clock_put(clock, to, e);
        break;
    case FIELD_ts:
        clock_put_iso(&f->iso, to, e);
        break;
    case FIELD_mono_ns:
        print_i64(to, e->mono_ns);
        break;
    case FIELD_node:
        buf_safe(to, e->node->name);
        break;
    case FIELD_pid:
        buf_add(to, e->who->text, e->who->text_len);
        break;
    case FIELD_name:
        buf_add(to, e->who->name, e->who->name_len);
        break;
    case FIELD_who:
        line_who(to, e, &plain);
        break;
    case FIELD_type:
        buf_puts(to, event_kinds[e->kind].json);
        break;
    case FIELD_m:
        if (e->fun)
            print_safe(to, e->fun->module);
        break;
    case FIELD_f:
        if (e->fun)
            print_safe(to, e->fun->name);
        break;
    case FIELD_a:
        if (e->fun)
            print_u64(to, e->arity);
        break;
    case FIELD_mfa:
        if (e->fun) {
            line_fun(to, e, style);
            buf_char(to, '/');
            print_u64(to, e->arity);
        }
        break;
    case FIELD_call:
        if ((c = call_of(e)))
            line_call(to, c, line_printer(e, style), style);
        break;
    case FIELD_args:
        if ((c = call_of(e)) && event_shows_args(c))
            fields_put_args(to, c, style);
        break;
    case FIELD_value:
        fields_put_value(to, e, style, e->kind == ETW_RETURN_FROM ? e->terms.at : NULL);
        break;
    case FIELD_class:
        put_class(to, e);
        break;
    case FIELD_reason:
        fields_put_value(to, e, style, reason_of(e));
        break;
    case FIELD_dur:
        if (e->dur_ns >= 0)
            print_duration(to, e->dur_ns);
        break;
    case FIELD_dur_us:
        if (e->dur_ns >= 0)
            put_micros(to, e->dur_ns);
        break;
    case FIELD_dur_ns:
        if (e->dur_ns >= 0)
            print_i64(to, e->dur_ns);
        break;
    case FIELD_msg:
        fields_put_value(to, e, style,
                         is_send(e)               ? wire_skip(e->terms.at)
                         : e->kind == ETW_RECEIVE ? e->terms.at
                                                  : NULL);
        break;
    case FIELD_to:
        fields_put_value(to, e, style, is_send(e) ? e->terms.at : NULL);
        break;
    case FIELD_from:
        fields_put_value(to, e, style, e->sender);
        break;
    case FIELD_caller:
        if (e->caller)
            line_mfa(to, e, line_printer(e, style), e->caller);
        break;
    case FIELD_message:
        fields_put_value(to, e, style, e->user);
        break;
    case FIELD_depth:
        print_u64(to, e->depth);
        break;
    case FIELD_size:
        print_u64(to, e->bytes);
        break;
    case FIELD_text:
        line_event(to, e, style, &plain);
        break;
    case FIELD_count:
        break;
    case FIELDS:
        buf_puts(to, f->items[index].text);
        break;
    }
}

bool fields_put_loss(struct fields *f, size_t index, struct buf *to, const struct event *e, enum etw_loss reason)
{
    switch (f->items[index].field) {
    case FIELD_type:
        buf_puts(to, event_kinds[ETW_LOST].json);
        return true;
    case FIELD_reason:
        buf_puts(to, event_losses[reason]);
        return false;
    case FIELD_count:
        print_u64(to, e->lost[reason]);
        return true;
    case FIELD_node:
        buf_safe(to, e->node->name);
        return false;
    default:
        return false;
    }
}

void fields_line(struct fields *f, struct buf *to, struct clock *clock, const struct event *e, enum terms_style style)
{
    for (size_t i = 0; i < f->n; i++) {
        if (i && !f->format)
            buf_char(to, '\t');
        fields_put(f, i, to, clock, e, style);
    }
}
