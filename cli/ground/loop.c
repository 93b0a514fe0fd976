/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "mem.h"

int64_t loop_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void loop_init(struct loop *l)
{
    *l = (struct loop){.signals = -1};
}

void loop_release(struct loop *l)
{
    if (l->signals >= 0)
        close(l->signals);
    free(l->fds);
    free(l->polls);
    free(l->whose);
    loop_init(l);
}

void loop_add(struct loop *l, struct loop_fd *f)
{
    l->fds = mem_grow(l->fds, &l->cap, l->count + 1, sizeof(struct loop_fd *));
    l->fds[l->count++] = f;
}

void loop_remove(struct loop *l, struct loop_fd *f)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->fds[i] == f) {
            l->fds[i] = l->fds[--l->count];
            return;
        }
}

void loop_start(struct loop *l, struct loop_timer *t)
{
    loop_stop(l, t);
    t->next = l->timers;
    l->timers = t;
}

void loop_stop(struct loop *l, struct loop_timer *t)
{
    for (struct loop_timer **at = &l->timers; *at; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            return;
        }
}

/* Runs only one due timer, because its callback may start and stop others. */
static void serve_timers(struct loop *l)
{
    for (struct loop_timer *t = l->timers; t; t = t->next)
        if (t->due >= 0 && t->due <= loop_now()) {
            t->run(t->owner);
            return;
        }
}

/*
 * The signals that other processes and the kernel send to end a process. SIGPIPE and SIGXFSZ are not here: they report
 * a failed write.
 */
static const int asking[] = {SIGINT,    SIGTERM, SIGQUIT, SIGHUP,  SIGUSR1, SIGUSR2,  SIGALRM,
                             SIGVTALRM, SIGPROF, SIGXCPU, SIGPOLL, SIGPWR,  SIGSTKFLT};

/*
 * Adds a signal to `set` if it is not ignored. A parent such as nohup ignores SIGHUP for us, but signalfd would report
 * the signal. Always adds INT, TERM and QUIT, because a shell ignores SIGINT and SIGQUIT for background jobs.
 */
static void add_signal(sigset_t *set, int signal)
{
    struct sigaction found;

    if (signal == SIGINT || signal == SIGTERM || signal == SIGQUIT || sigaction(signal, NULL, &found) ||
        found.sa_handler != SIG_IGN)
        sigaddset(set, signal);
}

static struct {
    bool known;
    sigset_t set;
} heard;

static sigset_t watched_signals(void)
{
    if (heard.known)
        return heard.set;
    heard.known = true;
    sigemptyset(&heard.set);
    for (size_t i = 0; i < ARRAY_LEN(asking); i++)
        add_signal(&heard.set, asking[i]);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++)
        add_signal(&heard.set, signal);
    return heard.set;
}

bool loop_watch_signals(struct loop *l, void (*on_signal)(void *owner, int signal), void *owner)
{
    sigset_t set = watched_signals();

    tzset(); /* reads the file named by $TZ now, while a signal can still end a read that blocks */
    if (sigprocmask(SIG_BLOCK, &set, NULL))
        return false;
    l->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    l->on_signal = on_signal;
    l->signal_owner = owner;
    if (l->signals >= 0)
        return true;
    sigprocmask(SIG_UNBLOCK, &set, NULL); /* a sandbox may forbid signalfd; then signals end the process directly */
    sigemptyset(&heard.set);
    return false;
}

static void loop_leave(int signal)
{
    _exit(128 + signal);
}

/*
 * Restores the default actions, because only they interrupt a wait for a file server. The kernel does not apply default
 * actions to process 1 of a container, so that process gets a handler that exits.
 */
void loop_let_die(bool on)
{
    static struct sigaction before[NSIG];
    struct sigaction die = {.sa_handler = getpid() == 1 ? loop_leave : SIG_DFL};
    sigset_t set = watched_signals();

    if (!on)
        sigprocmask(SIG_BLOCK, &set, NULL);
    for (int signal = 1; signal < NSIG; signal++)
        if (sigismember(&set, signal) == 1)
            sigaction(signal, on ? &die : &before[signal], on ? &before[signal] : NULL);
    if (on)
        sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void serve_signals(struct loop *l)
{
    struct signalfd_siginfo info;

    while (l->signals >= 0 && read(l->signals, &info, sizeof(info)) == sizeof(info)) {
        l->from_kernel = info.ssi_code > 0;
        l->on_signal(l->signal_owner, (int)info.ssi_signo);
    }
}

static bool still_there(const struct loop *l, const struct loop_fd *f)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->fds[i] == f)
            return true;
    return false;
}

int64_t loop_sooner(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 ? a : MIN(a, b);
}

void loop_step(struct loop *l, int64_t deadline)
{
    size_t n = l->count;
    size_t used = 0;

    assert(!l->serving);
    for (const struct loop_timer *t = l->timers; t; t = t->next)
        deadline = loop_sooner(deadline, t->due);
    if (l->room < n + 1) {
        l->room = n + 64;
        l->polls = mem_realloc(l->polls, l->room * sizeof(*l->polls));
        l->whose = mem_realloc(l->whose, l->room * sizeof(struct loop_fd *));
    }
    struct pollfd *polls = l->polls;
    struct loop_fd **whose = l->whose;
    for (size_t i = 0; i < n; i++) {
        struct loop_fd *f = l->fds[i];
        short events = (short)((f->want_read ? POLLIN : 0) | (f->want_write ? POLLOUT : 0));
        if (!events)
            continue;
        polls[used] = (struct pollfd){.fd = f->fd, .events = events};
        whose[used++] = f;
    }
    polls[used] = (struct pollfd){.fd = l->signals, .events = POLLIN};
    const int64_t wait = deadline < 0 ? -1 : MAX(deadline - loop_now(), 0);
    const int ready =
        poll(polls, used + 1, (int)MIN(wait, INT32_MAX)); /* a signal with a handler ends the step early */
    l->serving = true;
    serve_timers(l);
    if (ready > 0 && polls[used].revents)
        serve_signals(l);
    for (size_t i = 0; ready > 0 && i < used; i++)
        if (polls[i].revents && still_there(l, whose[i]))
            whose[i]->ready(whose[i]->owner);
    l->serving = false;
}
