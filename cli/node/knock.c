/* SPDX-License-Identifier: Apache-2.0 */
#include "knock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/thread.h"
#include "handshake.h"
#include "tls.h"

#define TEXTS 8

/*
 * One attempt to connect, shared by the caller's thread and the connecting thread. The thread that calls knock_let_go()
 * last frees it.
 */
struct knock {
    struct node_target target;
    struct tls_options tls;
    char *texts[TEXTS]; /* copies of the texts of `target` and `tls`; owned */
    size_t ntexts;
    int ready[2];
    bool ok, taken;
    struct node_conn conn;
    struct err why;
    atomic_int users;
};

static const char *knock_keep(struct knock *k, const char *text)
{
    if (!text)
        return NULL;
    return k->texts[k->ntexts++] = mem_strndup(text, strlen(text));
}

static void knock_let_go(struct knock *k)
{
    if (atomic_fetch_sub(&k->users, 1) != 1)
        return;
    if (k->ok && !k->taken)
        stream_close(&k->conn.stream);
    close(k->ready[0]);
    close(k->ready[1]);
    for (size_t i = 0; i < k->ntexts; i++) {
        explicit_bzero(k->texts[i], strlen(k->texts[i])); /* one of them may be a password */
        free(k->texts[i]);
    }
    free(k);
}

static void *at_work(void *data)
{
    struct knock *k = data;

    k->ok = node_connect(&k->target, &k->conn, &k->why);
    if (k->target.tls)
        tls_end_thread();
    while (write(k->ready[1], "", 1) < 0 && errno == EINTR)
        ;
    knock_let_go(k);
    return NULL;
}

struct knock *knock_start(const struct node_target *target)
{
    struct knock *k = mem_zalloc(sizeof *k);

    handshake_prepare();
    if (pipe2(k->ready, O_CLOEXEC)) {
        free(k);
        return NULL;
    }
    k->target = *target;
    k->target.name = knock_keep(k, target->name);
    k->target.ssh = knock_keep(k, target->ssh);
    k->target.cookie_file = knock_keep(k, target->cookie_file);
    if (target->tls) {
        k->tls = *target->tls;
        k->tls.ca = knock_keep(k, target->tls->ca);
        k->tls.cert = knock_keep(k, target->tls->cert);
        k->tls.key = knock_keep(k, target->tls->key);
        k->tls.password = knock_keep(k, target->tls->password);
        k->tls.host = knock_keep(k, target->tls->host);
        k->target.tls = &k->tls;
    }
    atomic_init(&k->users, 2);
    if (thread_start(NULL, at_work, k))
        return k;
    knock_let_go(k);
    knock_let_go(k);
    return NULL;
}

int knock_fd(const struct knock *k)
{
    return k->ready[0];
}

bool knock_answer(struct knock *k, struct node_conn *ret_conn, struct err *e)
{
    char byte;

    while (read(k->ready[0], &byte, 1) < 0 && errno == EINTR)
        ;
    *ret_conn = k->conn;
    k->taken = k->ok;
    if (!k->ok)
        *e = k->why;
    return k->ok;
}

void knock_free(struct knock *k)
{
    if (k)
        knock_let_go(k);
}
