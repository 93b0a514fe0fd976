/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated nodes and a simulated clock, for tests that run random simulations. The linker replaces sessions,
 * connections and the loop. A seed decides whether a node is found, refuses, is slow, falls silent, is lost or comes
 * back, and in which order. The descriptor of a node is its index.
 */
#ifndef ETRACE_PLAYED_NODES_H
#define ETRACE_PLAYED_NODES_H

#include <stdlib.h>

#include "trace/peers.h"
#include "erlang/etf_write.h"
#include "node/knock.h"
#include "course.h"

#define NODES 6
#define NEVER INT64_MAX
#define PATIENCE 20000
#define STOP_MOST 10000 /* how long a session waits for its end */

enum due { BOOTS, ANSWERS, TIMES, LOST, GONE, EVENTS };

struct session {
    struct played *node;
    enum session_state state;
    struct session_handlers h;
    bool lost;
    int64_t end_by; /* STOPPING: when it gives up; otherwise NEVER */
    struct buf request;
    struct session_node about;
};

/* A simulated node, and its future events. */
static struct played {
    char name[16];
    bool there, found, refuses, hidden;
    int64_t due[EVENTS]; /* when the event happens, in virtual time */
    int64_t silent_from; /* the node sends nothing after this time */
    struct session *session;
    int64_t asked_at, up_at, answered_at;
    uint32_t id;
    bool waits; /* a request is open */
    unsigned answers, failures, requests;
} played[NODES];

/* The test defines it: puts the answer to s->request and returns true, or puts the reason for a refusal. */
static bool put_answer(const struct session *s, struct buf *b);

int64_t __wrap_loop_now(void);
int64_t __wrap_loop_now(void)
{
    return course_ms;
}

int64_t __wrap_session_now(void);
int64_t __wrap_session_now(void)
{
    return course_ms;
}

/* Resets the nodes and the clock. The seed decides which nodes are there. */
static void nodes_reset(unsigned seed)
{
    course_seed = seed * 7919;
    course_ms = 1000;
    memset(played, 0, sizeof played);
    for (size_t i = 0; i < NODES; i++) {
        struct played *n = &played[i];
        snprintf(n->name, sizeof n->name, "n%zu@h", i);
        n->there = roll(4);
        n->found = roll(8);
        n->refuses = roll(10) == 0;
        n->hidden = i == 5;
        n->silent_from = NEVER;
        for (size_t k = 0; k < EVENTS; k++)
            n->due[k] = NEVER;
    }
}

/* ---- connecting ---- */

struct knock {
    struct played *node;
    int64_t due;
};

static struct played *find(const char *name)
{
    for (size_t i = 0; name && i < NODES; i++)
        if (!strcmp(played[i].name, name) || (!strchr(name, '@') && !strncmp(played[i].name, name, strlen(name))))
            return &played[i];
    return NULL;
}

struct knock *__wrap_knock_start(const struct node_target *t);
struct knock *__wrap_knock_start(const struct node_target *t)
{
    struct knock *k = calloc(1, sizeof *k);

    k->node = find(t->name);
    k->due = course_ms + 1 + roll(400);
    k->node->there = k->node->there || roll(3) == 0; /* the node has started */
    return k;
}

int __wrap_knock_fd(const struct knock *k);
int __wrap_knock_fd(const struct knock *k)
{
    return (int)(k->node - played);
}

bool __wrap_knock_answer(struct knock *k, struct node_conn *ret, struct err *e);
bool __wrap_knock_answer(struct knock *k, struct node_conn *ret, struct err *e)
{
    *ret = (struct node_conn){.found = k->node->found};
    if (k->node->there && !k->node->refuses && k->node->found) {
        snprintf(ret->node, sizeof ret->node, "%s", k->node->name);
        ret->stream.fd = (int)(k->node - played);
        return true;
    }
    err_set(e, ERR_NODE, "cannot connect to %s", k->node->name);
    e->refused = k->node->refuses;
    return false;
}

void __wrap_knock_free(struct knock *k);
void __wrap_knock_free(struct knock *k)
{
    free(k);
}

void __wrap_stream_close(struct stream *s);
void __wrap_stream_close(struct stream *s)
{
    s->fd = -1;
}

/* ---- sessions ---- */

struct session *__wrap_session_open(struct node_conn *conn, const struct session_options *o,
                                    const struct session_handlers *h, struct err *e);
struct session *__wrap_session_open(struct node_conn *conn, const struct session_options *o UNUSED,
                                    const struct session_handlers *h, struct err *e UNUSED)
{
    struct session *s = calloc(1, sizeof *s);

    s->node = &played[conn->stream.fd];
    s->h = *h;
    s->end_by = NEVER;
    snprintf(s->about.name, sizeof s->about.name, "%s", s->node->name);
    expect(!s->node->session || s->node->session->state == SESSION_FAILED || s->node->session->state == SESSION_GONE,
           "two sessions on one node");
    s->node->session = s;
    s->node->silent_from = roll(6) ? NEVER : course_ms + roll(3000);
    s->node->due[BOOTS] = s->node->asked_at = course_ms + 1 + roll(200);
    s->node->due[LOST] = roll(3) ? NEVER : course_ms + 1 + roll(3000);
    return s;
}

void __wrap_session_close(struct session *s);
void __wrap_session_close(struct session *s)
{
    if (s && s->node->session == s) {
        s->node->session = NULL;
        for (size_t i = BOOTS; i < EVENTS; i++)
            s->node->due[i] = NEVER;
    }
    if (s)
        buf_release(&s->request);
    free(s);
}

int __wrap_session_fd(const struct session *s);
int __wrap_session_fd(const struct session *s)
{
    return s->state == SESSION_FAILED || s->state == SESSION_GONE ? -1 : (int)(s->node - played);
}

enum session_state __wrap_session_state(const struct session *s);
enum session_state __wrap_session_state(const struct session *s)
{
    return s->state;
}

bool __wrap_session_lost(const struct session *s);
bool __wrap_session_lost(const struct session *s)
{
    return s->lost;
}

bool __wrap_session_remains(const struct session *s);
bool __wrap_session_remains(const struct session *s)
{
    return s->state == SESSION_GONE && course_ms >= s->end_by;
}

bool __wrap_session_wants_write(const struct session *s);
bool __wrap_session_wants_write(const struct session *s UNUSED)
{
    return false;
}

const struct session_node *__wrap_session_node(const struct session *s);
const struct session_node *__wrap_session_node(const struct session *s)
{
    return &s->about;
}

static bool is_lost(struct session *s, struct err *e)
{
    s->state = SESSION_FAILED;
    s->lost = true;
    for (size_t i = BOOTS; i < EVENTS; i++)
        s->node->due[i] = NEVER;
    s->node->there = roll(2);
    return err_set(e, ERR_RUN, "%s is lost", s->node->name);
}

bool __wrap_session_tick(struct session *s, int64_t now, int64_t *ret_next, struct err *e);
bool __wrap_session_tick(struct session *s, int64_t now, int64_t *ret_next, struct err *e)
{
    int64_t until = s->node->silent_from == NEVER ? NEVER : s->node->silent_from + PATIENCE;

    if (s->state == SESSION_FAILED)
        return err_set(e, ERR_RUN, "%s is lost", s->node->name);
    *ret_next = MIN(MIN(until, s->end_by), now + 3000);
    if (now >= s->end_by)
        s->state = SESSION_GONE;
    return now < until || s->state == SESSION_GONE || is_lost(s, e);
}

static bool is_about(const struct session *s, const char *text)
{
    return memmem(s->request.data, s->request.len, text, strlen(text));
}

/* Puts {[Name], [Hidden]}. Every node knows all nodes. */
static void put_list(struct buf *b)
{
    etf_tuple(b, 2);
    for (int hidden = 0; hidden < 2; hidden++) {
        size_t n = 0;
        for (size_t i = 0; i < NODES; i++)
            n += played[i].hidden == hidden;
        if (n)
            etf_list(b, n);
        for (size_t i = 0; i < NODES; i++)
            if (played[i].hidden == hidden)
                etf_bin(b, played[i].name, strlen(played[i].name));
        etf_nil(b);
    }
}

static void answer(struct session *s)
{
    struct session_reply reply = {.id = s->node->id};
    struct buf b = {0};

    reply.ok = put_answer(s, &b);
    buf_clear(&s->request);
    etf_open(&reply.term, b.data, b.len);
    s->h.reply(s->h.data, &reply);
    buf_release(&b);
}

/* All nodes share the host's clock. */
static void tell_time(struct session *s)
{
    int64_t now = course_ms * 1000000;

    s->h.time(s->h.data, &(struct session_time){.mono = now, .wall = now, .sent = now - 1000, .heard = now});
}

bool __wrap_session_on_readable(struct session *s, struct err *e);
bool __wrap_session_on_readable(struct session *s, struct err *e)
{
    int64_t *due = s->node->due;

    if (due[LOST] <= course_ms)
        return is_lost(s, e);
    if (due[GONE] <= course_ms) {
        due[GONE] = NEVER;
        s->state = SESSION_GONE;
    } else if (due[BOOTS] <= course_ms) {
        due[BOOTS] = NEVER;
        s->state = SESSION_READY;
    } else if (due[ANSWERS] <= course_ms) {
        due[ANSWERS] = NEVER;
        answer(s);
    } else if (due[TIMES] <= course_ms) {
        due[TIMES] = NEVER;
        tell_time(s);
    }
    return true;
}

bool __wrap_session_request(struct session *s, struct str term, int timeout_ms, uint32_t *ret_id, struct err *e);
bool __wrap_session_request(struct session *s, struct str term, int timeout_ms UNUSED, uint32_t *ret_id, struct err *e)
{
    if (s->state == SESSION_FAILED)
        return err_set(e, ERR_RUN, "%s is lost", s->node->name);
    expect(!s->request.len, "a node gets two requests at the same time");
    *ret_id = ++s->node->id;
    buf_str(&s->request, term);
    s->node->due[ANSWERS] = course_ms + 1 + roll(300);
    return true;
}

bool __wrap_session_ask_time(struct session *s, int timeout_ms, uint32_t *ret_id, struct err *e);
bool __wrap_session_ask_time(struct session *s, int timeout_ms UNUSED, uint32_t *ret_id, struct err *e)
{
    if (s->state == SESSION_FAILED)
        return err_set(e, ERR_RUN, "%s is lost", s->node->name);
    *ret_id = ++s->node->id;
    s->node->due[TIMES] = course_ms + 1 + roll(100);
    return true;
}

bool __wrap_session_stop(struct session *s, struct err *e);
bool __wrap_session_stop(struct session *s, struct err *e UNUSED)
{
    s->state = SESSION_STOPPING;
    s->node->due[ANSWERS] = s->node->due[TIMES] = NEVER;
    s->node->due[GONE] = course_ms + 1 + roll(300);
    if (roll(20) == 0) /* the node does not confirm the end */
        s->node->due[GONE] = NEVER;
    s->end_by = course_ms + STOP_MOST;
    return true;
}

bool __wrap_session_pull_allowed(struct session *s, bool allowed, struct err *e);
bool __wrap_session_pull_allowed(struct session *s UNUSED, bool allowed UNUSED, struct err *e UNUSED)
{
    return true;
}

/* ---- the loop ---- */

/*
 * Returns when the descriptor becomes readable next. A silent node sends nothing, but its connection may still be
 * lost.
 */
static int64_t next_of(const struct loop_fd *f)
{
    const struct played *n = &played[f->fd];
    const struct peer *p = f->owner;
    int64_t next = NEVER;

    if (f == &p->answer)
        return p->knock->due;
    for (size_t i = BOOTS; i < EVENTS; i++)
        if (i == LOST || n->due[i] < n->silent_from)
            next = MIN(next, n->due[i]);
    return next;
}

void __wrap_loop_step(struct loop *l, int64_t deadline);
void __wrap_loop_step(struct loop *l, int64_t deadline)
{
    struct loop_fd *first = NULL;
    int64_t at = deadline < 0 ? NEVER : deadline;

    expect(!l->serving, "a callback of the loop runs the loop");
    for (size_t i = 0; i < l->count; i++)
        if (next_of(l->fds[i]) < at) {
            first = l->fds[i];
            at = next_of(first);
        }
    expect(at != NEVER, "the loop waits without a timeout");
    course_ms = at == NEVER ? course_ms + 100000 : MAX(course_ms, at);
    l->serving = true;
    if (first)
        first->ready(first->owner);
    l->serving = false;
}

#endif
