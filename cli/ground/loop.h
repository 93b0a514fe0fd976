/*
 * Waiting for several things at once: file descriptors, signals and the clock, in one thread.
 * Whoever is called may add and remove anything, itself included.
 */
#ifndef ETRACE_LOOP_H
#define ETRACE_LOOP_H

#include "macros.h"

/* Milliseconds on the monotonic clock. */
int64_t loop_now(void);

struct loop_fd {
    int fd;
    bool want_read, want_write;
    void (*ready)(void *owner);
    void *owner;
};

/* What is to be done at a time, whoever serves the loop then: run() sets `due` (loop_now() time; negative: not at all) anew. */
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
    struct pollfd *polls; /* of a step, and whose they are */
    struct loop_fd **whose;
    size_t room;
    int signals; /* a signalfd, -1 while none are watched */
    void (*on_signal)(void *owner, int signal);
    void *signal_owner;
    bool serving; /* somebody is being called: he must not wait */
    bool from_kernel; /* the signal that is told of came from the system, as those of a terminal's keys do, not from a process */
};

void loop_init(struct loop *l);
void loop_release(struct loop *l);

void loop_add(struct loop *l, struct loop_fd *f); /* borrowed until loop_remove() */
void loop_remove(struct loop *l, struct loop_fd *f);

void loop_start(struct loop *l, struct loop_timer *t); /* borrowed until loop_stop() */
void loop_stop(struct loop *l, struct loop_timer *t);  /* harmless for one that was not started */

/* Takes what asks a process to end, INT, TERM, HUP and all the others, for all threads that are started from now on. Before any thread is started. */
bool loop_watch_signals(struct loop *l, void (*on_signal)(void *owner, int signal), void *owner);

/* Of two such times; negative: never. */
int64_t loop_sooner(int64_t a, int64_t b);

/*
 * The one place where the program waits: serves what is ready, waiting at most until `deadline` (loop_now() time; negative: for
 * ever). A callback must not call it.
 */
void loop_step(struct loop *l, int64_t deadline);

/*
 * Until it is off again a signal ends the process, though it be held up by a file that nobody gives. For the time in which there is
 * nothing to be left behind.
 */
void loop_let_die(bool on);

#endif
