/* SPDX-License-Identifier: Apache-2.0 */
/* The messages for errors of the companion that no test with a node can cause at will. */
#include "erlang/etf_write.h"
#include "node/session.h"
#include "tap.h"

/* Whether the answer {error, {stopping, Why}} is reported as this text. */
static bool stopping_says(const struct buf *why, const char *node, const char *text)
{
    struct buf b = {0};
    struct session_reply reply = {.node = node};
    struct err e;

    etf_tuple(&b, 2);
    etf_atomz(&b, "stopping");
    buf_str(&b, buf_view(why));
    etf_open(&reply.term, b.data, b.len);
    session_error(&reply, &e);
    const bool same = strstr(e.text, text) != NULL;
    if (!same)
        printf("# %s\n", e.text);
    buf_release(&b);
    return same;
}

int main(void)
{
    struct buf why = {0};

    etf_atomz(&why, "normal");
    ok(stopping_says(&why, "a@b", "the tracing is ending"), "a trace that its client ends has no other reason");
    buf_clear(&why);
    etf_atomz(&why, "destroyed");
    ok(stopping_says(&why, "a@b", "a@b: somebody on the node has destroyed"), "a destroyed session is the reason");
    ok(stopping_says(&why, NULL, "the node: somebody on the node has destroyed"),
       "the name of the node may be unknown");
    buf_clear(&why);
    etf_tuple(&why, 2);
    etf_atomz(&why, "guard");
    etf_tuple(&why, 2);
    etf_atomz(&why, "memory");
    etf_int(&why, INT64_C(1) << 30);
    ok(stopping_says(&why, "a@b", "a@b ended the tracing: its memory has grown by 1024 MiB"),
       "so is a limit of memory");
    buf_release(&why);
    return tap_end();
}
