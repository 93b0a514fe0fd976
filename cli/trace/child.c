/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ground/carried.h"
#include "../ground/spawn.h"
#include "project.h"
#include "target.h"

#define SAID_MOST 2000
#define PATH_MOST 256 /* limit for the path of a file in the private directory, in bytes */
#define REST_READ 65536
#define REST_MOST (256u << 20) /* bytes of batches that a node may leave; more than all its rings have by default */
/* How long to wait, after the command has ended, until its node connects to send its last batches. */
#define REST_WAIT_MS 1000
#define REST_SILENT_MS 5000 /* how long to wait for more bytes of these batches */
#define LOOK_MS 20          /* interval between two searches for a node that is booting */

/*
 * The expression that a node evaluates first. It contains no single quote because it is in single quotes on erl's
 * command line. The node receives a length and then the directories of its project, and has these directories in its
 * code path while it is held. If etrace closes the connection at once, the node is not held. A node that cannot get a
 * name sends nothing. `epmd -daemon` ends before the epmd that it has started listens, so the node waits for that.
 */
static const char hold[] =
    "-eval 'catch begin "
    "P=os:getenv(\"ETRACE_HOLD\"),os:unsetenv(\"ETRACE_HOLD\"),"
    "[case os:getenv(\"ETRACE_\"++V) of false->os:unsetenv(\"ERL_\"++V);"
    "O->os:putenv(\"ERL_\"++V,O),os:unsetenv(\"ETRACE_\"++V) end||V<-[\"AFLAGS\",\"ZFLAGS\"]],"
    "{ok,S}=gen_tcp:connect({local,P},0,[binary,{active,false},{packet,4}]),"
    "{ok,L}=gen_tcp:recv(S,0),D=string:lexemes(unicode:characters_to_list(L),\":\"),ok=inet:setopts(S,[{packet,0}]),"
    "catch begin "
    "is_alive() orelse begin "
    "H=fun()->element(1,erl_epmd:names({127,0,0,1})) end,"
    "W=fun W(0)->ok;W(I)->H()=:=ok orelse begin timer:sleep(20),W(I-1) end end,"
    "case H() of ok->ok;_->"
    "Q=open_port({spawn_executable,os:getenv(\"BINDIR\")++\"/epmd\"},[{args,[\"-daemon\"]},exit_status]),"
    "receive {Q,{exit_status,0}}->W(250);{Q,_}->ok end end,"
    "application:set_env(kernel,inet_dist_use_interface,{127,0,0,1}),"
    "{ok,_}=net_kernel:start(list_to_atom(\"etrace_\"++os:getpid()++\"@127.0.0.1\"),#{name_domain=>longnames}) end,"
    "code:add_pathsz(D),"
    "gen_tcp:send(S,[atom_to_binary(node()),10,atom_to_binary(erlang:get_cookie()),10]),"
    "gen_tcp:recv(S,0) end,"
    "gen_tcp:close(S),code:del_paths(D) end.'";

/* ---- the directory and its socket ---- */

static void leave_file(const char *dir, const char *name)
{
    char path[PATH_MOST];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
}

static void leave_files(const char *dir)
{
    char module[100];

    for (const struct carried *c = carried; c->name; c++) { /* the sources of the demo, and what erl makes of them */
        leave_file(dir, c->name);
        const char *dot = strrchr(c->name, '.');
        if (dot && !strcmp(dot, ".erl")) {
            snprintf(module, sizeof module, "%.*s.beam", (int)(dot - c->name), c->name);
            leave_file(dir, module);
        }
    }
    leave_file(dir, "cookie");
    leave_file(dir, "node");
    leave_file(dir, "leftover");
    rmdir(dir);
}

/*
 * Returns true if a dead etrace has left the directory: our user owns it, it contains our socket, and no process holds
 * its lock. Takes the lock.
 */
static bool take_abandoned(int dir)
{
    struct stat st, node;

    return !fstat(dir, &st) && st.st_uid == geteuid() && !fstatat(dir, "node", &node, AT_SYMLINK_NOFOLLOW) &&
           S_ISSOCK(node.st_mode) && !flock(dir, LOCK_EX | LOCK_NB);
}

/* Removes the directories of killed etrace processes. */
static void remove_abandoned_dirs(const char *tmp)
{
    char pattern[PATH_MOST];
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s/etrace-??????", tmp);
    if (strpbrk(tmp, "*?[\\") || glob(pattern, GLOB_NOSORT, NULL, &found))
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        int dir = open(found.gl_pathv[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir >= 0 && take_abandoned(dir))
            leave_files(found.gl_pathv[i]);
        if (dir >= 0)
            close(dir);
    }
    globfree(&found);
}

/* The child whose directory exists. child_panic() needs it. */
static struct child *made;

static bool make_dir(struct child *c, struct err *e)
{
    const char *tmp = getenv("TMPDIR");

    /* the path of a socket has at most 107 bytes */
    tmp = tmp && *tmp == '/' && strlen(tmp) < 60 ? tmp : "/tmp";
    remove_abandoned_dirs(tmp);
    snprintf(c->dir, sizeof c->dir, "%s/etrace-XXXXXX", tmp);
    if (mkdtemp(c->dir)) {
        made = c;
        c->lock = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (c->lock >= 0)
            flock(c->lock, LOCK_EX);
        return true;
    }
    c->dir[0] = 0;
    return err_set(e, ERR_RUN, "cannot make a directory in %s: %s", tmp, strerror(errno));
}

static void leave_dir(struct child *c)
{
    if (made != c)
        return;
    made = NULL;
    leave_files(c->dir);
    if (c->lock >= 0)
        close(c->lock);
}

static void no_fd(struct child *c, struct loop_fd *f)
{
    if (f->fd < 0)
        return;
    loop_remove(&c->ctx->loop, f);
    close(f->fd);
    f->fd = -1;
}

static void child_serve(struct child *c, struct loop_fd *f, int fd, void (*ready)(void *owner))
{
    *f = (struct loop_fd){.fd = fd, .want_read = true, .ready = ready, .owner = c};
    loop_add(&c->ctx->loop, f);
}

/* ---- the held node ---- */

static bool write_cookie(struct child *c, const char *cookie, size_t len)
{
    snprintf(c->cookie_file, sizeof c->cookie_file, "%s/cookie", c->dir);
    unlink(c->cookie_file);
    int fd = open(c->cookie_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = fd >= 0 && write(fd, cookie, len) == (ssize_t)len;

    if (fd >= 0)
        close(fd);
    return ok;
}

/*
 * Reads two lines from the held node: its name and its cookie. If they are malformed, warns that the node is not
 * traced.
 */
static void on_talk(void *owner)
{
    struct child *c = owner;
    ssize_t n = read(c->talk.fd, buf_room(&c->said, SAID_MOST), SAID_MOST);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    c->said.len += n > 0 ? (size_t)n : 0;
    const char *name = buf_cstr(&c->said), *end = strchr(name, '\n'), *last = end ? strchr(end + 1, '\n') : NULL;
    if (last && (size_t)(end - name) < sizeof c->node && write_cookie(c, end + 1, (size_t)(last - end) - 1))
        snprintf(c->node, sizeof c->node, "%.*s", (int)(end - name), name);
    else if (n > 0 && c->said.len < SAID_MOST)
        return;
    explicit_bzero(c->said.data, c->said.len);
    buf_clear(&c->said);
    if (c->node[0]) {
        loop_remove(&c->ctx->loop, &c->talk);
        return;
    }
    no_fd(c, &c->talk);
    ctx_warn(c->ctx,
             "a node of the command did not report its name and is not traced; it needs HOME for its cookie, and epmd");
    if (c->late)
        child_signal(c, SIGKILL); /* the node waits only for etrace and would never end */
}

/*
 * Sends the directories of the project to a node. Returns false if the node is gone. A single send suffices because the
 * socket buffer has room for all bytes.
 */
static bool send_paths(int fd, pid_t vm)
{
    struct buf b = {0};

    buf_add(&b, "\0\0\0\0", 4);
    project_paths(vm, &b);
    for (unsigned i = 0; i < 4; i++)
        b.data[i] = (char)((b.len - 4) >> 8 * (3 - i));
    bool sent = send(fd, b.data, b.len, MSG_NOSIGNAL) == (ssize_t)b.len;
    buf_release(&b);
    return sent;
}

/* Holds the first node. Closes the connections of later nodes, so that they go on at once. */
static void on_connection(void *owner)
{
    struct child *c = owner;
    struct ucred peer;
    socklen_t len = sizeof peer;
    int fd = accept4(c->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    bool ours = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
    if (!ours || c->talk.fd >= 0 || c->node[0]) {
        close(fd);
        if (ours && peer.pid != c->boot.vm)
            ctx_warn(c->ctx, "the command has started another node, which etrace does not trace");
        return;
    }
    if (send_paths(fd, peer.pid))
        child_serve(c, &c->talk, fd, on_talk);
    else
        close(fd);
}

/* Collects the batches that the node sends when it ends. The trace shows them after all events of the session. */
static void on_leftover(void *owner)
{
    struct child *c = owner;
    ssize_t n = read(c->rest.fd, buf_room(&c->leftover, REST_READ), REST_READ);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    c->leftover.len += n > 0 ? (size_t)n : 0;
    c->rest_until = loop_now() + REST_SILENT_MS;
    if (n <= 0 || c->leftover.len > REST_MOST)
        no_fd(c, &c->rest);
}

static void on_node_end(void *owner)
{
    struct child *c = owner;
    struct ucred peer;
    socklen_t len = sizeof peer;
    int fd = accept4(c->ends.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid()) {
        child_serve(c, &c->rest, fd, on_leftover);
        c->rest_until = loop_now() + REST_SILENT_MS;
        no_fd(c, &c->ends); /* only the traced node connects here */
    } else {
        close(fd);
    }
}

static bool listen_there(struct child *c, const char *name, struct loop_fd *listener, void (*ready)(void *owner),
                         struct err *e)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(sa.sun_path, sizeof sa.sun_path, "%.90s/%s", c->dir, name);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof sa) || listen(fd, 8)) {
        if (fd >= 0)
            close(fd);
        return err_set(e, ERR_RUN, "cannot listen in %s: %s", c->dir, strerror(errno));
    }
    child_serve(c, listener, fd, ready);
    return true;
}

/* ---- signals and the end of the command ---- */

void child_signal(struct child *c, int signal)
{
    if (c->pid > 0 && !c->ended)
        kill(c->pid, signal);
}

/*
 * Passes a signal on to the command, unless the kernel has sent the signal to the command, too. The keys of a terminal
 * signal the whole process group. The kernel sends a hangup to the session leader alone, so if etrace is the leader, it
 * passes the hangup on.
 */
static void pass_on(void *data, int signal, bool from_kernel)
{
    bool keys = signal == SIGINT || signal == SIGQUIT, hangup = signal == SIGHUP && getsid(0) != getpid();

    if (!from_kernel || !(keys || hangup))
        child_signal(data, signal);
}

static void on_end(void *owner)
{
    struct child *c = owner;
    int status;

    if (waitpid(c->pid, &status, WNOHANG) != c->pid)
        return;
    c->ended = true;
    c->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    no_fd(c, &c->end);
}

int child_wait(struct child *c)
{
    while (!c->ended)
        loop_step(&c->ctx->loop, -1);
    return c->status;
}

/*
 * A node that halts connects before it ends. A node that only loses its distribution connects when the companion
 * notices the loss.
 */
struct str child_leftover(struct child *c)
{
    /*
     * True if the command ended before the last loop_step(). That step has then served all connections from before the
     * end.
     */
    bool ended = false;

    if (c->rest.fd < 0)
        c->rest_until = loop_now() + REST_WAIT_MS;
    while ((c->rest.fd >= 0 || (c->ends.fd >= 0 && !ended)) && loop_now() < c->rest_until && !c->ctx->interrupts) {
        ended = c->ended;
        if (ended)
            ctx_pass_signals(c->ctx, NULL, NULL); /* no command is left to receive signals, so signals end this wait */
        loop_step(&c->ctx->loop, c->rest.fd < 0 && ended ? loop_now() : c->rest_until);
    }
    return buf_view(&c->leftover);
}

/*
 * Looks for a node that is booting, and holds it if its kernel waits (boot_hold.h). The caller repeats this until the
 * node is held, in this way or by the expression `hold`.
 */
static void look_for_boot(struct child *c)
{
    char mark[sizeof c->dir + 32];

    snprintf(mark, sizeof mark, "ETRACE_HOLD=%s/node", c->dir);
    if (!boot_hold_find(&c->boot, mark, c->pid))
        return;
    struct node_opts node = c->node_opts ? *c->node_opts : NODE_OPTS_INIT;
    struct target like;
    struct err ignored;
    node.cookie_file = NULL; /* the node's process has its cookie */
    if (target_init(&like, &node, NULL, &ignored) && boot_hold_try(&c->boot, &like.node))
        snprintf(c->node, sizeof c->node, "%s", c->boot.name);
    target_release(&like);
}

bool child_wait_node(struct child *c)
{
    while (!c->node[0] && !c->ended && !c->ctx->interrupts) {
        loop_step(&c->ctx->loop, c->boots ? loop_now() + LOOK_MS : -1);
        if (c->boots && !c->node[0] && c->talk.fd < 0)
            look_for_boot(c);
    }
    return c->node[0] && !c->ended;
}

void child_go(struct child *c)
{
    if (c->cookie_file[0] && !c->keeps_cookie)
        unlink(c->cookie_file);
    no_fd(c, &c->talk);
    boot_hold_go(&c->boot);
}

/* ---- the start of the command ---- */

static void set_environment(const struct child *c)
{
    const char *flags = getenv(c->late ? "ERL_ZFLAGS" : "ERL_AFLAGS");
    struct buf b = {0};

    buf_printf(&b, "%s/node", c->dir);
    setenv("ETRACE_HOLD", buf_cstr(&b), 1);
    if (flags)
        setenv(c->late ? "ETRACE_ZFLAGS" : "ETRACE_AFLAGS", flags, 1);
    buf_clear(&b);
    buf_printf(&b, "%s%s%s", hold, c->late ? " -eval " : "", c->late ? c->late : "");
    if (c->boots)
        buf_printf(&b, " %s", boot_hold_flags);
    if (c->unnamed)
        buf_printf(&b, " -name etrace_%ld@127.0.0.1 -kernel inet_dist_use_interface {127,0,0,1}", (long)getpid());
    buf_printf(&b, " %s", flags ? flags : "");
    setenv(c->late ? "ERL_ZFLAGS" : "ERL_AFLAGS", buf_cstr(&b), 1);
}

struct becoming {
    const struct child *child;
    pid_t parent;
};

/* Runs in the new process before the command replaces it. */
static void prepare_program(void *data)
{
    const struct becoming *b = data;

    made = NULL; /* the directory belongs to the parent */
    if (b->child->late)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* kill this node when etrace ends, even if etrace itself is killed */
    if (b->child->late && getppid() != b->parent)
        _exit(127);
    set_environment(b->child);
    if (b->child->late)
        /* This node belongs to etrace, whose standard output carries the events. */
        dup2(STDERR_FILENO, STDOUT_FILENO);
}

bool child_init(struct child *c, struct ctx *ctx, struct err *e)
{
    ctx->leaves = true;
    *c = (struct child){.ctx = ctx,
                        .lock = -1,
                        .listener.fd = -1,
                        .talk.fd = -1,
                        .end.fd = -1,
                        .ends.fd = -1,
                        .rest.fd = -1};
    if (!make_dir(c, e))
        return false;
    snprintf(c->rest_path, sizeof c->rest_path, "%s/leftover", c->dir);
    return listen_there(c, "node", &c->listener, on_connection, e) &&
           listen_there(c, "leftover", &c->ends, on_node_end, e);
}

bool child_start(struct child *c, char **argv, struct err *e)
{
    struct becoming b = {c, getpid()};

    c->boots = !c->late && boot_hold_fits(argv, &c->unnamed);
    const int error = spawn_program(argv, prepare_program, &b, &c->pid);
    if (error) {
        c->ended = true;
        c->status = 127;
        return err_set(e, ERR_USAGE, "cannot start %s: %s", argv[0], strerror(error));
    }
    const int fd = spawn_end(c->pid);
    if (fd < 0)
        return err_set(e, ERR_RUN, "cannot wait for the end of a command: %s", strerror(errno));
    child_serve(c, &c->end, fd, on_end);
    ctx_pass_signals(c->ctx, pass_on, c);
    return true;
}

void child_release(struct child *c)
{
    child_go(c);
    no_fd(c, &c->listener);
    no_fd(c, &c->end);
    no_fd(c, &c->ends);
    no_fd(c, &c->rest);
    buf_release(&c->said);
    buf_release(&c->leftover);
    ctx_pass_signals(c->ctx, NULL, NULL);
    leave_dir(c);
}

void child_panic(void)
{
    if (!made)
        return;
    if (made->late)
        child_signal(made, SIGKILL); /* nothing else would end this node */
    leave_dir(made);
}
