/* SPDX-License-Identifier: Apache-2.0 */
#include "fields.h"

#include <stdio.h>
#include <stdlib.h>

#include "../erlang/term_json.h"
#include "../fold/property.h"
#include "../ground/mem.h"
#include "../ground/near.h"
#include "../lang/spec.h"
#include "clock.h"
#include "line.h"

struct item {
    enum property field; /* the property; PROPERTIES: this item is literal text */
    uint64_t events;     /* bit K: events of kind K may have the field */
    property_getter *get;
    bool plain;
    unsigned index; /* the N of args[N]; 0: all arguments */
    char *text;     /* the literal text, or the name of the field as given */
};

struct fields {
    struct item *items;
    size_t n, cap;
    bool format;
    struct clock iso; /* for {ts} */
};

static void hint_names(struct err *e)
{
    struct buf list = {0};

    for (size_t k = 0; k < PROPERTIES; k++)
        if (property_rows[k].uses & PROPERTY_FIELD)
            buf_printf(&list, " %s", property_rows[k].name);
    err_hint(e, "one of:%s", buf_cstr(&list));
    buf_release(&list);
}

/* Finds the field with this name, and reads the N of args[N]. Returns PROPERTIES if no field has the name. */
static enum property find_field(const char *name, size_t len, unsigned *ret_index)
{
    const char *bracket = memchr(name, '[', len);
    size_t bare = bracket ? (size_t)(bracket - name) : len, k = 0;
    int end = 0;

    *ret_index = 0;
    while (k < PROPERTIES && !(property_rows[k].uses & PROPERTY_FIELD && strlen(property_rows[k].name) == bare &&
                               !memcmp(property_rows[k].name, name, bare)))
        k++;
    if (bracket && (k != PROPERTY_args || sscanf(bracket, "[%3u]%n", ret_index, &end) != 1 ||
                    bare + (size_t)end != len || !*ret_index || *ret_index > SPEC_ARITY_MAX))
        return PROPERTIES;
    return (enum property)k;
}

static bool add_field(struct fields *f, const char *name, size_t len, struct err *e)
{
    unsigned index;
    enum property field = find_field(name, len, &index);

    if (field == PROPERTIES) {
        struct near near = near_start(name, len);
        err_set(e, ERR_USAGE, "unknown field '%.*s'", (int)MIN(len, (size_t)100), name);
        for (size_t k = 0; k < PROPERTIES; k++)
            if (property_rows[k].uses & PROPERTY_FIELD)
                near_try(&near, property_rows[k].name);
        if (near.best)
            err_hint(e, "did you mean %s?", near.best);
        else
            hint_names(e);
        return false;
    }
    f->items = mem_grow(f->items, &f->cap, f->n + 1, sizeof(*f->items));
    f->items[f->n++] = (struct item){.field = field,
                                     .events = property_rows[field].events,
                                     .get = property_getters[field],
                                     .plain = property_rows[field].uses & PROPERTY_PLAIN,
                                     .index = index,
                                     .text = mem_strndup(name, len)};
    return true;
}

static void add_text(struct fields *f, const struct buf *text)
{
    if (!text->len)
        return;
    f->items = mem_grow(f->items, &f->cap, f->n + 1, sizeof(*f->items));
    f->items[f->n++] =
        (struct item){.field = PROPERTIES, .events = ~UINT64_C(0), .text = mem_strndup(text->data, text->len)};
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
                good = err_set(e, ERR_USAGE, "missing } in the format '%.200s'", format);
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
    return f->items[index].field < PROPERTIES ? f->items[index].text : "";
}

bool fields_is_plain(const struct fields *f, size_t index)
{
    return f->items[index].plain;
}

unsigned fields_uses(const char *list, const char *format)
{
    struct fields *f;
    unsigned uses = 0;
    struct err unused;

    if (!list && !format)
        return 0;
    f = format ? fields_format(format, &unused) : fields_list(list, &unused);
    for (size_t i = 0; f && i < f->n; i++)
        if (f->items[i].field < PROPERTIES)
            uses |= property_rows[f->items[i].field].uses;
    fields_free(f);
    return uses;
}

/* ---- values ---- */

/* Returns the printer for a single value. Unlike in a line, --terms json applies. */
static const struct printer *value_printer(const struct event *e, enum terms_style style)
{
    return style == TERMS_JSON ? &printer_json : line_printer(e, style);
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
    json_open_array(to);
    for (unsigned i = 0; i < call->nterms; i++) {
        json_value(to);
        if (event_shows_arg(call, i))
            json_term(to, &call->env, at);
        else
            json_null(to);
        at = wire_skip(at);
    }
    json_end_array(to);
}

static void put_function(struct buf *to, const struct event *e, const uint8_t *at, enum terms_style style)
{
    struct mfa m;

    if (!at) {
        line_fun(to, e, style);
        buf_char(to, '/');
        print_u64(to, e->arity);
    } else if (mfa_read(e, at, &m, NULL)) {
        line_mfa_name(to, &m, line_printer(e, style) == &printer_elixir ? TERMS_ELIXIR : style);
    }
}

/* Prints the traced process as value_printer() would print its pid. */
static void put_tracee(struct buf *to, const struct event *e, enum terms_style style)
{
    if (style == TERMS_JSON)
        json_quote_safe(to, tracee_safe_text(e->who));
    else
        buf_safe(to, tracee_safe_text(e->who));
}

/* Prints a value. Prints nothing if the event does not have it. */
static void put_value(struct fields *f, struct buf *to, struct clock *clock, const struct event *e,
                      enum terms_style style, struct typed_value v)
{
    static const struct paint plain = {false};
    const struct event *of = typed_of(v, e);

    switch ((enum property_type)v.type) {
    case PROPERTY_IS_ABSENT:
    case PROPERTY_IS_LATER:
        break;
    case PROPERTY_IS_UNKNOWN:
    case PROPERTY_IS_TERM:
    case PROPERTY_IS_CHARS:
        if (v.at)
            value_printer(of, style)->term(to, &of->env, v.at);
        break;
    case PROPERTY_IS_TERMS:
        if (of->kind == ETW_CALL && event_shows_args(of))
            fields_put_args(to, of, style);
        break;
    case PROPERTY_IS_INT:
        print_i64(to, v.number);
        break;
    case PROPERTY_IS_DURATION:
        print_duration(to, v.number);
        break;
    case PROPERTY_IS_MICROS:
        put_micros(to, v.number);
        break;
    case PROPERTY_IS_TEXT:
        buf_safe(to, typed_text(v));
        break;
    case PROPERTY_IS_NAME:
        print_safe(to, typed_name(v));
        break;
    case PROPERTY_IS_ATOM:
        value_printer(of, style)->atom(to, typed_name(v));
        break;
    case PROPERTY_IS_TRACEE:
        buf_add(to, e->who->text, e->who->text_len);
        break;
    case PROPERTY_IS_PID:
        put_tracee(to, e, style);
        break;
    case PROPERTY_IS_FUNCTION:
        put_function(to, of, v.at, style);
        break;
    case PROPERTY_IS_PLACE:
        line_mfa(to, of, line_printer(of, style), v.at);
        break;
    case PROPERTY_IS_STACK:
        line_stack(to, of, line_printer(of, style), v.at);
        break;
    case PROPERTY_IS_TIME:
        clock_put(clock, to, e);
        break;
    case PROPERTY_IS_TIMESTAMP:
        clock_put_iso(&f->iso, to, e);
        break;
    case PROPERTY_IS_WHO:
        line_who(to, e, &plain);
        break;
    case PROPERTY_IS_CALL:
        line_call(to, of, line_printer(of, style), style);
        break;
    case PROPERTY_IS_LINE:
        line_event(to, e, style, &plain);
        break;
    }
}

/* Returns argument N, or an absent value if the probe does not show the argument. */
static struct typed_value shown_argument(const struct event *e, struct typed_value args, unsigned n)
{
    if (args.type == PROPERTY_IS_TERMS && !event_shows_arg(typed_of(args, e), n - 1))
        return (struct typed_value){.type = PROPERTY_IS_ABSENT};
    return property_argument(e, args, n);
}

static __attribute__((noinline)) void put_item(struct fields *f, const struct item *item, struct buf *to,
                                               struct clock *clock, const struct event *e, enum terms_style style)
{
    if (item->field == PROPERTIES) {
        buf_puts(to, item->text);
        return;
    }
    struct typed_value v = item->get(e);
    put_value(f, to, clock, e, style, unlikely(item->index) ? shown_argument(e, v, item->index) : v);
}

void fields_put(struct fields *f, size_t index, struct buf *to, struct clock *clock, const struct event *e,
                enum terms_style style)
{
    const struct item *item = &f->items[index];

    if (item->events >> e->kind & 1) /* a shortcut: most kinds of events have few of the fields */
        put_item(f, item, to, clock, e, style);
}

enum property fields_property(const struct fields *f, size_t index)
{
    return f->items[index].field;
}

bool fields_put_loss(struct fields *f, size_t index, struct buf *to, const struct event *e, enum etw_loss reason)
{
    enum property field = f->items[index].field;

    if (field == PROPERTY_type)
        buf_puts(to, event_kinds[ETW_LOST].json);
    else if (field == PROPERTY_count)
        print_u64(to, e->lost[reason]);
    else if (field == PROPERTY_reason)
        buf_puts(to, event_losses[reason]);
    else if (field == PROPERTY_node)
        buf_safe(to, e->node->name);
    return field == PROPERTY_type || field == PROPERTY_count;
}

void fields_line(struct fields *f, struct buf *to, struct clock *clock, const struct event *e, enum terms_style style)
{
    for (size_t i = 0; i < f->n; i++) {
        if (i && !f->format)
            buf_char(to, '\t');
        fields_put(f, i, to, clock, e, style);
    }
}
