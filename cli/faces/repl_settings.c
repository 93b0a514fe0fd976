/*
 * Settings: every option of a tracing command is one, under its long name, and its row says what it takes. What a change
 * touches depends on its group: what is traced is armed anew, sessions are made anew, a view is opened anew.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "../ground/mem.h"
#include "repl.h"

enum touches { ARMING, SESSIONS, VIEW };

struct setting {
    const struct opt_group *group;
    size_t offset; /* of its struct in struct repl */
    enum touches touches;
};

static const struct setting settings[] = {
    {&what_group, offsetof(struct repl, what), ARMING},
    {&limit_group, offsetof(struct repl, limit), SESSIONS},
    {&view_group, offsetof(struct repl, view), VIEW},
};

static const struct opt *find_setting(const char *name, const struct setting **ret)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        for (size_t k = 0; k < settings[i].group->count; k++) {
            const struct opt *o = &settings[i].group->rows[k];
            size_t len = strlen(o->name);
            /* :procs for --proc, :greps for --grep */
            if (!strncmp(o->name, name, len) && (!name[len] || (o->type == OPT_TEXTS && !strcmp(name + len, "s")))) {
                *ret = &settings[i];
                return o;
            }
        }
    return NULL;
}

/* What is told of the session when it is made; --limit, --for and --on-loss are ours. */
static bool of_session(const struct opt *o)
{
    static const char *const ours[] = {"limit", "for", "on-loss"};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (!strcmp(o->name, ours[i]))
            return false;
    return true;
}

/* These collect; every other list is what was said last. */
static bool collects(const struct opt *o)
{
    return !strcmp(o->name, "let") || !strcmp(o->name, "hrl") || !strcmp(o->name, "redact");
}

static bool set_one(struct repl *r, const struct setting *s, const struct opt *o, const char *value, struct err *e)
{
    struct opt_use use = {s->group, (char *)r + s->offset};
    struct texts none = {0};
    struct buf name = {0};
    char **behind;

    buf_printf(&name, "--%s", o->name);
    buf_cstr(&name);
    char *kept = value ? arena_strndup(&r->arena, value, strlen(value)) : NULL;
    char *argv[] = {name.data, kept, NULL};
    bool ok = opts_parse(&use, 1, argv, &none, &behind, e);
    buf_release(&name);
    texts_release(&none);
    return ok;
}

static size_t value_size(const struct opt *o)
{
    static const size_t sizes[] = {
        [OPT_FLAG] = sizeof(bool), [OPT_OFF] = sizeof(bool), [OPT_COUNT] = sizeof(int), [OPT_TEXT] = sizeof(char *),
        [OPT_TEXTS] = sizeof(struct texts), [OPT_SET] = sizeof(struct texts), [OPT_NUMBER] = sizeof(int64_t), [OPT_DURATION] = sizeof(int64_t),
        [OPT_SIZE] = sizeof(int64_t), [OPT_CHOICE] = sizeof(int),
    };

    return sizes[o->type];
}

static const void *default_of(const struct setting *s, const struct opt *o)
{
    static const struct what_opts what = WHAT_OPTS_INIT;
    static const struct limit_opts limit = LIMIT_OPTS_INIT;
    static const struct view_opts view = VIEW_OPTS_INIT;
    const void *from = s->group == &what_group ? (const void *)&what : s->group == &limit_group ? (const void *)&limit : &view;

    return (const char *)from + o->offset;
}

static void unset(struct repl *r, const struct setting *s, const struct opt *o)
{
    char *to = (char *)r + s->offset + o->offset;

    if (o->type == OPT_TEXTS)
        texts_release((struct texts *)(void *)to);
    memcpy(to, default_of(s, o), value_size(o));
}

static bool is_list_of_words(const struct opt *o)
{
    return !strcmp(o->name, "proc");
}

static bool set_values(struct repl *r, const struct setting *s, const struct opt *o, char *rest, struct err *e)
{
    if (!o->arg) {
        if (*rest && strcmp(rest, "on") != 0 && strcmp(rest, "off") != 0)
            return err_set(e, ERR_USAGE, ":%s takes on or off, not '%s'", o->name, rest);
        unset(r, s, o);
        return !strcmp(rest, "off") || set_one(r, s, o, NULL, e);
    }
    if (!*rest || !collects(o))
        unset(r, s, o);
    if (!*rest)
        return true;
    if (!is_list_of_words(o))
        return set_one(r, s, o, rest, e);
    for (char *w; (w = repl_next_word(&rest));)
        if (!set_one(r, s, o, w, e))
            return false;
    return true;
}

/* Whether what was captured is shown once more: by what selects, not by how it looks. */
static bool selects(const struct opt *o)
{
    static const char *const names[] = {"grep", "where", "invert", "json", "summary"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(o->name, names[i]))
            return true;
    return false;
}

/* What an expression would be read by. */
static bool can_be_read(const struct repl *r, struct err *e)
{
    struct texts none = {0};
    struct asked asked;

    asked_init(&asked);
    bool ok = asked_compile(&asked, &r->what, &none, &none, 0, e);
    asked_release(&asked);
    return ok;
}

/* Has it done what the new value says. False: it cannot be, e says why where it has not been said. */
static bool take_effect(struct repl *r, const struct setting *s, const struct opt *o, bool with, struct err *e)
{
    e->text[0] = 0;
    switch (s->touches) {
    case ARMING:
        return asked_pipes(r->ctx, &r->what, &r->arena, e) && (r->armed ? repl_arm_all(r, -1, e) : can_be_read(r, e));
    case SESSIONS:
        if (!of_session(o))
            return repl_show_live(r, true);
        if (!run_takes(&r->node, &r->limit, e))
            return false;
        repl_reopen(r);
        return true;
    case VIEW:
        break;
    }
    if (!strcmp(o->name, "output")) {
        bool ok = repl_files_open(r, e);
        if (!ok && r->files && !*e->hint)
            err_hint(e, ":output without a file ends the one that is open");
        return ok;
    }
    return repl_show_live(r, !(selects(o) && with));
}

/* What cannot be leaves everything as it was. */
static int do_setting(struct repl *r, const struct setting *s, const struct opt *o, char *rest)
{
    char *to = (char *)r + s->offset + o->offset;
    struct texts *list = o->type == OPT_TEXTS ? (struct texts *)(void *)to : NULL, kept = {0};
    char before[sizeof(struct texts)];
    bool with = *rest;
    struct err e;

    memcpy(before, to, value_size(o));
    if (list) {
        kept = *list;
        *list = (struct texts){0};
        for (size_t i = 0; i < kept.count && collects(o) && with; i++)
            texts_add(list, kept.items[i]);
    }
    if (set_values(r, s, o, rest, &e) && take_effect(r, s, o, with, &e)) {
        texts_release(&kept);
        return 0;
    }
    int status = e.text[0] ? repl_fail(r, &e) : ERR_USAGE;
    if (list)
        texts_release(list);
    memcpy(to, before, value_size(o));
    if (s->touches == ARMING && r->armed)
        repl_arm(r);
    return status;
}

/* "--size takes …" as it is typed here. */
static void reword(char *text)
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

void repl_settings_reword(struct err *e)
{
    reword(e->text);
    reword(e->hint);
    reword(e->note);
}

/* A default that is no number which could be typed means what its row says, or that there is none. */
static void put_default(struct buf *b, const struct opt *o)
{
    static const char before[] = "(default ";
    const char *said = strstr(o->help, before);

    if (said) {
        said += sizeof(before) - 1;
        buf_add(b, said, strcspn(said, ";)"));
    }
}

static void put_number(struct buf *b, const struct opt *o, int64_t n, int64_t unsaid)
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
    } else {
        buf_printf(b, "%lld", (long long)n);
    }
}

static void put_value(struct buf *b, const struct setting *s, const struct opt *o, const void *from)
{
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
    case OPT_COUNT:
        buf_printf(b, "%d", *(const int *)at);
        break;
    default:
        put_number(b, o, *(const int64_t *)at, *(const int64_t *)default_of(s, o));
        break;
    }
}

bool repl_setting(struct repl *r, const char *name, char *rest, int *ret_status)
{
    const struct setting *s;
    const struct opt *o = find_setting(name, &s);

    if (o)
        *ret_status = do_setting(r, s, o, rest);
    return o != NULL;
}

const struct opt *repl_setting_row(const char *name)
{
    const struct setting *ignored;

    return find_setting(name, &ignored);
}

void repl_settings(void (*each)(void *data, const char *name, const char *help), void *data)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        for (size_t k = 0; k < settings[i].group->count; k++)
            if (strcmp(settings[i].group->rows[k].name, "as") != 0) /* a command of its own */
                each(data, settings[i].group->rows[k].name, settings[i].group->rows[k].help);
}

void repl_settings_list(struct repl *r, struct buf *to)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        for (size_t k = 0; k < settings[i].group->count; k++) {
            const struct opt *o = &settings[i].group->rows[k];
            buf_printf(to, ":%-14s", o->name);
            put_value(to, &settings[i], o, (char *)r + settings[i].offset);
            buf_char(to, '\n');
        }
}
