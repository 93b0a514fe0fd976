#include "rpc.h"

#include <poll.h>

#include "../erlang/etf_write.h"
#include "companion.h"
#include "net.h"
#include "rex.h"

void rpc_open(struct rpc *r, const struct node_conn *conn)
{
    *r = (struct rpc){0};
    dist_init(&r->dist, conn);
}

void rpc_close(struct rpc *r)
{
    dist_release(&r->dist);
}

struct answer {
    int64_t id;
    struct buf *keep;
    bool came;
};

static bool on_message(void *data, struct etf message, struct err *e UNUSED)
{
    struct answer *a = data;
    struct etf result;
    int64_t id;

    if (a->came || !etf_get_tuple(&message, 2) || !etf_get_int(&message, &id) || id != a->id || !etf_take(&message, &result))
        return true;
    buf_add(a->keep, result.at, (size_t)(result.end - result.at));
    a->came = true;
    return true;
}

static bool on_down(void *data UNUSED, struct etf reason UNUSED, struct err *e UNUSED)
{
    return true;
}

/* {Client, Id, Module, Function, Arguments} */
static bool put_question(struct buf *b, const struct node_pid *self, int64_t id, const char *module, const char *function, struct str args,
                         struct err *e)
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

bool rpc_call(struct rpc *r, const char *module, const char *function, struct str args, int timeout_ms, struct buf *keep,
              struct etf *ret_result, struct err *e)
{
    int64_t deadline = net_now() + timeout_ms;
    struct answer a = {.id = ++r->calls, .keep = keep};
    struct dist_handler h = {.data = &a, .message = on_message, .down = on_down};
    struct buf request = {0};

    buf_clear(keep);
    bool ok = put_question(&request, &r->dist.self, a.id, module, function, args, e) &&
              dist_send_named(&r->dist, "rex", buf_view(&request), e);
    buf_release(&request);
    while (ok && !a.came) {
        if (net_now() >= deadline || net_wait(r->dist.stream.fd, POLLIN, deadline) != NET_OK) /* it may say anything else all the time */
            ok = err_set(e, ERR_NODE, "its rex process does not answer");
        else
            ok = dist_read(&r->dist, &h, e);
    }
    if (ok)
        etf_open(ret_result, keep->data, keep->len);
    return ok;
}
