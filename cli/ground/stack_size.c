/* SPDX-License-Identifier: Apache-2.0 */
#include "stack_size.h"

#include <pthread.h>
#include <sys/resource.h>

#define NEEDED (256u << 10)
#define WANTED (8u << 20)
/* Stack size of a thread. Host name lookups need this much, because they load the system's name service modules. */
#define OF_A_THREAD (1u << 20)

static struct rlimit given; /* the inherited limit; rlim_cur is 0 if the limit was not raised */

static void size_threads(void)
{
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    if (!pthread_attr_setstacksize(&attr, OF_A_THREAD))
        pthread_setattr_default_np(&attr);
    pthread_attr_destroy(&attr);
}

bool stack_size_ready(struct err *e)
{
    struct rlimit now;

    size_threads();
    if (getrlimit(RLIMIT_STACK, &now) || now.rlim_cur >= NEEDED)
        return true;
    struct rlimit more = {.rlim_cur = MIN(now.rlim_max, WANTED), .rlim_max = now.rlim_max};
    if (more.rlim_cur >= NEEDED && !setrlimit(RLIMIT_STACK, &more)) {
        given = now;
        return true;
    }
    return err_set(e, ERR_RUN, "the stack limit is %llu kB (ulimit -s), but etrace needs %u kB",
                   (unsigned long long)now.rlim_cur >> 10, NEEDED >> 10);
}

void stack_size_give_back(void)
{
    if (given.rlim_cur)
        setrlimit(RLIMIT_STACK, &given);
}
