/* SPDX-License-Identifier: Apache-2.0 */
#include "topics.h"

#include <stdio.h>
#include <string.h>

#include "../lang/actions.h"
#include "../lang/properties.h"
#include "../views/sink.h"
#include "cmd.h"

#define COLUMN 22

struct topic {
    const char *name;
    const char *text; /* text above the rows */
    void (*rows)(struct buf *b);
    const char *after; /* text below the rows; NULL: none */
};

/* ---- the rows of the tables of the language ---- */

static const struct {
    const char *name, *doc;
} events[] = {
#define EVENT(id, name, flag, nargs, doc) {name, doc},
#include "../lang/events.def"
};

/*
 * Splits a text such as "(Reason): a process ends" into the arguments of the event, which may be empty, and its
 * meaning. Returns the meaning.
 */
static const char *event_arguments(const char *doc, size_t *ret_len)
{
    const char *end = *doc == '(' ? strstr(doc, "): ") : NULL;

    *ret_len = end ? (size_t)(end + 1 - doc) : 0;
    return end ? end + 3 : doc;
}

static void event_row(struct buf *b, const char *name, const char *doc)
{
    struct buf left = {0};
    size_t len;
    const char *means = event_arguments(doc, &len);

    buf_printf(&left, "@%s%.*s", name, (int)len, doc);
    help_row(b, buf_cstr(&left), means, COLUMN);
    buf_release(&left);
}

static void event_rows(struct buf *b)
{
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        event_row(b, events[i].name, events[i].doc);
}

static void action_rows(struct buf *b)
{
    struct buf left = {0};

    for (int i = 0; i < ACTIONS; i++) {
        const struct action_row *row = action_row((enum action)i);
        left.len = 0;
        buf_printf(&left, "%s%s", row->word, row->least ? "(...)" : "");
        help_row(b, buf_cstr(&left), row->doc, COLUMN);
    }
    buf_release(&left);
}

static void property_rows_with(struct buf *b, unsigned uses)
{
    for (size_t i = 0; i < PROPERTIES; i++)
        if (property_rows[i].uses & uses)
            help_row(b, property_rows[i].name, property_rows[i].doc, COLUMN);
}

static void where_rows(struct buf *b)
{
    property_rows_with(b, PROPERTY_WHERE);
}

static void by_rows(struct buf *b)
{
    property_rows_with(b, PROPERTY_WHERE | PROPERTY_BY);
    help_row(b, "tag(X)", "the shape of a term: its tag, its struct, its type", COLUMN);
}

/* Prints the members of JSON lines that several kinds of events have. */
static void json_rows(struct buf *b)
{
    for (size_t i = 0; i < PROPERTIES; i++)
        if (property_rows[i].uses & PROPERTY_HEAD || property_rows[i].json)
            help_row(b, property_rows[i].name, property_rows[i].doc, COLUMN);
}

static void guard_rows(struct buf *b)
{
    struct buf left = {0};

    for (int i = 0; i < FN_COUNT; i++) {
        const struct fn_row *row = fn_row((enum fn)i);
        if (!(row->places & PLACE_ANY_GUARD))
            continue;
        left.len = 0;
        buf_printf(&left, "%s/%d", row->name, row->least);
        help_row(b, buf_cstr(&left), row->doc, COLUMN);
    }
    buf_release(&left);
}

static void view_rows(struct buf *b)
{
    for (const struct sink_type *const *t = sink_types; *t; t++)
        help_row(b, (*t)->name, (*t)->about, COLUMN);
}

/* ---- the pages ---- */

static const struct topic topics[] = {
    {"model",
     "node -> probe -> view -> file\n\n"
     "  node    where: -n NAME, -p OSPID, --ssh HOST, or the only node of this host.\n"
     "          `etrace nodes` lists those of this host.\n"
     "  probe   what happens: an expression, such as 'lists:seq(_, N) when N > 9'.\n"
     "          It selects, collects and filters: `etrace help expr`.\n"
     "  view    how it looks, --as VIEW: what (events, tree, summary, table,\n"
     "          requests, ...) times how (text, JSON, CSV): `etrace help views`.\n"
     "  file    for later, -o FILE: a recording (.etr), which `etrace replay` and\n"
     "          `etrace browse` show in any view, or a view that the extension of\n"
     "          FILE names (.json, .csv, .svg, ...).\n\n"
     "A trace ends with Ctrl-C, or after --for or --limit, and is removed from the\n"
     "node. Without a probe, check, ps, stacks and why only look at the node; with\n"
     "--for, check also traces for that time.\n",
     NULL, NULL},
    {"expr",
     "An expression is one argument, in quotes:\n\n"
     "  FUNCTION(PATTERNS) when GUARD -> ACTIONS where CONDITION by KEYS inside ROOT\n\n"
     "  lists:seq/2                        a function\n"
     "  lists:seq  lists:_  app(shop)      every arity, a module, an application\n"
     "  MyApp.Repo.get/2                   the same in Elixir\n"
     "  a:f/1 | b:g/2                      alternatives\n"
     "  ets:insert(_, {K, _}) when K > 9   only some arguments: help guards\n"
     "  ... -> return, caller              what to collect:     help actions\n"
     "  ... where dur > 5ms                which results:       help where\n"
     "  ... by caller: count, max(dur)     count instead:       help by\n"
     "  ... inside shop_orders:take/4      only within this call\n"
     "  send(To, Msg)  recv(From, Msg)     messages\n"
     "  @exit(Reason)  @gc  @long_gc(100)  other events:        help events\n\n"
     "`etrace explain EXPR` shows what an expression means; etrace-expr(7) has all.\n",
     NULL, NULL},
    {"events",
     "An event is a probe. It may have patterns, a guard, `where`, `by` and `inside`:\n"
     "'@exit(R) when R =/= normal', '@gc_major_end by pid: count, max(dur)'.\n\n",
     event_rows, "\n@procs, @running, @exiting, @gc and @ports select groups of them.\n"},
    {"actions", "Actions stand behind the arrow, with commas: 'lists:seq/2 -> return, caller'.\n\n", action_rows, NULL},
    {"guards",
     "A guard selects calls on the node, by their arguments: 'm:f(X) when is_atom(X)'.\n"
     "Operators are those of Erlang, or of Elixir in its expressions.\n\n",
     guard_rows, NULL},
    {"where",
     "A condition selects events, and knows how a call ended: 'm:f/1 where dur > 5ms',\n"
     "'m:f/1 where ret = {error, _}', '... where class == error and args[1] > 3'.\n"
     "It has the operators of guards, = with a pattern, and =~ with a regular\n"
     "expression. The option -e gives a condition to all expressions.\n\n",
     where_rows, NULL},
    {"by",
     "'ets:lookup(T, _) by T: count, max(dur)' has a row for each table. Keys are\n"
     "variables of the patterns, parts of them, and the words below. Behind the colon\n"
     "stand count, sum(X), min(X), max(X), avg(X), hist(X) and quantiles(X).\n\n",
     by_rows, NULL},
    {"views",
     "--as VIEW chooses a view, and so does the extension of -o FILE. A view is what\n"
     "times how: --json and the extension .csv work for events, tables and requests.\n\n",
     view_rows, NULL},
    {"json",
     "--json prints one object a line, and nothing else to standard output:\n\n"
     "  etrace --json 'm:f/1 -> return' | jq 'select(.type == \"return\") | .dur_us'\n\n"
     "All commands that print tables have --json, too. Members of the lines of events:\n\n",
     json_rows, "\n`etrace schema` prints the schema, and etrace-json(5) explains it.\n"},
};

static void topic_page(struct buf *b, const struct topic *t)
{
    buf_puts(b, t->text);
    if (t->rows)
        t->rows(b);
    if (t->after)
        buf_puts(b, t->after);
}

/* ---- words ---- */

typedef void meaning_fn(void *data, const char *word, const char *usage, const char *doc);

/*
 * Calls `each` for every meaning of every word of the expression language, and for every view. `dash` precedes names of
 * options.
 */
static void meanings_each(const char *dash, meaning_fn *each, void *data)
{
    char usage[160];

    for (int i = 0; i < ACTIONS; i++) {
        const struct action_row *row = action_row((enum action)i);
        snprintf(usage, sizeof usage, "EXPR -> %s", row->word);
        each(data, row->word, usage, row->doc);
    }
    for (size_t i = 0; i < PROPERTIES; i++) {
        const struct property_row *row = &property_rows[i];
        if (row->uses & (PROPERTY_WHERE | PROPERTY_BY))
            snprintf(usage, sizeof usage, "EXPR %s %s", row->uses & PROPERTY_WHERE ? "where" : "by", row->name);
        else
            snprintf(usage, sizeof usage, "%sfields %s", dash, row->name);
        each(data, row->name, usage, row->doc);
    }
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        size_t len;
        const char *doc = event_arguments(events[i].doc, &len);
        snprintf(usage, sizeof usage, "@%s%.*s", events[i].name, (int)len, events[i].doc);
        each(data, events[i].name, usage, doc);
    }
    for (int i = 0; i < FN_COUNT; i++) {
        const struct fn_row *row = fn_row((enum fn)i);
        snprintf(usage, sizeof usage, "EXPR when %s/%d", row->name, row->least);
        if (row->places & PLACE_ANY_GUARD)
            each(data, row->name, usage, row->doc);
    }
    for (const struct sink_type *const *t = sink_types; *t; t++) {
        snprintf(usage, sizeof usage, "%sas %s", dash, (*t)->name);
        each(data, (*t)->name, usage, (*t)->about);
    }
}

struct sought_word {
    struct buf *to;
    const char *name;
};

static void put_meaning(void *data, const char *word, const char *usage, const char *doc)
{
    const struct sought_word *s = data;

    if (!strcmp(word, s->name))
        buf_printf(s->to, "%s\n%s\n", usage, doc);
}

bool topic_print(struct buf *b, const char *name, const char *dash)
{
    struct sought_word sought = {b, name + (*name == '@')};
    const size_t before = b->len;

    for (size_t i = 0; i < ARRAY_LEN(topics); i++)
        if (!strcmp(name, topics[i].name)) {
            topic_page(b, &topics[i]);
            return true;
        }
    meanings_each(dash, put_meaning, &sought);
    return b->len > before;
}

struct name_taker {
    void (*each)(void *data, const char *name);
    void *data;
};

static void take_word(void *data, const char *word, const char *usage UNUSED, const char *doc UNUSED)
{
    const struct name_taker *t = data;

    t->each(t->data, word);
}

void topics_each(void (*each)(void *data, const char *name), void *data)
{
    for (size_t i = 0; i < ARRAY_LEN(topics); i++)
        each(data, topics[i].name);
}

void topic_names(void (*each)(void *data, const char *name), void *data)
{
    struct name_taker taker = {each, data};

    topics_each(each, data);
    meanings_each("", take_word, &taker);
}
