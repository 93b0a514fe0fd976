/* SPDX-License-Identifier: Apache-2.0 */
#include "why_page.h"

#include <string.h>

#include "../erlang/term_print.h"
#include "../ground/command_line.h"
#include "../ground/json.h"
#include "../ground/utf8.h"
#include "../views/grid.h"

#define LABEL 12 /* width of the labels at the left, in columns */
#define SENDERS_SHOWN 4
#define EXITS_LEAST 3

/* ---- pieces ---- */

static unsigned percent_of_looks(const struct why_page *p, unsigned looks)
{
    return p->samples->looks ? looks * 100 / p->samples->looks : 0;
}

static void put_frames(struct buf *to, const struct why_row *x, unsigned most)
{
    if (!x->nstack)
        buf_puts(to, "(no Erlang function)");
    for (unsigned i = 0; i < x->nstack && i < most; i++) {
        buf_puts(to, i ? " < " : "");
        look_frame_print(to, &x->stack[i]);
    }
}

static void put_where(struct buf *to, const struct why_row *x)
{
    const struct look_frame *own = look_own(x->stack, x->nstack);

    if (own)
        look_frame_print(to, own);
    else
        put_frames(to, x, 1);
}

static void put_name(struct buf *to, const struct look_process *x, bool elsewhere)
{
    if (elsewhere)
        buf_printf(to, "%s on %s", x->pid, x->name);
    else
        look_process_print(to, x);
}

static void json_name(struct buf *to, const struct look_process *x, bool elsewhere)
{
    json_put_text(to, "pid", x->pid);
    if (x->name[0])
        json_put_text(to, elsewhere ? "node" : "name", x->name);
}

static bool is_elsewhere(const struct why_row *x)
{
    return !strcmp(x->answer, "elsewhere");
}

static void put_process(struct buf *to, const struct why_row *x)
{
    put_name(to, &x->process, is_elsewhere(x));
}

/* Prints the processes of a cycle as a -> b -> a. */
static void put_cycle(const struct why_look *l, struct buf *to)
{
    for (unsigned i = (unsigned)l->cycle; i < l->n; i++) {
        put_process(to, &l->chain[i]);
        buf_puts(to, " -> ");
    }
    put_process(to, &l->chain[l->cycle]);
}

static void put_untold(struct buf *to, const struct why_row *x)
{
    buf_puts(to, !strcmp(x->untold, "many") ? "its links and monitors are too many to tell for which process it waits"
                                            : "it did not tell in time for which process it waits");
}

/* Prints the state of the last process in a chain. */
static void put_end(const struct why_look *l, struct buf *to)
{
    const struct why_row *x = &l->chain[l->n - 1];

    if (!strcmp(x->answer, "silent"))
        buf_puts(to, "which does not answer: a long NIF or garbage collection keeps it busy");
    else if (!strcmp(x->answer, "gone"))
        buf_puts(to, "which has exited");
    else if (x->untold[0])
        put_untold(to, x);
    else if (is_elsewhere(x) || l->deep)
        buf_puts(to, "not followed further");
    else if (strcmp(x->status, "waiting"))
        buf_printf(to, "which is %s in ", x->status), put_where(to, x);
    else if (x->loop && !x->queue)
        buf_puts(to, "which is idle, and owes the reply");
    else if (why_in_suspend(x))
        buf_puts(to, "which is suspended (sys:suspend)");
    else
        buf_puts(to, "which waits in "), put_frames(to, x, 3);
}

/* ---- the first line ---- */

static void put_top(const struct why_page *p, struct buf *to)
{
    const struct why_row *x = &p->look->chain[0];
    const struct why_top *top = why_busiest(p->samples);

    if (!top)
        return;
    buf_printf(to, ", %s in ", top->running * 2 > p->samples->running ? "mostly" : "often");
    look_frame_print(to, &top->frame);
    if (!look_own(&top->frame, 1) && look_own(x->stack, x->nstack)) {
        buf_puts(to, " < ");
        put_where(to, x);
    }
}

/* Prints the length of the shortest and of the longest queue that a look found. */
static void put_lengths(const struct why_samples *s, struct buf *to)
{
    ps_put_count(to, s->queue_least, false);
    buf_puts(to, " to ");
    ps_put_count(to, s->queue_most, false);
}

/* Prints a number per second, with a fraction if it is small. `sign`: +3/s. */
static void put_rate(double rate, bool sign, struct buf *to)
{
    if (rate > -9.95 && rate < 9.95)
        buf_printf(to, sign ? "%+.1f" : "%.1f", rate);
    else
        ps_put_count(to, (int64_t)(rate < 0 ? rate - 0.5 : rate + 0.5), sign);
    buf_puts(to, "/s");
}

static void put_growth(const struct why_samples *s, const char *before, struct buf *to)
{
    if (s->last.queue <= s->first.queue)
        return;
    buf_puts(to, before);
    buf_puts(to, s->queue_fell ? "about " : "");
    put_rate(why_rate(s, s->first.queue, s->last.queue), false, to);
    if (s->queue_fell) {
        buf_puts(to, " (");
        put_lengths(s, to);
        buf_puts(to, " messages)");
    }
}

static void put_waits(const struct why_page *p, struct buf *to)
{
    const struct why_look *l = p->look;
    int64_t waited = p->samples->to - p->samples->from;

    buf_puts(to, l->chain[0].among > 1 ? "probably waits for " : "waits for ");
    put_process(to, &l->chain[1]);
    if (why_has_not_run(p->samples))
        buf_printf(to, " for at least %lld.%llds", (long long)(waited / 1000), (long long)(waited / 100 % 10));
    if (l->n > 2) {
        buf_puts(to, l->n > 3 ? ", and in the end for " : ", which waits for ");
        put_process(to, &l->chain[l->n - 1]);
    }
    buf_puts(to, ", ");
    put_end(l, to);
    put_growth(p->samples, "; its queue grows by ", to);
}

static void put_owed(const struct why_look *l, struct buf *to)
{
    buf_printf(to, "%s%lld process%s wait%s for its reply", l->monitors ? "at least " : "", (long long)l->waiters,
               PLURAL_ES(l->waiters), l->waiters == 1 ? "s" : "");
}

static void put_suspended(const struct why_page *p, struct buf *to)
{
    const struct why_look *l = p->look;

    if (why_in_suspend(&l->chain[0]))
        buf_puts(to, "suspended (sys:suspend)");
    else if (why_io_of(&l->chain[0]) == WHY_PORT_IO)
        buf_puts(to, "suspended: it sends to a busy port");
    else if (why_io_of(&l->chain[0]) == WHY_DIST_IO)
        buf_puts(to, "suspended: it sends to another node, and the connection is busy");
    else
        buf_puts(to, "suspended: it sends to a busy port or over a busy connection to another node, or "
                     "another process called erlang:suspend_process/1");
    if (l->waiters > 0)
        buf_puts(to, ", and "), put_owed(l, to);
    put_growth(p->samples, "; its queue grows by ", to);
}

static void put_socket(const struct why_page *p, struct buf *to)
{
    const struct why_row *x = &p->look->chain[0];

    buf_puts(to, why_io_of(x) == WHY_SEND_IO
                     ? "waits until a socket takes its data: the peer does not read, or slowly, in "
                 : why_io_of(x) == WHY_COMMAND_IO ? "waits for a command of the operating system in "
                                                  : "waits for a socket in ");
    put_frames(to, x, 2);
    put_growth(p->samples, "; its queue grows by ", to);
}

/*
 * Prints how often linked processes exit. Otherwise a supervisor that restarts children again and again would look
 * idle.
 */
static void put_exits(const struct why_page *p, struct buf *to)
{
    const struct why_senders *s = p->senders;

    if (!s->known || s->exits < EXITS_LEAST || s->to <= s->from)
        return;
    buf_puts(to, "; gets ");
    ps_put_count(to, (int64_t)((double)s->exits * 1000 / (double)(s->to - s->from) + 0.5), false);
    buf_puts(to, " exits a second of processes that it is linked to");
}

void why_page_cause(const struct why_page *p, struct buf *to)
{
    const struct why_look *l = p->look;
    const struct why_samples *s = p->samples;
    const struct why_row *x = &l->chain[0];

    switch (why_cause_of(l, s)) {
    case WHY_GONE:
        buf_puts(to, "has exited");
        break;
    case WHY_SILENT:
        buf_puts(to, "did not answer in time: a long NIF or garbage collection keeps it busy");
        break;
    case WHY_DEADLOCK:
        buf_puts(to, l->cycle ? "waits for a deadlock: " : "deadlock: ");
        put_cycle(l, to);
        break;
    case WHY_CYCLE:
        buf_puts(to, l->cycle ? "probably waits for a deadlock: " : "probably a deadlock: ");
        put_cycle(l, to);
        break;
    case WHY_SUSPENDED:
        put_suspended(p, to);
        break;
    case WHY_EXITING:
        buf_puts(to, "is exiting");
        break;
    case WHY_NIF:
        /* The NIF is dirty, because in any other NIF the process would not answer. `nif`: its name is known. */
        buf_puts(to, x->nif ? "in the dirty NIF " : "in a dirty NIF called by ");
        put_frames(to, x, 1);
        break;
    case WHY_WAITS:
        put_waits(p, to);
        break;
    case WHY_COLLECTS:
        buf_puts(to, "collects garbage most of the time");
        break;
    case WHY_SOCKET:
        put_socket(p, to);
        break;
    case WHY_GROWS:
        put_growth(s, "queue grows by ", to);
        buf_printf(to, ": running in %u%% of the looks", percent_of_looks(p, s->running));
        put_top(p, to);
        break;
    case WHY_RUNS:
        buf_puts(to, "runs all the time");
        put_top(p, to);
        break;
    case WHY_SCANS:
        buf_printf(to, "each receive scans up to %lld messages of its queue; ", (long long)s->last.queue);
        ps_put_count(to, (int64_t)(why_rate(s, 0, why_taken(s)) + 0.5), false);
        buf_puts(to, "/s match, in ");
        put_frames(to, x, 2);
        put_growth(s, "; its queue grows by ", to);
        break;
    case WHY_UNMATCHED:
        buf_puts(to, "no message of its queue matches the receive in ");
        put_frames(to, x, 2);
        put_growth(s, "; its queue grows by ", to);
        break;
    case WHY_OWES:
        buf_puts(to, "idle, but ");
        put_owed(l, to);
        break;
    case WHY_WORKS:
        buf_printf(to, "found running in %u%% of the looks", percent_of_looks(p, s->running));
        put_top(p, to);
        break;
    case WHY_SLEEPS:
        buf_puts(to, "sleeps in ");
        put_frames(to, x, 3);
        break;
    case WHY_IDLE:
    case WHY_CAUSES:
        buf_puts(to, why_has_not_run(p->samples) ? "idle: waits for a message" : "mostly idle: waits for a message");
        if (!x->loop) {
            buf_puts(to, " in ");
            put_where(to, x);
        }
        break;
    }
    if (x->untold[0])
        buf_puts(to, ", "), put_untold(to, x);
    put_exits(p, to);
}

/* ---- the lines ---- */

/* Prints a line with a command at the right margin, or on the next line if there is no room for it. */
static void put_line(const struct why_page *p, const char *label, const struct buf *text, const char *command,
                     struct buf *to)
{
    unsigned width = p->columns, used = LABEL + (unsigned)utf8_width(text->data, text->len);
    unsigned wide = (unsigned)utf8_width(command, strlen(command));

    paint_begin(&p->paint, to, PAINT_KIND);
    buf_printf(to, "%-*s", LABEL, label);
    paint_end(&p->paint, to);
    if (width)
        grid_cut(to, buf_view(text), width > LABEL ? width - LABEL : 1);
    else
        buf_str(to, buf_view(text));
    if (*command) {
        if (!width)
            buf_puts(to, "  ");
        else if (used + 2 + wide <= width)
            buf_printf(to, "%*s", (int)(width - used - wide), "");
        else
            buf_printf(to, "\n%*s", (int)(width > wide + LABEL ? width - wide : LABEL), "");
        paint_str(&p->paint, to, PAINT_COMMAND, (struct str){command, strlen(command)});
    }
    buf_char(to, '\n');
}

static void why_command(const struct why_page *p, struct command_line *c, const char *name)
{
    command_line_begin(c, name, p->ssh, p->named);
}

/* Returns the command that shows more about a process. `after` is a string literal to append to it. */
#define MORE(p, c, name, pid, after)                                                                                   \
    (why_command_for(p, c, name, pid), command_line_add(c, after), command_line_text(c))

static void why_command_for(const struct why_page *p, struct command_line *c, const char *name, const char *pid)
{
    why_command(p, c, name);
    command_line_add(c, " -P");
    command_line_word(c, pid);
}

/*
 * Returns the command that looks at the process in row `i` of the chain, if it is on another node or if the process
 * waits for it directly (row 1); else "".
 */
static const char *follow_command(const struct why_page *p, struct command_line *c, unsigned i)
{
    const struct why_row *x = &p->look->chain[i];

    command_line_clear(c);
    if (is_elsewhere(x)) {
        command_line_begin(c, "why", NULL, x->process.name);
        command_line_word(c, x->process.pid);
    } else if (i == 1) {
        why_command(p, c, "why");
        command_line_word(c, x->process.pid);
    }
    return command_line_text(c);
}

static void chain_lines(const struct why_page *p, struct buf *to)
{
    const struct why_look *l = p->look;
    struct buf b = {0};
    struct command_line command = {0};

    for (unsigned i = 1; i < l->n; i++) {
        const struct why_row *x = &l->chain[i];
        buf_clear(&b);
        buf_printf(&b, "%*s%s", (int)MIN(2 * (i - 1), 20), "", i > 1 ? "-> " : "");
        put_process(&b, x);
        if (l->chain[i - 1].among > 1)
            buf_printf(&b, " (one of %lld that it monitors)", (long long)l->chain[i - 1].among);
        if (!strcmp(x->answer, "known") && x->queue)
            buf_printf(&b, " · queue %lld", (long long)x->queue);
        if (i + 1 == l->n && l->cycle < 0) {
            buf_puts(&b, ", ");
            put_end(l, &b);
        }
        put_line(p, i == 1 ? "waits for" : "", &b, follow_command(p, &command, i), to);
    }
    if (l->cycle >= 0) {
        buf_clear(&b);
        buf_printf(&b, "%*s-> ", (int)MIN(2 * (l->n - 1), 20), "");
        put_process(&b, &l->chain[l->cycle]);
        buf_puts(&b, l->sure ? ": the deadlock" : ": probably the deadlock");
        put_line(p, "", &b, "", to);
    }
    buf_release(&b);
    command_line_release(&command);
}

static void put_queue(const struct why_page *p, struct buf *b)
{
    const struct why_look *l = p->look;
    int64_t growth = p->samples->last.queue - p->samples->first.queue;

    ps_put_count(b, l->chain[0].queue, false);
    buf_printf(b, " message%s", PLURAL(l->chain[0].queue));
    if (p->samples->queue_fell) {
        buf_puts(b, " (");
        put_lengths(p->samples, b);
        buf_puts(b, " in these looks)");
    } else if (growth) {
        buf_puts(b, ", ");
        put_rate(why_rate(p->samples, p->samples->first.queue, p->samples->last.queue), true, b);
    }
    for (unsigned i = 0; i < l->nshapes; i++) {
        const struct why_shape *x = &l->shapes[i];
        buf_printf(b, "%s%lld %s", i ? ", " : ": ", (long long)x->count, x->shape);
        for (unsigned k = 0; k < x->nsenders; k++)
            buf_printf(b, "%s%s", k ? " " : " from ", x->senders[k]);
    }
    if (!l->messages_known && l->chain[0].queue)
        buf_puts(b, " (too many or too large to read)");
}

static void put_waiters(const struct why_look *l, struct buf *b)
{
    if (l->waiters < 0)
        buf_puts(b, strcmp(l->chain[0].answer, "known") ? "unknown" : "unknown (too many processes monitor it)");
    else if (!l->waiters)
        buf_puts(b, "no process");
    else
        buf_printf(b, "%lld process%s", (long long)l->waiters, PLURAL_ES(l->waiters));
    for (unsigned i = 0; i < l->nwaiters; i++) {
        buf_puts(b, i ? " " : ": ");
        put_name(b, &l->waiter[i].process, l->waiter[i].elsewhere);
    }
    if (l->nwaiters && (int64_t)l->nwaiters < l->waiters)
        buf_puts(b, " …");
    if (l->monitors)
        buf_printf(b, " · %lld other%s monitor%s it, and may wait", (long long)l->monitors, PLURAL(l->monitors),
                   l->monitors == 1 ? "s" : "");
}

/*
 * Prints the most frequent senders. Sums up all others: further senders, ports, timers, monitors and processes on other
 * nodes.
 */
static void put_senders(const struct why_page *p, struct buf *b)
{
    const struct why_senders *s = p->senders;
    uint64_t rest = s->received;

    ps_put_count(b, (int64_t)s->received, false);
    buf_printf(b, " message%s in %lld.%llds", PLURAL(s->received), (long long)((s->to - s->from) / 1000),
               (long long)((s->to - s->from) / 100 % 10));
    if (s->hot) {
        buf_puts(b, ", too many to count them by sender");
        return;
    }
    for (size_t i = 0; i < s->by.n && i < SENDERS_SHOWN; i++) {
        const struct sender_count *x = &s->by.items[i];
        buf_printf(b, "%s%s%llu from ", i ? ", " : ": ", x->error ? "at least " : "",
                   (unsigned long long)(x->count - x->error));
        look_process_print(b, &x->process);
        rest -= x->count - x->error;
    }
    if (rest)
        buf_printf(b, "%s%llu from others", s->by.n ? ", " : ": ", (unsigned long long)rest);
}

static void put_relatives(const struct ps_names *x, const char *before, struct buf *b)
{
    for (unsigned i = 0; i < x->count; i++)
        buf_printf(b, "%s%s", i ? " < " : before, x->items[i]);
}

static void put_self(const struct why_page *p, struct buf *b)
{
    const struct ps_row *x = &p->look->self;

    look_process_print(b, &p->look->chain[0].process);
    if (x->initial.fun) {
        buf_puts(b, " · ");
        look_frame_print(b, &x->initial);
    }
    if (x->application[0])
        buf_printf(b, " · application %s", x->application);
    put_relatives(&x->ancestors, " · started by ", b);
    put_relatives(&x->callers, " · works for ", b);
}

static void put_memory(const struct why_page *p, struct buf *b)
{
    const struct why_look *l = p->look;
    const struct why_samples *s = p->samples;

    ps_put_memory(b, l->chain[0].memory, l->chain[0].least);
    if (s->last.memory != s->first.memory) {
        buf_puts(b, ", ");
        ps_put_bytes(b, (int64_t)why_rate(s, s->first.memory, s->last.memory), true);
        buf_puts(b, "/s");
    }
    if (l->self.known) {
        buf_printf(b, ", mostly %s", ps_holder(&l->self));
        if (!l->self.least) {
            buf_puts(b, ", binaries ");
            ps_put_binaries(b, &l->self);
        }
    }
}

static void put_work(const struct why_page *p, struct buf *b)
{
    const struct why_samples *s = p->samples;

    buf_printf(b, "running in %u of %u looks, ", s->running, s->looks);
    ps_put_count(b, why_has_not_run(p->samples) ? 0 : (int64_t)why_rate(s, s->first.reductions, s->last.reductions),
                 false);
    buf_puts(b, " reductions/s, ");
    if (s->major)
        buf_printf(b, "at least %lld major collection%s", (long long)s->major, PLURAL(s->major));
    else
        buf_printf(b, "%lld minor collection%s", (long long)s->minor, PLURAL(s->minor));
}

/*
 * Appends a selector of functions to count: those of the application of the process, otherwise its innermost own
 * function. Returns false if neither is known.
 */
static bool put_selector(const struct why_look *l, struct buf *to)
{
    const struct look_frame *own = look_own(l->chain[0].stack, l->chain[0].nstack);

    if (l->self.application[0]) {
        buf_puts(to, "app(");
        erlang_print_atom(to, raw_text(l->self.application));
        buf_char(to, ')');
    } else if (own) {
        look_frame_print(to, own);
    }
    return to->len;
}

/* Returns the command that counts functions of the process; "" if it is not known which functions to count. */
static const char *count_command(const struct why_page *p, const char *pid, struct command_line *c)
{
    struct buf selector = {0};

    command_line_clear(c);
    if (put_selector(p->look, &selector)) {
        why_command_for(p, c, "top", pid);
        command_line_word(c, buf_cstr(&selector));
    }
    buf_release(&selector);
    return command_line_text(c);
}

static void known_lines(const struct why_page *p, struct buf *to)
{
    const struct why_look *l = p->look;
    const struct why_row *x = &l->chain[0];
    const char *pid = x->process.pid;
    struct buf b = {0};
    struct command_line command = {0};

    if (x->loop && ps_put_idle(&l->self, &b))
        buf_puts(&b, ": ");
    buf_printf(&b, "%s in ", x->status);
    put_frames(&b, x, WHY_FRAMES);
    put_line(p, "does", &b, MORE(p, &command, "stacks", pid, " --for 10s"), to);
    chain_lines(p, to);
    buf_clear(&b);
    put_waiters(l, &b);
    put_line(p, "asked by", &b, MORE(p, &command, "requests", pid, " --for 10s"), to);
    buf_clear(&b);
    put_queue(p, &b);
    put_line(p, "queue", &b, MORE(p, &command, NULL, pid, " 'recv(_)'"), to);
    if (p->senders->known) {
        buf_clear(&b);
        put_senders(p, &b);
        put_line(p, "sent by", &b, MORE(p, &command, NULL, pid, " --by 'from: count' 'recv(_)'"), to);
    }
    buf_clear(&b);
    put_memory(p, &b);
    put_line(p, "memory", &b, MORE(p, &command, "ps", pid, " --for 10s"), to);
    buf_clear(&b);
    put_work(p, &b);
    put_line(p, "works", &b, count_command(p, pid, &command), to);
    buf_release(&b);
    command_line_release(&command);
}

void why_page_text(const struct why_page *p, struct buf *to)
{
    const struct why_row *x = &p->look->chain[0];
    struct buf b = {0};
    struct command_line command = {0};

    look_process_print(&b, &x->process);
    buf_char(&b, ' ');
    why_page_cause(p, &b);
    paint_begin(&p->paint, to, PAINT_FUN);
    /* wraps the first line, which may be longer than the terminal is wide */
    grid_wrap(to, buf_view(&b), 0, 2, p->columns);
    paint_end(&p->paint, to);
    buf_puts(to, "\n\n");
    buf_clear(&b);
    put_self(p, &b);
    put_line(p, "process", &b, MORE(p, &command, "ps", x->process.pid, ""), to);
    if (!strcmp(x->answer, "known"))
        known_lines(p, to);
    else if (strcmp(x->answer, "gone")) {
        buf_clear(&b);
        buf_puts(&b, "unknown, and so is everything else: it did not answer");
        put_line(p, "does", &b, MORE(p, &command, "stacks", x->process.pid, " --for 10s"), to);
    }
    buf_release(&b);
    command_line_release(&command);
}

/* ---- JSON ---- */

static void json_row(const struct why_row *x, struct buf *to)
{
    json_begin_object(to);
    json_name(to, &x->process, is_elsewhere(x));
    json_put_text(to, "answer", x->answer);
    if (!strcmp(x->answer, "known")) {
        json_put_text(to, "status", x->status);
        json_put_array(to, "stack");
        for (unsigned i = 0; i < x->nstack; i++)
            look_frame_json(to, &x->stack[i]);
        json_end_array(to);
        json_put_int(to, "queue", x->queue);
        json_put_int(to, "memory", x->memory);
        if (x->least)
            json_put_bool(to, "memory_estimated", true);
        json_put_int(to, "reductions", x->reductions);
        if (x->among)
            json_put_int(to, "waits_for_one_of", x->among);
        if (x->untold[0])
            json_put_bool(to, !strcmp(x->untold, "many") ? "too_many_links" : "links_unanswered", true);
    }
    json_end_object(to);
}

static void json_queue(const struct why_look *l, struct buf *to)
{
    json_put_array(to, "messages");
    for (unsigned i = 0; i < l->nshapes; i++) {
        json_begin_object(to);
        json_put_text(to, "shape", l->shapes[i].shape);
        json_put_int(to, "count", l->shapes[i].count);
        json_put_array(to, "senders");
        for (unsigned k = 0; k < l->shapes[i].nsenders; k++)
            json_text(to, l->shapes[i].senders[k]);
        json_end_array(to);
        json_end_object(to);
    }
    json_end_array(to);
}

static void json_senders(const struct why_senders *s, struct buf *to)
{
    json_put_uint(to, "received", s->received);
    json_put_uint(to, "exits", s->exits);
    json_put_int(to, "received_us", (s->to - s->from) * 1000);
    if (s->hot)
        return;
    json_put_array(to, "senders");
    for (size_t i = 0; i < s->by.n; i++) {
        json_begin_object(to);
        json_put_text(to, "pid", s->by.items[i].process.pid);
        if (s->by.items[i].process.name[0])
            json_put_text(to, "name", s->by.items[i].process.name);
        json_put_uint(to, "count", s->by.items[i].count - s->by.items[i].error);
        json_end_object(to);
    }
    json_end_array(to);
}

static void json_samples(const struct why_samples *s, struct buf *to)
{
    json_put_int(to, "elapsed_us", (s->to - s->from) * 1000);
    json_put_uint(to, "looks", s->looks);
    json_put_uint(to, "silent", s->silent);
    json_put_uint(to, "running", s->running);
    json_put_int(to, "minor_collections", s->minor);
    json_put_int(to, "major_collections", s->major);
    json_put_object(to, "growth");
    json_put_int(to, "queue", s->last.queue - s->first.queue);
    json_put_int(to, "memory", s->last.memory - s->first.memory);
    json_put_int(to, "reductions", s->last.reductions - s->first.reductions);
    json_end_object(to);
}

void why_page_json(const struct why_page *p, struct buf *to)
{
    const struct why_look *l = p->look;
    struct buf b = {0};

    why_page_cause(p, &b);
    json_begin_record(to, "why");
    json_put_text(to, "node", p->node);
    json_put_text(to, "pid", l->chain[0].process.pid);
    if (l->chain[0].process.name[0])
        json_put_text(to, "name", l->chain[0].process.name);
    json_put_text(to, "cause", why_causes[why_cause_of(l, p->samples)]);
    json_put_text(to, "text", buf_cstr(&b));
    json_put_array(to, "chain");
    for (unsigned i = 0; i < l->n; i++)
        json_row(&l->chain[i], to);
    json_end_array(to);
    if (l->cycle >= 0)
        json_put_int(to, "cycle", l->cycle);
    json_put_bool(to, "complete", !l->deep);
    if (l->waiters >= 0) {
        json_put_int(to, "waiters", l->waiters);
        json_put_array(to, "waiting");
        for (unsigned i = 0; i < l->nwaiters; i++) {
            json_begin_object(to);
            json_name(to, &l->waiter[i].process, l->waiter[i].elsewhere);
            json_end_object(to);
        }
        json_end_array(to);
        if (l->monitors)
            json_put_int(to, "monitors", l->monitors);
    }
    if (l->messages_known)
        json_queue(l, to);
    if (l->self.known) {
        ps_json_initial(&l->self, to);
        if (l->self.callers.count)
            ps_json_names(&l->self.callers, "callers", to);
        json_put_text(to, "application", l->self.application);
        if (!l->self.least)
            json_put_int(to, "binaries", l->self.figures[PS_BINARIES]);
        if (l->self.about && !l->self.least)
            json_put_bool(to, "binaries_estimated", true);
        json_put_text(to, "holds", ps_holder(&l->self));
    }
    if (p->senders->known)
        json_senders(p->senders, to);
    json_samples(p->samples, to);
    json_end_record(to);
    buf_release(&b);
}
