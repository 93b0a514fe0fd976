/* SPDX-License-Identifier: Apache-2.0 */
#include "epmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/mem.h"

#define PORT2_REQ 122
#define PORT2_RESP 119
#define NAMES_REQ 110
#define ANSWER_MAX (1u << 20)
#define NAMES_MAX 10000

int epmd_port(void)
{
    const char *text = getenv("ERL_EPMD_PORT");
    char *end;
    long port = text && *text ? strtol(text, &end, 10) : 0;

    return text && *text && !*end && port > 0 && port < 65536 ? (int)port : 4369;
}

/*
 * Returns true if the answer to PORT2_REQ is complete enough: it reports an error in its second byte, or has the two
 * bytes of the port after it.
 */
static bool knows_port(const char *answer, size_t len)
{
    return len >= 4 || (len >= 2 && answer[1] != 0);
}

/*
 * Sends a request, reads the answer, and closes the connection. epmd closes the connection after each answer, but a
 * port forwarder may keep it open. Therefore reading also ends when `enough` (NULL: not used) returns true. The caller
 * frees *ret, which ends in a NUL.
 */
static enum epmd_answer epmd_talk(int fd, const char *request, size_t len,
                                  bool (*enough)(const char *answer, size_t len), int64_t deadline, char **ret,
                                  size_t *ret_len)
{
    char frame[300];
    char *all = NULL;
    size_t cap = 0, got = 0, n;
    enum net_status s;

    frame[0] = (char)(len >> 8);
    frame[1] = (char)len;
    memcpy(frame + 2, request, len);
    s = net_write(fd, frame, len + 2, deadline);
    while (s == NET_OK && got < ANSWER_MAX && !(enough && enough(all, got))) {
        all = mem_grow(all, &cap, got + 4096, 1);
        s = net_read(fd, all + got, cap - got - 1, deadline, &n);
        if (s == NET_OK)
            got += n;
    }
    close(fd);
    if (!got || (s != NET_CLOSED && !(s == NET_OK && got < ANSWER_MAX))) {
        free(all);
        return s == NET_TIMEOUT ? EPMD_TIMEOUT : EPMD_GARBAGE;
    }
    all[got] = 0;
    *ret = all;
    *ret_len = got;
    return EPMD_OK;
}

static enum epmd_answer epmd_ask(const struct addr *host, size_t left, const char *request, size_t len,
                                 bool (*enough)(const char *answer, size_t len), int64_t deadline, char **ret,
                                 size_t *ret_len)
{
    const int64_t own = net_share(deadline, left);
    int fd;

    switch (net_connect(host, epmd_port(), own, &fd)) {
    case NET_OK:
        return epmd_talk(fd, request, len, enough, own, ret, ret_len);
    case NET_REFUSED:
        return EPMD_NO_DAEMON;
    case NET_NO_PORT:
        return EPMD_NO_PORT;
    case NET_UNREACHABLE:
    case NET_TIMEOUT:
    case NET_CLOSED:
    case NET_UNKNOWN:
    case NET_TLS:
    case NET_FAILED:
        break;
    }
    return EPMD_UNREACHABLE;
}

static enum epmd_answer epmd_lookup(const struct addr *host, size_t left, const char *alive, int64_t deadline,
                                    int *ret_port)
{
    char request[256], *answer;
    size_t len = strlen(alive), got;
    enum epmd_answer a;

    if (len > sizeof request - 1)
        return EPMD_NO_NODE;
    request[0] = PORT2_REQ;
    memcpy(request + 1, alive, len);
    a = epmd_ask(host, left, request, len + 1, knows_port, deadline, &answer, &got);
    if (a != EPMD_OK)
        return a;
    if (got < 2 || answer[0] != PORT2_RESP)
        a = EPMD_GARBAGE;
    else if (answer[1] != 0)
        a = EPMD_NO_NODE;
    else if (got < 4)
        a = EPMD_GARBAGE;
    else
        *ret_port = (unsigned char)answer[2] << 8 | (unsigned char)answer[3];
    free(answer);
    return a;
}

/* Reads the lines "name NAME at port PORT" and ignores other lines. */
static void parse_names(char *text, struct epmd_names *names)
{
    size_t cap = 0;
    char *save, *line;

    for (line = strtok_r(text, "\n", &save); line && names->count < NAMES_MAX; line = strtok_r(NULL, "\n", &save)) {
        struct epmd_name n;
        if (sscanf(line, "name %255s at port %d", n.name, &n.port) != 2 || n.port <= 0 || n.port > 65535)
            continue;
        names->items = mem_grow(names->items, &cap, names->count + 1, sizeof n);
        names->items[names->count++] = n;
    }
}

static const char names_request = NAMES_REQ;

static enum epmd_answer take_names(enum epmd_answer a, char *answer, size_t got, struct epmd_names *ret)
{
    struct epmd_names names = {0};

    if (a != EPMD_OK)
        return a;
    if (got >= 4)
        parse_names(answer + 4, &names);
    free(answer);
    *ret = names;
    return got >= 4 ? EPMD_OK : EPMD_GARBAGE;
}

enum epmd_answer epmd_list(const struct addr *host, size_t left, int64_t deadline, struct epmd_names *ret)
{
    char *answer = NULL;
    size_t got = 0;
    enum epmd_answer a = epmd_ask(host, left, &names_request, 1, NULL, deadline, &answer, &got);

    return take_names(a, answer, got, ret);
}

enum epmd_answer epmd_list_on(int fd, int64_t deadline, struct epmd_names *ret)
{
    char *answer = NULL;
    size_t got = 0;
    enum epmd_answer a = epmd_talk(fd, &names_request, 1, NULL, deadline, &answer, &got);

    return take_names(a, answer, got, ret);
}

/* A question to the epmd of a host: for the port of the node `alive`, or, if that is NULL, for all names. */
struct epmd_question {
    const char *alive;
    int *ret_port;
    struct epmd_names *ret_names;
};

/*
 * Asks the epmd at each address until one answers the question, and moves this address to the front. Returns the
 * failure with the highest enum epmd_answer, and in *ret_asked its address.
 */
static enum epmd_answer epmd_ask_any(struct addrs *host, const struct epmd_question *q, int64_t deadline,
                                     struct addr *ret_asked)
{
    enum epmd_answer worst = EPMD_OK;

    for (size_t i = 0; i < host->count && worst != EPMD_NO_NODE; i++) {
        const struct addr at = host->items[i];
        const size_t left = host->count - i;
        const enum epmd_answer a = q->alive ? epmd_lookup(&at, left, q->alive, deadline, q->ret_port)
                                            : epmd_list(&at, left, deadline, q->ret_names);
        if (a == EPMD_OK) {
            net_prefer(host, &at);
            return a;
        }
        if (a > worst) {
            worst = a;
            *ret_asked = at;
        }
    }
    return worst == EPMD_OK ? EPMD_UNREACHABLE : worst;
}

enum epmd_answer epmd_list_any(struct addrs *host, int64_t deadline, struct epmd_names *ret)
{
    struct addr asked;

    return epmd_ask_any(host, &(struct epmd_question){.ret_names = ret}, deadline, &asked);
}

enum epmd_answer epmd_lookup_any(struct addrs *host, const char *alive, int64_t deadline, int *ret_port,
                                 struct addr *ret_asked)
{
    return epmd_ask_any(host, &(struct epmd_question){.alive = alive, .ret_port = ret_port}, deadline, ret_asked);
}

int epmd_names_port(const struct epmd_names *n, const char *name, size_t len)
{
    for (size_t i = 0; len && i < n->count; i++)
        if (strlen(n->items[i].name) == len && !memcmp(n->items[i].name, name, len))
            return n->items[i].port;
    return 0;
}

void epmd_names_release(struct epmd_names *n)
{
    free(n->items);
    *n = (struct epmd_names){0};
}
