/* SPDX-License-Identifier: Apache-2.0 */
#include "ssh.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "../ground/command_line.h"
#include "../ground/mem.h"
#include "../ground/proc_text.h"
#include "../ground/spawn.h"
#include "../ground/thread.h"
#include "../ground/utf8.h"

#define SHELL_MS 10000 /* time limit of a command in the shell of the other host */
#define LOOK_MS 200    /* interval between two checks whether ssh has logged in */
#define LEAVE_MS 1000  /* time in which ssh may end by itself before it is killed */
/* Silence of ssh after which its messages are printed: ssh goes on, so they do not explain a failure. */
#define PASS_ON_MS 1000
#define END_MS 50      /* time in which ssh may end after its connection has ended */
#define END_AGAIN 1000 /* time after which ssh_report_end() may wait again for END_MS */
#define SAID_MOST 4096
#define SHELL_NOISE 65536 /* most bytes that the start files of the shell may print */

struct ssh {
    char *host;
    /* The first ssh, which leads a process group with its ProxyJump or ProxyCommand; 0: no ssh runs. */
    _Atomic pid_t pid;
    int fd, said_fd; /* the shell's input and output; the messages of ssh */
    /* Path of the control socket; shorter than sun_path, because ssh appends 17 characters while it makes it. */
    char control[104];
    char mark[33];   /* a random word that ends each answer of the shell */
    bool ready;      /* the shell has answered */
    int64_t awaited; /* net_now() time of the last wait of ssh_report_end() */
    struct buf said; /* the last messages of ssh */
    pid_t *others;   /* the ssh processes of the connections */
    size_t nothers, cap;
};

/* The terminal. It belongs to ssh while ssh logs in: ssh asks for passwords on it, and Ctrl-C ends ssh. */
struct ssh_tty {
    int fd; /* -1: no terminal, or this program is in the background */
    struct termios before;
};

static pthread_mutex_t ssh_lock = PTHREAD_MUTEX_INITIALIZER; /* guards ssh_one while a thread uses it */
static struct ssh ssh_one = {.fd = -1, .said_fd = -1};
static struct ssh_tty ssh_tty = {.fd = -1};
static bool ssh_logged_in_once, ssh_batch;
static atomic_bool ssh_over; /* this program ends, so no other ssh may start */

bool ssh_check(const char *host, struct err *e)
{
    for (const char *c = host; *c; c++)
        if (*c == ' ' || iscntrl((unsigned char)*c))
            return err_set(e, ERR_USAGE, "--ssh takes [USER@]HOST, or a name of ~/.ssh/config");
    if (!*host || *host == '-' || strlen(host) > 255)
        return err_set(e, ERR_USAGE, "--ssh takes [USER@]HOST, or a name of ~/.ssh/config, not '%.80s'", host);
    return true;
}

const char *ssh_host(const struct ssh *s)
{
    return s->host;
}

/* ---- the terminal ---- */

static void ssh_take_terminal(void)
{
    const int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

    if (fd >= 0 && tcgetpgrp(fd) == getpgrp() && !tcgetattr(fd, &ssh_tty.before))
        ssh_tty.fd = fd;
    else if (fd >= 0)
        close(fd);
}

/* Takes the terminal back from ssh and restores its settings, because ssh may have ended at a question without echo. */
static void ssh_give_back_terminal(void)
{
    sigset_t out, before;

    if (ssh_tty.fd < 0)
        return;
    sigemptyset(&out);
    sigaddset(&out, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &out, &before);
    tcsetpgrp(ssh_tty.fd, getpgrp());
    tcsetattr(ssh_tty.fd, TCSADRAIN, &ssh_tty.before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ssh_tty.fd);
    ssh_tty.fd = -1;
}

/* ---- programs ---- */

/* The descriptors of a new program. */
struct ssh_pipes {
    int in, out, err;
    bool session; /* give the program a session of its own, in which it cannot use the terminal */
};

/* Runs in the new process, before the program. */
static void ssh_prepare(void *data)
{
    const struct ssh_pipes *p = data;

    if (p->session)
        setsid();
    else
        setpgid(0, 0);
    if (!p->session && ssh_tty.fd >= 0) {
        signal(SIGTTOU, SIG_IGN);
        tcsetpgrp(ssh_tty.fd, getpid());
        signal(SIGTTOU, SIG_DFL);
        signal(SIGTSTP, SIG_IGN); /* no shell would continue a stopped ssh */
    }
    dup2(p->in, STDIN_FILENO);
    dup2(p->out, STDOUT_FILENO);
    dup2(p->err, STDERR_FILENO);
}

static void ssh_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/*
 * Chooses a random mark and a path for the control socket. Skips directories whose names ssh would expand, or would
 * reject as too long.
 */
static bool ssh_control_path(struct ssh *s)
{
    const char *dirs[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-";
    uint64_t random[3];

    if (getrandom(random, sizeof random, 0) != sizeof random)
        return false;
    snprintf(s->mark, sizeof s->mark, "%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        const char *dir = dirs[i];
        if (!dir || *dir != '/' || strlen(dir) > 58 || dir[strspn(dir, plain)] || access(dir, W_OK | X_OK))
            continue;
        snprintf(s->control, sizeof s->control, "%.58s/etrace-ssh-%016llx", dir, (unsigned long long)random[2]);
        return true;
    }
    return false;
}

/* ---- the messages of ssh ---- */

static void ssh_hear(struct ssh *s)
{
    char bytes[1024];
    ssize_t n;

    while (s->said_fd >= 0 && (n = read(s->said_fd, bytes, sizeof bytes)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        buf_add(&s->said, bytes, (size_t)n);
        if (s->said.len > SAID_MOST) {
            memmove(s->said.data, s->said.data + s->said.len - SAID_MOST, SAID_MOST);
            s->said.len = SAID_MOST;
        }
    }
}

/*
 * Copies the last message of ssh that may name a cause, without the prefix "ssh: ". Copies an empty text if there is
 * none.
 */
static void ssh_last_line(struct ssh *s, char *ret, size_t size)
{
    const char *text = buf_cstr(&s->said), *at = text + strlen(text), *end;

    *ret = 0;
    do {
        while (at > text && strchr("\r\n ", at[-1]))
            at--;
        end = at;
        while (at > text && at[-1] != '\n')
            at--;
    } while (at > text && (!strncmp(at, "Connection closed", 17) || !strncmp(at, "kex_", 4)));
    if (!strncmp(at, "ssh: ", 5) && end - at > 5)
        at += 5;
    snprintf(ret, size, "%.*s", (int)MIN((size_t)(end - at), size - 1), at);
    utf8_make_safe(ret);
}

/*
 * Prints and clears the messages of ssh, such as the address of a page to visit, or a request to touch a key. The
 * caller first waits for PASS_ON_MS, because the last message of an ssh that ends is for ssh_failed().
 */
static void ssh_pass_on(struct ssh *s)
{
    const char *text = buf_cstr(&s->said);
    char line[400];

    for (size_t len; ssh_tty.fd >= 0 && *text; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)MIN(strcspn(text, "\r\n"), sizeof line - 1), text);
        utf8_make_safe(line);
        if (*line)
            dprintf(STDERR_FILENO, "ssh: %s\n", line);
    }
    buf_clear(&s->said);
}

/* ---- what the shell prints ---- */

/* Appends bytes that the shell has printed. Returns false at the end of its output. */
static bool ssh_read_some(struct ssh *s, struct buf *b)
{
    const ssize_t n = recv(s->fd, buf_room(b, 4096), 4096, MSG_DONTWAIT);

    b->len += n > 0 ? (size_t)n : 0;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/*
 * Returns the end of the shell's answer, which is where the line with the mark begins. Returns NULL if the answer has
 * not ended.
 */
static const char *ssh_marked(const struct ssh *s, const struct buf *b)
{
    char line[sizeof s->mark + 2];
    const size_t len = (size_t)snprintf(line, sizeof line, "\n%s\n", s->mark);

    return b->len < len || memcmp(b->data + b->len - len, line, len) ? NULL : b->data + b->len - len;
}

static bool ssh_is_over(const struct ssh *s, int ms)
{
    struct pollfd p = {.fd = s->fd};

    return s->fd < 0 || (poll(&p, 1, ms) > 0 && (p.revents & (POLLHUP | POLLERR)));
}

/* ---- the end of programs ---- */

static bool ssh_ends(pid_t pid, int64_t ms, int *ret_status)
{
    for (int64_t end = net_now() + ms;; poll(NULL, 0, 5)) {
        const pid_t got = waitpid(pid, ret_status, WNOHANG);
        if (got > 0 || (got < 0 && errno != EINTR))
            return true;
        if (net_now() >= end)
            return false;
    }
}

/* Ends the first ssh: closes its input, then sends SIGTERM, then SIGKILL. Returns its exit status. */
static int ssh_stop(struct ssh *s)
{
    const pid_t pid = atomic_exchange(&s->pid, 0);
    int status = 0;

    ssh_close(&s->fd);
    if (!pid)
        return 0;
    if (!ssh_ends(pid, s->ready ? LEAVE_MS : 0, &status)) {
        kill(-pid, SIGTERM);
        if (!ssh_ends(pid, LEAVE_MS, &status)) {
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
        }
    }
    kill(-pid, SIGTERM); /* the program of ProxyCommand may still run */
    unlink(s->control);  /* ssh leaves the socket behind if it was killed */
    ssh_hear(s);
    ssh_close(&s->said_fd);
    s->ready = false;
    return status;
}

/*
 * Removes the connections whose ssh has ended. If `all` is true, first sends SIGTERM to each ssh and waits for its end.
 */
static void ssh_reap_others(struct ssh *s, bool all)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->nothers; i++) {
        if (all)
            kill(s->others[i], SIGTERM);
        if (!ssh_ends(s->others[i], all ? LEAVE_MS : 0, &(int){0}))
            s->others[kept++] = s->others[i];
    }
    s->nothers = kept;
}

/* ---- logging in ---- */

static int ssh_start(struct ssh *s)
{
    int shell[2], said[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, shell))
        return errno;
    if (pipe2(said, O_CLOEXEC)) {
        close(shell[0]), close(shell[1]);
        return errno;
    }
    fcntl(said[0], F_SETFL, O_NONBLOCK);
    if (!ssh_logged_in_once)
        ssh_take_terminal(); /* only now: a later login would ask in the middle of a trace */
    char *const all[] = {"ssh",
                         "-T",
                         "-a",
                         "-x",
                         "-S",
                         s->control,
                         "-oControlMaster=yes",
                         "-oControlPersist=no",
                         "-oClearAllForwardings=yes",
                         "-oRemoteCommand=none",
                         "-oPermitLocalCommand=no",
                         "-oLogLevel=INFO",
                         ssh_tty.fd >= 0 ? "-T" : "-oBatchMode=yes",
                         "--",
                         s->host,
                         "exec sh",
                         NULL};
    struct ssh_pipes pipes = {.in = shell[1], .out = shell[1], .err = said[1]};
    const int error = spawn_program((char **)all, ssh_prepare, &pipes, &pid);
    close(shell[1]);
    close(said[1]);
    if (error) {
        close(shell[0]), close(said[0]);
        ssh_give_back_terminal();
        return error;
    }
    setpgid(pid, pid);
    s->fd = shell[0];
    s->said_fd = said[0];
    atomic_store(&s->pid, pid);
    return 0;
}

static bool ssh_failed(struct ssh *s, int status, struct err *e)
{
    char line[300];

    ssh_last_line(s, line, sizeof line);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
        kill(getpid(), SIGINT); /* the user pressed Ctrl-C at a question of ssh, and means this program, too */
    if (*line)
        err_set(e, ERR_NODE, "ssh cannot log in to %.100s: %s", s->host, line);
    else if (WIFSIGNALED(status))
        err_set(e, ERR_NODE, "ssh cannot log in to %.100s: signal %d ended it", s->host, WTERMSIG(status));
    else
        err_set(e, ERR_NODE, "ssh cannot log in to %.100s: it ended with status %d", s->host, WEXITSTATUS(status));
    const bool denied = strstr(line, "Permission denied"), unknown = strstr(line, "Host key verification failed");
    if (ssh_batch && denied)
        err_hint(e, "without a terminal ssh cannot ask for a password: use a key, or ssh-agent");
    else if (unknown)
        command_line_hint(e, "ssh", s->host, ", typed in a terminal, shows the key of the host");
    e->refused = denied || unknown;
    return false;
}

static bool ssh_no_shell(struct ssh *s, const char *what, struct err *e)
{
    err_set(e, ERR_NODE, "ssh logs in to %.100s, but %s", s->host, what);
    err_hint(e, "the user there needs a shell that runs \"exec sh\"");
    e->refused = true;
    return false;
}

/* Waits until the shell has printed the mark. Drops the output of start files before the mark. */
static bool ssh_await_shell(struct ssh *s, struct err *e)
{
    struct buf heard = {0};
    int64_t logged_in = 0, spoke = net_now();
    bool ended = false, found = false;

    while (!ended && !found) {
        struct pollfd fds[] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->said_fd, .events = POLLIN}};
        if (poll(fds, 2, LOOK_MS) > 0 && (fds[1].revents & POLLIN))
            spoke = net_now();
        ssh_hear(s);
        ended = (fds[0].revents && !ssh_read_some(s, &heard)) || heard.len > SHELL_NOISE;
        found = ssh_marked(s, &heard) != NULL;
        if (!logged_in && !access(s->control, F_OK))
            logged_in = net_now();
        if (net_now() > spoke + PASS_ON_MS && s->said.len)
            ssh_pass_on(s);
        if (logged_in && !found && net_now() > logged_in + SHELL_MS)
            break;
    }
    buf_release(&heard);
    if (found)
        return true;
    const int status = ssh_stop(s);
    /* ssh itself fails with status 255. Another status is from the command on the other host. */
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) != 255)
        return ssh_no_shell(s, "no shell starts there", e);
    return logged_in ? ssh_no_shell(s, "its shell does not answer", e) : ssh_failed(s, status, e);
}

static bool ssh_log_in(struct ssh *s, struct err *e)
{
    char hello[100];

    if (!ssh_control_path(s))
        return err_set(e, ERR_RUN, "--ssh needs a writable directory for a socket: $XDG_RUNTIME_DIR, $TMPDIR or /tmp");
    buf_clear(&s->said);
    const int error = ssh_start(s);
    if (error == ENOENT)
        return err_set(e, ERR_RUN, "--ssh needs the program ssh, which is not installed here");
    if (error)
        return err_set(e, ERR_RUN, "cannot run ssh: %s", strerror(error));
    ssh_batch = ssh_tty.fd < 0;
    snprintf(hello, sizeof hello, "exec 2>/dev/null; printf '\\n%%s\\n' %s\n", s->mark);
    net_write(s->fd, hello, strlen(hello), net_now() + SHELL_MS);
    s->ready = ssh_await_shell(s, e);
    ssh_give_back_terminal();
    ssh_logged_in_once |= s->ready;
    return s->ready;
}

struct ssh *ssh_open(const char *host, struct err *e)
{
    struct ssh *s = &ssh_one;

    pthread_mutex_lock(&ssh_lock);
    if (atomic_load(&ssh_over)) {
        pthread_mutex_unlock(&ssh_lock);
        err_set(e, ERR_NODE, "interrupted");
        return NULL;
    }
    if (s->pid && (strcmp(s->host, host) != 0 || ssh_is_over(s, 0)))
        ssh_stop(s);
    bool ok = s->pid;
    if (!ok) {
        free(s->host);
        s->host = mem_strndup(host, strlen(host));
        ok = ssh_log_in(s, e);
    }
    pthread_mutex_unlock(&ssh_lock);
    return ok ? s : NULL;
}

/* ---- the shell ---- */

static bool ssh_report_lost(struct ssh *s, enum err_status status, struct err *e)
{
    char line[300];

    ssh_hear(s);
    ssh_last_line(s, line, sizeof line);
    return err_set(e, status, "ssh to %.100s has ended%s%s", s->host, *line ? ": " : "", line);
}

bool ssh_report_end(struct ssh *s, struct err *e)
{
    if (pthread_mutex_trylock(&ssh_lock)) /* another thread is using the shell */
        return false;
    const int64_t now = net_now();
    const bool waits = now - s->awaited >= END_AGAIN;
    const bool ended = ssh_is_over(s, waits ? END_MS : 0);
    s->awaited = waits ? now : s->awaited;
    if (ended)
        ssh_report_lost(s, ERR_RUN, e);
    pthread_mutex_unlock(&ssh_lock);
    return ended;
}

bool ssh_ask(struct ssh *s, const char *commands, size_t most, struct buf *ret, struct err *e)
{
    struct buf ask = {0};
    const char *end = NULL;
    const int64_t deadline = net_now() + SHELL_MS;

    pthread_mutex_lock(&ssh_lock);
    buf_printf(&ask, "{ %s\n} </dev/null; printf '\\n%%s\\n' %s\n", commands, s->mark);
    buf_clear(ret);
    buf_room(ret, most + 1024); /* all room at once: growing the buffer would leave copies of secrets behind */
    enum net_status status = s->fd < 0 ? NET_CLOSED : net_write(s->fd, ask.data, ask.len, deadline);
    while (status == NET_OK && !(end = ssh_marked(s, ret)) && ret->len <= most + sizeof s->mark) {
        status = net_wait(s->fd, POLLIN, deadline);
        if (status == NET_OK && !ssh_read_some(s, ret))
            status = NET_CLOSED;
        ssh_hear(s);
    }
    buf_release(&ask);
    bool ok = end != NULL;
    if (ok) {
        ret->len = (size_t)(end - ret->data);
        ret->data[ret->len] = 0;
    } else if (status == NET_OK) { /* or else the rest of this answer would be taken for the next answer */
        ssh_stop(s);
        err_set(e, ERR_NODE, "the shell on %.100s answers with more than %zu bytes", s->host, most);
    } else if (status == NET_TIMEOUT) {
        ssh_stop(s);
        err_set(e, ERR_NODE, "the shell on %.100s does not answer", s->host);
    } else {
        ssh_report_lost(s, ERR_NODE, e);
        ssh_stop(s);
    }
    pthread_mutex_unlock(&ssh_lock);
    return ok;
}

static bool ssh_look_by(struct ssh *s, const char *script, struct ssh_look *ret, struct err *e)
{
    struct buf text = {0};

    bool ok =
        ssh_ask(s, script, SSH_LOOK_MOST, &text, e) &&
        (ssh_look_read(text.data, text.len, ret) ||
         err_set(e, ERR_NODE, "the shell on %.100s cannot list its processes: it needs the tools of a Linux", s->host));
    proc_wipe(&text);
    return ok;
}

bool ssh_look(struct ssh *s, struct ssh_look *ret, struct err *e)
{
    return ssh_look_by(s, ssh_look_script, ret, e);
}

bool ssh_look_sockets(struct ssh *s, struct ssh_look *ret, struct err *e)
{
    return ssh_look_by(s, ssh_look_sockets_script, ret, e);
}

/* ---- connections ---- */

enum net_status ssh_connect(struct ssh *s, const char *address, int port, int *ret_fd)
{
    char to[100];
    int ends[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid_t pid;

    if (null < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        ssh_close(&null);
        return NET_FAILED;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    snprintf(to, sizeof to, "%s:%d", address, port);
    pthread_mutex_lock(&ssh_lock);
    buf_clear(&s->said);
    /*
     * If the first ssh has ended, this ssh must not log in by itself. Therefore its ProxyCommand is a program that
     * fails.
     */
    char *const all[] = {"ssh",
                         "-F",
                         "/dev/null",
                         "-S",
                         s->control,
                         "-oControlMaster=no",
                         "-oProxyCommand=false",
                         "-oBatchMode=yes",
                         "-oLogLevel=QUIET",
                         "-T",
                         "-W",
                         to,
                         "--",
                         s->host,
                         NULL};
    struct ssh_pipes pipes = {.in = ends[1], .out = ends[1], .err = null, .session = true};
    const int error = s->pid ? spawn_program((char **)all, ssh_prepare, &pipes, &pid) : ESRCH;
    ssh_reap_others(s, false);
    if (!error) {
        s->others = mem_grow(s->others, &s->cap, s->nothers + 1, sizeof *s->others);
        s->others[s->nothers++] = pid;
    }
    pthread_mutex_unlock(&ssh_lock);
    close(null);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return error == ESRCH ? NET_UNREACHABLE : NET_FAILED;
    }
    *ret_fd = ends[0];
    return NET_OK;
}

bool ssh_denied(struct ssh *s, char *ret, size_t size)
{
    static const char failed[] = "open failed: ";

    pthread_mutex_lock(&ssh_lock);
    ssh_hear(s);
    const char *text = buf_cstr(&s->said), *at = strstr(text, failed);
    if (at) {
        at += strlen(failed);
        snprintf(ret, size, "%.*s", (int)strcspn(at, "\r\n"), at);
        utf8_make_safe(ret);
    }
    pthread_mutex_unlock(&ssh_lock);
    return at != NULL;
}

void ssh_denied_error(const struct ssh *s, int port, const char *why, struct err *e)
{
    err_set(e, ERR_NODE, "sshd on %.100s does not connect to port %d: %.150s", s->host, port, why);
    if (strstr(why, "prohibited"))
        err_hint(e, "AllowTcpForwarding and PermitOpen of its sshd_config, and the options of the key, decide that");
}

void ssh_end(void)
{
    struct ssh *s = &ssh_one;
    struct timespec until;

    atomic_store(&ssh_over, true);
    if (pthread_mutex_trylock(&ssh_lock)) {
        /* Another thread holds the lock and waits for ssh. End that ssh, so that the thread releases the lock. */
        const pid_t pid = atomic_load(&s->pid);
        if (pid)
            kill(-pid, SIGTERM);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 2 * LEAVE_MS / 1000;
        if (pthread_mutex_timedlock(&ssh_lock, &until)) {
            if (pid)
                kill(-pid, SIGKILL);
            ssh_give_back_terminal();
            return;
        }
    }
    ssh_reap_others(s, false);
    ssh_stop(s);
    ssh_reap_others(s, true);
    ssh_give_back_terminal();
    free(s->others);
    free(s->host);
    buf_release(&s->said);
    pthread_mutex_unlock(&ssh_lock);
}
