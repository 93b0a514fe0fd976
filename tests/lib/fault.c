/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Injects faults into etrace or a node through LD_PRELOAD. The environment variable FAULT selects one:
 *
 *   memory:N    the N-th allocation fails
 *   nomemory:N  the N-th and every later allocation fail
 *   kill:N      the process kills itself (SIGKILL) at its N-th network call: connect, send, recv or poll
 *   eintr       half of the network calls fail with EINTR, in an order that no loop repeats
 *   clock:N     each reading of the wall clock is off by N seconds, forward and backward in turns
 *   hang        open() and stat() of a path with /hangs/ in it never return
 *   reset       a write to standard output fails with ECONNRESET, as on a remote file system that is gone
 *   late        close() of a file that is open for writing fails with EDQUOT; no write fails before
 *   lookup      a lookup of a host name raises a fault of the processor (SIGILL)
 *   count       nothing fails
 *
 * At its end the process writes to the file FAULT_COUNT: the numbers of allocations and of network calls, its peak
 * resident memory in KiB, and whether it could have dumped core (1 or 0).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

static enum { NOTHING, MEMORY, NOMEMORY, KILL, INTERRUPT, CLOCK, HANG, RESET, LATE, LOOKUP } fault;
static long nth;
static atomic_long allocations, calls, readings;
static bool ready;
/* This thread is in the C library's resolver. Another model of thread-local storage would allocate. */
static __thread __attribute__((tls_model("initial-exec"))) bool resolving;

__attribute__((constructor)) static void begin(void)
{
    static const char *const names[] = {"count", "memory", "nomemory", "kill", "eintr",
                                        "clock", "hang",   "reset",    "late", "lookup"};
    const char *text = getenv("FAULT");

    for (int i = 0; text && i < 10; i++) {
        size_t len = strlen(names[i]);
        if (!strncmp(text, names[i], len) && (!text[len] || text[len] == ':')) {
            fault = i;
            nth = text[len] ? atol(text + len + 1) : 0;
        }
    }
    ready = true;
}

/* The largest resident size in kB. The one of getrusage() survives execve(): it can be that of the parent. */
static long most_memory(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);

    close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strstr(text, "VmHWM:");
    return at ? atol(at + 6) : -1;
}

__attribute__((destructor)) static void end(void)
{
    const char *file = getenv("FAULT_COUNT");
    char text[128];
    int fd = file ? open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;

    ready = false;
    if (fd < 0)
        return;
    int n = snprintf(text, sizeof text, "%ld %ld %ld %d\n", (long)allocations, (long)calls, most_memory(),
                     prctl(PR_GET_DUMPABLE));
    if (write(fd, text, (size_t)n) != n)
        _exit(99);
    close(fd);
}

static bool fails(void)
{
    long n;

    if (!ready || resolving)
        return false;
    n = ++allocations;
    if ((fault == MEMORY && n == nth) || (fault == NOMEMORY && n >= nth)) {
        errno = ENOMEM;
        return true;
    }
    return false;
}

void *malloc(size_t n)
{
    return fails() ? NULL : __libc_malloc(n);
}
void *calloc(size_t n, size_t each)
{
    return fails() ? NULL : __libc_calloc(n, each);
}
void *realloc(void *old, size_t n)
{
    return fails() ? NULL : __libc_realloc(old, n);
}

static bool interrupted(void)
{
    long n = ++calls;

    if (fault == KILL && n == nth)
        kill(getpid(), SIGKILL);
    if (fault != INTERRUPT || (uint32_t)n * UINT32_C(2654435761) >> 31)
        return false;
    errno = EINTR;
    return true;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t send(int fd, const void *b, size_t n, int flags)
{
    return interrupted() ? -1 : REAL(send)(fd, b, n, flags);
}
ssize_t recv(int fd, void *b, size_t n, int flags)
{
    return interrupted() ? -1 : REAL(recv)(fd, b, n, flags);
}
int poll(struct pollfd *p, nfds_t n, int ms)
{
    return interrupted() ? -1 : REAL(poll)(p, n, ms);
}

int connect(int fd, const struct sockaddr *to, socklen_t len)
{
    /* POSIX continues an interrupted connect in the background, so failing it would be a different fault */
    interrupted();
    return REAL(connect)(fd, to, len);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int status = REAL(clock_gettime)(clock, t);

    if (fault == CLOCK && clock == CLOCK_REALTIME)
        t->tv_sec += ++readings % 2 ? nth : -nth;
    return status;
}

ssize_t write(int fd, const void *b, size_t n)
{
    if (fault != RESET || fd != STDOUT_FILENO)
        return REAL(write)(fd, b, n);
    errno = ECONNRESET;
    return -1;
}

int close(int fd)
{
    struct stat st;
    bool late = fault == LATE && !fstat(fd, &st) && S_ISREG(st.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    int result = REAL(close)(fd);

    if (!late)
        return result;
    errno = EDQUOT;
    return -1;
}

/*
 * A lookup counts as one allocation. Those inside of it do not fail: without memory for nsswitch.conf the C library
 * dereferences a null pointer, or aborts.
 */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    if (fault == LOOKUP && !(hints->ai_flags & AI_NUMERICHOST))
        __builtin_trap();
    if (fails())
        return EAI_MEMORY;
    resolving = true;
    int error = REAL(getaddrinfo)(host, service, hints, ret);
    resolving = false;
    return error;
}

/* The headers define these names as macros or with other types, so use asm labels; only the path matters here. */
static void answer(const char *path)
{
    while (fault == HANG && strstr(path, "/hangs/"))
        pause();
}

int etrace_open(const char *path, int flags, unsigned mode) __asm__("open");
int etrace_open64(const char *path, int flags, unsigned mode) __asm__("open64");
int etrace_open64_2(const char *path, int flags) __asm__("__open64_2");
int etrace_stat(const char *path, void *st) __asm__("stat");
int etrace_stat64(const char *path, void *st) __asm__("stat64");

int etrace_open(const char *path, int flags, unsigned mode)
{
    answer(path);
    return ((int (*)(const char *, int, unsigned))dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}

int etrace_open64(const char *path, int flags, unsigned mode)
{
    answer(path);
    return ((int (*)(const char *, int, unsigned))dlsym(RTLD_NEXT, "open64"))(path, flags, mode);
}

int etrace_open64_2(const char *path, int flags)
{
    return etrace_open64(path, flags, 0);
}

int etrace_stat(const char *path, void *st)
{
    answer(path);
    return ((int (*)(const char *, void *))dlsym(RTLD_NEXT, "stat"))(path, st);
}

int etrace_stat64(const char *path, void *st)
{
    answer(path);
    return ((int (*)(const char *, void *))dlsym(RTLD_NEXT, "stat64"))(path, st);
}
