/* SPDX-License-Identifier: Apache-2.0 */
#include "leftover.h"

#include <erl_nif.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#endif

#include "figures.h"
#include "tick.h"

#define WHOLE_MS 8000        /* time limit of all writes; drain_halted() waits up to a second before them */
#define TRIES 100            /* the most times to wait a millisecond for threads that still process an event */
#define FIGURES (256u << 10) /* bytes of frames in one batch */

/* ---- the socket -------------------------------------------------------------------------------------------------- */

#if defined(__linux__)

static struct sockaddr_un to;
static int64_t until; /* the time at which leftover_send() gives up, in milliseconds */

static bool is_wanted(void)
{
    return to.sun_path[0];
}

bool leftover_to(const uint8_t *path, size_t bytes)
{
    if (bytes >= sizeof to.sun_path)
        return false;
    leftover_forget(UINT64_MAX);
    memset(&to, 0, sizeof to);
    to.sun_family = AF_UNIX;
    if (bytes)
        memcpy(to.sun_path, path, bytes);
    return true;
}

/* Limits the next call on the socket to the time that is left. Returns false if no time is left. */
static bool may_wait(int fd)
{
    const int64_t left = until - enif_monotonic_time(ERL_NIF_MSEC);
    const struct timeval wait = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};

    return left > 0 && syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) == 0;
}

static int open_socket(void)
{
    until = enif_monotonic_time(ERL_NIF_MSEC) + WHOLE_MS;
    if (!is_wanted())
        return -1;
    int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (may_wait(fd) && syscall(SYS_connect, fd, &to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool write_all(int fd, const uint8_t *bytes, size_t length)
{
    while (length) {
        long n = may_wait(fd) ? syscall(SYS_sendto, fd, bytes, length, MSG_NOSIGNAL, NULL, 0) : -1;
        if (n <= 0)
            return false;
        bytes += n;
        length -= (size_t)n;
    }
    return true;
}

#else

static bool is_wanted(void)
{
    return false;
}

bool leftover_to(const uint8_t *path, size_t bytes)
{
    (void)path, (void)bytes;
    return true;
}

static int open_socket(void)
{
    return -1;
}

static bool write_all(int fd, const uint8_t *bytes, size_t length)
{
    (void)fd, (void)bytes, (void)length;
    return false;
}

#endif

/* ---- batches that the client may not have ------------------------------------------------------------------------ */

static struct kept {
    struct kept *next;
    uint64_t seq;
    size_t length;
    uint8_t bytes[];
} * oldest, **behind = &oldest;

void leftover_keep(uint64_t seq, const uint8_t *bytes, size_t length)
{
    struct kept *k = is_wanted() ? enif_alloc(sizeof *k + length) : NULL;
    if (!k)
        return;
    k->next = NULL;
    k->seq = seq;
    k->length = length;
    memcpy(k->bytes, bytes, length);
    *behind = k;
    behind = &k->next;
}

void leftover_forget(uint64_t seq)
{
    for (struct kept *k; (k = oldest) && k->seq <= seq;) {
        oldest = k->next;
        enif_free(k);
    }
    if (!oldest)
        behind = &oldest;
}

static bool write_kept(int fd)
{
    bool ok = true;
    for (const struct kept *k = oldest; k && ok; k = k->next)
        ok = write_all(fd, k->bytes, k->length);
    return ok;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

struct figures {
    const struct leftover *l;
    ErlNifEnv *env;
    uint8_t *at, *begin; /* the start of the section that is being written, and the end of its frames so far */
    unsigned rounds;     /* rounds of figures that must still end; the first of them may have begun earlier */
    bool notice;         /* the notice must still be written */
};

static void put_ring_notice(struct figures *f)
{
    static const char name[] = "snapshot_none";
    const size_t length = f->l->notice == LEFTOVER_SNAPSHOT ? sizeof "snapshot" - 1 : sizeof name - 1;
    uint8_t *at = put16(put8(apart_begin(f->at, tick_now(), 0), ETW_T_ATOMTEXT), length);

    memcpy(at, name, length);
    at = put64(put8(put8(at + length, ETW_T_TUPLE0 + 2), ETW_T_INT64), f->l->from);
    f->at = apart_end(f->at, put64(put8(at, ETW_T_INT64), f->l->us), ETW_NOTICE);
    f->notice = false;
}

/* Fills a section with the next frames. Returns the bytes of the section, or 0 if no frames are left. */
static uint32_t next_figures(struct figures *f)
{
    f->at = f->begin + sizeof(struct etw_section);
    if (f->notice)
        put_ring_notice(f);
    while (f->rounds && f->at + FIGURES_FRAME < f->begin + FIGURES) {
        int64_t work = INT64_MAX;
        f->rounds -= figures_put(f->env, &work, &f->at) == ROWS_END;
        if (!f->rounds && f->l->waits)
            figures_put_waits(f->env, &f->at);
    }
    struct etw_section section = {.ring = ETW_META_RING, .seen = f->l->offered};
    section.bytes = (uint32_t)(f->at - f->begin) - (uint32_t)sizeof section;
    memcpy(f->begin, &section, sizeof section);
    return section.bytes ? (uint32_t)(f->at - f->begin) : 0;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static bool write_batch(int fd, const struct leftover *l, const struct batch_plan *plan)
{
    uint8_t *bytes = enif_alloc(plan->bytes);
    if (!bytes)
        return false;
    batch_write(l->batches, plan, bytes);
    bool ok = write_all(fd, bytes, plan->bytes);
    enif_free(bytes);
    return ok;
}

static void write_batches(int fd, const struct leftover *l, struct figures *f)
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    struct batch_plan plan;

    for (unsigned tries = 0; tries < TRIES;) {
        const uint32_t own = next_figures(f);
        const bool told = !l->figures || l->told();
        const struct batch_clock clock = l->clock();
        batch_plan(l->batches, &clock, tick_slack(), ETW_MAX_BATCH, f->begin, own, l->exact && !own && told, &plan);
        if (plan.wanted && !write_batch(fd, l, &plan))
            return;
        if (plan.flags & ETW_BATCH_LAST || (!l->exact && !plan.more && !own))
            return;
        if (plan.more || own)
            continue;
        f->rounds = !told;
        nanosleep(&pause, NULL);
        tries++;
    }
}

void leftover_send(const struct leftover *l)
{
    int fd = open_socket();
    if (fd < 0)
        return;
    struct figures f = {
        .l = l,
        .env = enif_alloc_env(),
        .begin = enif_alloc(FIGURES),
        .rounds = l->figures ? 2 : 0,
        .notice = l->notice != LEFTOVER_NONE,
    };
    if (f.env && f.begin && write_kept(fd))
        write_batches(fd, l, &f);
    if (f.begin)
        enif_free(f.begin);
    if (f.env)
        enif_free_env(f.env);
    close(fd);
}
