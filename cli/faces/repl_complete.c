/* SPDX-License-Identifier: Apache-2.0 */
/* Completes the line with names that a node sends, and with names that need no node. */
#include "repl_complete.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../commands/topics.h"
#include "../trace/exprs.h"
#include "../erlang/etf_write.h"
#include "../ground/mem.h"
#include "../ground/utf8.h"
#include "../lang/actions.h"
#include "repl_syntax.h"
#include "repl_words.h"

#define WAIT_MS 700
#define KEPT_MS 15000
#define LISTS 32   /* number of lists in the cache */
#define LISTED 200 /* limit for the names that are shown as candidates */
/* Limit for the bytes of the names in a list, because a hostile node may send names without end. */
#define BYTES_MOST (4u << 20)
#define REQUEST_MS 10000

/* A list of names that a node has sent, in the order of the node. */
struct list {
    char *what; /* the kind of names, as in the request: "modules", "functions lists", "record lists", … */
    char **names;
    size_t count, cap, bytes;
    int64_t at;
    bool whole; /* complete: the node has sent all names, or the list has BYTES_MOST bytes */
    uint32_t request;
};

struct repl_complete {
    struct repl_base *base;
    struct repl_nodes *nodes;
    struct repl_probes *probes;
    struct list lists[LISTS];
    unsigned epoch; /* value of repl_nodes_epoch() when the lists were requested */
};

static void clear_names(struct list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->names[i]);
    free(l->names);
    free(l->what);
    *l = (struct list){0};
}

static void repl_complete_forget(struct repl_complete *c)
{
    for (size_t i = 0; i < LISTS; i++)
        clear_names(&c->lists[i]);
}

/*
 * Drops all lists if another node has become current, or if a node was lost or detached. Returns true if it has dropped
 * them.
 */
static bool forget_outdated(struct repl_complete *c)
{
    unsigned now = repl_nodes_epoch(c->nodes);
    bool outdated = c->epoch != now;

    if (outdated)
        repl_complete_forget(c);
    c->epoch = now;
    return outdated;
}

/* ---- asking ---- */

static void repl_complete_add(struct list *l, struct str name)
{
    l->names = mem_grow(l->names, &l->cap, l->count + 1, sizeof(*l->names));
    l->names[l->count++] = mem_strndup(name.at, name.len);
    l->bytes += sizeof(*l->names) + name.len;
}

static void repl_complete_ask(struct repl_complete *c, struct list *l)
{
    struct peer *p = repl_nodes_current(c->nodes);
    const char *space = strchr(l->what, ' '), *after = l->count ? l->names[l->count - 1] : "";
    struct buf b = {0};
    struct err e;

    l->request = 0;
    if (!p || session_state(p->session) != SESSION_READY)
        return;
    etf_version(&b);
    etf_tuple(&b, 3);
    etf_atomz(&b, "complete");
    if (space) {
        etf_tuple(&b, 2);
        etf_atom(&b, (struct str){l->what, (size_t)(space - l->what)});
        etf_bin(&b, space + 1, strlen(space + 1));
    } else {
        etf_atomz(&b, l->what);
    }
    etf_bin(&b, after, strlen(after));
    if (!session_request(p->session, buf_view(&b), REQUEST_MS, &l->request, &e))
        peer_fail(p, &e);
    buf_release(&b);
}

void repl_complete_on_answer(struct repl_complete *c, const struct session_reply *reply)
{
    struct etf t = reply->term;
    struct raw name;
    size_t n;

    if (c->epoch != repl_nodes_epoch(c->nodes))
        return;
    for (size_t i = 0; i < LISTS; i++) {
        struct list *l = &c->lists[i];
        if (!l->request || l->request != reply->id)
            continue;
        l->request = 0;
        if (!reply->ok || !etf_get_tuple(&t, 2) || !etf_get_list(&t, &n))
            return;
        for (size_t k = 0; k < n && etf_get_bin(&t, &name); k++)
            repl_complete_add(l, raw_view(name));
        if (n)
            etf_get_nil(&t);
        if (etf_is_atom(&t, "true") && n && l->bytes < BYTES_MOST) {
            repl_complete_ask(c, l);
        } else {
            l->whole = true;
            l->at = loop_now();
        }
        return;
    }
}

/*
 * Returns a list from the cache. If it is missing or old, requests it from the node, and serves all other events until
 * the answer arrives. Returns NULL if the node does not answer within WAIT_MS, or if the list is outdated by then.
 */
static const struct list *names_of(struct repl_complete *c, const char *what)
{
    int64_t until = loop_now() + WAIT_MS;
    struct list *l = NULL;

    forget_outdated(c);
    for (size_t i = 0; i < LISTS; i++)
        if (c->lists[i].what && !strcmp(c->lists[i].what, what))
            l = &c->lists[i];
    if (l && l->whole && loop_now() - l->at < KEPT_MS)
        return l;
    if (!l) {
        l = &c->lists[0];
        for (size_t i = 0; i < LISTS && l->what; i++)
            if (!c->lists[i].what || c->lists[i].at < l->at)
                l = &c->lists[i];
    }
    clear_names(l);
    l->what = mem_strndup(what, strlen(what));
    while (!l->whole && loop_now() < until && !c->base->leaving && !c->base->ctx->interrupts) {
        if (!l->request)
            /* repeats the request until it is answered, because the worker process of the node may have been busy */
            repl_complete_ask(c, l);
        repl_step(c->base, MIN(until, loop_now() + 20));
        if (forget_outdated(c))
            return NULL;
    }
    return l->whole ? l : NULL;
}

/* ---- candidates ---- */

struct offer {
    struct str typed;
    char **items;
    size_t count, cap;
    const char *behind; /* text to insert after the item if it is the only one */
};

/* Returns true if all characters of the name can be printed. Otherwise the name is not offered. */
static bool repl_complete_shows(const char *at, const char *end)
{
    while (at < end) {
        uint32_t cp = utf8_next(&at, end);
        if (cp == UTF8_BAD || !utf8_shows(cp))
            return false;
    }
    return true;
}

static void offer_text(struct offer *o, const char *text, size_t len)
{
    if (!repl_complete_shows(text, text + len) || len < o->typed.len || memcmp(text, o->typed.at, o->typed.len) != 0)
        return;
    o->items = mem_grow(o->items, &o->cap, o->count + 1, sizeof(*o->items));
    o->items[o->count++] = mem_strndup(text, len);
}

static void offer_word(void *data, const char *word, const char *help UNUSED)
{
    offer_text(data, word, strlen(word));
}

static bool is_plain_atom(const char *name)
{
    if (!islower((unsigned char)*name))
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_' && *name != '@')
            return false;
    return true;
}

static void offer_names(struct repl_complete *c, struct offer *o, const char *what)
{
    const struct list *l = names_of(c, what);

    for (size_t i = 0; l && i < l->count; i++)
        offer_text(o, l->names[i], strlen(l->names[i]));
}

#define ELIXIR "Elixir."

static void offer_modules(struct repl_complete *c, struct offer *o)
{
    const struct list *l = names_of(c, "modules");
    bool elixir = o->typed.len && isupper((unsigned char)o->typed.at[0]);

    for (size_t i = 0; l && i < l->count; i++) {
        const char *name = l->names[i];
        if (elixir && !strncmp(name, ELIXIR, strlen(ELIXIR)))
            offer_text(o, name + strlen(ELIXIR), strlen(name) - strlen(ELIXIR));
        else if (!elixir && is_plain_atom(name))
            offer_text(o, name, strlen(name));
    }
    o->behind = elixir ? "." : ":";
}

static void offer_records_in(struct repl_complete *c, struct offer *o, const char *prefix, struct str module)
{
    struct buf what = {0};

    buf_printf(&what, "record %s%.*s", prefix, (int)module.len, module.at);
    offer_names(c, o, buf_cstr(&what));
    buf_release(&what);
}

/* Returns true if the name of a function needs no quotes. */
static bool is_plain_function(const char *name, size_t len, bool elixir)
{
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr(elixir ? "_?!" : "_@", name[i]))
            return false;
    return len && (islower((unsigned char)*name) || (elixir && *name == '_'));
}

/*
 * Appends the name, a closing quotation mark and "/arity". Returns false if the name has characters that quotes do not
 * protect.
 */
static bool put_quoted(struct buf *b, const char *name, char quote)
{
    const char *slash = strrchr(name, '/');
    const size_t len = slash ? (size_t)(slash - name) : strlen(name);

    if (memchr(name, quote, len) || memchr(name, '\\', len))
        return false;
    buf_printf(b, "%.*s%c%s", (int)len, name, quote, name + len);
    return true;
}

/* Offers the functions of a module. Puts names that need quotes in quotes. */
static void offer_functions(struct repl_complete *c, struct offer *o, bool elixir, struct str module)
{
    struct buf b = {0};

    buf_printf(&b, "functions %s%.*s", elixir ? ELIXIR : "", (int)module.len, module.at);
    const struct list *l = names_of(c, buf_cstr(&b));
    for (size_t i = 0; l && i < l->count; i++) {
        const char *name = l->names[i], *slash = strrchr(name, '/'), quote = elixir ? '"' : '\'';
        if (!slash || is_plain_function(name, (size_t)(slash - name), elixir)) {
            offer_text(o, name, strlen(name));
            continue;
        }
        b.len = 0;
        buf_char(&b, quote);
        if (put_quoted(&b, name, quote))
            offer_text(o, b.data, b.len);
    }
    buf_release(&b);
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '@';
}

/*
 * Offers records before a # at the end of `left`: those of the module before the #, or else those of the modules whose
 * functions the expression selects.
 */
static void offer_records_of(struct repl_complete *c, struct offer *o, struct str left)
{
    const char *end = left.at + left.len - 1, *at = end, *from = left.at; /* points to the # */

    while (at > left.at && in_name(at[-1]))
        at--;
    if (at < end) {
        offer_records_in(c, o, "", (struct str){at, (size_t)(end - at)});
        return;
    }
    int depth = 0;
    for (at = left.at; at < end; at++) {
        depth += strchr("([{", *at) != NULL;
        depth -= strchr(")]}", *at) != NULL;
        if (*at == ';' || (*at == '|' && !depth))
            from = at + 1;
    }
    for (at = from; at < end; at++) {
        bool erlang = *at == ':', elixir = *at == '.' && islower((unsigned char)at[1]);
        const char *name = at;
        while ((erlang || elixir) && name > from && (in_name(name[-1]) || (elixir && name[-1] == '.')))
            name--;
        if (name == at || (elixir && !isupper((unsigned char)*name)))
            continue;
        offer_records_in(c, o, elixir ? ELIXIR : "", (struct str){name, (size_t)(at - name)});
        return;
    }
}

static void offer_records(struct repl_complete *c, struct offer *o, struct str left)
{
    offer_records_of(c, o, left);
    for (size_t i = 0; i < c->base->options.what.records.count; i++) {
        struct what_opts one = {.records = {.items = &c->base->options.what.records.items[i], .count = 1},
                                .pipes = c->base->options.what.pipes};
        struct texts none = {0};
        struct exprs exprs;
        struct arena arena;
        struct err e;
        const struct lang_record *records;
        size_t n;

        exprs_init(&exprs);
        arena_init(&arena);
        if (exprs_compile(&exprs, &one, &none, &none, 0, &e))
            for (size_t h = 0; h < exprs.nheaders; h++)
                if (lang_read_hrl(exprs.headers[h], &arena, &records, &n, &e))
                    for (size_t k = 0; k < n; k++)
                        offer_text(o, records[k].name.at, records[k].name.len);
        arena_release(&arena);
        exprs_release(&exprs);
    }
    o->behind = "{";
}

static void offer_where(struct offer *o)
{
    for (size_t i = 0; i < PROPERTIES; i++)
        if (property_rows[i].uses & PROPERTY_WHERE)
            offer_text(o, property_rows[i].name, strlen(property_rows[i].name));
}

static void offer_actions(struct offer *o)
{
#define ACTION(id, word, least, most, places, how, fn, doc) offer_text(o, word, strlen(word));
#include "../lang/actions.def"
    offer_text(o, "where", 5);
}

static void offer_events(struct offer *o)
{
#define EVENT(id, name, flag, nargs, doc) offer_text(o, name, strlen(name));
#include "../lang/events.def"
}

static void offer_views(struct offer *o)
{
    for (const struct sink_type *const *t = sink_types; *t; t++)
        offer_text(o, (*t)->name, strlen((*t)->name));
}

static void offer_label(void *data, const char *label)
{
    offer_text(data, label, strlen(label));
}

static void offer_labels(struct repl_complete *c, struct offer *o)
{
    probe_list_labels(repl_probes_list(c->probes), offer_label, o);
    offer_text(o, "all", 3);
}

static void offer_nodes(struct repl_complete *c, struct offer *o)
{
    const struct peers *peers = repl_nodes_peers(c->nodes);

    for (size_t i = 0; i < peers->count; i++)
        if (peers->items[i].session) {
            const char *name = session_node(peers->items[i].session)->name;
            offer_text(o, name, strlen(name));
        }
    offer_names(c, o, "nodes");
}

/* ---- where the cursor is ---- */

static bool starts_with(struct str s, const char *with)
{
    return s.len >= strlen(with) && !memcmp(s.at, with, strlen(with));
}

/*
 * Returns the offset after the last occurrence of `what` in the text, or SIZE_MAX if there is none. `what` is a sign or
 * a whole word.
 */
static size_t last_of(struct str s, const char *what)
{
    size_t n = strlen(what), best = SIZE_MAX;
    bool word = isalpha((unsigned char)*what);

    for (size_t i = 0; i + n <= s.len; i++) {
        if (memcmp(s.at + i, what, n) != 0)
            continue;
        if (word && ((i && (isalnum((unsigned char)s.at[i - 1]) || s.at[i - 1] == '_')) ||
                     (i + n < s.len && (isalnum((unsigned char)s.at[i + n]) || s.at[i + n] == '_'))))
            continue;
        best = i + n;
    }
    return best;
}

/*
 * Returns the offset after the quotation mark that is not closed at the end of the text, or SIZE_MAX if there is none.
 */
static size_t open_quote(struct str s)
{
    size_t open = SIZE_MAX;

    for (size_t i = 0; i < s.len; i++) {
        const bool begins = open == SIZE_MAX;
        /* skips the next character, which is escaped and no quotation mark */
        if (s.at[i] == '\\' || (begins && s.at[i] == '$'))
            i++;
        else if (begins ? s.at[i] == '\'' || s.at[i] == '"' : s.at[i] == s.at[open - 1])
            open = begins ? i + 1 : SIZE_MAX;
    }
    return open;
}

/*
 * Returns the module, without quotes, before the ':' or '.' at the end of the text. Returns an empty text if there is
 * none.
 */
static struct str module_before(struct str s)
{
    size_t end = s.len ? s.len - 1 : 0, at = end;

    if (!end || !strchr(":.", s.at[end]))
        return (struct str){s.at, 0};
    if (s.at[end - 1] == '\'') {
        for (at = --end; at && s.at[at - 1] != '\'';)
            at--;
        return (struct str){s.at + at, end - at};
    }
    while (at && (in_name(s.at[at - 1]) || (s.at[end] == '.' && s.at[at - 1] == '.')))
        at--;
    return (struct str){s.at + at, end - at};
}

/*
 * Offers names in the open quotes. In a candidate, the closing quotation mark and the rest of the item, such as the
 * arity, follow the name.
 */
static void offer_quoted(struct repl_complete *c, struct offer *o, const char *what, char quote)
{
    const struct list *l = names_of(c, what);
    struct buf b = {0};

    for (size_t i = 0; l && i < l->count; i++) {
        b.len = 0;
        if (put_quoted(&b, l->names[i], quote))
            offer_text(o, b.data, b.len);
    }
    buf_release(&b);
}

/*
 * Completes a text in open quotes: a module in single quotes, or a function of the module before the quotes. Returns
 * false if it can be neither.
 */
static bool in_quotes(struct repl_complete *c, struct offer *o, struct str before, size_t open)
{
    const char quote = before.at[open - 1];
    const struct str module = module_before((struct str){before.at, open - 1});
    struct buf what = {0};

    if (!module.len && quote != '\'')
        return false;
    o->typed = (struct str){before.at + open, before.len - open};
    o->behind = module.len ? NULL : ":";
    buf_puts(&what, "modules");
    if (module.len) {
        what.len = 0;
        buf_printf(&what, "functions %s%.*s", before.at[open - 2] == '.' ? ELIXIR : "", (int)module.len, module.at);
    }
    offer_quoted(c, o, buf_cstr(&what), quote);
    buf_release(&what);
    return true;
}

static void in_expression(struct repl_complete *c, struct offer *o, struct str before)
{
    size_t at = before.len, open = open_quote(before);

    if (open != SIZE_MAX && in_quotes(c, o, before, open))
        return;

    while (at && (isalnum((unsigned char)before.at[at - 1]) || strchr("_@.:/", before.at[at - 1])))
        at--;
    struct str token = {before.at + at, before.len - at}, left = {before.at, at};
    size_t action = last_of(left, "->"), where = last_of(left, "where"), next = last_of(left, ";");

    if (action != SIZE_MAX && next != SIZE_MAX && next > action)
        action = SIZE_MAX;
    if (token.len && *token.at == '@') {
        o->typed = (struct str){token.at + 1, token.len - 1};
        offer_events(o);
        return;
    }
    o->typed = token;
    if (at && before.at[at - 1] == '#') {
        offer_records(c, o, left);
        return;
    }
    const char *colon = memrchr(token.at, ':', token.len), *dot = memrchr(token.at, '.', token.len);
    if (dot && *token.at == ':') { /* :ets.lookup */
        o->typed = (struct str){dot + 1, (size_t)(token.at + token.len - dot - 1)};
        offer_functions(c, o, false, (struct str){token.at + 1, (size_t)(dot - token.at - 1)});
    } else if (colon) {
        struct str module = module_before((struct str){before.at, (size_t)(colon + 1 - before.at)});
        o->typed = (struct str){colon + 1, (size_t)(token.at + token.len - colon - 1)};
        offer_functions(c, o, false, module);
    } else if (where != SIZE_MAX && (action == SIZE_MAX || where > action)) {
        offer_where(o);
    } else if (action != SIZE_MAX) {
        offer_actions(o);
        o->behind = "";
    } else if (dot && token.len && isupper((unsigned char)*token.at) &&
               (dot + 1 == token.at + token.len || !isupper((unsigned char)dot[1]))) {
        struct str module = {token.at, (size_t)(dot - token.at)};
        offer_modules(c, o);
        o->typed = (struct str){dot + 1, token.len - module.len - 1};
        if (dot[1] || !o->count) {
            for (size_t i = 0; i < o->count; i++)
                free(o->items[i]);
            o->count = 0;
            o->behind = "";
            offer_functions(c, o, true, module);
        } else {
            o->typed = token;
        }
    } else {
        offer_modules(c, o);
    }
}

/* Returns true if the text is the name of a setting that is on or off, and a blank. */
static bool is_flag(struct str setting)
{
    char name[32];
    size_t len = setting.len ? setting.len - 1 : 0;

    snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name) - 1), setting.at);
    const struct opt *o = repl_setting_row(name);
    return o && !o->arg && setting.at[len] == ' ';
}

static void in_word(struct repl_complete *c, struct offer *o, struct str before)
{
    const char *space = memchr(before.at, ' ', before.len);

    if (!space) {
        o->typed = (struct str){before.at + 1, before.len - 1};
        o->behind = " ";
        repl_words_each(offer_word, o);
        for (const struct sink_type *const *t = sink_types; *t; t++)
            offer_text(o, (*t)->name, strlen((*t)->name));
        return;
    }
    const char *last = memrchr(before.at, ' ', before.len);
    o->typed = (struct str){last + 1, (size_t)(before.at + before.len - last - 1)};
    struct str left = {before.at, (size_t)(last + 1 - before.at)};
    /* `:set NAME VALUE` is the same as `:NAME VALUE`. */
    size_t command = starts_with(left, ":set ") ? strlen(":set ") : 1;
    struct str setting = {left.at + command, left.len - command};
    if (starts_with(left, ":attach ") || starts_with(left, ":detach ") || starts_with(left, ":node ") ||
        (left.len > 3 && !memcmp(last - 3, " -n", 3)))
        offer_nodes(c, o);
    else if (starts_with(left, ":drop ") || starts_with(left, ":start ") || starts_with(left, ":stop "))
        offer_labels(c, o);
    else if (starts_with(left, ":as "))
        offer_views(o);
    else if (starts_with(left, ":help ")) {
        repl_words_each(offer_word, o);
        topics_each(offer_label, o);
    } else if (starts_with(left, ":set ") && !setting.len) {
        o->behind = " ";
        repl_options_each(offer_word, o);
    } else if (starts_with(setting, "where ") || starts_with(setting, "snapshot-when "))
        offer_where(o);
    else if (starts_with(setting, "ring "))
        offer_text(o, "off", 3);
    else if (is_flag(setting)) {
        offer_text(o, "on", 2);
        offer_text(o, "off", 3);
    } else if (starts_with(left, ":why ")) {
        offer_names(c, o, "processes");
    } else if (starts_with(setting, "proc")) {
        static const char *const who[] = {"all", "existing", "new"};
        for (size_t i = 0; i < ARRAY_LEN(who); i++)
            offer_text(o, who[i], strlen(who[i]));
        offer_names(c, o, "processes");
    } else {
        struct str rest = {space + 1, (size_t)(before.at + before.len - space - 1)};
        in_expression(c, o, rest);
    }
}

/* ---- offering ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the items and removes duplicates. Must be fast, because there may be tens of thousands of names. */
static void sort_offer(struct offer *o)
{
    size_t n = 0;

    qsort(o->items, o->count, sizeof(*o->items), by_name);
    for (size_t i = 0; i < o->count; i++) {
        if (n && !strcmp(o->items[n - 1], o->items[i]))
            free(o->items[i]);
        else
            o->items[n++] = o->items[i];
    }
    o->count = n;
}

static void list_offer(struct repl_complete *c, const struct offer *o)
{
    size_t widest = 0, shown = MIN(o->count, (size_t)LISTED);
    struct buf b = {0};

    for (size_t i = 0; i < shown; i++)
        widest = MAX(widest, strlen(o->items[i]));
    size_t across = MAX(editor_width(c->base->line) / (widest + 2), (size_t)1), down = (shown + across - 1) / across;
    for (size_t row = 0; row < down; row++) {
        for (size_t i = row; i < shown; i += down)
            buf_printf(&b, "%-*s", i + down < shown ? (int)widest + 2 : 0, o->items[i]);
        buf_char(&b, '\n');
    }
    if (shown < o->count)
        buf_printf(&b, "... and %zu more\n", o->count - shown);
    editor_above(c->base->line, buf_view(&b));
    buf_release(&b);
}

static void apply_offer(struct repl_complete *c, struct offer *o)
{
    size_t common;

    if (!o->count)
        return;
    sort_offer(o);
    for (common = strlen(o->items[0]); common; common--) {
        size_t i = 1;
        while (i < o->count && !strncmp(o->items[i], o->items[0], common))
            i++;
        if (i == o->count)
            break;
    }
    if (common > o->typed.len)
        editor_insert(c->base->line, (struct str){o->items[0] + o->typed.len, common - o->typed.len});
    if (o->count == 1 && o->behind)
        editor_insert(c->base->line, (struct str){o->behind, strlen(o->behind)});
    if (o->count > 1 && common <= o->typed.len)
        list_offer(c, o);
}

void repl_complete(struct repl_complete *c, struct str so_far, struct str before)
{
    struct offer o = {0};
    struct buf all = {0};

    if (so_far.len) {
        buf_str(&all, so_far);
        buf_char(&all, '\n');
    }
    buf_str(&all, before);
    struct str whole = buf_view(&all);
    while (before.len && *before.at == ' ') {
        before.at++;
        before.len--;
    }
    if (!so_far.len && repl_is_command(before))
        in_word(c, &o, before);
    else
        in_expression(c, &o, whole);
    apply_offer(c, &o);
    buf_release(&all);
    for (size_t i = 0; i < o.count; i++)
        free(o.items[i]);
    free(o.items);
}

struct repl_complete *repl_complete_new(struct repl_base *base, struct repl_nodes *nodes, struct repl_probes *probes)
{
    struct repl_complete *c = mem_zalloc(sizeof(*c));

    c->base = base;
    c->nodes = nodes;
    c->probes = probes;
    return c;
}

void repl_complete_free(struct repl_complete *c)
{
    if (!c)
        return;
    repl_complete_forget(c);
    free(c);
}
