/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests what etrace takes from the shell of another host, which may lie, and which node it finds in that. cli/260 has a
 * real ssh.
 */
#include "node/ssh_find.h"

#include <stdlib.h>

#include "tap.h"

#define HEAD "uid 1000\nhost h1.shop.internal\nnet net:[1]\n"
#define VM(pid, args)                                                                                                  \
    "process " pid "\nowner 1000\nspace net:[1]\n" args "arg -root\narg /r\narg -bindir\narg /r/erts-15.2/bin\narg \n"
#define NAMED(name) "arg -name\narg " name "\n"

static struct ssh_look look;

static bool reads(const char *text)
{
    char *copy = strdup(text);

    ssh_look_release(&look);
    bool good = ssh_look_read(copy, strlen(copy), &look);
    free(copy);
    return good;
}

static void address_is_on(const char *machine, const char *hex, const char *want)
{
    char text[300];

    snprintf(text, sizeof text, HEAD "%slisten %s:1113 0 5\nend\n", machine, hex);
    ok(reads(text), "a look is read");
    is_text(look.count ? look.listeners[0].address : "none", want, "where ssh connects to");
}

static void address_is(const char *hex, const char *want)
{
    address_is_on("", hex, want);
}

static void test_look(void)
{
    address_is("0100007F", "127.0.0.1");
    address_is("00000000", "127.0.0.1");
    address_is("0A00000A", "10.0.0.10");
    address_is("00000000000000000000000001000000", "[::1]");
    address_is("00000000000000000000000000000000", "[::1]");
    address_is("0000000000000000FFFF00000100007F", "127.0.0.1");
    address_is("B80D0120000000000000000001000000", "[2001:db8::1]");
    address_is_on("big\n", "7F000001", "127.0.0.1");
    address_is_on("big\n", "0A00000B", "10.0.0.11");
    address_is_on("big\n", "00000000", "127.0.0.1");
    address_is_on("big\n", "00000000000000000000000000000001", "[::1]");
    address_is_on("big\n", "00000000000000000000FFFF0A00000B", "10.0.0.11");
    address_is_on("big\n", "20010DB8000000000000000000000001", "[2001:db8::1]");
    address_is("01", "none");
    address_is("0100007F0100007F", "none");

    reads(HEAD "listen 0100007F:1113 1000 77\nlisten 00000000:1113 1001 78\n" VM("42", "inode 77\ninode 99\n" NAMED(
                                                                                           "shop@h9")) "end\n");
    ok(look.uid == 1000 && look.vms.count == 1 && look.vms.items[0].nports == 1,
       "a process has the ports of its sockets");
    is_text(look.vms.items[0].arguments.name, "shop@h9", "the name is among the arguments");
    is_number(look.vms.items[0].arguments.otp, 27, "so is the release");
    is_number((int64_t)ssh_look_at(&look, 0x1113, 42)->inode, 77, "the socket of the process is preferred");
    is_number(ssh_look_at(&look, 0x1113, 42)->ospid, 42, "the socket knows its process");
    ok(!ssh_look_at(&look, 5, 42), "nothing listens on another port");

    reads(HEAD VM("42", "hidden\narg -erl_epmd_port\narg 4370\n") "end\n");
    ok(!look.vms.items[0].visible && look.vms.items[0].ports[0] == 4370,
       "a hidden process has the port of its arguments");
    reads(HEAD "process 42\nspace net:[2]\narg -root\narg x\narg -bindir\narg x\narg \nend\n");
    ok(!look.vms.items[0].here, "a process may be in another network");
    reads(HEAD "process 42\narg grep\narg -bindir\narg /proc/1/cmdline\nend\n");
    is_number((int64_t)look.vms.count, 0, "a process that is no virtual machine is left out");
}

static void test_hostile(void)
{
    struct buf b = {0};

    ok(!reads(""), "an empty answer is refused");
    ok(!reads(HEAD), "an answer without its end is refused");
    ok(!reads("uid 0\nend\n") && !reads("host a\nend\n"), "so is one without the user or the host");
    ok(reads(HEAD "listen\nlisten x\nlisten 0100007F:0 0 1\nlisten 0100007F:FFFFF 0 1\ninode 5\nowner 5\narg x\n"
                  "process\nprocess -1\nprocess x\nfoo\n\n \nend\n"),
       "lines that make no sense are skipped");
    ok(!look.count && !look.vms.count, "and leave nothing");
    reads("uid 1\nhost a\033[2Jb\nend\n");
    ok(!strchr(look.host, '\033'), "the name of the host is safe to print");
    buf_puts(&b, HEAD);
    for (int i = 0; i < 5000; i++)
        buf_printf(&b, "process %d\narg -root\narg x\narg -bindir\narg x\narg \n", i + 1);
    for (int i = 0; i < 100000; i++)
        buf_puts(&b, "listen 0100007F:1113 0 5\n");
    buf_puts(&b, "end\n");
    ok(reads(buf_cstr(&b)) && look.vms.count <= 1024 && look.count <= 65536, "processes and sockets are bounded");
    reads(HEAD VM("42", NAMED("a\033b@c")) "end\n");
    ok(look.vms.count == 1, "a name with a control character is read");
    buf_release(&b);
}

static void quote_is(const char *text, const char *want)
{
    struct buf b = {0};

    ssh_quote(&b, text);
    is_text(buf_cstr(&b), want, "a word for the shell");
    buf_release(&b);
}

/* ---- the node ---- */

static const char *known; /* what epmd says: "NAME PORT"; NULL: none runs */
static int asked;

static enum epmd_answer ask(void *data, struct epmd_names *ret, struct err *e)
{
    (void)data, (void)e;
    asked++;
    *ret = (struct epmd_names){0};
    if (!known)
        return EPMD_NO_DAEMON;
    ret->items = calloc(1, sizeof *ret->items);
    ret->count = *known != 0;
    sscanf(known, "%255s %d", ret->items->name, &ret->items->port);
    return EPMD_OK;
}

/* Finds a node; `want` is its name and its first port, or the message. */
static void found_is(struct node_target t, const char *want, long there)
{
    const struct ssh_places places = {.host = "far", .look = &look, .ask = ask};
    struct place p = {0};
    struct err e = {0};
    char got[800];

    t.ssh = "far";
    asked = 0;
    if (ssh_find(&places, &t, &p, &e))
        snprintf(got, sizeof got, "%s %d", p.name, p.ports[0]);
    else
        snprintf(got, sizeof got, "%s", e.text);
    is_text(got, want, "the node that is found");
    is_number(p.there, there, "its process");
}

#define TARGET(...) ((struct node_target){__VA_ARGS__})

static void test_find(void)
{
    static const char two[] =
        HEAD "listen 0100007F:0064 1000 7\nlisten 0100007F:00C8 1000 8\n" VM("42",
                                                                             "inode 7\n" NAMED("shop@h1.shop.internal"))
            VM("43", "inode 8\narg -sname\narg two\n") "end\n";

    known = NULL;
    reads(two);
    found_is(TARGET(.name = "shop"), "shop@h1.shop.internal 100", 42);
    is_number(asked, 0, "epmd is not asked if a process tells");
    found_is(TARGET(.name = "shop@h1.shop.internal"), "shop@h1.shop.internal 100", 42);
    found_is(TARGET(.name = "shop@elsewhere"), "shop@h1.shop.internal 100", 42);
    found_is(TARGET(.name = "two"), "two@h1 200", 43);
    found_is(TARGET(.name = "none"),
             "cannot connect to none@h1: far has no process of that name and no epmd (port 4369)", 0);
    found_is(TARGET(.name = "a b"), "'a b' is not a node name: it contains a space, a slash or an invisible character",
             0);
    found_is(TARGET(.ospid = 43), "two@h1 200", 43);
    found_is(TARGET(.ospid = 44), "far has no process 44 that runs Erlang", 0);
    found_is(TARGET(.port = 100), "shop@h1.shop.internal 100", 42);
    found_is(TARGET(.port = 5), "port 5 5", 0);
    found_is(TARGET(0),
             "no node was given, and several run on far: shop@h1.shop.internal (process 42), two (process 43)", 0);
    known = "third 300";
    found_is(TARGET(.name = "third"), "third@h1 300", 0);
    found_is(TARGET(.name = "none"), "cannot connect to none@h1: epmd on far knows no node of that name", 0);
    /* A process that got its name later, and one in a container. */
    reads(HEAD "listen 0100007F:012C 1000 7\n" VM("42", "inode 7\n") "end\n");
    found_is(TARGET(0), "third@h1 300", 42);
    reads(HEAD "process 42\nspace net:[2]\n" NAMED("shop@c") "arg -root\narg x\narg -bindir\narg x\narg \nend\n");
    known = NULL;
    found_is(TARGET(.ospid = 42),
             "process 42 of far is in another network, as in a container, which ssh does not reach", 0);
    found_is(TARGET(0), "no node was given, and none runs on far", 0);
    known = "a\033b 300";
    reads(HEAD "end\n");
    found_is(TARGET(0), "'a?b' is not a node name: it contains a space, a slash or an invisible character", 0);
}

int main(void)
{
    unsetenv("ERL_EPMD_PORT");
    test_look();
    test_hostile();
    quote_is("/a b", "'/a b'");
    quote_is("a'; id; '", "'a'\\''; id; '\\'''");
    quote_is("\001$(id)\n", "'\001$(id)\n'");
    test_find();
    ssh_look_release(&look);
    return tap_end();
}
