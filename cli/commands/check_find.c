/* SPDX-License-Identifier: Apache-2.0 */
#include "check_rules.h"

#include <stdlib.h>
#include <string.h>

#include "../ground/mem.h"
#include "../ground/number.h"
#include "vm_faults.h"

/* Thresholds that a busy but healthy node does not reach. */
#define QUEUE_LEAST 200      /* number of messages from which a queue counts as growing */
#define QUEUE_RATE 20        /* growth of such a queue, in messages per second */
#define QUEUE_HARMFUL 100000 /* number of messages that makes a queue critical */
#define QUEUE_BEHIND 1000    /* number of messages that a process searches or has not read yet */
#define UNMATCHED_LEAST 100  /* least number of messages to report when none matches */
/* Bytes of one process that are worth a finding, if they are also MEMORY_PART of the node's memory. */
#define MEMORY_LARGE CHECK_HEAP_LEAST
#define MEMORY_PART 40        /* share of the node's memory, in percent */
#define MEMORY_RATE (4 << 20) /* growth of the memory of a process, in bytes per second */
#define NODE_RATE (16 << 20)  /* growth of the memory of the node, in bytes per second */
#define TABLE_LEAST (8 << 20) /* size of a table in bytes */
#define TABLE_RATE (1 << 20)  /* growth of a table in bytes per second that fills the memory within TABLE_SECONDS */
#define TABLE_SECONDS 3600
#define ATOM_RATE 100  /* growth of the number of atoms per second */
#define COUNT_RATE 200 /* growth of the number of processes per second */
#define PORT_RATE 50
#define RUN_QUEUE 8            /* number of waiting processes per scheduler */
#define PORT_QUEUE (256 << 10) /* bytes of output that wait in a port */
#define CLOCK_US 1000000
#define SLOW_HEAP (32 << 20) /* bytes of memory of a process whose collections take long */
/* Number of processes that wait without a timeout for one process on another node. */
#define REMOTE_LEAST 3
/*
 * Least time in ms for which the first client has waited for a connection. DBConnection itself counts shorter waits as
 * no queue.
 */
#define POOL_MS 50
/* Up to this many busy processes are reported one by one, more of them in one finding. */
#define BUSY_MOST 3

const char *const check_severities[] = {"critical", "warning", "note"};
const char *const check_kinds[CHECK_KINDS] = {
    "deadlock", "silent",    "starting",   "alarm",     "memory", "binaries", "queue",    "pool",
    "lock",     "suspended", "waits",      "unmatched", "busy",   "nif",      "collects", "scheduler",
    "exiting",  "restarts",  "connection", "port",      "dirty",  "overload", "log",      "processes",
    "ports",    "atoms",     "ets",        "clock",     "vm",     "unknown",
};

struct check_finding *check_add(const struct check_rules *r, enum check_severity severity, enum check_kind kind)
{
    struct check_findings *f = r->to;

    f->items = mem_grow(f->items, &f->cap, f->n + 1, sizeof(*f->items));
    f->items[f->n] = (struct check_finding){.severity = severity, .kind = kind};
    return &f->items[f->n++];
}

/* ---- the commands that show more ---- */

void check_command(const struct check_rules *r, struct check_finding *f, const char *name)
{
    command_line_begin(&f->command, name, r->seen->ssh, r->seen->named);
}

void check_command_of(const struct check_rules *r, struct check_finding *f, const char *name, const char *pid)
{
    check_command(r, f, name);
    if (name && !strcmp(name, "why")) {
        command_line_word(&f->command, pid);
    } else {
        command_line_add(&f->command, " -P");
        command_line_word(&f->command, pid);
    }
}

/* Adds an expression about the calls of a function of Erlang, in the language of the node. */
static void check_command_call(const struct check_rules *r, struct check_finding *f, const char *module,
                               const char *function)
{
    struct buf b = {0};

    buf_printf(&b, r->seen->elixir ? ":%s.%s -> caller" : "%s:%s -> caller", module, function);
    command_line_word(&f->command, buf_cstr(&b));
    buf_release(&b);
}

/* Makes the command that counts the callers of a function of Erlang. */
static void check_command_by(const struct check_rules *r, struct check_finding *f, const char *module,
                             const char *function)
{
    check_command(r, f, NULL);
    command_line_add(&f->command, " --by 'caller: count'");
    check_command_call(r, f, module, function);
}

/* ---- processes ---- */

/*
 * Tells processes without a name of their own apart, such as the pools of several repositories: appends the closest
 * ancestor that has a name.
 */
static void check_put_ancestor(const struct check_rules *r, const struct look_process *p, struct buf *to)
{
    const struct check_suspect *s = check_suspect_of(r->seen, p->pid);
    struct buf initial = {0};

    if (!s || !s->look.self.known || !s->look.self.initial.fun)
        return;
    const struct look_frame *f = &s->look.self.initial;
    buf_str(&initial, elixir_is_module(f->fun->module) ? f->fun->elixir : f->fun->erl);
    buf_printf(&initial, "/%d", f->arity);
    const bool named = p->name[0] && strcmp(p->name, buf_cstr(&initial)) != 0;
    buf_release(&initial);
    for (unsigned i = 0; i < s->look.self.ancestors.count && !named; i++)
        if (s->look.self.ancestors.items[i][0] != '<') {
            buf_printf(to, " of %s", s->look.self.ancestors.items[i]);
            return;
        }
}

struct check_finding *check_about(const struct check_rules *r, enum check_severity severity, enum check_kind kind,
                                  const struct look_process *p)
{
    struct check_finding *f = check_add(r, severity, kind);

    f->process = *p;
    look_process_print(&f->text, p);
    check_put_ancestor(r, p, &f->text);
    buf_char(&f->text, ' ');
    return f;
}

static void check_put_named(struct buf *to, const struct look_process *items, unsigned n, int64_t all)
{
    for (unsigned i = 0; i < n; i++) {
        buf_puts(to, i ? ", " : "");
        look_process_print(to, &items[i]);
    }
    buf_puts(to, (int64_t)n < all ? ", …" : "");
}

static const struct check_wait *check_wait_for(const struct check_rules *r, const char *pid)
{
    for (size_t i = 0; i < r->last->nwaits; i++)
        if (!r->last->waits[i].elsewhere && !strcmp(r->last->waits[i].process.pid, pid))
            return &r->last->waits[i];
    return NULL;
}

const struct check_suspect *check_suspect_of(const struct check_seen *seen, const char *pid)
{
    for (size_t i = 0; i < seen->nsuspects; i++)
        if (!strcmp(seen->suspects[i]->pid, pid))
            return seen->suspects[i];
    return NULL;
}

static void check_put_cause(const struct check_suspect *s, struct buf *to)
{
    static const struct why_senders unknown;
    struct why_page page = {.look = &s->look, .samples = &s->samples, .senders = &unknown};

    why_page_cause(&page, to);
}

static int64_t check_took_ms(const struct check_rules *r)
{
    return r->last->at - r->first->at;
}

/* Appends the time between the first two answers about the node: the callers were in the same call all this time. */
static void check_put_waited(const struct check_rules *r, struct buf *to)
{
    buf_puts(to, " waited for it for at least ");
    print_duration(to, (r->seen->facts[1].at - r->first->at) / 100 * 100000000);
}

static void check_put_waiters(const struct check_rules *r, const struct check_wait *w, struct buf *to)
{
    buf_printf(to, "; %s%lld process%s %s", r->last->waits_more ? "at least " : "", (long long)w->count,
               PLURAL_ES(w->count), w->count == 1 ? "has" : "have");
    check_put_waited(r, to);
    buf_puts(to, ": ");
    check_put_named(to, w->waiting, w->nwaiting, w->count);
}

static struct check_finding *check_cause(const struct check_rules *r, const struct check_suspect *s,
                                         enum check_severity severity, enum check_kind kind)
{
    const struct look_process *p = &s->look.chain[0].process;
    const struct check_wait *w = check_wait_for(r, s->pid);
    struct check_finding *f = check_about(r, severity, kind, p);

    check_put_cause(s, &f->text);
    if (w && kind != CHECK_DEADLOCK)
        check_put_waiters(r, w, &f->text);
    check_command_of(r, f, "why", p->pid);
    return f;
}

static bool check_grows(const struct why_samples *s)
{
    return s->last.queue >= QUEUE_LEAST && !s->queue_fell && why_rate(s, s->first.queue, s->last.queue) >= QUEUE_RATE;
}

static struct check_finding *check_long(const struct check_rules *r, const struct check_suspect *s,
                                        enum check_kind kind)
{
    const struct why_samples *x = &s->samples;
    struct check_finding *f =
        check_about(r, x->last.queue >= QUEUE_HARMFUL ? CHECK_CRITICAL : CHECK_WARNING, kind, &x->last.process);

    buf_puts(&f->text, "has ");
    ps_put_count(&f->text, x->last.queue, false);
    buf_puts(&f->text, " messages in its queue");
    return f;
}

static void check_queue(const struct check_rules *r, const struct check_suspect *s, enum why_cause cause)
{
    const struct why_samples *x = &s->samples;
    struct check_finding *f = check_long(r, s, CHECK_QUEUE);

    if (cause == WHY_UNMATCHED || cause == WHY_SLEEPS) { /* the process takes a message now and then */
        buf_puts(&f->text, ", which grows by ");
        ps_put_count(&f->text, (int64_t)why_rate(x, x->first.queue, x->last.queue), false);
        buf_puts(&f->text, "/s; it was mostly in ");
        look_frame_print(&f->text, &x->last.stack[0]);
    } else {
        buf_puts(&f->text, "; ");
        check_put_cause(s, &f->text);
    }
    check_command_of(r, f, NULL, s->pid);
    command_line_add(&f->command, " --by 'from: count' 'recv(_)'");
}

/*
 * Reports a queue in which no message seems to match. Without tracing, check cannot tell how many messages the process
 * takes from its queue.
 */
static void check_unmatched(const struct check_rules *r, const struct check_suspect *s)
{
    struct check_finding *f = check_long(r, s, CHECK_UNMATCHED);

    buf_puts(&f->text, ", and waits in ");
    look_frame_print(&f->text, &s->look.chain[0].stack[0]);
    buf_puts(&f->text, ": no message matches, or each receive searches them all");
    check_command_of(r, f, "why", s->pid);
}

/* Returns true if the look has found a cycle with this process in it. */
static bool check_in_cycle(const struct why_look *l, const char *pid)
{
    for (unsigned i = (unsigned)l->cycle; l->cycle >= 0 && i < l->n; i++)
        if (!strcmp(l->chain[i].process.pid, pid))
            return true;
    return false;
}

/* Orders suspects whose looks have found the same cycle: its members first, then those that are sure, then by pid. */
static int check_deadlock_order(const struct check_suspect *a, const struct check_suspect *b)
{
    if (!a->look.cycle != !b->look.cycle)
        return a->look.cycle ? 1 : -1;
    return a->look.sure != b->look.sure ? (a->look.sure ? -1 : 1) : strcmp(a->pid, b->pid);
}

/* Reports a deadlock once: for the first one, by check_deadlock_order(), of the suspects whose looks have found it. */
static void check_deadlock(const struct check_rules *r, const struct check_suspect *s)
{
    const char *member = s->look.chain[s->look.cycle].process.pid;

    for (size_t i = 0; i < r->seen->nsuspects; i++) {
        const struct check_suspect *other = r->seen->suspects[i];
        if (other->whole && check_in_cycle(&other->look, member) && check_deadlock_order(other, s) < 0)
            return;
    }
    check_cause(r, s, s->look.sure ? CHECK_CRITICAL : CHECK_WARNING, CHECK_DEADLOCK);
}

/* Appends the processes that hold what others wait for, and the state of the first one. */
static void check_put_owners(const struct check_rules *r, const struct look_process *owners, unsigned n, int64_t all,
                             struct buf *to)
{
    const struct check_suspect *first = check_suspect_of(r->seen, owners[0].pid);

    check_put_named(to, owners, n, all);
    if (!first || !check_suspect_is_known(first))
        return;
    buf_puts(to, n > 1 ? "; the state of the first one: " : "; its state: ");
    check_put_cause(first, to);
}

static const struct check_pool *check_pool_of(const struct check_facts *f, const char *pid)
{
    for (size_t i = 0; i < f->npools; i++)
        if (!strcmp(f->pools[i].process.pid, pid))
            return &f->pools[i];
    return NULL;
}

/* Returns true if clients have all connections, and the first of those that wait has waited for at least `ms`. */
static bool check_pool_is_empty(const struct check_pool *p, int64_t ms)
{
    return p && p->taken >= p->size && p->ms >= ms;
}

/*
 * Reports pools of DBConnection that had no free connection at any answer of the node. Their clients need not have
 * waited all the time: the pool drops those that wait for long.
 */
static void check_pools(const struct check_rules *r)
{
    const struct check_facts *f = r->seen->facts;

    for (size_t i = 0; i < r->last->npools; i++) {
        const struct check_pool *p = &r->last->pools[i];
        if (!check_pool_is_empty(p, POOL_MS) || !check_pool_is_empty(check_pool_of(&f[1], p->process.pid), POOL_MS) ||
            !check_pool_is_empty(check_pool_of(&f[0], p->process.pid), 0))
            continue;
        struct check_finding *x = check_about(r, CHECK_WARNING, CHECK_POOL, &p->process);
        buf_printf(&x->text, "has no %sconnection; %lld process%s wait%s for one, the first for ",
                   p->size ? "free " : "", (long long)p->count, PLURAL_ES(p->count), p->count == 1 ? "s" : "");
        print_duration(&x->text, p->ms * 1000000);
        buf_puts(&x->text, ": ");
        check_put_named(&x->text, p->waiting, p->nwaiting, p->count);
        if (p->nowners) {
            buf_printf(&x->text, "; its %lld connection%s %s held by ", (long long)p->size, PLURAL(p->size),
                       p->size == 1 ? "is" : "are");
            check_put_owners(r, p->owners, p->nowners, p->taken, &x->text);
        }
        check_command_of(r, x, "why", p->nowners ? p->owners[0].pid : p->process.pid);
    }
}

/*
 * Reports an idle process whose callers wait for replies. If it monitors processes that may hold what the callers wait
 * for, names them.
 */
static void check_owes(const struct check_rules *r, const struct check_suspect *s, const struct check_wait *w)
{
    /*
     * Callers without a timeout may be workers that wait for work. An application that is starting and a pool of
     * DBConnection have findings of their own.
     */
    if ((!w->owned && !w->ends) || check_pool_of(r->last, s->pid) ||
        (r->last->nstarting && !strcmp(w->process.name, "application_controller")))
        return;
    struct check_finding *f = check_about(r, CHECK_WARNING, w->owned ? CHECK_POOL : CHECK_WAITS, &w->process);

    buf_puts(&f->text, "is idle");
    check_put_waiters(r, w, &f->text);
    if (w->owned) {
        buf_printf(&f->text, "; %lld other%s may have what they wait for: ", (long long)w->owned, PLURAL(w->owned));
        check_put_owners(r, w->owners, w->nowners, w->owned, &f->text);
    }
    check_command_of(r, f, "why", w->owned ? w->owners[0].pid : s->pid);
}

/* Returns true for a process that waits for input from a terminal, such as a shell. */
static bool check_reads_terminal(const struct check_suspect *s)
{
    const struct why_row *x = &s->look.chain[0];

    return x->nstack && (look_frame_is(&x->stack[0], "group", NULL) || look_frame_is(&x->stack[0], "user_drv", NULL) ||
                         look_frame_is(&x->stack[0], "prim_tty", NULL));
}

/* Reports a process for which callers have waited since the scan. */
static void check_target(const struct check_rules *r, const struct check_suspect *s, const struct check_wait *w,
                         enum why_cause cause)
{
    if (cause == WHY_OWES || (cause == WHY_IDLE && s->look.chain[0].loop))
        check_owes(r, s, w);
    else if (cause == WHY_RUNS || cause == WHY_WORKS)
        check_cause(r, s, CHECK_WARNING, CHECK_BUSY);
    else
        check_cause(r, s, CHECK_WARNING, CHECK_WAITS);
}

static void check_suspended(const struct check_rules *r, const struct check_suspect *s)
{
    enum why_io io = why_io_of(&s->look.chain[0]);

    if (why_has_not_run(&s->samples))
        check_cause(r, s, check_wait_for(r, s->pid) ? CHECK_CRITICAL : CHECK_WARNING,
                    io == WHY_DIST_IO   ? CHECK_CONNECTION
                    : io == WHY_PORT_IO ? CHECK_PORT
                                        : CHECK_SUSPENDED);
}

/*
 * Returns true if the process ran at every look, had an empty queue and was not in the loop of a behaviour. Its
 * function has then not returned all the time.
 */
static bool check_spins(const struct why_samples *s)
{
    return s->looks >= CHECK_SOME_LOOKS && s->running == s->looks && !s->queue_most && !s->first.loop && !s->last.loop;
}

/*
 * Returns true if at least half of the answers of a large process came late. A process does not answer during a
 * collection.
 */
static bool check_collects(const struct check_suspect *s)
{
    return s->samples.looks >= CHECK_SOME_LOOKS / 2 && s->slow * 2 >= s->samples.looks &&
           s->samples.last.memory >= SLOW_HEAP;
}

static void check_collecting(const struct check_rules *r, const struct check_suspect *s)
{
    struct check_finding *f = check_cause(r, s, CHECK_WARNING, CHECK_COLLECTS);

    buf_puts(&f->text, "; it answers late, as a process does that collects a heap of ");
    ps_put_bytes(&f->text, s->samples.last.memory, false);
}

static bool check_all_busy(const struct check_rules *r, unsigned tasks, int64_t each)
{
    for (unsigned i = 0; i < r->seen->nfacts; i++) {
        const int64_t *busy = r->seen->facts[i].busy;
        if (busy[tasks] <= busy[tasks + 1] * each)
            return false;
    }
    return true;
}

/* Returns true if processes wait so long for a scheduler that they answer late. */
static bool check_is_overloaded(const struct check_rules *r)
{
    return check_all_busy(r, 0, RUN_QUEUE);
}

static void check_process(const struct check_rules *r, const struct check_suspect *s)
{
    enum why_cause cause = why_cause_of(&s->look, &s->samples);
    const struct check_wait *w = check_wait_for(r, s->pid);
    const struct why_samples *x = &s->samples;

    if (!check_suspect_is_known(s) || cause == WHY_GONE || (cause == WHY_SILENT && check_is_overloaded(r)) ||
        (w && cause != WHY_DEADLOCK && (w->task || check_reads_terminal(s))))
        return;
    if (cause == WHY_DEADLOCK || cause == WHY_CYCLE)
        check_deadlock(r, s);
    else if (cause == WHY_SILENT && why_is_silent(x))
        check_cause(r, s, CHECK_CRITICAL, CHECK_SILENT);
    else if (cause == WHY_SUSPENDED)
        check_suspended(r, s);
    else if (check_grows(x) || (cause == WHY_RUNS && x->queue_least >= QUEUE_BEHIND))
        check_queue(r, s, cause);
    else if ((cause == WHY_UNMATCHED || cause == WHY_SCANS) && x->queue_least >= UNMATCHED_LEAST)
        check_unmatched(r, s);
    else if (cause == WHY_EXITING && x->looks >= CHECK_SOME_LOOKS)
        check_cause(r, s, CHECK_WARNING, CHECK_EXITING);
    else if (cause == WHY_COLLECTS || (cause == WHY_RUNS && check_collects(s)))
        check_collecting(r, s);
    else if (cause == WHY_SOCKET && why_io_of(&s->look.chain[0]) == WHY_SEND_IO && (w || !strcmp(s->reason, "port")))
        check_cause(r, s, CHECK_WARNING, CHECK_PORT);
    else if (w && cause == WHY_NIF)
        check_cause(r, s, CHECK_WARNING, CHECK_NIF);
    else if (w && cause != WHY_WAITS)
        check_target(r, s, w, cause);
}

/* Reports processes on other nodes for which processes of this node wait. check does not ask the other nodes. */
static void check_elsewhere(const struct check_rules *r)
{
    for (size_t i = 0; i < r->last->nwaits; i++) {
        const struct check_wait *w = &r->last->waits[i];
        if (!w->elsewhere || w->task || (!w->ends && w->count < REMOTE_LEAST))
            continue;
        struct check_finding *f = check_add(r, CHECK_WARNING, CHECK_WAITS);
        buf_printf(&f->text, "%s on %s", w->process.pid, w->process.name);
        check_put_waiters(r, w, &f->text);
        f->process = w->waiting[0];
        check_command_of(r, f, "why", w->waiting[0].pid);
    }
}

/* Reports processes that keep a scheduler busy although no caller waits for them. */
static void check_busy(const struct check_rules *r)
{
    const struct check_suspect *busy[BUSY_MOST];
    size_t n = 0;

    for (size_t i = 0; i < r->seen->nsuspects; i++) {
        const struct check_suspect *s = r->seen->suspects[i];
        if (check_suspect_is_known(s) && why_cause_of(&s->look, &s->samples) == WHY_RUNS && check_spins(&s->samples) &&
            !check_wait_for(r, s->pid) && !check_collects(s) && n++ < BUSY_MOST)
            busy[n - 1] = s;
    }
    for (size_t i = 0; i < n && n <= BUSY_MOST; i++)
        check_cause(r, busy[i], CHECK_WARNING, CHECK_BUSY);
    if (n <= BUSY_MOST)
        return;
    struct check_finding *f = check_add(r, CHECK_WARNING, CHECK_BUSY);
    buf_printf(&f->text, "%zu processes run all the time, among them ", n);
    for (size_t i = 0; i < BUSY_MOST; i++) {
        buf_puts(&f->text, i ? ", " : "");
        look_process_print(&f->text, &busy[i]->look.chain[0].process);
    }
    check_command(r, f, "ps");
    command_line_add(&f->command, " --sort reductions --for 5s");
}

/* ---- memory ---- */

/* Returns the growth of a figure per second, if all three values grow, else 0. */
static double check_rate(const struct check_rules *r, int64_t a, int64_t b, int64_t c)
{
    int64_t ms = check_took_ms(r);

    return a < b && b < c && ms > 0 ? (double)(c - a) * 1000 / (double)ms : 0;
}

static void check_put_part(const struct check_rules *r, int64_t bytes, struct buf *to)
{
    int64_t used = r->last->figures[CHECK_USED];

    if (used > 0)
        buf_printf(to, ", %lld %% of the node's memory", (long long)MIN(bytes * 100 / used, 100));
}

bool check_is_large(const struct check_rules *r, int64_t bytes)
{
    return bytes >= MEMORY_LARGE && bytes >= r->last->figures[CHECK_USED] * MEMORY_PART / 100;
}

static void check_memory(const struct check_rules *r, const struct check_suspect *s)
{
    const struct why_samples *x = &s->samples;
    double rate = why_rate(x, x->first.memory, x->last.memory);
    bool grows = x->looks >= CHECK_SOME_LOOKS && !x->memory_fell && rate >= MEMORY_RATE;

    if (!x->last.answer[0] || (!grows && !check_is_large(r, x->last.memory)))
        return;
    struct check_finding *f = check_about(r, CHECK_WARNING, CHECK_MEMORY, &x->last.process);
    buf_puts(&f->text, "has ");
    ps_put_bytes(&f->text, x->last.memory, false);
    if (s->look.self.known)
        buf_printf(&f->text, ", mostly %s", ps_holder(&s->look.self));
    check_put_part(r, x->last.memory, &f->text);
    if (grows) {
        buf_puts(&f->text, "; it grows by ");
        ps_put_bytes(&f->text, (int64_t)rate, false);
        buf_puts(&f->text, " a second");
    }
    check_command_of(r, f, "ps", s->pid);
    command_line_add(&f->command, " --for 10s");
}

static void check_binaries(const struct check_rules *r)
{
    const struct ps_node *n = r->seen->binaries;

    for (size_t i = 0; n && i < n->count; i++) {
        const struct ps_row *x = &n->rows[i];
        if (!check_is_large(r, x->figures[PS_BINARIES]))
            continue;
        struct check_finding *f = check_about(r, CHECK_WARNING, CHECK_BINARIES, &x->process);
        buf_puts(&f->text, "refers to ");
        ps_put_binaries(&f->text, x);
        buf_puts(&f->text, " of binaries");
        check_put_part(r, x->figures[PS_BINARIES], &f->text);
        check_command_of(r, f, "ps", x->process.pid);
        command_line_add(&f->command, " --sort binaries --for 10s");
    }
}

/* Reports growth of the node's memory, unless a finding about a process or a table already explains it. */
static void check_growth(const struct check_rules *r)
{
    const struct check_facts *f = r->seen->facts;
    int64_t a = f[0].figures[CHECK_USED], c = r->last->figures[CHECK_USED];
    double rate = check_rate(r, a, f[1].figures[CHECK_USED], c);
    const struct why_row *most = NULL;

    for (size_t i = 0; i < r->to->n; i++)
        if (r->to->items[i].kind == CHECK_MEMORY || r->to->items[i].kind == CHECK_ETS ||
            r->to->items[i].kind == CHECK_BINARIES)
            return;
    if (rate < NODE_RATE || c - a < c / 20)
        return;
    for (size_t i = 0; i < r->seen->nsuspects; i++) {
        const struct why_row *x = &r->seen->suspects[i]->samples.last;
        if (x->answer[0] && (!most || x->memory > most->memory))
            most = x;
    }
    struct check_finding *x = check_add(r, CHECK_WARNING, CHECK_MEMORY);
    buf_puts(&x->text, "the node's memory grows by ");
    ps_put_bytes(&x->text, (int64_t)rate, false);
    buf_puts(&x->text, " a second, now ");
    ps_put_bytes(&x->text, c, false);
    if (most && most->memory >= SLOW_HEAP) {
        buf_puts(&x->text, "; the largest process is ");
        look_process_print(&x->text, &most->process);
        buf_puts(&x->text, " with ");
        ps_put_bytes(&x->text, most->memory, false);
        x->process = most->process;
    }
    check_command(r, x, "ps");
    command_line_add(&x->command, " --for 5s");
}

/* Returns true if the host, its container and its limits leave the node room for more memory, or that is unknown. */
static bool check_has_room(const struct check_facts *f)
{
    int64_t used = f->figures[CHECK_USED], left = f->figures[CHECK_LEFT];

    return used <= 0 || left >= (used + left) / 10 || left >= (int64_t)1 << 30;
}

static void check_room(const struct check_rules *r)
{
    int64_t used = r->last->figures[CHECK_USED], left = r->last->figures[CHECK_LEFT];

    if (check_has_room(r->last))
        return;
    struct check_finding *f = check_add(r, left < (used + left) / 20 ? CHECK_CRITICAL : CHECK_WARNING, CHECK_MEMORY);
    buf_puts(&f->text, "the node has ");
    ps_put_bytes(&f->text, used, false);
    buf_puts(&f->text, " of memory, and the host, its container or its limits leave it ");
    ps_put_bytes(&f->text, left, false);
    check_command(r, f, "ps");
}

/* ---- what the node counts ---- */

static double check_figure_rate(const struct check_rules *r, enum check_figure i)
{
    const struct check_facts *f = r->seen->facts;

    return check_rate(r, f[0].figures[i], f[1].figures[i], f[2].figures[i]);
}

static void check_counts(const struct check_rules *r)
{
    const struct rule {
        enum check_figure figure;
        enum check_kind kind;
        const char *what;
        double rate;
    } rules[] = {
        {CHECK_PROCESSES, CHECK_PROCESS_COUNT, "processes", COUNT_RATE},
        {CHECK_PORTS, CHECK_PORT_COUNT, "ports", PORT_RATE},
        {CHECK_ATOMS, CHECK_ATOM_COUNT, "atoms", ATOM_RATE},
        {CHECK_TABLES, CHECK_ETS, "tables of ets", PORT_RATE},
    };
    const int64_t *now = r->last->figures;

    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        const struct rule *x = &rules[i];
        int64_t n = now[x->figure], most = now[x->figure + 1];
        double rate = check_figure_rate(r, x->figure);
        bool full = most > 0 && n >= most / 5 * 4;
        /* Loading a module creates atoms, so ignore their growth if modules were loaded. */
        if (x->figure == CHECK_ATOMS && now[CHECK_MODULES] != r->first->figures[CHECK_MODULES])
            rate = 0;
        if (!full && rate < x->rate)
            continue;
        struct check_finding *f = check_add(r, full ? CHECK_CRITICAL : CHECK_WARNING, x->kind);
        buf_printf(&f->text, "the node has %lld %s of at most %lld", (long long)n, x->what, (long long)most);
        if (rate >= x->rate) {
            buf_printf(&f->text, ", and they grow by %lld a second", (long long)(rate + 0.5));
            if (most > n) {
                buf_puts(&f->text, ": full in ");
                print_duration(&f->text, (int64_t)((double)(most - n) / rate) * 1000000000);
            }
        }
        if (x->figure == CHECK_PROCESSES && r->last->nstarts && rate >= x->rate) {
            const struct check_start *s = &r->last->starts[0];
            buf_puts(&f->text, "; ");
            look_process_print(&f->text, &s->owner);
            buf_puts(&f->text, " starts most of them");
            if (s->initial.fun) {
                buf_puts(&f->text, ", with ");
                look_frame_print(&f->text, &s->initial);
            }
            f->process = s->owner;
            check_command_of(r, f, "why", s->owner.pid);
        } else if (x->figure == CHECK_ATOMS) {
            check_command_by(r, f, "erlang", "binary_to_atom/_");
            check_command_call(r, f, "erlang", "list_to_atom/_");
        } else if (x->figure == CHECK_TABLES) {
            check_command_by(r, f, "ets", "new/2");
        } else {
            check_command(r, f, x->figure == CHECK_PROCESSES ? "stacks" : "ps");
        }
    }
}

static const struct check_table *check_table_before(const struct check_facts *f, const struct check_table *t)
{
    for (size_t i = 0; i < f->ntables; i++)
        if (!strcmp(f->tables[i].name, t->name) && !strcmp(f->tables[i].owner.pid, t->owner.pid))
            return &f->tables[i];
    return NULL;
}

/* Returns true if growth at this rate is harmful: a healthy application may fill tables under load. */
static bool check_fills(const struct check_rules *r, double rate)
{
    const double left = (double)r->last->figures[CHECK_LEFT];

    return rate >= NODE_RATE || (rate >= TABLE_RATE && left > 0 && left < rate * TABLE_SECONDS);
}

static void check_tables(const struct check_rules *r)
{
    const struct check_facts *f = r->seen->facts;

    for (size_t i = 0; i < f[2].ntables; i++) {
        const struct check_table *t = &f[2].tables[i], *a = check_table_before(&f[0], t),
                                 *b = check_table_before(&f[1], t);
        double rate = a && b ? check_rate(r, a->memory, b->memory, t->memory) : 0;
        if (t->memory < TABLE_LEAST || !check_fills(r, rate))
            continue;
        struct check_finding *x = check_add(r, CHECK_WARNING, CHECK_ETS);
        buf_printf(&x->text, "the ets table %s of ", t->name);
        look_process_print(&x->text, &t->owner);
        buf_puts(&x->text, " grows by ");
        ps_put_bytes(&x->text, (int64_t)rate, false);
        buf_puts(&x->text, " a second, now ");
        ps_put_bytes(&x->text, t->memory, false);
        buf_puts(&x->text, " in ");
        ps_put_count(&x->text, t->size, false);
        buf_puts(&x->text, " objects");
        x->process = t->owner;
        check_command_by(r, x, "ets", "insert/2");
    }
}

static const struct check_port *check_port_before(const struct check_facts *f, const char *port)
{
    for (size_t i = 0; i < f->nports; i++)
        if (!strcmp(f->ports[i].port, port))
            return &f->ports[i];
    return NULL;
}

static void check_ports(const struct check_rules *r)
{
    const struct check_facts *f = r->seen->facts;

    for (size_t i = 0; i < r->last->nports; i++) {
        const struct check_port *p = &r->last->ports[i], *a = check_port_before(&f[0], p->port),
                                *b = check_port_before(&f[1], p->port);
        if (!a || !b || (!p->node[0] && MIN(MIN(a->queue, b->queue), p->queue) < PORT_QUEUE))
            continue;
        struct check_finding *x = check_add(r, CHECK_WARNING, p->node[0] ? CHECK_CONNECTION : CHECK_PORT);
        if (p->node[0])
            buf_printf(&x->text, "the connection to %s does not take ", p->node);
        else
            buf_printf(&x->text, "%s (%s) does not take ", p->port, p->name);
        ps_put_bytes(&x->text, p->queue, false);
        buf_puts(&x->text, " of output");
        if (p->node[0]) {
            buf_puts(&x->text, ", and the VM may have more");
            command_line_begin(&x->command, "check", NULL, p->node);
            continue;
        }
        buf_puts(&x->text, "; its owner is ");
        look_process_print(&x->text, &p->owner);
        x->process = p->owner;
        check_command_of(r, x, "why", p->owner.pid);
    }
}

/* Reports busy schedulers. Returns true if all schedulers of some kind are busy. */
static bool check_schedulers(const struct check_rules *r)
{
    const int64_t *busy = r->last->busy;
    bool full = false;

    if (check_is_overloaded(r)) {
        full = true;
        struct check_finding *f = check_add(r, CHECK_WARNING, CHECK_OVERLOAD);
        buf_printf(&f->text, "%lld processes wait to run on %lld scheduler%s", (long long)busy[0], (long long)busy[1],
                   PLURAL(busy[1]));
        check_command(r, f, "ps");
        command_line_add(&f->command, " --sort reductions --for 5s");
    }
    for (unsigned i = 2; i <= 4; i += 2) {
        if (!check_all_busy(r, i, 1))
            continue;
        full = true;
        struct check_finding *f = check_add(r, CHECK_WARNING, CHECK_DIRTY);
        buf_printf(&f->text, "all %lld dirty %s schedulers are busy, and %lld more jobs wait for one",
                   (long long)busy[i + 1], i == 2 ? "CPU" : "I/O", (long long)(busy[i] - busy[i + 1]));
        check_command(r, f, "stacks");
        command_line_add(&f->command, " --for 5s");
    }
    return full;
}

static void check_logs(const struct check_rules *r)
{
    for (size_t i = 0; i < r->last->nlog; i++) {
        const struct check_log *x = &r->last->log[i];
        unsigned drops = 0, waits = 0;
        for (unsigned k = 0; k < r->seen->nfacts; k++)
            for (size_t j = 0; j < r->seen->facts[k].nlog; j++) {
                const struct check_log *y = &r->seen->facts[k].log[j];
                drops += !strcmp(y->process, x->process) && (y->drops || !strcmp(y->mode, "drop"));
                waits += !strcmp(y->process, x->process) && strcmp(y->mode, "async");
            }
        if (!drops && waits < CHECK_FACTS)
            continue;
        struct check_finding *f = check_add(r, CHECK_WARNING, CHECK_LOG);
        buf_printf(&f->text,
                   drops ? "the log handler %s drops events: more come in a second than it may write"
                         : "the log handler %s is behind, so processes that log wait for it",
                   x->name);
        safe_copy(f->process.name, sizeof(f->process.name), raw_text(x->process));
        check_command_of(r, f, NULL, x->process);
        command_line_add(&f->command, " --by 'from: count' 'recv(_)'");
    }
}

static bool check_lock_held(const struct check_facts *f, const struct check_lock *l)
{
    for (size_t i = 0; i < f->nlocks; i++)
        if (!strcmp(f->locks[i].name, l->name) && !strcmp(f->locks[i].owner.pid, l->owner.pid))
            return true;
    return false;
}

/*
 * Reports locks that were held in all answers of the node. The node does not say which lock a process waits for. A
 * finding therefore lists all processes that wait for any lock of the same type (global or mnesia).
 */
static void check_locks(const struct check_rules *r)
{
    const struct check_facts *f = r->seen->facts;

    for (size_t i = 0; i < r->last->nlocks; i++) {
        const struct check_lock *l = &r->last->locks[i];
        struct look_process waiting[CHECK_NAMED];
        unsigned n = 0;
        int64_t all = 0;
        for (size_t k = 0; k < r->last->nlocked; k++)
            if (!strcmp(r->last->locked[k].type, l->type)) {
                all++;
                if (n < CHECK_NAMED)
                    waiting[n++] = r->last->locked[k].process;
            }
        if (!all || !check_lock_held(&f[0], l) || !check_lock_held(&f[1], l))
            continue;
        struct check_finding *x = check_about(r, CHECK_WARNING, CHECK_LOCK, &l->owner);
        buf_printf(&x->text, "has held the lock %s of %s for at least ", l->name, l->type);
        print_duration(&x->text, check_took_ms(r) / 100 * 100000000);
        buf_printf(&x->text, "; %s%lld process%s wait%s for a lock: ", r->last->locked_more ? "at least " : "",
                   (long long)all, PLURAL_ES(all), all == 1 ? "s" : "");
        check_put_named(&x->text, waiting, n, all);
        check_command_of(r, x, "why", l->owner.pid);
    }
}

/* Reports children of supervisors that were restarted between two answers of the node. */
static void check_restarts(const struct check_rules *r)
{
    const struct check_facts *a = &r->seen->facts[1], *b = r->last;

    for (size_t i = 0; i < b->nrestarts; i++)
        for (size_t k = 0; k < a->nrestarts; k++) {
            const struct check_restart *x = &b->restarts[i], *y = &a->restarts[k];
            if (strcmp(x->owner.pid, y->owner.pid) != 0 || strcmp(x->name, y->name) != 0 ||
                (x->pid[0] && !strcmp(x->pid, y->pid)))
                continue;
            struct check_finding *f = check_about(r, CHECK_WARNING, CHECK_RESTARTS, &x->owner);
            buf_printf(&f->text, "restarts its child %s again and again", x->name);
            check_command(r, f, "died");
            command_line_add(&f->command, " --for 10s");
        }
}

static void check_clocks(const struct check_rules *r)
{
    const struct check_facts *f = r->last;
    int64_t behind = f->clock[1] - f->clock[0], ahead = f->clock[1] - f->here;

    if (behind > CLOCK_US || behind < -CLOCK_US) {
        struct check_finding *x = check_add(r, CHECK_WARNING, CHECK_CLOCK);
        buf_puts(&x->text, "the node's time is ");
        print_duration(&x->text, (behind < 0 ? -behind : behind) * 1000);
        buf_printf(&x->text, " %s the time of its system, and is being corrected", behind > 0 ? "behind" : "ahead of");
    }
    if (ahead > CLOCK_US || ahead < -CLOCK_US) {
        struct check_finding *x = check_add(r, CHECK_WARNING, CHECK_CLOCK);
        buf_puts(&x->text, "the clock of the node's system is ");
        print_duration(&x->text, (ahead < 0 ? -ahead : ahead) * 1000);
        buf_printf(&x->text, " %s the clock here", ahead < 0 ? "behind" : "ahead of");
    }
}

static bool check_has(const char (*texts)[100], size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(texts[i], text))
            return true;
    return false;
}

/* Appends what RabbitMQ uses of a resource, and what the alarm means for its clients. */
static void check_put_limit(const struct check_alarm *a, struct buf *to)
{
    const bool disk = !strcmp(a->type, "disk");

    if (a->limit) {
        buf_puts(to, disk ? "; " : "; it uses ");
        ps_put_bytes(to, a->used, false);
        if (disk)
            buf_printf(to, " are free%s%s, and its limit is ", a->where[0] ? " in " : "", a->where);
        else
            buf_puts(to, ", and its limit is ");
        ps_put_bytes(to, a->limit, false);
    }
    buf_puts(to, "; all nodes of its cluster block the connections that publish");
    if (disk)
        buf_puts(to, "; rabbitmqctl list_queues name message_bytes_persistent shows what fills the disk");
}

/* Reports an alarm of RabbitMQ. The node has those of its whole cluster. */
static void check_alarm_of_rabbit(const struct check_rules *r, const struct check_alarm *a)
{
    struct check_finding *f = check_add(r, CHECK_CRITICAL, CHECK_ALARM);
    const bool here = !strcmp(a->node, r->seen->name);

    buf_printf(&f->text, "RabbitMQ's %s alarm is set", a->type);
    if (!here)
        buf_printf(&f->text, " on %s", a->node);
    check_put_limit(a, &f->text);
    if (!here)
        command_line_begin(&f->command, "check", NULL, a->node);
    else if (!strcmp(a->type, "memory"))
        check_command(r, f, "ps");
}

/*
 * Reports an alarm. os_mon counts the cache of the system as used memory, so its alarm is only a note if the node has
 * room for more memory.
 */
static void check_alarm(const struct check_rules *r, const struct check_alarm *a)
{
    const bool system = !strcmp(a->type, "system"), room = r->last->figures[CHECK_USED] && check_has_room(r->last);

    if (!strcmp(a->type, "memory") || !strcmp(a->type, "disk")) {
        check_alarm_of_rabbit(r, a);
        return;
    }
    struct check_finding *f = check_add(r, system && room ? CHECK_NOTE : CHECK_CRITICAL, CHECK_ALARM);
    buf_printf(&f->text, "alarm: %s", a->text);
    if (system && room) {
        buf_puts(&f->text, "; it counts the cache of the system as used, and the node may still take ");
        ps_put_bytes(&f->text, r->last->figures[CHECK_LEFT], false);
    }
    if (a->process.pid[0]) {
        f->process = a->process;
        check_command_of(r, f, "ps", a->process.pid);
    } else if (system) {
        check_command(r, f, "ps");
    }
}

static void check_words(const struct check_rules *r)
{
    const struct check_facts *first = r->first;

    for (size_t i = 0; i < r->last->nalarms; i++)
        check_alarm(r, &r->last->alarms[i]);
    for (size_t i = 0; i < r->last->nstarting; i++)
        if (check_has(first->starting, first->nstarting, r->last->starting[i]))
            buf_printf(&check_add(r, CHECK_CRITICAL, CHECK_STARTING)->text, "the application %s has not started yet",
                       r->last->starting[i]);
}

static void check_vm(const struct check_rules *r)
{
    struct buf faults = {0};

    if (vm_faults_print(&faults, r->seen->erts, r->seen->arch))
        check_add(r, CHECK_NOTE, CHECK_VM)->text = faults;
}

/* ---- all rules ---- */

static int check_order(const void *a, const void *b)
{
    const struct check_finding *x = a, *y = b;

    if (x->severity != y->severity)
        return x->severity < y->severity ? -1 : 1;
    return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : strcmp(x->process.pid, y->process.pid);
}

void check_find(const struct check_seen *seen, struct check_findings *ret)
{
    size_t from = ret->n;
    struct check_rules r = {seen, &seen->facts[0], &seen->facts[CHECK_FACTS - 1], ret};

    for (size_t i = 0; i < seen->nsuspects; i++) {
        check_process(&r, seen->suspects[i]);
        check_memory(&r, seen->suspects[i]);
    }
    check_elsewhere(&r);
    check_pools(&r);
    check_binaries(&r);
    check_room(&r);
    check_counts(&r);
    check_tables(&r);
    check_growth(&r);
    check_ports(&r);
    if (!check_schedulers(&r)) /* not needed if busy schedulers were reported, because they explain each busy process */
        check_busy(&r);
    check_logs(&r);
    check_locks(&r);
    check_restarts(&r);
    check_clocks(&r);
    check_words(&r);
    check_unlooked(&r);
    check_vm(&r);
    check_unseen(&r);
    if (ret->n > from)
        qsort(ret->items + from, ret->n - from, sizeof(*ret->items), check_order);
}

void check_findings_release(struct check_findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        buf_release(&f->items[i].text);
        command_line_release(&f->items[i].command);
    }
    free(f->items);
    *f = (struct check_findings){0};
}

size_t check_count(const struct check_findings *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        n += f->items[i].severity != CHECK_NOTE;
    return n;
}
