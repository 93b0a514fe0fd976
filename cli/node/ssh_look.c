/* SPDX-License-Identifier: Apache-2.0 */
#include "ssh_look.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ground/mem.h"
#include "../ground/proc_text.h"
#include "../ground/utf8.h"

#define LISTENERS_MAX 65536
#define VMS_MOST 1024

/*
 * Each line is a word and a value:
 *
 *     uid 1000, host h1, net net:[4026531840]     the user, the host's name, the shell's network namespace
 *     big                                         the machine is big-endian
 *     listen ADDRESS:PORT UID INODE               a listening socket, in the form of /proc/net/tcp and tcp6
 *     process 4711                                a process that may run Erlang; the next lines describe it
 *     owner 1000, space net:[4026531840]          the process's user and its network namespace
 *     inode INODE                                 a listening socket of the process
 *     hidden                                      /proc does not show the descriptors of the process
 *     arg TEXT                                    an argument of the process; line ends in it became \001
 *     end                                         the last line
 *
 * ssh_look_script looks for -bindir, which erlexec adds to the arguments of every virtual machine.
 */
#define ABOUT_HOST                                                                                                     \
    "LC_ALL=C; export LC_ALL; echo \"uid $(id -u)\"; read -r h </proc/sys/kernel/hostname; echo \"host $h\"\n"         \
    "echo \"net $(readlink /proc/self/ns/net)\"\n"                                                                     \
    "grep -q \"$(printf '^.ELF.\\002')\" /proc/self/exe && echo big\n"                                                 \
    "listen=$(sed -n 's/^ *[0-9]*: \\([0-9A-F]*:[0-9A-F]*\\) [0-9A-F:]* 0A [^ ]* [^ ]* [^ ]*"                          \
    " *\\([0-9]*\\) *[0-9]* \\([0-9]*\\) .*/listen \\1 \\2 \\3/p' /proc/net/tcp /proc/net/tcp6)\n"                     \
    "echo \"$listen\"\n"

const char ssh_look_sockets_script[] = ABOUT_HOST "echo end\n";
/*
 * Starts only a few programs for each process. The first grep does not find itself, because its pattern does not match
 * its own command line.
 */
const char ssh_look_script[] = ABOUT_HOST
    "sockets=$(echo \"$listen\" | sed 's/.* \\(.*\\)/socket:[\\1]/')\n"
    "for f in $(grep -ls -e '-bindi[r]' /proc/[0-9]*/cmdline); do p=${f%/cmdline}; echo \"process ${p#/proc/}\"\n"
    "while read -r k r u x; do case $k in Uid:) echo \"owner $u\"; break;; esac; done <$p/status\n"
    "echo \"space $(readlink $p/ns/net)\"; [ -e $p/cwd/. ] || echo hidden\n"
    "ls -l $p/fd | grep -F -e \"$sockets\" | sed -n 's/.*socket:\\[\\([0-9]*\\)\\]$/inode \\1/p'\n"
    "tr '\\000\\012' '\\012\\001' <$f | sed 's/^/arg /'; echo; done; echo end\n";

/* Does not use command_line_word(), which may write $'...': some shells do not know that form. */
void ssh_quote(struct buf *b, const char *text)
{
    buf_char(b, '\'');
    for (const char *c = text; *c; c++)
        if (*c == '\'')
            buf_puts(b, "'\\''");
        else
            buf_char(b, *c);
    buf_char(b, '\'');
}

/* ---- addresses ---- */

/*
 * Writes the address at which ssh reaches a listening socket: the loopback address if the socket listens on all
 * addresses. The kernel prints the words of the address as numbers in the byte order of its machine. Returns false if
 * `hex` is malformed.
 */
static bool look_address(const char *hex, bool big, char ret[64])
{
    uint32_t words[4] = {0};
    char text[INET6_ADDRSTRLEN];
    const size_t len = strlen(hex);
    const int n = sscanf(hex, "%8x%8x%8x%8x", &words[0], &words[1], &words[2], &words[3]);

    for (int i = 0; i < n; i++)
        words[i] = big ? htobe32(words[i]) : htole32(words[i]);
    if (len == 8 && n == 1) {
        words[0] = words[0] ? words[0] : htonl(INADDR_LOOPBACK);
        return inet_ntop(AF_INET, words, ret, 64) != NULL;
    }
    if (len != 32 || n != 4)
        return false;
    if (!words[0] && !words[1] && words[2] == htonl(0xffff)) { /* an IPv4 address that is mapped to IPv6 */
        words[3] = words[3] ? words[3] : htonl(INADDR_LOOPBACK);
        return inet_ntop(AF_INET, &words[3], ret, 64) != NULL;
    }
    if (!(words[0] | words[1] | words[2] | words[3]))
        words[3] = htonl(1);
    if (!inet_ntop(AF_INET6, words, text, sizeof text))
        return false;
    snprintf(ret, 64, "[%s]", text);
    return true;
}

/* ---- lines ---- */

/* The state of ssh_look_read() between two lines. */
struct look_reader {
    struct ssh_look *look;
    size_t listeners_cap, vms_cap;
    char net[64];
    struct vm *vm;        /* the process that the next lines describe; NULL: none, or a process that is left out */
    struct buf arguments; /* the arguments of that process, as in /proc/PID/cmdline */
    bool big, ended;
};

static void look_listener(struct look_reader *r, const char *value)
{
    struct ssh_look *l = r->look;
    struct ssh_listener s = {0};
    char hex[40];
    unsigned port;

    if (l->count == LISTENERS_MAX || sscanf(value, "%39[0-9A-F]:%4x %u %lu", hex, &port, &s.uid, &s.inode) != 4 ||
        !port || !s.inode || !look_address(hex, r->big, s.address))
        return;
    s.port = (int)port;
    l->listeners = mem_grow(l->listeners, &r->listeners_cap, l->count + 1, sizeof s);
    l->listeners[l->count++] = s;
}

/* Completes the current process after its last line. Drops it if its arguments are not those of a virtual machine. */
static void look_end_process(struct look_reader *r)
{
    struct vm *vm = r->vm;

    r->vm = NULL;
    if (!vm)
        return;
    buf_char(&r->arguments, 0);
    arguments_read(&r->arguments, &vm->arguments);
    if (!vm->visible && !vm->nports && vm->arguments.port)
        vm->ports[vm->nports++] = vm->arguments.port;
    if (!vm->arguments.vm)
        r->look->vms.count--;
}

static void look_process(struct look_reader *r, const char *value)
{
    struct vms *v = &r->look->vms;
    const long ospid = strtol(value, NULL, 10);

    look_end_process(r);
    buf_clear(&r->arguments);
    if (ospid <= 0 || v->count == VMS_MOST)
        return;
    v->items = mem_grow(v->items, &r->vms_cap, v->count + 1, sizeof *v->items);
    r->vm = &v->items[v->count++];
    *r->vm = (struct vm){.ospid = ospid, .here = true, .visible = true};
}

static void look_inode(struct look_reader *r, const char *value)
{
    const unsigned long inode = strtoul(value, NULL, 10);

    for (size_t i = 0; i < r->look->count && r->vm->nports < ARRAY_LEN(r->vm->ports); i++) {
        struct ssh_listener *l = &r->look->listeners[i];
        if (l->inode != inode)
            continue;
        l->ospid = r->vm->ospid;
        r->vm->ports[r->vm->nports++] = l->port;
    }
}

/* Handles a line that describes the current process. Ignores unknown lines. */
static void look_at_process(struct look_reader *r, const char *word, const char *value)
{
    if (!r->vm)
        return;
    if (!strcmp(word, "owner"))
        r->vm->uid = (unsigned)strtoul(value, NULL, 10);
    else if (!strcmp(word, "space"))
        r->vm->here = !*value || !*r->net || !strcmp(value, r->net);
    else if (!strcmp(word, "hidden"))
        r->vm->visible = false;
    else if (!strcmp(word, "inode"))
        look_inode(r, value);
    else if (!strcmp(word, "arg"))
        buf_add(&r->arguments, value, strlen(value) + 1);
}

static void look_line(struct look_reader *r, char *line)
{
    char *value = line + strcspn(line, " ");

    if (*value)
        *value++ = 0;
    if (!strcmp(line, "uid"))
        r->look->uid = (unsigned)strtoul(value, NULL, 10);
    else if (!strcmp(line, "host"))
        snprintf(r->look->host, sizeof r->look->host, "%s", value), utf8_make_safe(r->look->host);
    else if (!strcmp(line, "net"))
        snprintf(r->net, sizeof r->net, "%s", value);
    else if (!strcmp(line, "big"))
        r->big = true;
    else if (!strcmp(line, "listen"))
        look_listener(r, value);
    else if (!strcmp(line, "process"))
        look_process(r, value);
    else if (!strcmp(line, "end"))
        r->ended = true;
    else
        look_at_process(r, line, value);
}

bool ssh_look_read(char *text, size_t len, struct ssh_look *ret)
{
    struct ssh_look look = {.uid = UINT32_MAX};
    struct look_reader r = {.look = &look};
    char *end = text + len;

    for (char *line = text, *next; line < end && !r.ended; line = next) {
        char *nl = memchr(line, '\n', (size_t)(end - line));
        next = nl ? nl + 1 : end;
        if (nl)
            *nl = 0;
        look_line(&r, line);
    }
    look_end_process(&r);
    proc_wipe(&r.arguments);
    if (!r.ended || look.uid == UINT32_MAX || !*look.host) {
        ssh_look_release(&look);
        return false;
    }
    *ret = look;
    return true;
}

void ssh_look_release(struct ssh_look *l)
{
    free(l->listeners);
    vms_release(&l->vms);
    *l = (struct ssh_look){0};
}

static int look_rank(const struct ssh_listener *s, long ospid)
{
    return (ospid && s->ospid == ospid ? 2 : 0) + !strcmp(s->address, "127.0.0.1");
}

const struct ssh_listener *ssh_look_at(const struct ssh_look *l, int port, long ospid)
{
    const struct ssh_listener *best = NULL;

    for (size_t i = 0; i < l->count; i++)
        if (l->listeners[i].port == port && (!best || look_rank(&l->listeners[i], ospid) > look_rank(best, ospid)))
            best = &l->listeners[i];
    return best;
}
