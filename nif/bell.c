#include "bell.h"

#include <stdint.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#endif

#include "tick.h"

#define STACK_KILOWORDS 16

struct bell bell;

static int read_end = -1, write_end = -1;
static ErlNifTid ringer;
static bool has_ringer, has_barrier;
static _Atomic bool leaving;
static _Atomic(ErlNifPid) woken;
static ERL_NIF_TERM atom_ready_input;

/* ---- the descriptor ------------------------------------------------------------------------------------------------ */

static bool make_descriptor(void)
{
#if defined(__linux__)
    read_end = write_end = eventfd(0, EFD_CLOEXEC);
    return read_end >= 0;
#else
    int ends[2];
    if (pipe(ends) < 0)
        return false;
    read_end = ends[0], write_end = ends[1];
    return true;
#endif
}

static void drop_descriptor(void)
{
    if (read_end < 0)
        return;
    close(read_end);
    if (write_end != read_end)
        close(write_end);
    read_end = write_end = -1;
}

static bool strike(void)
{
    static const uint64_t once = 1;
    return write(write_end, &once, sizeof once) == (ssize_t)sizeof once;
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

/* ---- the thread ---------------------------------------------------------------------------------------------------- */

static void *ring_on(void *unused)
{
    uint64_t rung;
    (void)unused;
    while (!atomic_load(&leaving)) {
        if (read(read_end, &rung, sizeof rung) != (ssize_t)sizeof rung)
            continue; /* a signal that was meant for the VM */
        ErlNifPid to = atomic_load(&woken);
        if (!atomic_load(&leaving))
            enif_send(NULL, &to, NULL, atom_ready_input);
    }
    return NULL;
}

static bool start(void)
{
    ErlNifThreadOpts *options = enif_thread_opts_create((char[]){"etrace_bell"});
    if (!options)
        return false;
    options->suggested_stack_size = STACK_KILOWORDS;
    has_ringer = enif_thread_create((char[]){"etrace_bell"}, &ringer, ring_on, NULL, options) == 0;
    enif_thread_opts_destroy(options);
    return has_ringer;
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

void bell_load(ErlNifEnv *env)
{
    atom_ready_input = enif_make_atom(env, "ready_input");
#if defined(__linux__)
    has_barrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0;
#endif
}

bool bell_open(ErlNifEnv *env)
{
    ErlNifPid self;
    if (!enif_self(env, &self))
        return false;
    atomic_store(&woken, self);
    return has_ringer || ((read_end >= 0 || make_descriptor()) && start());
}

void bell_unload(void)
{
    bell_disarm();
    atomic_store(&leaving, true);
    if (has_ringer && strike())
        enif_thread_join(ringer, NULL);
    drop_descriptor();
}

/* ---- ringing ------------------------------------------------------------------------------------------------------- */

void bell_arm(void)
{
    atomic_store(&bell.armed, true);
    everybody_agrees();
}

void bell_disarm(void)
{
    atomic_store(&bell.armed, false);
}

__attribute__((noinline)) void bell_strike(void)
{
    if (atomic_exchange(&bell.armed, false))
        (void)!strike(); /* full: it rings already */
}
