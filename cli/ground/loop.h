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

struct loop {
    struct loop_fd **fds;
    size_t count, cap;
    struct pollfd *polls; /* of a step, and whose they are */
    struct loop_fd **whose;
    size_t room;
    int signals; /* a signalfd, -1 while none are watched */
    void (*on_signal)(void *owner, int signal);
    void *signal_owner;
};

void loop_init(struct loop *l);
void loop_release(struct loop *l);

void loop_add(struct loop *l, struct loop_fd *f); /* borrowed until loop_remove() */
void loop_remove(struct loop *l, struct loop_fd *f);

/* Takes INT, TERM, HUP and QUIT for all threads that are started from now on. Before any thread is started. */
bool loop_watch_signals(struct loop *l, void (*on_signal)(void *owner, int signal), void *owner);

/* Serves what is ready, waiting at most until `deadline` (loop_now() time; negative: for ever). */
void loop_step(struct loop *l, int64_t deadline);

#endif
