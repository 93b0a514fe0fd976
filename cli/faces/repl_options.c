/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, sets and prints the options that are settings. */
#include "repl_options.h"

#include <stdio.h>
#include <string.h>

#include "repl_syntax.h"

static const struct repl_option groups[] = {
    {&what_group, NULL, offsetof(struct repl_options, what)},
    {&limit_group, NULL, offsetof(struct repl_options, limit)},
    {&recorder_group, NULL, offsetof(struct repl_options, recorder)},
    {&view_group, NULL, offsetof(struct repl_options, view)},
    {&node_group, NULL, offsetof(struct repl_options, node)},
};

/* Finds the setting with this index in all groups. Options that say how to reach a node are no settings. */
static bool nth_setting(size_t n, struct repl_option *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        for (size_t k = 0; k < groups[i].group->count; k++) {
            const struct opt *o = &groups[i].group->rows[k];
            if ((groups[i].group != &node_group || !strcmp(o->name, "reattach")) && !n--) {
                *ret = (struct repl_option){groups[i].group, o, groups[i].offset};
                return true;
            }
        }
    return false;
}

bool repl_option_find(const char *name, struct repl_option *ret)
{
    for (size_t i = 0; nth_setting(i, ret); i++) {
        const struct opt *o = ret->row;
        size_t len = strlen(o->name);
        if (!strncmp(o->name, name, len) && (!name[len] || (o->type == OPT_TEXTS && !strcmp(name + len, "s"))))
            return true;
    }
    return false;
}

const struct opt *repl_setting_row(const char *name)
{
    struct repl_option found;

    return repl_option_find(name, &found) ? found.row : NULL;
}

void repl_options_each(void (*each)(void *data, const char *name, const char *help), void *data)
{
    struct repl_option o;

    for (size_t i = 0; nth_setting(i, &o); i++)
        if (strcmp(o.row->name, "as") != 0) /* :as is a :command, so it is not a setting */
            each(data, o.row->name, o.row->help);
}

/* ---- changing a value ---- */

static void *option_value(struct repl_options *options, const struct repl_option *which)
{
    return (char *)options + which->offset + which->row->offset;
}

/*
 * Returns true for options whose new values are added to the old ones. For all other options, a new value replaces the
 * old one.
 */
static bool keeps_old_values(const struct opt *o)
{
    return !strcmp(o->name, "let") || !strcmp(o->name, "hrl") || !strcmp(o->name, "redact");
}

static bool set_one(struct repl_options *options, const struct repl_option *which, const char *value, struct err *e)
{
    struct opt_use use = {which->group, (char *)options + which->offset};
    struct texts none = {0};
    struct buf name = {0};
    char **behind;

    buf_printf(&name, "--%s", which->row->name);
    buf_cstr(&name);
    const char *kept = !value                             ? NULL
                       : !strcmp(which->row->arg, "FILE") ? repl_file_name(&options->arena, value)
                                                          : arena_strndup(&options->arena, value, strlen(value));
    char *argv[] = {name.data, (char *)(uintptr_t)kept, NULL};
    bool ok = opts_parse(&use, 1, argv, &none, &behind, e);
    buf_release(&name);
    texts_release(&none);
    return ok;
}

static size_t value_size(const struct opt *o)
{
    static const size_t sizes[] = {
        [OPT_FLAG] = sizeof(bool),      [OPT_OFF] = sizeof(bool),           [OPT_COUNT] = sizeof(int),
        [OPT_TEXT] = sizeof(char *),    [OPT_TEXTS] = sizeof(struct texts), [OPT_SET] = sizeof(struct texts),
        [OPT_NUMBER] = sizeof(int64_t), [OPT_POSITIVE] = sizeof(int64_t),   [OPT_DURATION] = sizeof(int64_t),
        [OPT_SIZE] = sizeof(int64_t),   [OPT_PERCENT] = sizeof(int64_t),    [OPT_FRACTION] = sizeof(int64_t),
        [OPT_CHOICE] = sizeof(int),     [OPT_CHOSEN] = sizeof(int),
    };

    return sizes[o->type];
}

static const void *default_of(const struct repl_option *which)
{
    static const struct what_opts what = WHAT_OPTS_INIT;
    static const struct limit_opts limit = LIMIT_OPTS_INIT;
    static const struct recorder_opts recorder = RECORDER_OPTS_INIT;
    static const struct view_opts view = VIEW_OPTS_INIT;
    static const struct node_opts node = NODE_OPTS_INIT;
    const void *from = which->group == &what_group       ? (const void *)&what
                       : which->group == &limit_group    ? (const void *)&limit
                       : which->group == &recorder_group ? (const void *)&recorder
                       : which->group == &view_group     ? (const void *)&view
                                                         : &node;

    return (const char *)from + which->row->offset;
}

static void unset_option(struct repl_options *options, const struct repl_option *which)
{
    void *to = option_value(options, which);

    if (which->row->type == OPT_TEXTS)
        texts_release(to);
    memcpy(to, default_of(which), value_size(which->row));
}

static bool is_list_of_words(const struct opt *o)
{
    return !strcmp(o->name, "proc");
}

static bool set_values(struct repl_options *options, const struct repl_option *which, char *rest, struct err *e)
{
    const struct opt *o = which->row;

    if (!o->arg) {
        if (*rest && strcmp(rest, "on") != 0 && strcmp(rest, "off") != 0)
            return err_set(e, ERR_USAGE, ":%s takes on or off, not '%s'", o->name, rest);
        unset_option(options, which);
        return !strcmp(rest, "off") || set_one(options, which, NULL, e);
    }
    if (!*rest || !keeps_old_values(o))
        unset_option(options, which);
    if (!*rest)
        return true;
    if (!is_list_of_words(o))
        return set_one(options, which, rest, e);
    for (char *w; (w = repl_next_word(&rest));)
        if (!set_one(options, which, w, e))
            return false;
    return true;
}

/* Returns true if both texts give a value to the same variable: NAME=TERM. */
static bool same_variable(const char *a, const char *b)
{
    const size_t n = strcspn(a, "=");

    return n == strcspn(b, "=") && !strncmp(a, b, n);
}

/* Removes each NAME=TERM for which the list has a later value. */
static void drop_replaced(struct texts *lets)
{
    size_t kept = 0;

    for (size_t i = 0; i < lets->count; i++) {
        size_t later = i + 1;
        while (later < lets->count && !same_variable(lets->items[i], lets->items[later]))
            later++;
        if (later == lets->count)
            lets->items[kept++] = lets->items[i];
    }
    lets->count = kept;
}

bool repl_option_change(struct repl_options *o, const struct repl_option *which, char *text,
                        struct repl_old_value *ret_old, struct err *e)
{
    struct texts *list = which->row->type == OPT_TEXTS ? option_value(o, which) : NULL;
    bool with = *text;

    *ret_old = (struct repl_old_value){0};
    memcpy(ret_old->bytes, option_value(o, which), value_size(which->row));
    if (list) {
        ret_old->list = *list;
        *list = (struct texts){0};
        for (size_t i = 0; i < ret_old->list.count && keeps_old_values(which->row) && with; i++)
            texts_add(list, ret_old->list.items[i]);
    }
    const bool ok = set_values(o, which, text, e);
    if (ok && !strcmp(which->row->name, "let"))
        drop_replaced(list);
    return ok;
}

void repl_option_undo(struct repl_options *o, const struct repl_option *which, struct repl_old_value *old)
{
    if (which->row->type == OPT_TEXTS)
        texts_release(option_value(o, which));
    memcpy(option_value(o, which), old->bytes, value_size(which->row));
}

void repl_option_keep(struct repl_old_value *old)
{
    texts_release(&old->list);
}

/* ---- printing ---- */

/* Appends the default of an option, as the help of the option describes it, if no number can express it. */
static void put_default(struct buf *b, const struct opt *o)
{
    static const char before[] = "(default ";
    const char *said = strstr(o->help, before);

    if (said) {
        said += sizeof(before) - 1;
        buf_add(b, said, strcspn(said, ";)"));
    }
}

static void repl_options_put_number(struct buf *b, const struct opt *o, int64_t n, int64_t unsaid)
{
    static const struct {
        int64_t ns;
        const char *unit;
    } times[] = {{1000000, "ms"}, {1000, "us"}, {1, "ns"}};
    size_t i = 0;

    if (n == unsaid && n <= 0) {
        put_default(b, o);
    } else if (o->type == OPT_DURATION) {
        while (n % times[i].ns)
            i++;
        buf_printf(b, "%lld%s", (long long)(n / times[i].ns), times[i].unit);
    } else if (o->type == OPT_PERCENT) {
        buf_printf(b, n % 100 ? "%lld.%02lld%%" : "%lld%%", (long long)(n / 100), (long long)(n % 100));
    } else {
        buf_printf(b, o->type == OPT_FRACTION ? "1/%lld" : "%lld", (long long)n);
    }
}

static void repl_options_put_value(struct buf *b, const struct repl_option *which, const void *from)
{
    const struct opt *o = which->row;
    const void *at = (const char *)from + o->offset;
    const struct texts *t = at;

    switch (o->type) {
    case OPT_FLAG:
    case OPT_OFF:
        buf_puts(b, *(const bool *)at == (o->type == OPT_FLAG) ? "on" : "off");
        break;
    case OPT_TEXT:
        buf_puts(b, *(const char *const *)at ? *(const char *const *)at : "");
        break;
    case OPT_TEXTS:
        for (size_t i = 0; i < t->count; i++)
            buf_printf(b, "%s%s", i ? "  " : "", t->items[i]);
        break;
    case OPT_CHOICE: {
        const char *word = o->arg;
        for (int i = *(const int *)at; i > 0; i--)
            word += strcspn(word, "|") + 1;
        buf_add(b, word, strcspn(word, "|"));
        break;
    }
    case OPT_CHOSEN:
        buf_puts(b, *(const int *)at == o->chosen ? "on" : "off");
        break;
    case OPT_COUNT:
        buf_printf(b, "%d", *(const int *)at);
        break;
    case OPT_DURATION:
    case OPT_NUMBER:
    case OPT_POSITIVE:
    case OPT_PERCENT:
    case OPT_FRACTION:
    case OPT_SET:
    case OPT_SIZE:
        repl_options_put_number(b, o, *(const int64_t *)at, *(const int64_t *)default_of(which));
        break;
    }
}

void repl_options_list(const struct repl_options *options, struct buf *to)
{
    struct repl_option each;

    for (size_t i = 0; nth_setting(i, &each); i++) {
        buf_printf(to, ":%-15s", each.row->name);
        repl_options_put_value(to, &each, (const char *)options + each.offset);
        buf_char(to, '\n');
    }
}

static void reword_options(char *text)
{
    for (char *at = text; (at = strstr(at, "--")); at++) {
        char name[32];
        size_t len = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
        snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name) - 1), at + 2);
        if (len && repl_setting_row(name)) {
            *at = ':';
            memmove(at + 1, at + 2, strlen(at + 2) + 1);
        }
    }
}

void repl_options_reword(struct err *e)
{
    reword_options(e->text);
    reword_options(e->hint);
    reword_options(e->note);
}
