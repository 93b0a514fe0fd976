/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp_tools.h"

#include <string.h>

#include "../ground/json.h"

#define TEXT_MOST 16384 /* limit for the bytes of a text argument */

#define NODE                                                                                                           \
    {                                                                                                                  \
        .name = "node", .role = MCP_NODE, .option = "node",                                                            \
        .about = "the node, as the tool nodes lists it; may be left out if there is only one"                          \
    }
#define SECONDS(about_, preset_)                                                                                       \
    {                                                                                                                  \
        .name = "seconds", .type = MCP_INTEGER, .role = MCP_SECONDS, .option = "for", .unit = "s", .about = about_,    \
        .preset = preset_, .least = 1, .most = 30                                                                      \
    }
#define LIMIT(option_, about_, preset_, most_)                                                                         \
    {                                                                                                                  \
        .name = "limit", .type = MCP_INTEGER, .role = MCP_ROWS, .option = option_, .about = about_, .preset = preset_, \
        .least = 1, .most = most_                                                                                      \
    }
#define PROCESS(about_)                                                                                                \
    {                                                                                                                  \
        .name = "process", .role = MCP_PROCESS, .option = "proc", .about = about_                                      \
    }
#define WHERE                                                                                                          \
    {                                                                                                                  \
        .name = "where", .option = "where",                                                                            \
        .about = "only events for which this holds: dur > 5ms, class == error, args[1] == 7"                           \
    }
#define EXPRESSION(about_)                                                                                             \
    {                                                                                                                  \
        .name = "expression", .role = MCP_EXPRESSION, .required = true, .about = about_                                \
    }

#define OF_PROCESSES "only these processes: a pid, a registered name, app(NAME) or initial(M:F/A)"

static const struct mcp_param check_params[] = {
    NODE,
    SECONDS("look for this time, and trace what is over between two looks: long garbage collections and time "
            "slices, busy ports, who fills a long queue",
            NULL),
};

static const struct mcp_param ps_params[] = {
    NODE,
    PROCESS(OF_PROCESSES),
    {.name = "sort",
     .type = MCP_CHOICE,
     .option = "sort",
     .choices = "memory|queue|binaries|reductions",
     .about = "the first processes in this order; memory if it is left out"},
    SECONDS("look twice, with this time between, and sort by the growth", NULL),
    LIMIT("rows", "list at most so many processes", "20", 200),
};

static const struct mcp_param why_params[] = {
    NODE,
    {.name = "process", .role = MCP_PROCESS, .required = true, .about = "a pid such as <0.84.0>, or a registered name"},
    SECONDS("how long to look", NULL),
};

static const struct mcp_param requests_params[] = {
    NODE,
    PROCESS("only requests to these servers, at the least cost: a pid, a registered name, app(NAME) or initial(M:F/A)"),
    {.name = "server",
     .option = "server",
     .about = "only requests to this pid, registered name or callback module, and trace their callers, too"},
    SECONDS("how long to trace", "5"),
    LIMIT(NULL, "show at most so many single requests, beside the figures of all", "20", 2000),
};

static const struct mcp_param top_params[] = {
    NODE,
    {.name = "functions",
     .role = MCP_EXPRESSION,
     .required = true,
     .about =
         "a module, or a selector: lists, shop_orders:place/3, MyApp.Repo. Of a whole application only the calls can "
         "be counted: app(shop) -> count"},
    PROCESS(OF_PROCESSES),
    {.name = "by",
     .type = MCP_CHOICE,
     .option = "by",
     .choices = "function|process",
     .about = "a row for each function, or for each function and process"},
    {.name = "sort",
     .type = MCP_CHOICE,
     .option = "sort",
     .choices = "time|calls|memory|name",
     .about = "the first rows in this order; time if it is left out"},
    SECONDS("how long to count", "5"),
    LIMIT("rows", "list at most so many rows", "50", 1000),
};

static const struct mcp_param trace_params[] = {
    NODE,
    EXPRESSION("what to trace: 'shop_orders:place/3 -> return', 'ets:lookup(_, K) when K > 9 -> return, caller', "
               "'MyApp.Repo.get(_, id) -> return', 'recv({reply, _})', 'send(_, _)', '@exit'. Without '-> return' "
               "there are no results and durations. The tool explain compiles it without tracing"),
    PROCESS(OF_PROCESSES),
    WHERE,
    SECONDS("how long to trace", "5"),
    LIMIT("limit",
          "stop after so many events; a call and its return count once. An answer has room for about 100 of them",
          "200", 2000),
};

static const struct mcp_param count_params[] = {
    NODE,
    EXPRESSION("which calls, messages or events to count: 'shop_orders:_', 'send(_, _)', '@exit'"),
    {.name = "by",
     .role = MCP_BY,
     .option = "by",
     .preset = "mfa: count, avg(dur), max(dur)",
     .about = "KEYS: AGGREGATES, such as 'args[1]: count, max(dur)', 'mfa, class: count', 'pid: count' or "
              "'mfa: count, quantiles(dur)'; by function if it is left out"},
    PROCESS(OF_PROCESSES),
    WHERE,
    SECONDS("how long to count", "5"),
    LIMIT(NULL, "list at most so many rows, the most frequent ones", "50", 2000),
};

static const struct mcp_param replay_params[] = {
    {.name = "file",
     .role = MCP_RECORDING,
     .required = true,
     .about = "a recording of etrace on this host: /tmp/a.etr"},
    WHERE,
    {.name = "from", .option = "from", .about = "from this time on: 18:26:50, 2026-01-31T18:26:50Z, +2s or -5s"},
    {.name = "to", .option = "to", .about = "up to this time; +2s is after the first event, -5s before the end"},
    LIMIT("limit",
          "stop after so many events; a call and its return count once. An answer has room for about 100 of them",
          "200", 2000),
};

static const struct mcp_param explain_params[] = {EXPRESSION("the expression, as for trace and count")};

#define PARAMS(rows) .params = rows, .nparams = ARRAY_LEN(rows)

static const struct mcp_tool tools[] = {
    {
        .name = "nodes",
        .title = "List Erlang nodes",
        .about = "Lists the Erlang and Elixir nodes of this host, and whether etrace can connect to them. Begin here.",
        .command = &cmd_nodes,
        .fixed = "--json",
        .free = true,
        .lists_nodes = true,
        .main = "",
    },
    {
        .name = "check",
        .title = "Look for faults of a node",
        .about =
            "Looks at a whole node for two seconds, without tracing, and says what is wrong: deadlocks, growing "
            "queues, exhausted pools, leaks, restart loops, busy schedulers. Without a finding, the node can still "
            "have a fault that a look does not see: with seconds, check also traces, and so sees short faults.",
        .command = &cmd_check,
        .fixed = "--json",
        .main = ",check,",
        .found = ERR_FOUND,
        PARAMS(check_params),
    },
    {
        .name = "ps",
        .title = "List processes",
        .about = "Lists the processes with the most memory, longest queues, most binaries or most reductions, with "
                 "stacks, or those that grow most.",
        .command = &cmd_ps,
        .fixed = "--json",
        .main = ",processes,",
        PARAMS(ps_params),
    },
    {
        .name = "why",
        .title = "Explain what a process waits for",
        .about = "Looks at one process for a second: what it does, what it waits for, who waits for it, and who sends "
                 "it messages.",
        .command = &cmd_why,
        .fixed = "--json",
        .main = "",
        PARAMS(why_params),
    },
    {
        .name = "requests",
        .title = "Time requests to servers",
        .about = "Traces the requests to gen_server, gen_statem, GenServer and Agent for some seconds: for each server "
                 "and kind of request how long it waited, how long the server worked, and timeouts.",
        .command = &cmd_requests,
        .fixed = "--json",
        .messages = true,
        .cuts = true,
        .main = ",requests,requests_missing,",
        PARAMS(requests_params),
    },
    {
        .name = "top",
        .title = "Count calls and own time",
        .about =
            "Lets the VM itself count calls, own time and memory by function for some seconds. It makes no events, "
            "so it suits busy functions.",
        .command = &cmd_top,
        .fixed = "--json",
        .use = MCP_USE_TOP,
        .main = ",counted,",
        PARAMS(top_params),
    },
    {
        .name = "trace",
        .title = "Trace calls, messages or process events",
        .about = "Traces what an expression selects for some seconds: calls with arguments, results, exceptions and "
                 "durations, messages, exits. Narrow the expression rather than raising the limit.",
        .command = &cmd_trace,
        .fixed = "--json",
        .use = MCP_USE_TRACE,
        .main = ",summary,",
        PARAMS(trace_params),
    },
    {
        .name = "count",
        .title = "Count calls by function or by value",
        .about = "Traces what an expression selects for some seconds and shows only figures: how often, by function, "
                 "argument, result or process, with durations.",
        .command = &cmd_trace,
        .fixed = "--json",
        .use = MCP_USE_COUNT,
        .cuts = true,
        .main = ",table,summary,",
        PARAMS(count_params),
    },
    {
        .name = "replay",
        .title = "Show a recording",
        .about = "Shows the events of a recording that etrace made before (etrace -o FILE.etr), without a node.",
        .command = &cmd_replay,
        .fixed = "--json",
        .main = ",summary,",
        PARAMS(replay_params),
    },
    {
        .name = "explain",
        .title = "Explain an expression",
        .about = "Compiles an expression and explains what it selects, without a node. Errors say what is wrong.",
        .command = &cmd_explain,
        .use = MCP_USE_EXPLAIN,
        .text = true,
        .free = true,
        .main = "",
        PARAMS(explain_params),
    },
};

const struct mcp_tool *mcp_tool_find(struct raw name)
{
    for (size_t i = 0; i < ARRAY_LEN(tools); i++)
        if (raw_is(name, tools[i].name))
            return &tools[i];
    return NULL;
}

/* ---- the schema ---- */

static void put_choices(struct buf *to, const char *choices)
{
    json_put_array(to, "enum");
    for (const char *word = choices; *word; word += strcspn(word, "|"), word += *word == '|')
        json_string(to, raw_bytes(word, strcspn(word, "|")));
    json_end_array(to);
}

static void put_param(struct buf *to, const struct mcp_param *p)
{
    int64_t preset;

    json_put_object(to, p->name);
    json_put_text(to, "type", p->type == MCP_INTEGER ? "integer" : "string");
    json_put_text(to, "description", p->about);
    if (p->type == MCP_CHOICE)
        put_choices(to, p->choices);
    if (p->type == MCP_INTEGER) {
        json_put_int(to, "minimum", p->least);
        json_put_int(to, "maximum", p->most);
    }
    if (p->preset && p->type == MCP_INTEGER && opt_size(p->preset, &preset))
        json_put_int(to, "default", preset);
    else if (p->preset)
        json_put_text(to, "default", p->preset);
    json_end_object(to);
}

static void put_schema(struct buf *to, const struct mcp_tool *t)
{
    json_put_object(to, "inputSchema");
    json_put_text(to, "type", "object");
    json_put_object(to, "properties");
    for (size_t i = 0; i < t->nparams; i++)
        put_param(to, &t->params[i]);
    json_end_object(to);
    json_put_array(to, "required");
    for (size_t i = 0; i < t->nparams; i++)
        if (t->params[i].required)
            json_text(to, t->params[i].name);
    json_end_array(to);
    json_put_bool(to, "additionalProperties", false);
    json_end_object(to);
}

void mcp_tools_put(struct buf *to)
{
    json_put_array(to, "tools");
    for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
        json_begin_object(to);
        json_put_text(to, "name", tools[i].name);
        json_put_text(to, "title", tools[i].title);
        json_put_text(to, "description", tools[i].about);
        put_schema(to, &tools[i]);
        json_put_object(to, "annotations");
        json_put_bool(to, "readOnlyHint", true);
        json_put_bool(to, "destructiveHint", false);
        json_put_bool(to, "openWorldHint", false);
        json_end_object(to);
        json_end_object(to);
    }
    json_end_array(to);
}

/* ---- arguments ---- */

static const struct mcp_param *find_param(const struct mcp_tool *t, struct raw name)
{
    for (size_t i = 0; i < t->nparams; i++)
        if (raw_is(name, t->params[i].name))
            return &t->params[i];
    return NULL;
}

/* Sets the error for an argument that the tool does not have. */
static bool reject_unknown(const struct mcp_tool *t, struct raw name, struct err *e)
{
    const struct str text = raw_view(name);
    struct buf known = {0};

    for (size_t i = 0; i < t->nparams; i++)
        buf_printf(&known, "%s%s", i ? ", " : "", t->params[i].name);
    err_set(e, ERR_USAGE, "%s has no argument '%.*s'", t->name, (int)MIN(text.len, 100), text.at);
    if (t->nparams)
        err_hint(e, "it has %s", buf_cstr(&known));
    else
        err_hint(e, "it takes no arguments");
    buf_release(&known);
    return false;
}

static bool read_integer(const struct mcp_param *p, const struct json *given, struct arena *a, const char **ret,
                         struct err *e)
{
    int64_t n;

    if (given->kind != JSON_NUMBER)
        return err_set(e, ERR_USAGE, "%s takes an integer, not %s", p->name, json_kind_names[given->kind]);
    if (!json_integer(given, &n) || n < p->least || n > p->most)
        return err_set(e, ERR_USAGE, "%s takes an integer from %lld to %lld", p->name, (long long)p->least,
                       (long long)p->most);
    *ret = arena_printf(a, "%lld", (long long)n);
    return true;
}

/*
 * Rejects a text that begins with a dash, because the command would read it as an option. Expressions, processes and
 * files can be written without a dash at the beginning.
 */
static bool read_text(const struct mcp_param *p, const struct json *given, const char **ret, struct err *e)
{
    const char *text = json_text_of(given);

    if (given->kind != JSON_STRING)
        return err_set(e, ERR_USAGE, "%s takes a string, not %s", p->name, json_kind_names[given->kind]);
    if (!text)
        return err_set(e, ERR_USAGE, "%s contains a NUL", p->name);
    if (given->text.len > TEXT_MOST)
        return err_set(e, ERR_USAGE, "%s has more than %d bytes", p->name, TEXT_MOST);
    if (!*text)
        return err_set(e, ERR_USAGE, "%s is empty", p->name);
    if (!p->option && *text == '-')
        return err_set(e, ERR_USAGE, "%s begins with a dash", p->name);
    if (p->type == MCP_CHOICE && !opt_choice(p->choices, text, &(int){0})) {
        err_set(e, ERR_USAGE, "%s does not take '%.100s'", p->name, text);
        err_hint(e, "one of %s", p->choices);
        return false;
    }
    *ret = text;
    return true;
}

static int64_t number_of(const char *text)
{
    int64_t n = 0;

    return text && opt_size(text, &n) ? n : 0;
}

bool mcp_tool_read(const struct mcp_tool *tool, const struct json *given, struct arena *a, struct mcp_arguments *ret,
                   struct err *e)
{
    *ret = (struct mcp_arguments){0};
    for (const struct json *at = given ? given->first : NULL; at; at = at->next) {
        const struct mcp_param *p = find_param(tool, at->key);
        if (!p)
            return reject_unknown(tool, at->key, e);
        const char **value = &ret->values[p - tool->params];
        if (!(p->type == MCP_INTEGER ? read_integer(p, at, a, value, e) : read_text(p, at, value, e)))
            return false;
    }
    for (size_t i = 0; i < tool->nparams; i++) {
        const struct mcp_param *p = &tool->params[i];
        if (!ret->values[i] && p->required)
            return err_set(e, ERR_USAGE, "%s needs the argument %s: %s", tool->name, p->name, p->about);
        ret->values[i] = ret->values[i] ? ret->values[i] : p->preset;
        if (p->role == MCP_SECONDS)
            ret->seconds = number_of(ret->values[i]);
        if (p->role == MCP_ROWS)
            ret->rows = number_of(ret->values[i]);
    }
    return true;
}

bool mcp_tool_allowed(const struct mcp_tool *tool, const struct mcp_rules *rules, struct arena *a,
                      struct mcp_arguments *args, struct err *e)
{
    bool ok = !tool->messages || mcp_rules_no_module(rules, tool->name, e);

    for (size_t i = 0; ok && i < tool->nparams; i++) {
        const enum mcp_role role = tool->params[i].role;
        if (role == MCP_NODE)
            ok = mcp_rules_node(rules, args->values[i], a, &args->node, e);
        else if (role == MCP_RECORDING)
            ok = mcp_rules_recording(rules, args->values[i], a, &args->values[i], e);
        else if (role == MCP_PROCESS && args->values[i])
            ok = mcp_rules_process(args->values[i], e);
        else if (role == MCP_EXPRESSION)
            ok = mcp_rules_expression(rules, tool->use, args->values[i], &args->has_keys, e);
    }
    return ok;
}

/* ---- the words of the command ---- */

/* Adds --NAME=VALUE as one word, so that no value can become another option. */
static void add_option(struct arena *a, struct texts *to, const struct cmd *c, const char *name, const char *value,
                       const char *unit)
{
    if (value && cmd_find_option(c, name, strlen(name), 0))
        texts_add(to, arena_printf(a, "--%s=%s%s", name, value, unit ? unit : ""));
}

static void add_flag(struct arena *a, struct texts *to, const struct cmd *c, const char *name, bool given)
{
    if (given && cmd_find_option(c, name, strlen(name), 0))
        texts_add(to, arena_printf(a, "--%s", name));
}

/* Adds the connection options of the server that the command also has. */
static void add_connection(struct arena *a, struct texts *to, const struct cmd *c, const struct node_opts *o)
{
    add_option(a, to, c, "pid", o->os_pid, NULL);
    add_option(a, to, c, "ssh", o->ssh, NULL);
    add_option(a, to, c, "cookie-file", o->cookie_file, NULL);
    add_option(a, to, c, "port", o->port ? arena_printf(a, "%lld", (long long)o->port) : NULL, NULL);
    add_flag(a, to, c, "tls", o->tls);
    add_option(a, to, c, "tls-optfile", o->tls_optfile, NULL);
    add_option(a, to, c, "tls-ca", o->tls_ca, NULL);
    add_option(a, to, c, "tls-cert", o->tls_cert, NULL);
    add_option(a, to, c, "tls-key", o->tls_key, NULL);
    add_flag(a, to, c, "tls-no-verify", o->tls_no_verify);
    add_flag(a, to, c, "fallback", o->fallback);
}

static bool is_left_out(const struct mcp_param *p, const struct mcp_arguments *args)
{
    return p->role == MCP_NODE || (p->role == MCP_BY && args->has_keys);
}

static const char *bounded_value(const struct mcp_param *p, const struct mcp_arguments *args, size_t i, struct arena *a)
{
    const int64_t bounded = p->role == MCP_SECONDS ? args->seconds : p->role == MCP_ROWS ? args->rows : 0;

    return args->values[i] && bounded ? arena_printf(a, "%lld", (long long)bounded) : args->values[i];
}

void mcp_tool_words(const struct mcp_tool *tool, const struct mcp_arguments *args, const struct mcp_passed *passed,
                    struct arena *a, struct texts *ret)
{
    const struct cmd *c = tool->command;
    const char *word = NULL;

    texts_add(ret, c->name);
    if (tool->fixed)
        texts_add(ret, tool->fixed);
    add_connection(a, ret, c, passed->node);
    add_option(a, ret, c, "node", args->node, NULL);
    for (size_t i = 0; i < passed->redact->count; i++)
        add_option(a, ret, c, "redact", passed->redact->items[i], NULL);
    if (tool->use == MCP_USE_TRACE || tool->use == MCP_USE_COUNT)
        add_option(a, ret, c, "overhead",
                   arena_printf(a, "%lld.%02lld", (long long)passed->overhead / 100, (long long)passed->overhead % 100),
                   "%");
    for (size_t i = 0; i < tool->nparams; i++) {
        const struct mcp_param *p = &tool->params[i];
        if (is_left_out(p, args))
            continue;
        if (p->option)
            add_option(a, ret, c, p->option, bounded_value(p, args, i, a), p->unit);
        else if (p->type != MCP_INTEGER)
            word = args->values[i];
    }
    if (word)
        texts_add(ret, word);
}
