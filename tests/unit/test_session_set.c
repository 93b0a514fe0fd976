/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests how etrace arms several nodes. This program simulates the nodes: each one answers a request, refuses it, sends
 * a malformed answer or is lost, in an order that a seed decides, while the user makes one request after another. A
 * node gets one request at a time. It ends with the latest wish, or with one message about the failure. All
 * simulations together take every step that a preparation may take, and no other.
 *
 * The linker replaces sessions and the part of peers that connects to nodes.
 */
#include <stdlib.h>

#include "trace/prepare.h"
#include "trace/session_set.h"
#include "answers.h"
#include "course.h"
#include "tap.h"

#define NODES 4
#define SEEDS 4000

/* Each wish names a function of its own, so the expression tells which wish a node got last. */
/* Expressions of functions f1, f2, ...: what is before and after the number. */
static const struct {
    const char *before, *after;
} forms[] = {
    {"m:f", "/1"},   {"m:f", "(nowhere)"},        {"m:f", "(#one{a = 1})"}, {"m:f", "(#one{a = 1}, #two{a = nowhere})"},
    {"m_*:f", "/1"}, {"m:f", "(#absent{a = 1})"},
};

struct session {
    bool open, lost; /* open: a request is open; lost: the connection is gone */
    uint32_t id;
    struct buf request;
    struct session_node about;
};

static struct played {
    struct session session;
    unsigned wish; /* the number of the latest wish */
    bool waits;    /* the user has not been told the result of the latest wish yet */
} played[NODES];

static struct peer peers[NODES];
static struct peers_handlers through;
static struct session_set sessions;
static struct ctx ctx;
static unsigned wishes, words, refusals;

static struct played *node_of(const struct peer *p)
{
    return &played[p->index];
}

/* ---- replacements for the linker ---- */

void __wrap_peers_begin(struct peers *ps, struct ctx *c, const struct peers_handlers *h);
void __wrap_peers_begin(struct peers *ps, struct ctx *c UNUSED, const struct peers_handlers *h)
{
    *ps = (struct peers){.items = peers, .count = NODES};
    through = *h;
}

void __wrap_peers_close(struct peers *ps);
void __wrap_peers_close(struct peers *ps UNUSED)
{
}

const struct session_node *__wrap_session_node(const struct session *s);
const struct session_node *__wrap_session_node(const struct session *s)
{
    return &s->about;
}

bool __wrap_session_error(const struct session_reply *reply, struct err *e);
bool __wrap_session_error(const struct session_reply *reply UNUSED, struct err *e)
{
    return err_set(e, ERR_RUN, "the node refuses");
}

bool __wrap_session_request(struct session *s, struct str term, int timeout_ms, uint32_t *ret_id, struct err *e);
bool __wrap_session_request(struct session *s, struct str term, int timeout_ms UNUSED, uint32_t *ret_id, struct err *e)
{
    if (s->lost)
        return err_set(e, ERR_RUN, "the connection is gone");
    expect(!s->open, "a node gets two requests at the same time");
    s->open = true;
    *ret_id = ++s->id;
    buf_clear(&s->request);
    buf_str(&s->request, term);
    return true;
}

/* ---- the nodes' answers ---- */

static bool is_about(const struct session *s, const char *text)
{
    return memmem(s->request.data, s->request.len, text, strlen(text));
}

static void put_unknown(const struct session *s, struct buf *b)
{
    if (is_about(s, "nowhere") && roll(2)) {
        etf_list(b, 1);
        etf_bin(b, "nowhere", 7);
    }
    etf_nil(b);
}

static void put_answer(const struct session *s, enum prepare_step step, struct buf *b)
{
    if (roll(40) == 0)
        etf_int(b, 1); /* malformed */
    else if (step == PREPARE_RECORDS)
        put_record(!is_about(s, "absent"), b);
    else if (step == PREPARE_ATOMS)
        put_unknown(s, b);
    else
        put_result(b);
}

static bool moved[PREPARE_REFUSED + 1][PREPARE_REFUSED + 1];

static void answer(struct peer *p)
{
    struct session *s = p->session;
    const struct prepare *before = sessions.arming[p->index];
    struct session_reply reply = {.id = s->id, .ok = roll(40) != 0};
    struct buf b = {0};

    if (!s->open)
        return;
    s->open = false;
    enum prepare_step step = before ? prepare_step(before) : PREPARE_DONE;
    put_answer(s, step, &b);
    etf_open(&reply.term, b.data, b.len);
    bool superseded = sessions.next[p->index];
    through.reply(through.data, p, &reply);
    if (before && !superseded && sessions.arming[p->index] == before)
        moved[step][prepare_step(before)] = true;
    buf_release(&b);
}

static void lose(struct peer *p)
{
    struct err e;

    p->session->lost = true;
    p->session->open = false;
    p->state = PEER_OVER;
    node_of(p)->waits = false;
    err_set(&e, ERR_RUN, "lost");
    through.failed(through.data, p, &e);
}

/* ---- messages to the user ---- */

static void settled(const struct peer *p)
{
    struct played *n = node_of(p);

    expect(n->waits, "a node answers an older request, or answers twice");
    n->waits = false;
    words++;
}

static void on_armed(void *data UNUSED, struct peer *p, const struct arm_result *result)
{
    char name[16];

    snprintf(name, sizeof name, "f%u", node_of(p)->wish);
    expect(result != NULL, "a node is armed without a result");
    expect(is_about(p->session, name), "a node is armed with an older request than the latest");
    settled(p);
}

static void on_refused(void *data UNUSED, struct peer *p, const struct err *e)
{
    expect(e->status && *e->text, "a refusal without a reason");
    settled(p);
    refusals++;
}

static void on_ready(void *data UNUSED, struct peer *p UNUSED)
{
}

static void on_failed(void *data UNUSED, struct peer *p UNUSED, const struct err *e UNUSED)
{
}

static void hush(void *data UNUSED, struct str lines UNUSED)
{
}

/* ---- simulations ---- */

static void wish(const struct what_opts *what)
{
    struct texts texts = {0};
    char text[80];

    const unsigned form = roll(ARRAY_LEN(forms));
    snprintf(text, sizeof text, "%s%u%s", forms[form].before, ++wishes, forms[form].after);
    texts_add(&texts, text);
    for (size_t i = 0; i < NODES; i++)
        if (sessions.peers.items[i].state == PEER_UP) {
            played[i].wish = wishes;
            played[i].waits = true;
        }
    session_set_arm(&sessions, what, &texts, (struct arm_mark){0});
    texts_release(&texts);
}

static void play(unsigned number)
{
    struct session_set_handlers handlers = {.ready = on_ready,
                                            .armed = on_armed,
                                            .refused = on_refused,
                                            .failed = on_failed};
    struct what_opts what = WHAT_OPTS_INIT;
    unsigned left = 4;

    course_seed = number * 7919;
    what.dry_run = number % 8 == 0;
    session_set_begin(&sessions, &ctx, &handlers);
    for (size_t i = 0; i < NODES; i++) {
        struct peer *p = &sessions.peers.items[i];
        played[i] = (struct played){.session.about.otp = 27 + (int)(number % 3)};
        *p = (struct peer){.state = PEER_UP,
                           .session = &played[i].session,
                           .index = (unsigned)i,
                           .peers = &sessions.peers};
        snprintf(played[i].session.about.name, sizeof played[i].session.about.name, "n%zu@h", i);
    }
    while (left || session_set_arming(&sessions)) {
        struct peer *p = &sessions.peers.items[roll(NODES)];
        if (left && roll(6) == 0) {
            wish(&what);
            left--;
        } else if (p->state == PEER_UP && roll(40) == 0) {
            lose(p);
        } else if (p->state == PEER_UP) {
            answer(p);
        }
    }
    for (size_t i = 0; i < NODES; i++)
        expect(!played[i].waits, "a node has no answer to the latest request");
    session_set_close(&sessions);
    for (size_t i = 0; i < NODES; i++)
        buf_release(&played[i].session.request);
}

/* A finished preparation is freed at once, so only the message to the user shows its last step. */
static const char *const steps[] = {"records", "atoms", "select", "count", "trace", "done", "refused"};

int main(void)
{
    static const bool may[PREPARE_REFUSED + 1][PREPARE_REFUSED + 1] = {
        [PREPARE_RECORDS] = {[PREPARE_RECORDS] = true, [PREPARE_ATOMS] = true}, /* the name of a record is an atom */
        [PREPARE_ATOMS] = {[PREPARE_SELECT] = true},
        [PREPARE_SELECT] = {[PREPARE_TRACE] = true},
    };
    unsigned other = 0, missing = 0;

    ctx.talk = hush;
    for (unsigned i = 1; i <= SEEDS && !course_wrong; i++) {
        play(i);
        if (course_wrong)
            printf("# in the course %u\n", i);
    }
    ok(!course_wrong, "each node ends with the latest request, is asked one thing at a time, and gets one answer");
    for (size_t from = 0; from <= PREPARE_REFUSED; from++)
        for (size_t to = 0; to <= PREPARE_REFUSED; to++) {
            if (moved[from][to] == may[from][to])
                continue;
            printf("# %s -> %s: %s\n", steps[from], steps[to], may[from][to] ? "never made" : "made");
            other += moved[from][to];
            missing += may[from][to];
        }
    is_number(other, 0, "no other step is taken");
    is_number(missing, 0, "every step is taken");
    printf("# %u requests, %u answers, %u of them refusals\n", wishes, words, refusals);
    ok(refusals > words / 4 && refusals < words / 4 * 3, "some requests are refused and some are granted");
    return tap_end();
}
