/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the options of a local virtual machine from its command line in /proc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ground/proc_text.h"
#include "../ground/utf8.h"
#include "vms.h"

/*
 * Returns the OTP release from a directory such as "…/erts-15.2.7/bin", or 0. Since OTP 23, the release is the major
 * version of erts plus 12.
 */
static int release_of(const char *bindir)
{
    const char *erts = NULL;

    for (const char *at = bindir; (at = strstr(at, "erts-")); at++)
        erts = at;
    long major = erts ? strtol(erts + strlen("erts-"), NULL, 10) : 0;
    return major >= 11 && major < 1000 ? (int)major + 12 : 0;
}

static int port_of(const char *text)
{
    long port = strtol(text, NULL, 10);

    return port > 0 && port < 65536 ? (int)port : 0;
}

/*
 * Stops at -extra, because the arguments after it belong to the program and not to the virtual machine. Requires -root
 * and -bindir, which erlexec adds for every virtual machine.
 */
void arguments_read(const struct buf *b, struct arguments *a)
{
    bool root = false, bindir = false;

    for (const char *at = b->data, *value; at && (value = proc_next(b, at)) && strcmp(at, "-extra"); at = value)
        if ((!strcmp(at, "-name") || !strcmp(at, "-sname")) && strlen(value) <= NODE_NAME_MAX &&
            utf8_valid(value, strlen(value))) {
            memcpy(a->name, value, strlen(value) + 1);
        } else if (!strcmp(at, "-dist_listen")) {
            a->deaf = !strcmp(value, "false");
        } else if (!strcmp(at, "-erl_epmd_port")) {
            a->port = port_of(value);
        } else if (!strcmp(at, "-ssl_dist_optfile")) {
            snprintf(a->optfile, sizeof a->optfile, "%s", strlen(value) < sizeof a->optfile ? value : "");
        } else if (!strcmp(at, "-elixir") || !strcmp(at, "-elixir_root") || !strcmp(at, "elixir")) {
            a->elixir = true;
        } else if (!strcmp(at, "-root")) {
            root = true;
        } else if (!strcmp(at, "-bindir")) {
            bindir = true;
            a->otp = release_of(value);
        }
    a->vm = root && bindir;
}

bool find_arguments(long ospid, struct arguments *ret)
{
    struct buf b = {0};
    char pid[24];

    *ret = (struct arguments){0};
    snprintf(pid, sizeof pid, "%ld", ospid);
    bool ok = proc_read(pid, "cmdline", &b) && b.len > 1;
    if (ok)
        arguments_read(&b, ret);
    proc_wipe(&b);
    return ok;
}

void hint_of_no_port(const struct arguments *a, struct err *e)
{
    if (a->name[0] && strcmp(a->name, "undefined") != 0)
        err_hint(e, "is it still starting, or did it not get its name? Its log says so");
    else if (a->elixir) /* epmd must run before the node gets a name */
        err_hint(e, "in its iex: :os.cmd(~c\"epmd -daemon; sleep 1\"); Node.start(:shop, :shortnames); or start it "
                    "with --sname, a release with RELEASE_DISTRIBUTION=sname");
    else
        err_hint(e, "in its shell: os:cmd(\"epmd -daemon; sleep 1\"), net_kernel:start(shop, #{name_domain => "
                    "shortnames}); or start it with -sname");
}
