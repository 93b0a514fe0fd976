/* SPDX-License-Identifier: Apache-2.0 */
#include "aside.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "thread.h"

struct aside {
    void (*work)(void *data);
    void *data;
    int ready; /* end of a pipe: when work() has returned, the thread writes a byte and no longer uses this struct */
};

static void *at_work(void *owner)
{
    struct aside *a = owner;
    int ready = a->ready;

    a->work(a->data);
    while (write(ready, "", 1) < 0 && errno == EINTR)
        ;
    return NULL;
}

static void on_ready(void *owner)
{
    bool *over = owner;

    *over = true;
}

void aside(struct loop *loop, void (*work)(void *data), void *data)
{
    bool over = false;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC)) {
        work(data);
        return;
    }
    struct aside a = {.work = work, .data = data, .ready = ends[1]};
    struct loop_fd fd = {.fd = ends[0], .want_read = true, .ready = on_ready, .owner = &over};
    loop_add(loop, &fd);
    if (!thread_start(NULL, at_work, &a)) {
        work(data);
        over = true;
    }
    while (!over)
        loop_step(loop, -1);
    loop_remove(loop, &fd);
    close(ends[0]);
    close(ends[1]);
}
