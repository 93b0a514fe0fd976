/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../ground/json.h"

#define CALLS_RUNNING 4
#define CALLS_WAITING 32
#define ATTACH_MS 25000     /* time that a command may need beside the seconds of the call */
#define SECONDS_PRESET 2    /* seconds that a call without this argument is expected to take */
#define ARGUMENTS_MOST 8192 /* limit for the bytes of the arguments in the audit */

enum mcp_call_state { CALL_WAITS, CALL_RUNS, CALL_CANCELLED };

struct mcp_call {
    struct mcp_call *next;
    struct mcp_calls *calls;
    enum mcp_call_state state;
    struct arena arena;
    const struct mcp_tool *tool;
    const struct json *id, *given; /* the id of the call and its arguments; both are in `arena` */
    struct mcp_arguments args;
    struct mcp_answer answer;
    struct mcp_child child;
    int64_t begun;                      /* loop_now() time when the call began */
    int64_t ms_reserved, rows_reserved; /* reserved from the budgets; ms_reserved 0: nothing */
    bool bounded;                       /* the budgets allow less than the client asked for */
};

static void start_waiting(struct mcp_calls *c);

/* ---- budgets ---- */

/*
 * Reserves the time and the rows that the call may use, so that calls that run together do not exceed the budgets.
 * Lowers the limits of the call to what is left of both budgets. Returns false, with an error, if a budget is used up.
 */
static bool reserve_budget(struct mcp_call *x, struct err *e)
{
    struct mcp_calls *c = x->calls;
    const int64_t ms = (x->args.seconds ? x->args.seconds : SECONDS_PRESET) * 1000, ms_left = c->ms_most - c->ms_used,
                  rows_left = c->rows_most - c->rows_used;

    if (x->tool->free)
        return true;
    if (c->ms_most && ms_left < 1000)
        return err_set(e, ERR_USAGE, "the time for all calls is used up: %lld s (etrace mcp --max-seconds)",
                       (long long)c->ms_most / 1000);
    if (c->rows_most && rows_left < 1)
        return err_set(e, ERR_USAGE, "the events for all calls are used up: %lld (etrace mcp --max-events)",
                       (long long)c->rows_most);
    if (c->ms_most && ms > ms_left && x->args.seconds) {
        x->args.seconds = ms_left / 1000;
        x->bounded = true;
    }
    if (c->rows_most && x->args.rows > rows_left) {
        x->args.rows = rows_left;
        x->bounded = true;
    }
    x->ms_reserved = c->ms_most ? MIN(ms, ms_left) : ms;
    x->rows_reserved = x->args.rows;
    c->ms_used += x->ms_reserved;
    c->rows_used += x->rows_reserved;
    return true;
}

/* Replaces the reserved time by the time that the call has used, and charges its rows. */
static void settle_budget(struct mcp_call *x)
{
    if (!x->ms_reserved)
        return;
    x->calls->ms_used += loop_now() - x->begun - x->ms_reserved;
    x->calls->rows_used += (int64_t)mcp_answer_read(&x->answer) - x->rows_reserved;
}

static const char *budget_note(struct mcp_call *x)
{
    const struct mcp_calls *c = x->calls;

    if (!x->bounded)
        return NULL;
    return arena_printf(&x->arena, "the call was bounded by what is left for all calls: %lld s, %lld events",
                        (long long)MAX(c->ms_most - c->ms_used, 0) / 1000,
                        (long long)MAX(c->rows_most - c->rows_used, 0));
}

/* ---- the audit ---- */

static void put_time_of_day(struct buf *to)
{
    char text[40] = "";
    struct timespec now;
    struct tm tm;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    json_key(to, "time");
    buf_printf(to, "\"%s.%03ldZ\"", text, now.tv_nsec / 1000000);
}

static void write_audit(const struct mcp_call *x, const char *outcome, const char *why, size_t bytes)
{
    struct buf line = {0}, arguments = {0};
    const double seconds = (double)(loop_now() - x->begun) / 1000;

    if (!x->calls->audit)
        return;
    json_begin_object(&line);
    put_time_of_day(&line);
    json_put_text(&line, "tool", x->tool->name);
    if (x->given)
        json_put_read(&arguments, x->given);
    if (arguments.len > ARGUMENTS_MOST) {
        json_put_uint(&line, "arguments_bytes", arguments.len);
    } else if (arguments.len) {
        json_key(&line, "arguments");
        buf_str(&line, buf_view(&arguments));
    }
    if (x->args.node)
        json_put_text(&line, "node", x->args.node);
    json_put_text(&line, "outcome", outcome);
    if (why)
        json_put_text(&line, "why", why);
    json_put_uint(&line, "bytes", bytes);
    json_key(&line, "seconds");
    json_open_real(&line, seconds);
    json_end_record(&line);
    out_take(x->calls->audit, &line);
    buf_release(&line);
    buf_release(&arguments);
}

/* ---- the end of a call ---- */

static void free_call(struct mcp_call *x)
{
    struct mcp_call **at = &x->calls->first;

    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    mcp_answer_release(&x->answer);
    arena_release(&x->arena);
    free(x);
}

/* Sends the result, writes the audit and frees the call. `error` is NULL if the call succeeded. */
static void finish_call(struct mcp_call *x, const char *outcome, const char *error)
{
    struct mcp_calls *c = x->calls;
    struct buf result = {0};

    if (x->state == CALL_CANCELLED) {
        write_audit(x, "cancelled", NULL, 0);
    } else {
        const size_t around = c->around(c->data, x->id);
        mcp_answer_put(&x->answer, error, budget_note(x), around, &result);
        write_audit(x, outcome, error, result.len + around);
        c->reply(c->data, x->id, buf_view(&result));
    }
    buf_release(&result);
    free_call(x);
}

static void refuse_call(struct mcp_call *x, const struct err *e)
{
    struct buf text = {0};

    ctx_put_error(e, false, &text);
    finish_call(x, "refused", arena_strndup(&x->arena, text.data, text.len - 1));
    buf_release(&text);
}

static void call_on_output(void *data, struct str bytes)
{
    mcp_answer_output(&((struct mcp_call *)data)->answer, bytes);
}

static void call_on_message(void *data, struct str bytes)
{
    mcp_answer_message(&((struct mcp_call *)data)->answer, bytes);
}

/* Returns the reason why the command failed: the text that it wrote to standard error. */
static const char *failure_of(struct mcp_call *x)
{
    const struct buf *messages = &x->answer.messages;

    if (x->child.late)
        return "etrace took too long and was ended";
    if (messages->len)
        return arena_strndup(&x->arena, messages->data, messages->len - (messages->data[messages->len - 1] == '\n'));
    return x->child.status < 0 ? "a signal ended etrace" : "etrace failed without a reason";
}

static void call_on_ended(void *data)
{
    struct mcp_call *x = data;
    struct mcp_calls *c = x->calls;
    const int status = x->child.status;
    const bool ok = !x->child.late && (!status || (x->tool->found && status == x->tool->found));

    mcp_answer_end(&x->answer);
    settle_budget(x);
    finish_call(x, ok ? "ok" : "failed", ok ? NULL : failure_of(x));
    start_waiting(c);
}

/* ---- the begin of a call ---- */

static void start_call(struct mcp_call *x)
{
    struct texts words = {0};
    struct err e;

    x->state = CALL_RUNS;
    x->begun = loop_now();
    if (!reserve_budget(x, &e)) {
        refuse_call(x, &e);
        return;
    }
    if (x->args.node)
        snprintf(x->answer.node, sizeof(x->answer.node), "%s", x->args.node);
    x->answer.most = x->tool->cuts ? (size_t)x->args.rows : 0;
    mcp_tool_words(x->tool, &x->args, &x->calls->passed, &x->arena, &words);
    x->child = (struct mcp_child){.loop = &x->calls->ctx->loop,
                                  .data = x,
                                  .output = call_on_output,
                                  .message = call_on_message,
                                  .ended = call_on_ended};
    const bool ok = mcp_child_start(&x->child, &words, x->args.seconds * 1000 + ATTACH_MS, &e);
    texts_release(&words);
    if (!ok) {
        settle_budget(x);
        refuse_call(x, &e);
    }
}

static size_t count_calls(const struct mcp_calls *c, bool waiting)
{
    size_t n = 0;

    for (const struct mcp_call *x = c->first; x; x = x->next)
        n += (x->state == CALL_WAITS) == waiting;
    return n;
}

static void start_waiting(struct mcp_calls *c)
{
    struct mcp_call *x = c->first, *next;

    for (; x && count_calls(c, false) < CALLS_RUNNING; x = next) {
        next = x->next;
        if (x->state == CALL_WAITS)
            start_call(x);
    }
}

/* Returns false, with an error, if the audit cannot be written any more. Calls must then be refused. */
static bool audit_works(const struct mcp_calls *c, struct err *e)
{
    struct err why;
    bool closed;

    if (!c->audit || !out_failed(c->audit, &closed, &why))
        return true;
    return err_set(e, ERR_RUN, "no call is served, because the audit cannot be written");
}

void mcp_calls_begin(struct mcp_calls *c, const struct mcp_tool *tool, const struct json *id,
                     const struct json *arguments, struct arena *arena)
{
    struct mcp_call *x = mem_zalloc(sizeof(*x)), **end = &c->first;
    struct err e;

    *x =
        (struct mcp_call){.calls = c, .arena = *arena, .tool = tool, .id = id, .given = arguments, .begun = loop_now()};
    arena_init(arena);
    mcp_answer_init(&x->answer, tool);
    if (tool->lists_nodes)
        x->answer.rules = c->rules;
    while (*end)
        end = &(*end)->next;
    *end = x;
    if (!audit_works(c, &e) || !mcp_tool_read(tool, arguments, &x->arena, &x->args, &e) ||
        !mcp_tool_allowed(tool, c->rules, &x->arena, &x->args, &e) ||
        (count_calls(c, true) > CALLS_WAITING &&
         !err_set(&e, ERR_USAGE, "%d calls wait already: send fewer at once", CALLS_WAITING)))
        refuse_call(x, &e);
    else
        start_waiting(c);
}

/* ---- cancelling ---- */

static struct mcp_call *find_call(const struct mcp_calls *c, const struct json *id)
{
    for (struct mcp_call *x = c->first; x; x = x->next)
        if (x->state != CALL_CANCELLED && x->id->kind == id->kind && raw_same(x->id->text, id->text))
            return x;
    return NULL;
}

bool mcp_calls_has(const struct mcp_calls *c, const struct json *id)
{
    return find_call(c, id);
}

static void cancel_call(struct mcp_call *x)
{
    const bool runs = x->state == CALL_RUNS;

    x->state = CALL_CANCELLED;
    if (runs)
        mcp_child_stop(&x->child);
    else
        finish_call(x, "", NULL);
}

void mcp_calls_cancel(struct mcp_calls *c, const struct json *id)
{
    struct mcp_call *x = find_call(c, id);

    if (x)
        cancel_call(x);
}

void mcp_calls_end(struct mcp_calls *c)
{
    for (struct mcp_call *x = c->first, *next; x; x = next) {
        next = x->next;
        if (x->state != CALL_CANCELLED)
            cancel_call(x);
    }
    while (c->first)
        loop_step(&c->ctx->loop, -1);
}
