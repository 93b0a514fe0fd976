/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp_rules.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ground/command_line.h"
#include "../ground/glob.h"
#include "../ground/small_file.h"
#include "../node/find.h"
#include "../trace/exprs.h"
#include "../trace/target.h"
#include "../trace/who.h"

#define FILE_MOST (64 * 1024)

/* ---- patterns ---- */

static struct str str_from(const char *text)
{
    return (struct str){text, strlen(text)};
}

/* The two parts of a node name. `host` is empty if the name has no @; the node is then on this host. */
struct node_name {
    struct str alive, host;
};

static struct node_name split_name(const char *name)
{
    const char *at = strchr(name, '@');

    return at ? (struct node_name){{name, (size_t)(at - name)}, str_from(at + 1)}
              : (struct node_name){str_from(name), {"", 0}};
}

/* The decision of a rule about a node. */
enum node_rule {
    NODE_REFUSED,
    NODE_HERE,  /* the rule allows nodes of this host, so the command must not ask another host for the node */
    NODE_NAMED, /* the rule names the host of the node */
};

static bool is_of_this_host(struct node_name n)
{
    return !n.host.len || find_is_this_host(n.host.at);
}

/* Returns true if the node may be on the host where commands look for a name without a host. */
static bool may_be_here(const struct mcp_rules *r, struct node_name n)
{
    /* With --ssh, nodes are on the host of --ssh, whatever host their names contain. */
    return r->node->ssh || is_of_this_host(n) || find_may_be_this_host(n.host.at);
}

/* A pattern without a host is for nodes of this host, and all names of this host are equal. */
static enum node_rule match_node(const struct mcp_rules *r, const char *pattern, const char *name)
{
    const struct node_name p = split_name(pattern), n = split_name(name);
    const struct str host = n.host.len ? n.host : STR("localhost");

    if (!glob_matches(p.alive, n.alive, false, 0))
        return NODE_REFUSED;
    if (glob_matches(p.host, host, false, 0))
        return NODE_NAMED;
    return is_of_this_host(p) && may_be_here(r, n) ? NODE_HERE : NODE_REFUSED;
}

/* ---- the file ---- */

static struct str strip_spaces(struct str s)
{
    while (s.len && strchr(" \t\r", s.at[0]))
        s.at++, s.len--;
    while (s.len && strchr(" \t\r", s.at[s.len - 1]))
        s.len--;
    return s;
}

static bool read_rule(struct mcp_rules *r, struct str line, struct err *e)
{
    const struct {
        const char *word;
        struct texts *to;
    } kinds[] = {{"node", &r->nodes}, {"module", &r->modules}, {"recording", &r->recordings}};
    size_t word = 0;

    while (word < line.len && line.at[word] != ' ' && line.at[word] != '\t')
        word++;
    const struct str rest = strip_spaces((struct str){line.at + word, line.len - word});
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (rest.len && str_is((struct str){line.at, word}, kinds[i].word)) {
            texts_add(kinds[i].to, arena_strndup(&r->arena, rest.at, rest.len));
            return true;
        }
    err_set(e, ERR_USAGE, "'%.*s' is no rule", (int)MIN(line.len, 100), line.at);
    err_hint(e, "node PATTERN, module PATTERN or recording PATTERN; * stands for any characters");
    return false;
}

static bool read_rules(struct mcp_rules *r, const char *path, struct str text, struct err *e)
{
    struct err why;

    for (size_t number = 1; text.len; number++) {
        const char *end = memchr(text.at, '\n', text.len);
        const size_t len = end ? (size_t)(end - text.at) : text.len;
        const struct str line = strip_spaces((struct str){text.at, len});
        if (line.len && line.at[0] != '#' && !read_rule(r, line, &why)) {
            err_set(e, ERR_USAGE, "%s, line %zu: %s", path, number, why.text);
            err_hint(e, "%s", why.hint);
            return false;
        }
        text.at += len + (end != NULL);
        text.len -= len + (end != NULL);
    }
    return true;
}

bool mcp_rules_init(struct mcp_rules *r, const struct node_opts *node, const char *path, struct err *e)
{
    struct buf text = {0};

    *r = (struct mcp_rules){.node = node};
    arena_init(&r->arena);
    const bool ok = !path || (small_file_read(path, path, FILE_MOST, &text, ERR_USAGE, e) &&
                              read_rules(r, path, buf_view(&text), e));
    buf_release(&text);
    return ok;
}

void mcp_rules_release(struct mcp_rules *r)
{
    texts_release(&r->nodes);
    texts_release(&r->modules);
    texts_release(&r->recordings);
    arena_release(&r->arena);
}

/* ---- nodes ---- */

static enum node_rule match_nodes(const struct mcp_rules *r, const struct texts *patterns, const char *name)
{
    enum node_rule best = NODE_REFUSED;

    for (size_t i = 0; i < patterns->count; i++)
        best = MAX(best, match_node(r, patterns->items[i], name));
    return best;
}

static enum node_rule rule_for_node(const struct mcp_rules *r, const char *name)
{
    const char *preset = r->node->nodes.count ? NULL : target_default(r->node);
    const enum node_rule given = MAX(match_nodes(r, &r->node->nodes, name), match_nodes(r, &r->nodes, name));
    const enum node_rule other = preset ? match_node(r, preset, name) : NODE_REFUSED;
    /* Without names of the user, all nodes of this host are allowed. */
    const enum node_rule any = r->node->nodes.count || r->nodes.count ? NODE_REFUSED : match_node(r, "*", name);

    return MAX(given, MAX(other, any));
}

bool mcp_rules_allow_node(const struct mcp_rules *r, const char *name)
{
    return rule_for_node(r, name) != NODE_REFUSED;
}

/*
 * Returns the name for the command. The host app1.example.com has the name of the host app1, but may be another one,
 * which must not get a digest of the cookie. The name without a host makes the command look on this host only.
 */
static const char *name_for_command(const struct mcp_rules *r, const char *name, struct arena *a)
{
    const struct node_name n = split_name(name);

    if (rule_for_node(r, name) == NODE_NAMED || r->node->ssh || is_of_this_host(n))
        return name;
    return arena_strndup(a, n.alive.at, n.alive.len);
}

static bool refuse_node(const struct mcp_rules *r, const char *name, struct err *e)
{
    err_set(e, ERR_USAGE, "the user of this server does not allow the node %s", name);
    if (r->nodes.count || r->node->nodes.count)
        err_hint(e, "the user can add the line 'node %s' to the file of --allow", name);
    else
        command_line_hint(e, "only nodes of this host are allowed; the user can start the server with -n", name, "");
    return false;
}

/* Sets the error for a call that names no node although there are several. */
static bool demand_node(const struct mcp_rules *r, struct err *e)
{
    struct buf names = {0};
    const struct texts *known = r->node->nodes.count ? &r->node->nodes : &r->nodes;

    for (size_t i = 0; i < known->count; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", known->items[i]);
    err_set(e, ERR_USAGE, "several nodes are allowed, so the call must name one: node");
    err_hint(e, "allowed are %.200s", buf_cstr(&names));
    buf_release(&names);
    return false;
}

bool mcp_rules_node(const struct mcp_rules *r, const char *asked, struct arena *a, const char **ret, struct err *e)
{
    const struct node_opts *o = r->node;
    const char *name = asked            ? asked
                       : o->nodes.count ? (o->nodes.count == 1 ? o->nodes.items[0] : NULL)
                                        : target_default(o);

    if (o->os_pid && asked)
        return err_set(e, ERR_USAGE, "this server looks at one node, chosen with -p: leave out node");
    if (!name && !o->os_pid && (o->nodes.count || r->nodes.count))
        return demand_node(r, e);
    if (name && (!node_name_check(name, e) || (!mcp_rules_allow_node(r, name) && !refuse_node(r, name, e))))
        return false;
    *ret = name ? name_for_command(r, name, a) : NULL;
    return true;
}

/* ---- recordings ---- */

/*
 * Returns true if the pattern matches a path without links, `.` and `..`. The directory before the first * of the
 * pattern may be relative or contain links.
 */
static bool match_recording(const char *pattern, const char *path)
{
    char fixed[PATH_MAX], real[PATH_MAX];
    size_t len = strcspn(pattern, "*");

    while (pattern[len] && len && pattern[len - 1] != '/')
        len--;
    if (snprintf(fixed, sizeof(fixed), "%.*s", len ? (int)len : 1, len ? pattern : ".") >= PATH_MAX ||
        !realpath(fixed, real))
        return false;
    const struct str rest = str_from(pattern + len);
    len = strlen(real);
    if (strncmp(path, real, len) != 0)
        return false;
    path += len;
    if (rest.len && real[len - 1] != '/' && *path++ != '/')
        return false;
    return glob_matches(rest, str_from(path), false, '/');
}

bool mcp_rules_recording(const struct mcp_rules *r, const char *path, struct arena *a, const char **ret, struct err *e)
{
    const size_t len = strlen(path);
    char real[PATH_MAX];

    if (len < 4 || strcmp(path + len - 4, ".etr") != 0)
        return err_set(e, ERR_USAGE, "a recording is a file whose name ends with .etr");
    *ret = path;
    if (!r->recordings.count && !r->nodes.count && !r->modules.count)
        return true;
    const bool exists = realpath(path, real);
    for (size_t i = 0; exists && i < r->recordings.count; i++)
        if (match_recording(r->recordings.items[i], real)) {
            *ret = arena_strndup(a, real, strlen(real));
            return true;
        }
    /* The same error for a missing file, so that a client cannot find out which files exist. */
    err_set(e, ERR_USAGE, "the user of this server does not allow the recording %.200s, or there is none", path);
    err_hint(e, "the user can add the line 'recording %.200s' to the file of --allow", path);
    return false;
}

/* ---- processes ---- */

bool mcp_rules_process(const char *text, struct err *e)
{
    struct arena a;
    struct who w;

    arena_init(&a);
    /* The command rejects a malformed text. */
    const bool calls = who_parse(text, &a, &w) && w.kind == ARM_WHO_VIA && !str_is(w.module, "global") &&
                       !str_is(w.module, "Elixir.Registry");
    if (calls) {
        err_set(e, ERR_USAGE, "%.*s is refused: the node would call %.*s:whereis_name/1, and this server only reads",
                (int)MIN(w.text.len, 100), w.text.at, (int)MIN(w.module.len, 100), w.module.at);
        err_hint(e, "a pid, a registered name, {global,Name}, or {Registry,Key} of Elixir");
    }
    arena_release(&a);
    return !calls;
}

/* ---- expressions ---- */

/*
 * Functions of match specifications that a client must not use, because they change something or print values without
 * redaction.
 */
static const struct {
    const char *name, *why;
} refused[] = {
    {"set_seq_token", "sets trace tokens"},
    {"enable_trace", "changes the flags of processes"},
    {"disable_trace", "changes the flags of processes"},
    {"trace", "changes the flags of processes"},
    {"silent", "mutes the calls of a process"},
    {"display", "prints on the console of the node"},
    {"set_tcw", "changes the node"},
    {"process_dump", "prints a process with its secrets"},
};

/*
 * Searches a part of a guard or a body for a call of a refused function. Returns its index in `refused`, or -1. {{…}}
 * is a tuple and no call, so only its elements are searched. {const, T} is a constant and is not searched.
 */
static int find_refused(term_t t)
{
    if (t->type == TERM_TUPLE && t->count == 1 && t->items[0]->type == TERM_TUPLE)
        t = t->items[0];
    else if (t->type == TERM_TUPLE && t->count && term_is_atom(t->items[0], "const"))
        return -1;
    else
        for (size_t i = 0; i < ARRAY_LEN(refused); i++)
            if (spec_is_call(t, refused[i].name))
                return (int)i;
    for (size_t i = 0; i < t->count && t->type != TERM_EXPORT; i++) {
        const int found = find_refused(t->items[i]);
        if (found >= 0)
            return found;
    }
    return t->tail ? find_refused(t->tail) : -1;
}

/*
 * Returns false, with an error, if a guard or a body calls a refused function. The user or the compiler may have
 * written the match specification.
 */
static bool only_reads(const struct spec *s, struct err *e)
{
    const term_t ms = s->match_spec;

    if (s->flags & SPEC_F_SEQ_TRACE)
        return err_set(e, ERR_USAGE, "@seq_trace is refused: it takes the system tracer of the node");
    for (size_t i = 0; ms && ms->type == TERM_LIST && i < ms->count; i++)
        for (size_t part = 1; part < ms->items[i]->count; part++) {
            const int found = find_refused(ms->items[i]->items[part]);
            if (found >= 0)
                return err_set(e, ERR_USAGE, "the action %s is refused: it %s, and this server only reads",
                               refused[found].name, refused[found].why);
        }
    return true;
}

static bool is_any_match(const struct texts *patterns, struct str text)
{
    for (size_t i = 0; i < patterns->count; i++)
        if (glob_matches(str_from(patterns->items[i]), text, false, 0))
            return true;
    return false;
}

/* Returns true if a rule allows the module. Rules may name modules of Elixir without the prefix Elixir. */
static bool allows_module(const struct mcp_rules *r, struct str name)
{
    static const struct str prefix = {"Elixir.", 7};
    const bool elixir = name.len > prefix.len && !memcmp(name.at, prefix.at, prefix.len);

    return is_any_match(&r->modules, name) ||
           (elixir && is_any_match(&r->modules, (struct str){name.at + prefix.len, name.len - prefix.len}));
}

static bool allows_selector(const struct mcp_rules *r, const struct spec *spec, const struct selector *s, struct err *e)
{
    if (s->module.how == SEL_ATOM && allows_module(r, s->module.text))
        return true;
    if (s->module.how == SEL_ATOM) {
        err_set(e, ERR_USAGE, "the user of this server does not allow the module %.*s", (int)s->module.text.len,
                s->module.text.at);
        err_hint(e, "the user can add the line 'module %.*s' to the file of --allow", (int)MIN(s->module.text.len, 100),
                 s->module.text.at);
        return false;
    }
    err_set(e, ERR_USAGE, "%.*s selects modules by a pattern, but the user allows only some modules: name the module",
            (int)s->len, spec->text.at + s->from);
    return false;
}

/*
 * Returns false, with an error, if counting would cost too much. top cannot limit its cost. Counting calls is cheap,
 * but measuring time or words of thousands of functions takes half of the node's speed, and a pattern may select so
 * many.
 */
static bool check_cost(const struct spec *s, const struct selector *sel, struct err *e)
{
    if (sel->module.how == SEL_ANY)
        return err_set(e, ERR_USAGE, "top counts the calls of some modules, not of all: name them");
    if (sel->module.how == SEL_ATOM || s->counters == SPEC_COUNT)
        return true;
    err_set(e, ERR_USAGE, "times of all functions that a pattern selects may take half of the node's speed");
    err_hint(e, "name the module, or count only calls: 'app(shop) -> count'");
    return false;
}

bool mcp_rules_no_module(const struct mcp_rules *r, const char *what, struct err *e)
{
    return !r->modules.count ||
           err_set(e, ERR_USAGE, "%s are refused: the user allows only some modules, and %s belong to none", what,
                   what);
}

static bool allows_spec(const struct mcp_rules *r, enum mcp_use use, const struct spec *s, struct err *e)
{
    bool ok = only_reads(s, e);

    if (ok && s->kind != SPEC_CALL)
        ok = mcp_rules_no_module(r, s->kind == SPEC_EVENT ? "events" : "messages", e);
    for (size_t i = 0; ok && i < s->nselectors; i++)
        ok = (use != MCP_USE_TOP || check_cost(s, &s->selectors[i], e)) &&
             (!r->modules.count || allows_selector(r, s, &s->selectors[i], e));
    return ok;
}

bool mcp_rules_expression(const struct mcp_rules *r, enum mcp_use use, const char *text, bool *ret_by, struct err *e)
{
    const struct what_opts what = WHAT_OPTS_INIT;
    const struct texts texts = {.items = &text, .count = 1}, none = {0};
    struct exprs exprs;
    bool later;

    exprs_init(&exprs);
    exprs.find_record = exprs_later;
    exprs.find_data = &later;
    exprs.may_count = use == MCP_USE_TOP || use == MCP_USE_EXPLAIN;
    bool ok = exprs_compile(&exprs, &what, &texts, &none, 0, e);
    *ret_by = false;
    for (size_t i = 0; ok && i < exprs.count; i++) {
        *ret_by = *ret_by || exprs.specs[i]->by;
        ok = use == MCP_USE_EXPLAIN || allows_spec(r, use, exprs.specs[i], e);
    }
    exprs_release(&exprs);
    return ok;
}
