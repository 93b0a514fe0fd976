#include "bell.h"

#include <stdint.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#else
#include <fcntl.h>
#endif

#include "tick.h"

struct bell bell;

static ErlNifResourceType *bell_type;
static _Atomic(void *) bell_resource;
static int read_end = -1, write_end = -1;
static _Atomic int users; /* of the descriptor: the library, and each resource that is not stopped */
static bool has_barrier;

/* ---- the descriptor ------------------------------------------------------------------------------------------------ */

static bool make_descriptor(void)
{
#if defined(__linux__)
    read_end = write_end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return read_end >= 0;
#else
    int ends[2];
    if (pipe(ends) < 0)
        return false;
    read_end = ends[0], write_end = ends[1];
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    }
    return true;
#endif
}

static void drop_descriptor(void)
{
    if (atomic_fetch_sub(&users, 1) != 1)
        return;
    close(read_end);
    if (write_end != read_end)
        close(write_end);
    read_end = write_end = -1;
}

/* What a producer stored before it looked at the bell becomes visible, on whatever processor it runs. */
static void everybody_agrees(void)
{
    atomic_thread_fence(memory_order_seq_cst);
#if defined(__linux__)
    if (has_barrier && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0)
        return;
#endif
    /* Without it: a store leaves a running processor within a fraction of this, and an interrupted one at once. */
    for (uint64_t begin = tick_now(), slack = tick_slack(); tick_now() - begin < slack;)
        ;
}

/* ---- the resource -------------------------------------------------------------------------------------------------- */

static void on_stop(ErlNifEnv *env, void *resource, ErlNifEvent event, int is_direct_call)
{
    (void)env, (void)resource, (void)event, (void)is_direct_call;
    drop_descriptor();
}

/* Whoever takes the resource out of bell_resource stops it, once. */
static void stop(ErlNifEnv *env, void *resource)
{
    if (enif_select(env, read_end, ERL_NIF_SELECT_STOP, resource, NULL, enif_make_atom(env, "undefined")) < 0)
        drop_descriptor();
    enif_release_resource(resource);
}

static void on_down(ErlNifEnv *env, void *resource, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    void *expected = resource;
    (void)pid, (void)monitor;
    if (atomic_compare_exchange_strong(&bell_resource, &expected, NULL)) {
        bell_disarm();
        stop(env, resource);
    }
}

bool bell_load(ErlNifEnv *env)
{
    ErlNifResourceTypeInit init = {.stop = on_stop, .down = on_down};
    bell_type = enif_open_resource_type_x(env, "bell", &init, ERL_NIF_RT_CREATE, NULL);
#if defined(__linux__)
    has_barrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0;
#endif
    return bell_type != NULL;
}

bool bell_open(ErlNifEnv *env)
{
    ErlNifPid self;
    bell_close(env);
    if (!enif_self(env, &self))
        return false;
    if (read_end < 0) {
        if (!make_descriptor())
            return false;
        atomic_store(&users, 1);
    }
    void *resource = enif_alloc_resource(bell_type, 1);
    if (!resource)
        return false;
    atomic_fetch_add(&users, 1);
    atomic_store(&bell_resource, resource);
    if (enif_monitor_process(env, resource, &self, NULL) != 0) {
        bell_close(env);
        return false;
    }
    return true;
}

void bell_close(ErlNifEnv *env)
{
    bell_disarm();
    void *resource = atomic_exchange(&bell_resource, NULL);
    if (resource)
        stop(env, resource);
}

void bell_unload(ErlNifEnv *env)
{
    bell_close(env);
    if (read_end >= 0)
        drop_descriptor();
}

/* ---- ringing ------------------------------------------------------------------------------------------------------- */

bool bell_arm(ErlNifEnv *env)
{
    uint64_t rung;
    ErlNifPid self;
    void *resource = atomic_load(&bell_resource);
    if (!resource || !enif_self(env, &self))
        return false;
    while (read(read_end, &rung, sizeof rung) == (ssize_t)sizeof rung && read_end != write_end)
        ;
    if (enif_select(env, read_end, ERL_NIF_SELECT_READ, resource, &self, enif_make_atom(env, "undefined")) < 0)
        return false;
    atomic_store(&bell.armed, true);
    everybody_agrees();
    return true;
}

void bell_disarm(void)
{
    atomic_store(&bell.armed, false);
}

__attribute__((noinline)) void bell_strike(void)
{
    static const uint64_t once = 1;
    if (atomic_exchange(&bell.armed, false) && write(write_end, &once, sizeof once) < 0)
        return; /* full: it rings already */
}
