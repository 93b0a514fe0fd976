/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace requests: shows where the time of requests to servers goes. It runs a trace with fixed expressions; the views
 * of requests pair its events (fold/request_pairs.h).
 */
#include <string.h>
#include <unistd.h>

#include "../ground/screen.h"
#include "../trace/live.h"
#include "../trace/outputs.h"
#include "../trace/who.h"
#include "../views/sink.h"
#include "cmd.h"
#include "table_screen.h"

/*
 * Functions of gen_server and gen_statem that run around every callback. Their arguments include the module of the
 * server, the message and From. The probes collect only these values: if a long message or state came before From,
 * there would be no room left for From. The order of the arguments depends on the OTP release. The first clauses are
 * for releases in which the module is the second element of the first argument.
 */
#define CALL(actions)                                                                                                  \
    "gen_server:try_handle_call(C, M, F, _) when is_atom(element(2, C)) -> " actions "msg([F, element(2, C), M]);"     \
    " (D, _, M, F) -> " actions "msg([F, element(5, D), M])"
#define OTHER(kind, actions)                                                                                           \
    "gen_server:try_handle_" kind "(C, M, _) when is_atom(element(2, C)) -> " actions "msg([" kind                     \
    ", element(2, C), M]); (D, _, M) -> " actions "msg([" kind ", element(5, D), M])"
#define CALLBACKS(actions)                                                                                             \
    CALL(actions), OTHER("cast", actions), OTHER("info", actions), OTHER("continue", actions),                         \
        "gen_statem:loop_state_callback(P, _, _, _, _, _, _, _, _, _, {T, C}) -> arity, msg([T, hd(element(5, P)), "   \
        "C])",                                                                                                         \
        "gen_statem:loop_state_callback_result/11 -> arity"

/*
 * Functions of RabbitMQ's gen_server2 that run around its callbacks. They never return, because they call the loop at
 * their end.
 */
#define GEN_SERVER2                                                                                                    \
    "gen_server2:handle_msg({'$gen_call', F, M}, S) -> arity, msg([F, element(5, S), M]);"                             \
    " ({'$gen_cast', M}, S) -> arity, msg([cast, element(5, S), M]); (M, S) -> arity, msg([info, element(5, S), M])",  \
        "gen_server2:handle_common_reply/3 -> arity"

static const char *const callbacks[] = {CALLBACKS("arity, return, "), GEN_SERVER2};

/* Messages: requests, replies with each kind of tag, exits of servers, and timeouts of callers. */
static const char *const messages[] = {
    "recv({'$gen_call', {_, _}, _}); ({R, _}) when is_reference(R); ({[alias | _], _}); ({[[alias | _] | _], _});"
    " ({'DOWN', R, process, _, _}) when is_reference(R);"
    " ({P, R, _, L, {_, _, _}}) when is_pid(P), is_reference(R), is_list(L); (timeout)",
    "send({'$gen_call', {_, _}, _}); ({R, _}) when is_reference(R); ({[alias | _], _}); ({[[alias | _] | _], _});"
    " ({P, R, _, L, {_, _, _}}) when is_pid(P), is_reference(R), is_list(L)",
};

/*
 * Probes for views that show only requests. A callback that replies ends when its reply is sent, and any other callback
 * when handle_common_reply() is called. The probes therefore need no results, which cost more than calls. Their match
 * specifications of messages only select. The NIF reads the few terms that the views need directly from messages and
 * arguments (requests.h).
 */
static const char *const brief[] = {
    CALLBACKS("arity, "),
    GEN_SERVER2,
    "gen_server:handle_common_reply -> arity",
    "recv [{['_', '_', {'$gen_call', {'_', '_'}, '_'}], [], []},"
    " {['_', '_', {[alias | '_'], '_'}], [], []},"
    " {['_', '_', {'$1', '_'}], [{is_reference, '$1'}], []},"
    " {['_', '_', {[[alias | '_'] | '_'], '_'}], [], []},"
    " {['_', '_', {'DOWN', '_', process, '_', '_'}], [], []},"
    " {['_', '_', {'_', '$1', '_', '_', {'_', '_', '_'}}], [{is_reference, '$1'}], []},"
    " {['_', '_', timeout], [], []}]",
    "send [{['_', {'$gen_call', {'_', '_'}, '_'}], [], []},"
    " {['_', {[alias | '_'], '_'}], [], []},"
    " {['_', {'$1', '_'}], [{is_reference, '$1'}], []},"
    " {['_', {[[alias | '_'] | '_'], '_'}], [], []},"
    " {['_', {'_', '$1', '_', '_', {'_', '_', '_'}}], [{is_reference, '$1'}], []}]",
};

struct requests_opts {
    struct what_opts what;
    struct texts servers;
    int64_t interval_ns;
    bool once;
};

#define ROW(letter, name, arg, type, field, help) OPT_ROW(struct requests_opts, letter, name, arg, type, field, help)

static const struct opt rows[] = {
    ROW('P', "proc", "WHO", OPT_TEXTS, what.procs,
        "the servers, and the callers to trace: all, existing, new, a pid, a registered name, {via,M,N}, app(A) or "
        "initial(M:F/A); repeatable (default all)"),
    ROW(0, "server", "WHO", OPT_TEXTS, servers,
        "show only requests to this pid, registered name or callback module, and trace all processes, callers too; "
        "repeatable"),
    ROW('i', "interval", "DURATION", OPT_DURATION, interval_ns, "time between updates on a terminal (default 1s)"),
    ROW('1', "once", NULL, OPT_FLAG, once, "print the table once, at the end, on a terminal too"),
    ROW(0, "dry-run", NULL, OPT_FLAG, what.dry_run, "attach, print what would be traced, and exit"),
};

static const struct opt_group own_group = {"What is traced", rows, ARRAY_LEN(rows)};

/* Returns true if the view prints its figures as CSV or TSV. */
static bool is_columns(const struct view_opts *v)
{
    return v->as && (!strcmp(v->as, "requestcsv") || !strcmp(v->as, "requesttsv"));
}

/* Returns true if the view prints only figures, at the end of the trace. */
static bool is_table(const struct view_opts *v)
{
    return !v->as || !strcmp(v->as, "requests") || !strcmp(v->as, "requesthist") || is_columns(v);
}

/* Returns true if the main view shows requests, not events. */
static bool is_of_requests(const struct view_opts *v)
{
    return is_table(v) || !strcmp(v->as, "requestlog") || !strcmp(v->as, "requestjson");
}

/* Returns true if no output shows or filters single events, so that the probes in `brief` suffice. */
static bool is_brief(const struct view_opts *v)
{
    return is_of_requests(v) && !v->json && !v->summary && !v->fields && !v->format && !v->outputs.count &&
           !v->greps.count && !v->wheres.count;
}

/*
 * Returns which terms the views need (enum etw_requests). With several nodes, wants no hashes of references, because
 * references of different nodes are compared by their text.
 */
static unsigned wanted_terms(const struct view_opts *v, const struct node_opts *node, const struct what_opts *what)
{
    bool single = node->nodes.count <= 1 && !node->cluster;

    return ETW_REQUESTS | (is_table(v) ? ETW_REQUESTS_SHAPES : 0) | (single ? ETW_REQUESTS_HASHES : 0) |
           (what->procs.count ? 0 : ETW_REQUESTS_SENT);
}

static void add_all(struct texts *to, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        texts_add(to, texts[i]);
}

/* ---- the command ---- */

static int cmd_requests_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct requests_opts own = {.what = {.inherit = 0}, .servers = {0}};
    struct limit_opts limit = LIMIT_OPTS_INIT;
    struct view_opts view = VIEW_OPTS_INIT;
    struct assert_opts asserts = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node},
                             {&own_group, &own},
                             {&limit_group, &limit},
                             {&view_group, &view},
                             {&talk_group, &talk}};
    struct texts words = {0}, texts = {0};
    struct process_names servers = {0};
    struct arena arena;
    struct err e;
    char **rest;
    int status = 0;

    arena_init(&arena);
    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status) &&
        cmd_no_words(ctx, self, &words, "-P shop_stock selects a server", &status) &&
        (who_names(&own.servers, "--server", true, &arena, &servers, &e) || ((status = ctx_fail(ctx, &e)), false))) {
        struct live_options o =
            {.node = &node, .what = &own.what, .limit = &limit, .view = &view, .asserts = &asserts, .words = &texts};
        struct table_screen screen;
        outputs_of_items(&view, "request");
        if (is_brief(&view)) {
            own.what.requests = wanted_terms(&view, &node, &own.what);
            add_all(&texts, brief, ARRAY_LEN(brief));
        } else {
            add_all(&texts, callbacks, ARRAY_LEN(callbacks));
            add_all(&texts, messages, ARRAY_LEN(messages));
        }
        own.what.allow_empty = own.what.builtin = true;
        /*
         * Sets no rate limit by default: it would apply to the requests to all servers, and leave out most requests to
         * these.
         */
        if (own.servers.count && is_of_requests(&view) && limit.rate < 0)
            limit.rate = 0;
        if (own.what.requests & ETW_REQUESTS_SHAPES && !is_columns(&view) && !own.once && !own.what.dry_run &&
            screen_can(STDIN_FILENO, STDOUT_FILENO)) {
            table_screen_init(&screen, ctx, "requests", own.interval_ns, view.color);
            o.table = &screen.table;
            view.turn = &screen.refresh.turn;
            view.screen = &screen.screen;
        }
        view.servers = servers.count ? &servers : NULL;
        if (servers.count && !own.what.procs.count)
            ctx_say(ctx, "the messages of all processes are traced: -P with the server and its callers costs less");
        status = live_run(ctx, &o, "requests");
        if (o.table)
            table_screen_release(&screen);
        who_names_warn(ctx, &servers, &own.servers, "--server ", "request to");
    }
    arena_release(&arena);
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    texts_release(&texts);
    return status;
}

static const char about[] = "  etrace requests                            all servers of the node\n"
                            "  etrace requests -P shop_stock --for 10s   one server, at the least cost\n"
                            "  etrace requests --server shop_stock       one server and its callers\n"
                            "  etrace requests -P shop_stock --as text   a line for each request\n"
                            "  etrace requests --as hist --for 10s       histograms of the times\n"
                            "\nPairs the requests to gen_server, gen_statem, GenServer, Agent and Task with\n"
                            "their replies. A request waits from its arrival until its callback begins. The\n"
                            "server works until it replies. The reply travels until the caller has it. An\n"
                            "unknown time is shown as -, such as the reply to a caller that is not traced.\n"
                            "Without --as, a table is shown. For the table and with --server no rate applies\n"
                            "by default. --rate leaves out whole requests.\n";

static const struct opt_group *const groups[] = {&node_group, &own_group, &limit_group, &view_group, &talk_group, NULL};
const struct cmd cmd_requests = {
    .name = "requests",
    .usage = "[-n NODE] [OPTIONS]",
    .summary = "Shows where the time of requests to servers goes",
    .about = about,
    .run = cmd_requests_run,
    .groups = groups,
};
