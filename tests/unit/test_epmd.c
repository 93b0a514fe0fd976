/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests which address of a host is asked for its nodes. The first address accepts connections and never answers, the
 * second one has an epmd, which is a thread of the test.
 */
#include "node/epmd.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

static int listens_at(const char *address, uint16_t port, uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t len = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, address, &at.sin_addr);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 8) || getsockname(fd, (struct sockaddr *)&at, &len))
        return -1;
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* Answers two questions: for the names, and for the port of a node. */
static void *answers(void *data)
{
    static const char names[] = "\0\0\x11\x11name shop at port 4321\n", port[] = "\x77\0\x10\xe1";
    const int listening = *(int *)data;

    for (int i = 0; i < 2; i++) {
        char question[64];
        const int fd = accept(listening, NULL, NULL);
        const bool lists = read(fd, question, sizeof question) > 2 && question[2] == 'n';
        const ssize_t n = lists ? write(fd, names, sizeof names - 1) : write(fd, port, sizeof port - 1);
        (void)n;
        close(fd);
    }
    return NULL;
}

static struct addrs host(const char *first, const char *second)
{
    struct addrs a = {.count = 2};

    for (size_t i = 0; i < 2; i++) {
        struct sockaddr_in *at = (struct sockaddr_in *)&a.items[i].sa;
        at->sin_family = AF_INET;
        inet_pton(AF_INET, i ? second : first, &at->sin_addr);
        a.items[i].len = sizeof *at;
    }
    return a;
}

int main(void)
{
    uint16_t port = 0;
    int silent = listens_at("127.0.0.1", 0, &port), epmd = listens_at("127.0.0.2", port, &port), found = 0;
    struct epmd_names names = {0};
    struct addrs at = host("127.0.0.1", "127.0.0.2");
    struct addr asked;
    pthread_t thread;
    char text[8];

    if (silent < 0 || epmd < 0) {
        ok(true, "# SKIP the port is in use");
        return tap_end();
    }
    snprintf(text, sizeof text, "%u", port);
    setenv("ERL_EPMD_PORT", text, 1);
    pthread_create(&thread, NULL, answers, &epmd);
    ok(epmd_list_any(&at, net_now() + 2000, &names) == EPMD_OK, "a silent address does not hide the names of another");
    is_number(epmd_names_port(&names, "shop", 4), 4321, "the names are those of the second address");
    ok(((struct sockaddr_in *)&at.items[0].sa)->sin_addr.s_addr == inet_addr("127.0.0.2"), "which is now the first");
    epmd_names_release(&names);
    at = host("127.0.0.1", "127.0.0.2");
    ok(epmd_lookup_any(&at, "shop", net_now() + 2000, &found, &asked) == EPMD_OK && found == 4321,
       "nor does it hide the port of a node");
    pthread_join(thread, NULL);
    at = host("127.0.0.1", "127.0.0.3");
    ok(epmd_list_any(&at, net_now() + 400, &names) == EPMD_TIMEOUT, "silence is reported rather than a refusal");
    close(silent);
    close(epmd);
    return tap_end();
}
