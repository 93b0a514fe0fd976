/* SPDX-License-Identifier: Apache-2.0 */
#include "complete.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../erlang/etf_write.h"
#include "../erlang/term_print.h"
#include "../ground/utf8.h"
#include "../lang/lang.h"
#include "../lang/properties.h"
#include "../node/companion.h"
#include "../node/epmd.h"
#include "../node/rpc.h"
#include "../views/sink.h"
#include "../ground/carried.h"
#include "cmd.h"
#include "topics.h"
#include "../trace/target.h"

#include <time.h> /* must be last, because it defines TIME_UTC as a macro */

#define PATIENCE_MS 80 /* limit for the wait, because an answer within 100 ms feels immediate */
#define FRESH_S 20     /* how long a cached answer is used */
#define CACHE_MOST (1u << 20)

struct editor {
    const struct cmd *cmd; /* the command in the line; trace if the line has none */
    bool named;            /* the line names a command or a view */
    const char *node;
    const char *view;       /* the view that the line names; NULL: none */
    struct node_opts opts;  /* the options in the line that say how to attach to the node */
    const struct opt *open; /* the option whose value is being typed */
    bool command;           /* the cursor is after `--` */
};

/* ---- candidates ---- */

static void offer_line(struct buf *b, const char *current, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void offer_line(struct buf *b, const char *current, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    int len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (len > 0 && (size_t)len < sizeof text && !strncmp(text, current, strlen(current)) && !strchr(text, '\n'))
        buf_printf(b, "%s\n", text);
}

/*
 * Returns true if a name from a node can be a word of a command line. It must not look like an option, and must have no
 * control character and no character that is special in a shell. `!` is allowed, because the completion scripts quote
 * it.
 */
static bool complete_is_plain(const char *name)
{
    const char *at = name, *end = name + strlen(name);

    if (*name == '-')
        return false;
    while (at < end) {
        uint32_t cp = utf8_next(&at, end);
        if (cp == UTF8_BAD || !utf8_shows(cp) || (cp < 128 && strchr(" \"'`\\$&|;<>(){}[]*#~^", (int)cp)))
            return false;
    }
    return true;
}

static bool complete_is(const struct opt *o, const char *name)
{
    return o && !strcmp(o->name, name);
}

/* ---- the line so far ---- */

static bool of_node(const struct opt *o)
{
    return o && o >= node_group.rows && o < node_group.rows + node_group.count;
}

static void set_value(struct editor *l, const struct opt *o, const char *value)
{
    if (complete_is(o, "node"))
        l->node = value;
    else if (complete_is(o, "as"))
        l->view = value;
    else if (of_node(o) && o->type == OPT_TEXT)
        *(const char **)((char *)&l->opts + o->offset) = value;
}

static void set_flag(struct editor *l, const struct opt *o)
{
    if (of_node(o) && o->type == OPT_FLAG)
        *(bool *)((char *)&l->opts + o->offset) = true;
}

static void read_option(struct editor *l, const char *word)
{
    const struct opt *o;

    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        o = cmd_find_option(l->cmd, word + 2, len, 0);
        if (o && o->arg && word[2 + len])
            set_value(l, o, word + 2 + len + 1);
        else if (o && o->arg)
            l->open = o;
        else
            set_flag(l, o);
        return;
    }
    for (const char *c = word + 1; *c; c++) {
        o = cmd_find_option(l->cmd, NULL, 0, *c);
        if (!o || !o->arg)
            continue;
        if (c[1])
            set_value(l, o, c + 1);
        else
            l->open = o;
        return;
    }
}

static struct editor read_line(const char *const *words, size_t count)
{
    struct node_opts none = NODE_OPTS_INIT;
    struct editor l = {.cmd = &cmd_trace, .node = target_default(&none)};

    if (count && (l.named = cmd_find(words[0]) || sink_by_name(words[0])))
        l.cmd = cmd_find(words[0]) ? cmd_find(words[0]) : &cmd_trace;
    l.view = l.named && sink_by_name(words[0]) ? words[0] : NULL;
    for (size_t i = l.named; i < count && !l.command; i++) {
        if (l.open) {
            set_value(&l, l.open, words[i]);
            l.open = NULL;
        } else if (!strcmp(words[i], "--")) {
            l.command = true;
        } else if (words[i][0] == '-' && words[i][1]) {
            read_option(&l, words[i]);
        }
    }
    return l;
}

/* ---- names from a node ---- */

/*
 * Finds the path of the file that caches the answer to the request `what`. Returns false if there is no cache
 * directory.
 */
static bool cache_path(const struct editor *l, const char *what, char *ret, size_t size)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    uint64_t hash = 14695981039346656037u;
    const char *const parts[] = {l->node ? l->node : "", getenv("ERL_EPMD_PORT") ? getenv("ERL_EPMD_PORT") : "", what};
    char dir[3500];

    if (l->opts.ssh) /* pressing a key must not log in to another host */
        return false;
    if (xdg && *xdg == '/')
        snprintf(dir, sizeof dir, "%.3000s", xdg);
    else if (home && *home)
        snprintf(dir, sizeof dir, "%.3000s/.cache", home);
    else
        return false;
    mkdir(dir, 0700);
    strcat(dir, "/etrace");
    if (mkdir(dir, 0700) && errno != EEXIST)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        for (const char *c = parts[i];; c++) {
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
            if (!*c)
                break;
        }
    snprintf(ret, size, "%s/complete-%016llx", dir, (unsigned long long)hash);
    return true;
}

/* The kinds of names that a node can list. */
enum names { NAMES_MODULES, NAMES_FUNCTIONS, NAMES_REGISTERED };

static const char *const asked_functions[] = {
    [NAMES_MODULES] = "loaded",
    [NAMES_FUNCTIONS] = "get_module_info",
    [NAMES_REGISTERED] = "registered",
};

static void put_arg(struct buf *args, const char *module)
{
    if (!module) {
        etf_nil(args);
        return;
    }
    etf_list(args, 2);
    etf_atomz(args, module);
    etf_atomz(args, "functions");
    etf_nil(args);
}

/* Appends a name, or a function as NAME/ARITY, on a line of its own. Skips functions that the compiler generated. */
static bool complete_put_name(struct etf *r, enum names what, struct buf *b)
{
    struct raw name;
    int64_t arity;

    if (what != NAMES_FUNCTIONS) {
        if (!etf_get_atom(r, &name))
            return false;
        if (!companion_is_name(name)) {
            print_safe(b, name);
            buf_char(b, '\n');
        }
        return true;
    }
    if (!etf_get_tuple(r, 2) || !etf_get_atom(r, &name) || !etf_get_int(r, &arity))
        return false;
    if (name.len && raw_view(name).at[0] != '-') {
        print_safe(b, name);
        buf_printf(b, "/%d\n", (int)arity);
    }
    return true;
}

static bool fetch_names(const struct editor *l, enum names what, const char *module, struct buf *ret)
{
    struct node_opts opts = l->opts;
    struct target target;
    struct buf args = {0}, keep = {0};
    struct node_conn conn;
    struct rpc rpc;
    struct etf r;
    struct err e;
    size_t n;

    opts.os_pid = NULL;
    /* the completion script must not read the standard input of the shell */
    if (opts.cookie_file && !strcmp(opts.cookie_file, "-"))
        return false;
    bool ok = target_init(&target, &opts, l->node && *l->node ? l->node : NULL, &e);
    target.node.typed = false; /* pressing a key must not send our cookie to another host */
    ok = ok && node_connect(&target.node, &conn, &e);
    target_release(&target);
    if (!ok)
        return false;
    rpc_open(&rpc, &conn, NULL);
    put_arg(&args, module);
    ok = rpc_call(&rpc, "erlang", asked_functions[what], buf_view(&args), 5000, &keep, &r, &e) && etf_get_list(&r, &n);
    for (size_t i = 0; ok && i < n; i++)
        ok = complete_put_name(&r, what, ret);
    rpc_close(&rpc);
    buf_release(&args);
    buf_release(&keep);
    return ok;
}

/* Asks the node, and replaces the cache file atomically. Runs in a process of its own. */
static void refresh_cache(const struct editor *l, enum names what, const char *module, const char *path)
{
    char tmp[4096];
    struct buf b = {0};

    snprintf(tmp, sizeof tmp, "%s.XXXXXX", path);
    if (!fetch_names(l, what, module, &b))
        return;
    int fd = mkostemp(tmp, O_CLOEXEC); /* creates the file with mode 0600 */
    if (fd < 0)
        return;
    bool ok = write(fd, b.data, b.len) == (ssize_t)b.len;
    close(fd);
    if (!ok || rename(tmp, path))
        unlink(tmp);
}

static bool is_fresh(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && time(NULL) - st.st_mtime < FRESH_S;
}

static void refresh_within(const struct editor *l, enum names what, const char *module, const char *path)
{
    int done[2];

    if (pipe2(done, O_CLOEXEC))
        return;
    pid_t pid = fork();
    if (pid == 0) {
        /* This process may outlive its parent, so it must not keep the terminal open. */
        int null = open("/dev/null", O_RDWR);
        for (int fd = 0; fd < 3 && null >= 0; fd++)
            dup2(null, fd);
        close(done[0]);
        setsid();
        refresh_cache(l, what, module, path);
        _exit(0);
    }
    close(done[1]);
    if (pid > 0) {
        struct pollfd p = {.fd = done[0], .events = POLLIN};
        poll(&p, 1, PATIENCE_MS); /* readable when the process has ended */
        waitpid(pid, NULL, WNOHANG);
    }
    close(done[0]);
}

/* Appends the answer of the node, which may come from the cache, one name per line. */
static void from_node(const struct editor *l, enum names what, const char *module, struct buf *ret)
{
    char path[4000], key[600];
    struct stat st;

    snprintf(key, sizeof key, "%s %s", asked_functions[what], module ? module : "");
    if (!cache_path(l, key, path, sizeof path))
        return;
    if (!is_fresh(path))
        refresh_within(l, what, module, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_size <= CACHE_MOST) {
        ssize_t n = read(fd, buf_room(ret, (size_t)st.st_size + 1), (size_t)st.st_size);
        ret->len += n > 0 ? (size_t)n : 0;
    }
    close(fd);
}

/* ---- expressions ---- */

static const char elixir[] = "Elixir.";

static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');

    if (!end)
        return NULL;
    *end = 0;
    *at = end + 1;
    return line;
}

static void offer_modules(const struct editor *l, const char *current, struct buf *ret)
{
    struct buf names = {0};
    char *at, *name;

    from_node(l, NAMES_MODULES, NULL, &names);
    buf_char(&names, 0);
    for (at = names.data; (name = next_line(&at));)
        if (!complete_is_plain(name))
            continue;
        else if (!strncmp(name, elixir, sizeof elixir - 1))
            offer_line(ret, current, "%s.", name + sizeof elixir - 1);
        else
            offer_line(ret, current, "%s:", name);
    buf_release(&names);
}

/* Offers the functions of a module. The first `prefix` bytes of `current` are the module and its separator. */
static void offer_functions(const struct editor *l, const char *current, const char *module, size_t prefix,
                            struct buf *ret)
{
    struct buf names = {0};
    char *at, *name;

    from_node(l, NAMES_FUNCTIONS, module, &names);
    buf_char(&names, 0);
    for (at = names.data; (name = next_line(&at));)
        if (complete_is_plain(name))
            offer_line(ret, current, "%.*s%s", (int)prefix, current, name);
    buf_release(&names);
}

static void offer_names(const struct editor *l, const char *current, struct buf *ret)
{
    const char *colon = strchr(current, ':'), *dot = strrchr(current, '.');
    char module[300];

    if (colon) {
        snprintf(module, sizeof module, "%.*s", (int)MIN(colon - current, 255), current);
        offer_functions(l, current, module, (size_t)(colon - current) + 1, ret);
        return;
    }
    offer_modules(l, current, ret);
    if (dot && *current >= 'A' && *current <= 'Z') {
        snprintf(module, sizeof module, "%s%.*s", elixir, (int)MIN(dot - current, 240), current);
        offer_functions(l, current, module, (size_t)(dot - current) + 1, ret);
    }
}

/*
 * Offers names for a selector. If only one module matches, offers its functions instead. If the node lists no functions
 * for it, offers MODULE and MODULE_: a single candidate would make the shell close the quote, although a function must
 * follow.
 */
static void offer_selector(const struct editor *l, const char *current, struct buf *ret)
{
    const size_t begin = ret->len;

    offer_names(l, current, ret);
    if (ret->len == begin)
        return;
    const char *at = ret->data + begin, *end = memchr(at, '\n', ret->len - begin);
    if (!end || end + 1 != ret->data + ret->len || !strchr(":.", end[-1]))
        return;
    char *module = mem_strndup(at, (size_t)(end - at));
    ret->len = begin;
    offer_names(l, module, ret);
    if (ret->len - begin <= strlen(module) + 1) {
        ret->len = begin;
        buf_printf(ret, "%s\n%s_\n", module, module);
    }
    free(module);
}

static void offer_list(const char *const *words, size_t count, const char *current, size_t before, struct buf *ret)
{
    for (size_t i = 0; i < count; i++)
        offer_line(ret, current, "%.*s%s", (int)before, current, words[i]);
}

/* Returns the last occurrence of the word in the text that is not part of a longer word; NULL: none. */
static const char *last_word(const char *text, size_t len, const char *word)
{
    const size_t n = strlen(word);

    for (const char *at = text + len; at >= text + n; at--)
        if (!memcmp(at - n, word, n) && (at == text + len || at[0] == ' ') &&
            (at - n == text || at[-(ptrdiff_t)n - 1] == ' '))
            return at - n;
    return NULL;
}

/*
 * Offers words of the expression language after a space: actions after ->, properties after where and by, aggregates
 * after the ':' of by, otherwise the words that can follow a selector. `before` is the length of `current` without the
 * word that is being typed.
 */
static void offer_behind(const char *current, size_t before, struct buf *ret)
{
    static const char *const follow[] = {"->", "when", "where", "by", "inside"};
    static const char *const actions[] = {
#define ACTION(id, word, least, most, places, how, fn, doc) word,
#include "../lang/actions.def"
        "where",
    };
    const char *properties[PROPERTIES + 1];
    size_t n = 0;
    const char *arrow = last_word(current, before, "->"), *where = last_word(current, before, "where"),
               *by = last_word(current, before, "by");

    for (size_t i = 0; i < PROPERTIES; i++)
        if (property_rows[i].uses & (PROPERTY_WHERE | (by ? (unsigned)PROPERTY_BY : 0)))
            properties[n++] = property_rows[i].name;
    if (by)
        properties[n++] = "tag(";
    if (by && memchr(by, ':', (size_t)(current + before - by)))
        offer_list(by_kind_names, BY_KINDS, current, before, ret);
    else if (where || by)
        offer_list(properties, n, current, before, ret);
    else if (arrow)
        offer_list(actions, ARRAY_LEN(actions), current, before, ret);
    else
        offer_list(follow, ARRAY_LEN(follow), current, before, ret);
}

static void offer_events(const char *current, struct buf *ret)
{
    static const char *const events[] = {
#define EVENT(id, name, flag, nargs, doc) "@" name,
#include "../lang/events.def"
    };

    offer_list(events, ARRAY_LEN(events), current, 0, ret);
}

/* Offers selectors after a '|', which separates alternatives. */
static void offer_alternative(const struct editor *l, const char *current, const char *word, struct buf *ret)
{
    struct buf names = {0};
    char *at, *name;

    offer_selector(l, word, &names);
    buf_char(&names, 0);
    for (at = names.data; (name = next_line(&at));)
        offer_line(ret, current, "%.*s%s", (int)(word - current), current, name);
    buf_release(&names);
}

static void offer_expression(const struct editor *l, const char *current, struct buf *ret)
{
    const char *word = current + strlen(current), *end;

    while (word > current && !strchr(" ,;|", word[-1]))
        word--;
    for (end = word; end > current && end[-1] == ' ';)
        end--;
    if (end > current && end[-1] == '|')
        offer_alternative(l, current, word, ret);
    else if (memchr(current, ' ', (size_t)(word - current)))
        offer_behind(current, (size_t)(word - current), ret);
    else if (*current == '@')
        offer_events(current, ret);
    else
        offer_selector(l, current, ret);
}

/* ---- nodes, processes, options, commands ---- */

static void offer_nodes(const char *current, struct buf *ret)
{
    int64_t deadline = net_now() + PATIENCE_MS;
    struct epmd_names names = {0};
    struct addrs addrs = {0};
    const char *at = strchr(current, '@');

    net_loopback(&addrs);
    if (epmd_list_any(&addrs, deadline, &names) != EPMD_OK)
        return;
    for (size_t i = 0; i < names.count; i++)
        if (!complete_is_plain(names.items[i].name))
            continue;
        else if (at)
            offer_line(ret, current, "%s%s", names.items[i].name, at[1] ? at : "@127.0.0.1");
        else
            offer_line(ret, current, "%s", names.items[i].name);
    epmd_names_release(&names);
}

/* Offers the registered names of processes. */
static void offer_registered(const struct editor *l, const char *current, struct buf *ret)
{
    struct buf names = {0};
    char *at, *name;

    from_node(l, NAMES_REGISTERED, NULL, &names);
    buf_char(&names, 0);
    for (at = names.data; (name = next_line(&at));)
        if (complete_is_plain(name))
            offer_line(ret, current, "%s", name);
    buf_release(&names);
}

/* Offers registered names, and the words for groups of processes. */
static void offer_processes(const struct editor *l, const char *current, struct buf *ret)
{
    static const char *const words[] = {"all", "existing", "new"};

    offer_registered(l, current, ret);
    offer_list(words, ARRAY_LEN(words), current, 0, ret);
}

/* Offers the columns of the table that the command, or the view of standard output, prints. */
static void offer_columns(const struct editor *l, const struct opt *o, const char *current, struct buf *ret)
{
    const char *view = l->cmd == &cmd_requests ? "requests" : l->view ? l->view : "summary";
    const struct sink_type *type = sink_by_name(view);
    const struct grid_table *table = o->table ? o->table : type ? type->table : NULL;
    struct buf names = {0};
    char *at, *name;

    if (!table)
        return;
    grid_column_names(table, "\n", &names);
    buf_puts(&names, "\n");
    buf_char(&names, 0);
    for (at = names.data; (name = next_line(&at));)
        if (complete_is_plain(name))
            offer_line(ret, current, "%s", name);
    buf_release(&names);
}

static void offer_value(const struct editor *l, const struct opt *o, const char *current, const char *before,
                        struct buf *ret)
{
    struct buf plain = {0};
    char *at, *value;

    if (o->type == OPT_CHOICE)
        for (const char *word = o->arg; *word; word += strcspn(word, "|"), word += *word == '|')
            offer_line(&plain, current, "%.*s", (int)strcspn(word, "|"), word);
    else if (complete_is(o, "node") && !l->opts.ssh)
        offer_nodes(current, &plain);
    else if (complete_is(o, "proc"))
        offer_processes(l, current, &plain);
    else if (complete_is(o, "as"))
        for (const struct sink_type *const *t = sink_types; *t; t++)
            offer_line(&plain, current, "%s", (*t)->name);
    else if (complete_is(o, "sort"))
        offer_columns(l, o, current, &plain);
    else if (complete_is(o, "dump"))
        for (size_t i = 0; i < LANG_PASSES; i++)
            offer_line(&plain, current, "%s", lang_pass(i)->name);
    buf_char(&plain, 0);
    for (at = plain.data; (value = next_line(&at));)
        buf_printf(ret, "%s%s\n", before, value);
    buf_release(&plain);
}

static void offer_options(const struct editor *l, const char *current, struct buf *ret)
{
    const char *equals = strchr(current, '=');
    char before[128];

    if (equals && current[1] == '-') {
        const struct opt *o = cmd_find_option(l->cmd, current + 2, (size_t)(equals - current) - 2, 0);
        snprintf(before, sizeof before, "%.*s", (int)MIN(equals - current + 1, 100), current);
        if (o && o->arg)
            offer_value(l, o, equals + 1, before, ret);
        return;
    }
    for (const struct opt_group *const *g = l->cmd->groups; *g; g++)
        for (size_t i = 0; i < (*g)->count; i++)
            offer_line(ret, current, "--%s", (*g)->rows[i].name);
}

static void offer_commands(const char *current, bool views, struct buf *ret)
{
    for (const struct cmd *const *c = cmd_all(); *c; c++)
        offer_line(ret, current, "%s", (*c)->name);
    for (const struct sink_type *const *t = sink_types; views && *t; t++)
        offer_line(ret, current, "%s", (*t)->name);
}

struct offered {
    const char *current;
    struct buf *ret;
};

static void offer_topic(void *data, const char *name)
{
    const struct offered *o = data;

    offer_line(o->ret, o->current, "%s", name);
}

static void offer_words(const struct editor *l, const char *current, struct buf *ret)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};

    if (l->cmd == &cmd_help) {
        struct offered offered = {current, ret};
        offer_commands(current, false, ret);
        topics_each(offer_topic, &offered);
    } else if (l->cmd == &cmd_completion) {
        for (size_t i = 0; i < ARRAY_LEN(shells); i++)
            offer_line(ret, current, "%s", shells[i]);
    } else if (l->cmd == &cmd_recipes) {
        for (const struct carried *c = carried; c->name; c++)
            if (strstr(c->name, ".recipe"))
                offer_line(ret, current, "%.*s", (int)(strlen(c->name) - 7), c->name);
    } else if (l->cmd == &cmd_why || l->cmd == &cmd_died) {
        offer_registered(l, current, ret);
    } else if (cmd_takes_expressions(l->cmd)) {
        offer_expression(l, current, ret);
        if (!ret->len)
            buf_char(ret, '\n');
    }
}

void complete(const char *const *words, size_t count, const char *current, struct buf *ret)
{
    struct editor l = read_line(words, count);

    if (l.command)
        return;
    if (l.open) {
        offer_value(&l, l.open, current, "", ret);
        return;
    }
    if (*current == '-') {
        offer_options(&l, current, ret);
        return;
    }
    if (!count)
        offer_commands(current, true, ret);
    offer_words(&l, current, ret);
}
