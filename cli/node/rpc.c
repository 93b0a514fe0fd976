/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc.h"

#include "../erlang/etf_write.h"
#include "companion.h"
#include "rex.h"

void rpc_open(struct rpc *r, const struct node_conn *conn, struct loop *loop)
{
    *r = (struct rpc){.loop = loop};
    dist_init(&r->dist, conn);
}

void rpc_close(struct rpc *r)
{
    dist_release(&r->dist);
}

struct answer {
    struct dist *dist;
    int64_t id;
    struct buf *keep;
    bool came, failed;
    struct err err;
};

static bool on_message(void *data, struct etf message, struct err *e)
{
    struct answer *a = data;
    struct etf result;
    int64_t id;

    if (a->came || !etf_get_tuple(&message, 2) || !etf_get_int(&message, &id) || id != a->id ||
        !etf_take(&message, &result))
        return dist_stray(a->dist, e);
    buf_add(a->keep, result.at, (size_t)(result.end - result.at));
    a->came = true;
    return true;
}

static bool on_down(void *data UNUSED, struct etf reason UNUSED, struct err *e UNUSED)
{
    return true;
}

static void rpc_on_readable(void *owner)
{
    struct answer *a = owner;
    struct dist_handler h = {.data = a, .message = on_message, .down = on_down};

    a->failed = a->failed || !dist_flush(a->dist, &a->err) || !dist_read(a->dist, &h, &a->err);
}

/* Waits for the answer, at most until the deadline, even if the node sends other messages all the time. */
static bool await_answer(struct loop *l, struct answer *a, int64_t deadline, struct err *e)
{
    struct loop_fd fd = {.fd = a->dist->stream.fd, .want_read = true, .ready = rpc_on_readable, .owner = a};

    loop_add(l, &fd);
    while (!a->came && !a->failed && loop_now() < deadline) {
        fd.want_write = dist_wants_write(a->dist);
        loop_step(l, deadline);
    }
    loop_remove(l, &fd);
    if (a->failed)
        *e = a->err;
    return a->came || (!a->failed && err_set(e, ERR_NODE, "its rex process does not answer"));
}

/* Writes the message of a call. The value of its variable is {Client, Id, Module, Function, Arguments}. */
static bool put_question(struct buf *b, const struct node_pid *self, int64_t id, const char *module,
                         const char *function, struct str args, struct err *e)
{
    if (!rex_begin(b, companion.ask, companion.ask_len, self, 5, e))
        return false;
    etf_int(b, id);
    etf_atomz(b, module);
    etf_atomz(b, function);
    buf_str(b, args);
    rex_end(b);
    return true;
}

bool rpc_call(struct rpc *r, const char *module, const char *function, struct str args, int timeout_ms,
              struct buf *keep, struct etf *ret_result, struct err *e)
{
    struct answer a = {.dist = &r->dist, .id = ++r->calls, .keep = keep};
    struct buf request = {0};
    struct loop alone;

    buf_clear(keep);
    loop_init(&alone);
    bool ok = put_question(&request, &r->dist.self, a.id, module, function, args, e) &&
              dist_send_named(&r->dist, "rex", buf_view(&request), e) &&
              await_answer(r->loop ? r->loop : &alone, &a, loop_now() + timeout_ms, e);
    buf_release(&request);
    loop_release(&alone);
    if (ok)
        etf_open(ret_result, keep->data, keep->len);
    return ok;
}
