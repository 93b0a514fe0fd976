/* SPDX-License-Identifier: Apache-2.0 */
#include "bell.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#endif

#include "tick.h"

#define STACK_KILOWORDS 16

struct bell bell;

static ErlNifTid ringer;
static bool has_ringer, has_barrier;
static _Atomic bool leaving; /* the library is being unloaded */
static _Atomic bool dumb;    /* the thread has ended, so the bell cannot wake the owner */
static _Atomic(ErlNifPid) woken, answers;
static _Atomic bool has_answers;
static ERL_NIF_TERM atom_ready_input, atom_owing;

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

#if defined(__linux__)

/* A futex and not a pipe, because other code in the node could close the descriptors of a pipe. */
static _Atomic uint32_t struck;

static bool open_wakeup(void)
{
    return true;
}

static void close_wakeup(void)
{
}

/*
 * Waits for the next strike. The kernel compares the futex again, so a strike just before the system call ends the wait
 * at once.
 */
static bool await_strike(void)
{
    while (!atomic_exchange(&struck, 0))
        syscall(SYS_futex, &struck, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return true;
}

static void wake_ringer(void)
{
    if (!atomic_exchange(&struck, 1))
        syscall(SYS_futex, &struck, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#else

static int ends[2] = {-1, -1};

static bool open_wakeup(void)
{
    return ends[0] >= 0 || pipe(ends) == 0;
}

static void close_wakeup(void)
{
    if (ends[0] >= 0)
        close(ends[0]), close(ends[1]);
    ends[0] = ends[1] = -1;
}

/* Waits for the next strike; a signal does not end the wait. Returns false if the pipe is broken. */
static bool await_strike(void)
{
    char bytes[64];
    ssize_t n;
    do
        n = read(ends[0], bytes, sizeof bytes);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

static void wake_ringer(void)
{
    (void)!write(ends[1], "", 1); /* a full pipe wakes the thread too */
}

#endif

/*
 * Makes all stores visible that a producer made before it loaded `armed`.
 *
 * A producer stores the ring's head and then loads `armed`. Only the compiler keeps that order; any processor may
 * execute the load first. The owner stores `armed` and then loads the heads. Without a barrier each could miss the
 * other's store. membarrier() interrupts every processor that runs a thread of the VM. Afterwards the owner sees the
 * producer's store, or the producer's load comes later and sees the armed bell.
 */
static void sync_producers(void)
{
    atomic_thread_fence(memory_order_seq_cst);
#if defined(__linux__)
    if (has_barrier && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0)
        return;
#endif
    /*
     * Without membarrier(), wait for tick_slack(). A store that another thread made before this wait is visible after
     * it: a processor keeps a store to itself for a fraction of that time only, and not longer if the thread is
     * interrupted.
     */
    for (uint64_t begin = tick_now(), slack = tick_slack(); tick_now() - begin < slack;)
        ;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void *run_ringer(void *unused)
{
    (void)unused;
    while (await_strike() && !atomic_load(&leaving)) {
        ErlNifPid to = atomic_load(&woken);
        enif_send(NULL, &to, NULL, atom_ready_input);
        to = atomic_load(&answers);
        if (atomic_load(&has_answers) && atomic_exchange(&bell.asked, false))
            enif_send(NULL, &to, NULL, atom_owing);
    }
    atomic_store(&dumb, true);
    return NULL;
}

static bool start_ringer(void)
{
    ErlNifThreadOpts *options = enif_thread_opts_create((char[]){"etrace_bell"});
    if (!options)
        return false;
    options->suggested_stack_size = STACK_KILOWORDS;
    has_ringer = enif_thread_create((char[]){"etrace_bell"}, &ringer, run_ringer, NULL, options) == 0;
    enif_thread_opts_destroy(options);
    return has_ringer;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

void bell_load(ErlNifEnv *env)
{
    atom_ready_input = enif_make_atom(env, "ready_input");
    atom_owing = enif_make_atom(env, "owing");
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
    return has_ringer || (open_wakeup() && start_ringer());
}

bool bell_answers(ErlNifEnv *env)
{
    ErlNifPid self;
    if (!enif_self(env, &self))
        return false;
    atomic_store(&answers, self);
    atomic_store(&has_answers, true);
    return true;
}

void bell_unload(void)
{
    bell_disarm();
    atomic_store(&leaving, true);
    wake_ringer();
    /* Join before the VM unmaps the library, because the thread runs its code. */
    if (has_ringer)
        enif_thread_join(ringer, NULL);
    close_wakeup();
}

/* ---- ringing ----------------------------------------------------------------------------------------------------- */

bool bell_arm(void)
{
    if (atomic_load(&dumb))
        return false;
    atomic_store(&bell.armed, true);
    sync_producers();
    return true;
}

void bell_disarm(void)
{
    atomic_store(&bell.armed, false);
}

__attribute__((noinline)) void bell_wake(void)
{
    wake_ringer();
}

__attribute__((noinline)) void bell_strike(void)
{
    if (atomic_exchange(&bell.armed, false))
        wake_ringer();
}
