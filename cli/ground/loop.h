/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loop: one thread waits for file descriptors, signals and timers.
 *
 * A callback may add and remove descriptors and timers, including its own. It must not wait (cli/README.md, "One place
 * waits").
 */
#ifndef ETRACE_LOOP_H
#define ETRACE_LOOP_H

#include "macros.h"

/* Returns the milliseconds of the monotonic clock. */
int64_t loop_now(void);

struct loop_fd {
    int fd;
    bool want_read, want_write;
    void (*ready)(void *owner);
    void *owner;
};

/*
 * A timer. `due` is a loop_now() time; a negative one means never. run() must change `due`, else it runs again at once.
 */
struct loop_timer {
    struct loop_timer *next;
    int64_t due;
    void (*run)(void *owner);
    void *owner;
};

struct loop {
    struct loop_fd **fds;
    size_t count, cap;
    struct loop_timer *timers;
    struct pollfd *polls; /* scratch memory of loop_step(); polls[i] is for whose[i] */
    struct loop_fd **whose;
    size_t room;
    int signals; /* a signalfd, or -1 if no signals are watched */
    void (*on_signal)(void *owner, int signal);
    void *signal_owner;
    bool serving;     /* a callback runs, so loop_step() must not be called */
    bool from_kernel; /* the current signal came from the kernel (as for Ctrl-C on a terminal), not from a process */
};

void loop_init(struct loop *l);
void loop_release(struct loop *l);

void loop_add(struct loop *l, struct loop_fd *f); /* borrowed until loop_remove() */
void loop_remove(struct loop *l, struct loop_fd *f);

void loop_start(struct loop *l, struct loop_timer *t); /* borrowed until loop_stop() */
void loop_stop(struct loop *l, struct loop_timer *t);  /* does nothing if the timer was not started */

/*
 * Blocks all signals that ask a process to end (INT, TERM, HUP, ...) and reports them through on_signal instead. Call
 * it before any thread is started, so that every thread inherits the mask. Returns false if the system has no signalfd;
 * signals then end the process.
 */
bool loop_watch_signals(struct loop *l, void (*on_signal)(void *owner, int signal), void *owner);

/* Returns the earlier of two loop_now() times; a negative time means never. */
int64_t loop_sooner(int64_t a, int64_t b);

/*
 * Waits until a descriptor or signal is ready, a timer is due, or `deadline` passes (a loop_now() time; negative: no
 * deadline), and calls the callbacks. May return earlier, such as when the size of the terminal changes. The program
 * waits nowhere else. A callback must not call this function.
 */
void loop_step(struct loop *l, int64_t deadline);

/*
 * With `on`, lets a signal end the process at once, even while an operation on a file blocks (a pipe without a writer,
 * a file server). Use this only while nothing needs cleaning up.
 */
void loop_let_die(bool on);

#endif
