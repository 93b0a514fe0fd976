/* A session with a node that is played here, at a time that is told here. */
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../nif/etrace_wire.h"
#include "erlang/etf_write.h"
#include "node/companion.h"
#include "node/session.h"
#include "tap.h"

/* What is sent in the beginning does not matter here. */
const struct companion companion = {
    .beam = (const unsigned char *)"", .so = (const unsigned char *)"",
    .janitor = (const unsigned char *)"\203h\002jj", .janitor_len = 5,
    .ask = (const unsigned char *)"\203h\002jj", .ask_len = 5,
    .sweep = (const unsigned char *)"\203h\002jj", .sweep_len = 5,
};

static int64_t now_ms = 1000000;

int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    (void)id;
    *ret = (struct timespec){.tv_sec = now_ms / 1000, .tv_nsec = now_ms % 1000 * 1000000};
    return 0;
}

#define SIZE 1024u
#define LEAST ((128 << 10) + 2 * SIZE)

struct node {
    int fd; /* the node's end */
    struct session *session;
    uint64_t seq;
    int64_t credit, pulls; /* of the latest pull; how many there were */
};

/* ---- the node's part ---- */

static void say(struct node *n, struct str bytes)
{
    struct buf b = {0};
    struct err e;

    buf_add(&b, "\0\0\0\0p", 5);
    etf_version(&b);
    etf_tuple(&b, 3);
    etf_int(&b, 2); /* SEND */
    etf_atomz(&b, "");
    etf_pid(&b, STR("us@here"), 7, 0, 3);
    etf_version(&b);
    etf_bin(&b, bytes.at, bytes.len);
    for (unsigned i = 0; i < 4; i++)
        b.data[i] = (char)((b.len - 4) >> (24 - 8 * i));
    for (size_t at = 0; at < b.len;) {
        ssize_t sent = send(n->fd, b.data + at, b.len - at, MSG_DONTWAIT);
        at += sent > 0 ? (size_t)sent : 0;
        if (!session_on_readable(n->session, &e)) {
            printf("# %s\n", e.text);
            break;
        }
    }
    buf_release(&b);
}

static void say_hello(struct node *n)
{
    struct buf b = {0};

    buf_add(&b, "R\0\0\0\0", 5);
    etf_version(&b);
    etf_tuple(&b, 2);
    etf_atomz(&b, "ok");
    etf_map(&b, 1);
    etf_atomz(&b, "pid");
    etf_pid(&b, STR("shop@h1"), 99, 0, 5);
    say(n, buf_view(&b));
    buf_release(&b);
}

static void say_batch(struct node *n, uint32_t bytes, uint32_t flags)
{
    struct etw_batch head = {.magic = ETW_BATCH_MAGIC, .bytes = bytes, .seq = ++n->seq, .flags = flags};
    struct buf b = {0};

    buf_char(&b, ETW_MSG_BATCH);
    buf_add(&b, &head, sizeof head);
    while (b.len < bytes + 1)
        buf_char(&b, 0);
    say(n, buf_view(&b));
    buf_release(&b);
}

static void take_pull(struct node *n, const char *at, size_t len)
{
    struct etf r, control;
    struct str word;
    int64_t seq, credit;

    if (len && *at == 'p' && etf_open_version(&r, at + 1, len - 1) && etf_take(&r, &control) && r.at < r.end) {
        etf_open(&r, r.at + 1, (size_t)(r.end - r.at) - 1);
        if (etf_get_tuple(&r, 3) && etf_get_atom(&r, &word) && word.len == 4 && !memcmp(word.at, "pull", 4) && etf_get_int(&r, &seq) &&
            etf_get_int(&r, &credit)) {
            n->credit = credit;
            n->pulls++;
        }
    }
}

/* All that was sent to the node. */
static void hear(struct node *n)
{
    static char data[1 << 20];
    size_t len = 0, at = 0, size;
    ssize_t got;

    while ((got = recv(n->fd, data + len, sizeof data - len, MSG_DONTWAIT)) > 0)
        len += (size_t)got;
    while (len - at >= 4) {
        const unsigned char *u = (const unsigned char *)data + at;
        size = (size_t)u[0] << 24 | (size_t)u[1] << 16 | (size_t)u[2] << 8 | u[3];
        take_pull(n, data + at + 4, size);
        at += 4 + size;
    }
    if (at != len)
        printf("# half a frame of %zu bytes\n", len - at);
}

/* ---- a session with it ---- */

static void on_batch(void *data, const void *batch, size_t len)
{
    (void)data, (void)batch, (void)len;
}

static void on_reply(void *data, const struct session_reply *reply)
{
    (void)data, (void)reply;
}

static struct node begin(void)
{
    struct node n = {0};
    struct node_conn conn = {.node = "shop@h1", .self = {.node = "us@here", .id = 7, .creation = 3}};
    struct session_options options = {.size = SIZE};
    struct session_handlers handlers = {.batch = on_batch, .reply = on_reply};
    struct err e;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
        exit(1);
    conn.stream.fd = fds[0];
    n.fd = fds[1];
    n.session = session_open_on(&conn, &options, &handlers, &e);
    if (!n.session) {
        printf("# %s\n", e.text);
        exit(1);
    }
    hear(&n);
    return n;
}

static void end(struct node *n)
{
    session_close(n->session);
    close(n->fd);
}

/* One batch and MS later another one: what is pulled then. */
static int64_t credit_of(struct node *n, uint32_t bytes, int64_t ms)
{
    say_batch(n, SIZE, ETW_BATCH_MORE);
    now_ms += ms;
    say_batch(n, bytes, ETW_BATCH_MORE);
    hear(n);
    return n->credit;
}

static void the_credit_is_what_the_line_carries_in_a_second(void)
{
    struct node n = begin();

    say_hello(&n);
    hear(&n);
    is_number((int64_t)session_state(n.session), SESSION_READY, "ready");
    is_number(n.credit, 2 * LEAST, "credit in the beginning");
    is_number(credit_of(&n, 400000, 800), 500000, "of 400 kB in 800 ms");
    is_number(credit_of(&n, 400000, 2000), 200000, "of 400 kB in two seconds");
    is_number(credit_of(&n, 5000, 1000), LEAST, "of a line that carries less than there has to be room for");
    is_number(credit_of(&n, 400000, 0), ETW_MAX_CREDIT, "of one that takes no time");
    /* Of a line that had nothing more to carry nothing is known. */
    is_number(credit_of(&n, 400000, 800), 500000, "measured again");
    say_batch(&n, SIZE, 0);
    now_ms += 9000;
    say_batch(&n, 60000, ETW_BATCH_MORE);
    hear(&n);
    is_number(n.credit, 500000, "as before, behind a pause");
    end(&n);
}

/* The node says whom it waits for. */
static void say_waits(struct node *n, const char *whom)
{
    struct buf b = {0};

    buf_char(&b, ETW_MSG_WAITS);
    etf_version(&b);
    etf_atomz(&b, whom);
    say(n, buf_view(&b));
    buf_release(&b);
}

static void later(struct node *n, int64_t ms, const char *what)
{
    struct err e = {0};
    int64_t next;

    now_ms += ms;
    ok(session_tick(n->session, now_ms, &next, &e), "goes on: %s", what);
    if (*e.text)
        printf("# %s\n", e.text);
}

static void given_up(struct node *n, int64_t ms, const char *says)
{
    struct err e = {0};
    int64_t next;

    now_ms += ms;
    ok(!session_tick(n->session, now_ms, &next, &e), "given up");
    is_text(e.text, says, "what is said of it");
    end(n);
}

static void a_node_is_given_up_ten_seconds_after_its_last_step_and_a_slow_line_after_sixty(void)
{
    struct node n = begin();

    later(&n, 0, "all has been sent");
    later(&n, 9900, "nobody has answered");
    given_up(&n, 200, "shop@h1 accepts the connection, but its rex process does not answer for 10 seconds");

    n = begin();
    later(&n, 0, "all has been sent");
    say_waits(&n, "companion");
    later(&n, 59900, "rex has answered");
    given_up(&n, 200, "shop@h1 accepts the connection, but what it is sent has been on its way for 60 seconds");

    n = begin();
    say_waits(&n, "companion");
    later(&n, 40000, "rex has answered");
    say_waits(&n, "code_server");
    say_waits(&n, "companion"); /* of another process, which was later */
    later(&n, 9900, "the companion is there");
    given_up(&n, 200, "shop@h1 accepts the connection, but its code_server process does not answer for 10 seconds");

    n = begin();
    later(&n, 0, "all has been sent");
    say_waits(&n, "companion");
    say_waits(&n, "code_server");
    later(&n, 8000, "the companion is there");
    say_waits(&n, "code_server");
    later(&n, 1900, "said over and over");
    given_up(&n, 200, "shop@h1 accepts the connection, but its code_server process does not answer for 10 seconds");

    /* Who comes at the end of the minute has its ten seconds as everybody has. */
    n = begin();
    say_waits(&n, "companion");
    later(&n, 59900, "rex has answered");
    say_waits(&n, "code_server");
    later(&n, 9900, "the companion is there");
    say_waits(&n, "tracer");
    say_waits(&n, "code_server");
    later(&n, 9900, "the code server has answered");
    given_up(&n, 200, "shop@h1 accepts the connection, but its tracer process does not answer for 10 seconds");

    n = begin();
    say_waits(&n, "companion");
    later(&n, 50000, "rex has answered");
    say_waits(&n, "code_server");
    later(&n, 5000, "it is on its way up");
    say_hello(&n);
    is_number((int64_t)session_state(n.session), SESSION_READY, "ready after 55 seconds");
    end(&n);
}

int main(void)
{
    the_credit_is_what_the_line_carries_in_a_second();
    a_node_is_given_up_ten_seconds_after_its_last_step_and_a_slow_line_after_sixty();
    return tap_end();
}
