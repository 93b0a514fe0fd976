/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../ground/command_line.h"
#include "../node/cookie.h"
#include "../node/ssh.h"
#include "peers.h"

static bool take_tls_options(struct target *t, const struct node_opts *o, struct err *e)
{
    struct tls_options *tls = &t->tls;

    if (o->tls_optfile) {
        if (!optfile_read(o->tls_optfile, &t->file, e))
            return false;
        *tls = t->file.options;
    }
    if (o->tls_cert) {
        tls->cert = o->tls_cert;
        tls->key = tls->password = NULL;
    }
    tls->key = o->tls_key ? o->tls_key : tls->key;
    tls->ca = o->tls_ca ? o->tls_ca : tls->ca;
    tls->no_verify |= o->tls_no_verify;
    if (tls->key && !tls->cert)
        return err_set(e, ERR_USAGE, "--tls-key also needs --tls-cert FILE");
    t->node.tls = tls;
    return true;
}

const char *target_default(const struct node_opts *o)
{
    const char *name = getenv("ETRACE_NODE"), *kind = getenv("RELEASE_DISTRIBUTION");

    if (o->os_pid)
        return NULL;
    if (name && *name)
        return name;
    name = o->port > 0 || o->ssh || (kind && !strcmp(kind, "none")) ? NULL : getenv("RELEASE_NODE");
    return name && *name ? name : NULL;
}

/* Returns $ERL_DIST_PORT, with which the scripts of relx start a node without epmd. 0: unset, or not a port. */
static int port_of_environment(void)
{
    const char *text = getenv("ERL_DIST_PORT");
    char *end;
    long port = text && *text ? strtol(text, &end, 10) : 0;

    return port > 0 && port < 65536 && !*end ? (int)port : 0;
}

static bool not_a_pid(const char *text, struct err *e)
{
    struct command_line command = {0};

    if (!*text) {
        err_set(e, ERR_USAGE, "--pid got an empty value, not the number of an operating system process");
        err_hint(e,
                 "the command that looked for the process printed nothing; etrace nodes lists the nodes of this host");
        return false;
    }
    err_set(e, ERR_USAGE, "--pid takes the number of an operating system process, not '%s'", text);
    if (*text != '-' && strspn(text, "0123456789") != strlen(text)) {
        command_line_add(&command, "-n");
        command_line_word(&command, text);
        err_hint(e, "%s finds a node by its name", command_line_text(&command));
        command_line_release(&command);
    }
    return false;
}

bool target_init(struct target *t, const struct node_opts *o, const char *name, struct err *e)
{
    *t = (struct target){.node = {.name = name,
                                  .typed = name && strchr(name, '@'),
                                  .port = o->port == PORT_OF_EPMD ? 0 : (int)o->port,
                                  .ssh = o->ssh,
                                  .cookie_file = o->cookie_file}};
    if (o->port > 65535)
        return err_set(e, ERR_USAGE, "--port takes a number up to 65535, not %lld", (long long)o->port);
    if (o->nodes.count > PEERS_MAX)
        return err_set(e, ERR_USAGE, "%zu nodes are given, but one command takes at most %d", o->nodes.count,
                       PEERS_MAX);
    if (o->os_pid && o->nodes.count)
        return err_set(e, ERR_USAGE, "--node and --pid both select a node: use only one");
    if (o->os_pid) {
        char *end;
        t->node.ospid = strtol(o->os_pid, &end, 10);
        if (*end || t->node.ospid <= 0 || t->node.ospid > INT_MAX)
            return not_a_pid(o->os_pid, e);
    }
    if (o->ssh && !ssh_check(o->ssh, e))
        return false;
    if (!o->port && !o->os_pid && !o->cluster && !o->ssh && o->nodes.count < 2)
        t->node.port = port_of_environment();
    if (cookie_is_typed(o->cookie_file)) {
        err_set(e, ERR_USAGE, "--cookie-file - reads the cookie from standard input, which is a terminal");
        err_hint(e, "COMMAND | etrace --cookie-file - ...");
        return false;
    }
    return !(o->tls || o->tls_ca || o->tls_cert || o->tls_key || o->tls_optfile || o->tls_no_verify) ||
           take_tls_options(t, o, e);
}

void target_release(struct target *t)
{
    optfile_wipe(&t->file);
}
