/* SPDX-License-Identifier: Apache-2.0 */
/* Tests a session. The test plays the node and sets the clock. */
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../nif/etrace_wire.h"
#include "erlang/etf_write.h"
#include "node/companion.h"
#include "node/session.h"
#include "tap.h"

/* An empty stand-in: the tests ignore the companion that the session sends. */
const struct companion companion = {
    .modules = {[COMPANION_WHOLE] = {.beam = (const unsigned char *)""}},
    .libraries = (const unsigned char *)"\203j",
    .libraries_len = 2,
    .architectures = "",
    .janitor = (const unsigned char *)"\203h\002jj",
    .janitor_len = 5,
    .ask = (const unsigned char *)"\203h\002jj",
    .ask_len = 5,
    .sweep = (const unsigned char *)"\203h\002jj",
    .sweep_len = 5,
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
    int fd; /* the node's end of the socket pair */
    struct session *session;
    uint64_t seq;
    int64_t credit, pulls; /* credit of the latest pull; number of pulls */
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
    struct raw word;
    int64_t seq, credit;

    if (len && *at == 'p' && etf_open_version(&r, at + 1, len - 1) && etf_take(&r, &control) && r.at < r.end) {
        etf_open(&r, r.at + 1, (size_t)(r.end - r.at) - 1);
        if (etf_get_tuple(&r, 3) && etf_get_atom(&r, &word) && raw_is(word, "pull") && etf_get_int(&r, &seq) &&
            etf_get_int(&r, &credit)) {
            n->credit = credit;
            n->pulls++;
        }
    }
}

/* Reads everything that the session has sent, and keeps the last pull. */
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
        printf("# an incomplete frame of %zu bytes\n", len - at);
}

/* ---- a session with the node ---- */

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
    n.session = session_open(&conn, &options, &handlers, &e);
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

/* Sends a batch, and another one MS later. Returns the credit of the session's next pull. */
static int64_t credit_of(struct node *n, uint32_t bytes, int64_t ms)
{
    say_batch(n, SIZE, ETW_BATCH_MORE);
    now_ms += ms;
    say_batch(n, bytes, ETW_BATCH_MORE);
    hear(n);
    return n->credit;
}

/* The credit is what the connection carries in a second. */
static void test_credit(void)
{
    struct node n = begin();

    say_hello(&n);
    hear(&n);
    is_number((int64_t)session_state(n.session), SESSION_READY, "the session is ready");
    is_number(n.credit, 2 * LEAST, "the first credit is twice the least");
    is_number(credit_of(&n, 400000, 800), 500000, "the credit after 400 kB in 800 ms");
    is_number(credit_of(&n, 400000, 2000), 200000, "the credit after 400 kB in two seconds");
    is_number(credit_of(&n, 5000, 1000), LEAST, "a slow connection has the least credit");
    is_number(credit_of(&n, 400000, 0), ETW_MAX_CREDIT, "a connection without delay has the greatest credit");
    /* A batch without ETW_BATCH_MORE does not measure the line: the node had nothing more to send. */
    is_number(credit_of(&n, 400000, 800), 500000, "the credit is measured again");
    say_batch(&n, SIZE, 0);
    now_ms += 9000;
    say_batch(&n, 60000, ETW_BATCH_MORE);
    hear(&n);
    is_number(n.credit, 500000, "a pause does not change the credit");
    end(&n);
}

/* The node reports the step that it waits for. */
static void say_waits(struct node *n, const char *whom)
{
    struct buf b = {0};

    buf_char(&b, ETW_MSG_WAITS);
    etf_version(&b);
    etf_atomz(&b, whom);
    say(n, buf_view(&b));
    buf_release(&b);
}

/* Moves the clock, and calls session_tick() whenever it is due. */
static bool pass(struct node *n, int64_t ms, struct err *e)
{
    int64_t until = now_ms + ms, next = until;
    bool good = session_tick(n->session, now_ms, &next, e);

    while (good && now_ms < until) {
        now_ms = MIN(MAX(next, now_ms + 1), until);
        good = session_tick(n->session, now_ms, &next, e);
    }
    return good;
}

static void later(struct node *n, int64_t ms, const char *what)
{
    struct err e = {0};

    ok(pass(n, ms, &e), "the session continues: %s", what);
    if (*e.text)
        printf("# %s\n", e.text);
}

static void given_up(struct node *n, int64_t ms, const char *says)
{
    struct err e = {0};

    ok(!pass(n, ms, &e), "the session gives up");
    is_text(e.text, says, "the error names the reason");
    end(n);
}

/*
 * The session gives up five seconds after its start, ten seconds after the last step of the node, and sixty seconds
 * after its start if the companion is still being sent.
 */
static void test_start_timeouts(void)
{
    struct node n = begin();

    later(&n, 0, "everything has been sent");
    later(&n, 4900, "rex has not answered yet");
    given_up(&n, 200, "shop@h1 accepts the connection, but its rex process does not answer for 5 seconds");

    n = begin();
    later(&n, 0, "everything has been sent");
    say_waits(&n, "companion");
    later(&n, 59900, "rex has answered");
    given_up(&n, 200, "shop@h1 accepts the connection, but has not read what etrace sent for 60 seconds");

    n = begin();
    say_waits(&n, "companion");
    later(&n, 40000, "rex has answered");
    say_waits(&n, "code_server");
    say_waits(&n, "companion"); /* an earlier step that arrives late, from another process */
    later(&n, 9900, "the companion has started");
    given_up(&n, 200, "shop@h1 accepts the connection, but its code_server process does not answer for 10 seconds");

    n = begin();
    later(&n, 0, "everything has been sent");
    say_waits(&n, "companion");
    say_waits(&n, "code_server");
    later(&n, 8000, "the companion has started");
    say_waits(&n, "code_server");
    later(&n, 1900, "the node reports the same step again");
    given_up(&n, 200, "shop@h1 accepts the connection, but its code_server process does not answer for 10 seconds");

    /* A step that begins at the end of the minute still gets its ten seconds. */
    n = begin();
    say_waits(&n, "companion");
    later(&n, 59900, "rex has answered");
    say_waits(&n, "code_server");
    later(&n, 9900, "the companion has started");
    say_waits(&n, "tracer");
    say_waits(&n, "code_server");
    later(&n, 9900, "the code server has answered");
    given_up(&n, 200, "shop@h1 accepts the connection, but its tracer process does not answer for 10 seconds");

    n = begin();
    say_waits(&n, "companion");
    later(&n, 50000, "rex has answered");
    say_waits(&n, "code_server");
    later(&n, 5000, "the companion is starting");
    say_hello(&n);
    is_number((int64_t)session_state(n.session), SESSION_READY, "the session is ready after 55 seconds");
    end(&n);
}

/* Sends the bytes as they are, and lets the session read once. */
static bool send_raw(struct node *n, const void *bytes, size_t len)
{
    struct err e;

    if (send(n->fd, bytes, len, MSG_DONTWAIT) != (ssize_t)len)
        printf("# the socket has no room\n");
    return session_on_readable(n->session, &e);
}

static void say_text(struct node *n, const char *text)
{
    say(n, (struct str){text, strlen(text)});
}

static struct node begin_ready(void)
{
    struct node n = begin();

    say_hello(&n);
    hear(&n);
    return n;
}

static struct str pong(void)
{
    return STR("R\377\377\377\377\203h\2d\0\2okd\0\4pong");
}

#define SILENT "shop@h1 is silent: etrace received nothing from it for 20 seconds"
#define STRAYS "shop@h1: the node violates the protocol: too many unexpected messages"

/* Returns how many copies of a message the session accepts within one second. */
static int64_t taken_of(struct node *n, struct str message)
{
    int64_t taken = 0;

    while (taken < 5000 && session_state(n->session) != SESSION_FAILED) {
        say(n, message);
        hear(n);
        taken++;
    }
    return taken;
}

/* Only answers are signs of life: stray messages and ticks are not. */
static void test_signs_of_life(void)
{
    struct node n = begin_ready();

    for (int i = 0; i < 19; i++) {
        say_text(&n, "x"); /* an unknown kind */
        send_raw(&n, "\0\0\0", 4);
        later(&n, 1000, "stray messages and ticks arrive");
    }
    send_raw(&n, "\0\0\0", 4);
    given_up(&n, 1100, SILENT);

    n = begin_ready();
    later(&n, 5000, "the node has been pinged");
    later(&n, 14900, "the node has not answered yet");
    say(&n, pong());
    later(&n, 19900, "the node has answered");
    say_batch(&n, SIZE, 0);
    later(&n, 19900, "a batch has arrived");
    given_up(&n, 200, SILENT);

    /* An answer without a request does not count. */
    n = begin_ready();
    later(&n, 4000, "the node has not been pinged yet");
    say(&n, pong());
    later(&n, 15900, "the node has not answered since");
    given_up(&n, 200, SILENT);
}

/* A request times out although batches arrive. */
static void test_request_timeout(void)
{
    struct node n = begin_ready();
    uint32_t id;
    struct err e;

    session_request(n.session, STR("\203a\1"), 3000, &id, &e);
    for (int i = 0; i < 29; i++) {
        say_batch(&n, SIZE, 0);
        later(&n, 100, "batches arrive");
    }
    say_batch(&n, SIZE, 0);
    given_up(&n, 200, "shop@h1 has not answered a request for 3 seconds");
}

static struct node begin_stopping(void)
{
    struct node n = begin_ready();
    struct err e;

    ok(session_stop(n.session, &e), "the session asks the node to stop");
    hear(&n);
    return n;
}

static void gone(struct node *n, bool remains)
{
    is_number((int64_t)session_state(n->session), SESSION_GONE, "the session is gone");
    ok(session_remains(n->session) == remains, "whether its code may remain on the node");
    end(n);
}

/* The end may take longer while batches arrive, within limits. */
static void test_end(void)
{
    struct node n = begin_stopping();

    later(&n, 9900, "the node has not stopped yet");
    is_number((int64_t)session_state(n.session), SESSION_STOPPING, "it may still do so");
    later(&n, 200, "the node has not stopped");
    gone(&n, true);

    n = begin_stopping();
    for (int i = 0; i < 2; i++) {
        later(&n, 9900, "the node still sends batches");
        say_batch(&n, SIZE, ETW_BATCH_MORE);
    }
    later(&n, 300, "the node sends batches for ever");
    gone(&n, true);

    n = begin_stopping();
    later(&n, 9900, "the node has not stopped yet");
    say_batch(&n, SIZE, ETW_BATCH_LAST);
    later(&n, 4900, "the last batch has arrived");
    is_number((int64_t)session_state(n.session), SESSION_STOPPING, "the node may still confirm the end");
    later(&n, 200, "the node has not confirmed the end");
    gone(&n, true);

    /* A node that ends by itself sends its last batch before the session asks it to stop. */
    n = begin_ready();
    say_batch(&n, SIZE, ETW_BATCH_LAST);
    later(&n, 6000, "the node has ended by itself");
    is_number((int64_t)session_state(n.session), SESSION_READY, "the node will say why");
    end(&n);
}

/* A process that was stopped cannot know whether the node was silent. */
static void test_stopped(void)
{
    struct node n = begin_ready();
    struct err e = {0};
    int64_t next;

    later(&n, 1000, "the node was silent for a second");
    send_raw(&n, "\0\0\0", 4);
    now_ms += 60000;
    ok(session_tick(n.session, now_ms, &next, &e), "the session continues: this process was stopped for a minute");
    later(&n, 12000, "the node is silent again");
    given_up(&n, 20000, SILENT);
}

/* Time in which nobody reads from the session does not count as silence. */
static void test_time_not_served(void)
{
    struct node n = begin_ready();

    later(&n, 1000, "the node was silent for a second");
    if (send(n.fd, "\0\0\0", 4, MSG_DONTWAIT) != 4)
        printf("# the socket has no room\n");
    for (int i = 0; i < 30; i++)
        later(&n, 2000, "only another session is served");
    send_raw(&n, "\0\0\0", 4);
    later(&n, 18000, "the session is read again");
    given_up(&n, 1100, SILENT);
}

/*
 * Large pieces of a message are signs of life: a megabyte at about one kilobyte per second is, a message that arrives
 * byte by byte is not.
 */
static void test_pieces_of_a_message(void)
{
    char piece[8192] = "\0\17\377\0pxx";
    struct node n = begin_ready();

    for (int i = 0; i < 10; i++) {
        send_raw(&n, piece, sizeof piece);
        later(&n, 15000, "eight kilobytes have arrived");
    }
    given_up(&n, 5100, SILENT);

    n = begin_ready();
    send_raw(&n, piece, 8);
    for (int i = 0; i < 19; i++) {
        send_raw(&n, "x", 1);
        later(&n, 1000, "one byte has arrived");
    }
    given_up(&n, 1100, SILENT);
}

static void test_stray_messages(void)
{
    static const struct {
        const char *what;
        struct str message;
    } strays[] = {
        {"an unknown kind", STR("x")},
        {"an empty message", STR("")},
        {"a second hello", STR("R\0\0\0\0\203h\2d\0\2okj")},
        {"an answer to no request", STR("R\7\0\0\0\203h\2d\0\2okj")},
        {"a pong without a ping", STR("R\377\377\377\377\203h\2d\0\2okj")},
        {"a step after the last one", STR("W\203d\0\11companion")},
    };

    for (size_t i = 0; i < ARRAY_LEN(strays); i++) {
        struct node n = begin_ready();
        struct err e = {0};
        int64_t next;
        is_number(taken_of(&n, strays[i].message), 101, strays[i].what);
        session_tick(n.session, now_ms, &next, &e);
        is_text(e.text, STRAYS, strays[i].what);
        end(&n);
    }
    /* A few stray messages now and then are accepted. */
    struct node n = begin_ready();
    for (int i = 0; i < 300; i++) {
        now_ms += 1000;
        say_text(&n, "x");
        hear(&n);
        if (i % 4 == 0)
            say_batch(&n, SIZE, 0);
    }
    is_number((int64_t)session_state(n.session), SESSION_READY, "the session accepts one stray message a second");
    end(&n);
}

static void test_ticks(void)
{
    static const char ticks[1000 * 4];
    struct node n = begin_ready();
    struct err e = {0};
    int64_t next;

    ok(send_raw(&n, ticks, sizeof ticks), "the session accepts a thousand ticks");
    hear(&n);
    say_batch(&n, SIZE, 0);
    ok(send_raw(&n, ticks, sizeof ticks), "the session accepts a thousand ticks more after a batch");
    hear(&n);
    ok(!send_raw(&n, ticks, 4), "one more tick ends the session");
    session_tick(n.session, now_ms, &next, &e);
    is_text(e.text, "shop@h1: the node violates the protocol: it sends only ticks", "the error names the reason");
    end(&n);
}

static void test_batches_beyond_credit(void)
{
    struct node n = begin_ready();
    int64_t taken = 0;
    struct err e = {0};
    int64_t next;

    session_pull_allowed(n.session, false, &e);
    for (; taken < 50 && session_state(n.session) != SESSION_FAILED; taken++)
        say_batch(&n, 1 << 19, 0);
    is_number(taken, 7, "batches beyond the credit end the session");
    session_tick(n.session, now_ms, &next, &e);
    is_text(e.text, "shop@h1: the node violates the protocol: it sends batches that etrace did not ask for",
            "the error names the reason");
    end(&n);
}

/* Sends requests while the node reads nothing: the session buffers them and does not block. */
static size_t fill(struct node *n)
{
    char *large = calloc(1, 100000);
    struct buf term = {0};
    size_t requests = 0;
    struct err e = {0};
    uint32_t id;

    etf_version(&term);
    etf_bin(&term, large, 100000);
    while (!session_wants_write(n->session) && session_request(n->session, buf_view(&term), 60000, &id, &e))
        requests++;
    for (int i = 0; i < 3; i++)
        requests += session_request(n->session, buf_view(&term), 60000, &id, &e);
    buf_release(&term);
    free(large);
    return requests;
}

/* A full connection does not block, and is lost after two seconds. */
static void test_full_connection(void)
{
    struct node n = begin();
    struct err e = {0};
    char bytes[65536];
    size_t came = 0;

    say_hello(&n);
    ssize_t got;
    while ((got = recv(n.fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        continue;
    size_t requests = fill(&n);
    ok(session_wants_write(n.session), "output waits after %zu requests", requests);
    later(&n, 1900, "the connection is full");
    do {
        got = recv(n.fd, bytes, sizeof bytes, MSG_DONTWAIT);
        came += got > 0 ? (size_t)got : 0;
        if (!session_on_readable(n.session, &e))
            break;
    } while (got > 0 || session_wants_write(n.session));
    ok(!session_wants_write(n.session), "no output waits after the node has read");
    ok(came > requests * 100000 && came < requests * 100000 + requests * 200 + 1000,
       "the node got every byte once: %zu bytes", came);
    fill(&n);
    later(&n, 1900, "the connection is full again");
    given_up(&n, 200, "shop@h1: the node has stopped reading messages");
}

int main(void)
{
    test_signs_of_life();
    test_request_timeout();
    test_end();
    test_stopped();
    test_time_not_served();
    test_pieces_of_a_message();
    test_stray_messages();
    test_ticks();
    test_batches_beyond_credit();
    test_credit();
    test_start_timeouts();
    test_full_connection();
    return tap_end();
}
