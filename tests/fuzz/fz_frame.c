/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the messages of a node after the handshake: frames, control messages, answers, batches, last messages. The
 * session reads them from a socket. The input is a sequence of pieces: a byte that selects the wrapping, two bytes of
 * length, and the content. The content goes out as it is, as a frame, as the message of a frame for us, or as a binary
 * from the owner.
 *
 * This file includes session.c, because there is no node to connect to.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../cli/node/session.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_batch(void *data, const void *batch, size_t len)
{
    (void)data;
    if (len < sizeof(struct etw_batch) || len > ETW_MAX_BATCH || ((const char *)batch)[0] != 'E')
        abort();
}

static void on_reply(void *data, const struct session_reply *reply)
{
    struct etf r = reply->term;
    struct err e;

    (void)data;
    if (session_error(reply, &e) || !e.text[0])
        abort();
    etf_skip(&r);
}

static const struct node_pid self = {.node = "etrace@h", .id = 3, .serial = 4, .creation = 5};

static void control(struct buf *b)
{
    etf_version(b);
    etf_tuple(b, 3);
    etf_int(b, 2);
    etf_atomz(b, "");
    etf_pid(b, (struct str){self.node, strlen(self.node)}, self.id, self.serial, self.creation);
}

static void put_piece(struct buf *out, uint8_t how, struct str piece)
{
    size_t at = out->len, len;

    if ((how & 3) == 0) {
        buf_str(out, piece);
        return;
    }
    buf_add(out, "\0\0\0\0p", 5);
    if ((how & 3) == 1) {
        buf_str(out, piece);
    } else {
        control(out);
        etf_version(out);
        if ((how & 3) == 2)
            buf_str(out, piece);
        else
            etf_bin(out, piece.at, piece.len);
    }
    len = out->len - at - 4;
    for (unsigned i = 0; i < 4; i++)
        out->data[at + i] = (char)(len >> (24 - 8 * i));
}

/* Sends small parts and discards the answers after each one, so that neither side blocks. */
static void serve(struct session *s, int peer, struct str all)
{
    char sink[4096];
    struct err e;
    int64_t next;

    for (size_t i = 0, n; i < all.len; i += n) {
        n = MIN(all.len - i, all.len < 8192 ? (size_t)256 : 512);
        if (write(peer, all.at + i, n) != (ssize_t)n)
            abort();
        while (session_fd(s) >= 0 && something_came(s) && session_on_readable(s, &e))
            ;
        while (recv(peer, sink, sizeof sink, MSG_DONTWAIT) > 0)
            ;
        if (session_fd(s) < 0)
            return;
    }
    session_tick(s, net_now(), &next, &e);
    session_stop(s, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf in = {0};
    int ends[2];
    struct session *s = mem_zalloc(sizeof *s);
    struct node_conn conn = {.self = self};
    uint32_t id;
    struct err e;

    if (!size) {
        free(s);
        return 0;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
        abort();
    conn.stream.fd = ends[0];
    s->handlers = (struct session_handlers){.batch = on_batch, .reply = on_reply};
    s->allowed = true;
    strcpy(s->node.name, "shop@h");
    dist_init(&s->dist, &conn);
    s->said = s->heard = s->ticked = net_now();
    s->patience = SILENT_MS;
    if (data[0] & 1)
        s->state = SESSION_READY;
    s->owner = s->dist.linked = self;
    if (data[0] & 2)
        session_request(s, STR("\x83\x61\x01"), 5000, &id, &e);
    if (data[0] & 4)
        session_stop(s, &e);
    for (data++, size--; size >= 3;) {
        uint8_t how = data[0];
        size_t len = MIN((size_t)data[1] | (size_t)(data[2] & 15) << 8, size - 3);
        put_piece(&in, how, (struct str){(const char *)data + 3, len});
        data += 3 + len, size -= 3 + len;
    }
    serve(s, ends[1], buf_view(&in));
    session_close(s);
    close(ends[1]);
    buf_release(&in);
    return 0;
}
