/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <unistd.h>

#include "ssh.h"

enum net_status stream_secure(struct stream *s, const struct tls_config *c, const char *host, int64_t deadline,
                              struct err *e)
{
    return tls_connect(c, s->fd, host, deadline, &s->tls, e);
}

void stream_close(struct stream *s)
{
    tls_free(s->tls);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct stream){.fd = -1};
}

enum net_status stream_read(struct stream *s, void *bytes, size_t most, int64_t deadline, size_t *ret_len)
{
    return s->tls ? tls_read(s->tls, bytes, most, deadline, ret_len) : net_read(s->fd, bytes, most, deadline, ret_len);
}

bool stream_pending(const struct stream *s)
{
    return s->tls && tls_pending(s->tls);
}

enum net_status stream_send(struct stream *s, const void *bytes, size_t len, size_t *ret_sent)
{
    return s->tls ? tls_send(s->tls, bytes, len, ret_sent) : net_send(s->fd, bytes, len, ret_sent);
}

enum net_status stream_write(struct stream *s, const void *bytes, size_t len, int64_t deadline)
{
    return s->tls ? tls_write(s->tls, bytes, len, deadline) : net_write(s->fd, bytes, len, deadline);
}

bool stream_closed(const struct stream *s, struct err *e)
{
    if (s->ssh && ssh_report_end(s->ssh, e))
        return false;
    return err_set(e, ERR_RUN, "the node closed the connection");
}

const struct err *stream_why(const struct stream *s)
{
    return s->tls ? tls_why(s->tls) : NULL;
}
