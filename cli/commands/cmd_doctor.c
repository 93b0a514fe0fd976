/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etrace doctor: tries the steps of attaching one by one, reports the results, and names the first step that fails. A
 * trace takes the same steps, so it works if all of them succeed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../erlang/etf_write.h"
#include "../erlang/term_json.h"
#include "../node/arm.h"
#include "../node/companion.h"
#include "../node/cookies.h"
#include "../node/epmd.h"
#include "../node/netns.h"
#include "../node/rpc.h"
#include "../node/knock.h"
#include "../node/ssh.h"
#include "../node/vms.h"
#include "../node/session.h"
#include "../ground/aside.h"
#include "../ground/tty.h"
#include "../ground/utf8.h"
#include "../pipeline/pipeline.h"
#include "cmd.h"
#include "../trace/target.h"

#include <time.h> /* must come last, because it defines the macro TIME_UTC */

#define STEP_MS 5000
#define ANSWER_MS 10000
#define START_MS 70000 /* longer than the timeout of a session */

/* A function without effects that is rarely called, in a module that every node has loaded. */
static const char probe_module[] = "code", probe_function[] = "objfile_extension";

struct doctor_opts {
    bool json;
};

static const struct opt rows[] = {
    OPT_ROW(struct doctor_opts, 0, "json", NULL, OPT_FLAG, json, "one object per line"),
};
static const struct opt_group doctor_group = {"Output", rows, ARRAY_LEN(rows)};

struct doctor {
    struct ctx *ctx;
    const struct node_opts *o;
    bool json, color;
    struct target target;
    char name[NODE_NAME_MAX + 1];
    int port;
    long ospid; /* pid of the OS process of the node; 0: unknown */
    struct rpc rpc;
    bool connected;
    struct session *session;
    bool asked;  /* the answer to a request is missing */
    bool failed; /* the session has failed with `err` */
    struct err err;
    struct pipeline *pipeline;
    struct buf found;  /* what the current step has found */
    struct buf before; /* names of the companions that were on the node before doctor attached */
    int64_t began_ns;
    bool warns;
    const char *hint; /* hint of a warning; NULL: none */
};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void PRINTF_LIKE(2, 3) found(struct doctor *d, const char *fmt, ...)
{
    char text[700];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    utf8_make_safe(text);
    buf_puts(&d->found, d->found.len ? "; " : "");
    buf_puts(&d->found, text);
}

static double took_ms(const struct doctor *d)
{
    return (double)(now_ns() - d->began_ns) / 1e6;
}

/* ---- the steps ---- */

static bool step_host(struct doctor *d, struct err *e)
{
    const char *at = d->target.node.name ? strchr(d->target.node.name, '@') : NULL;
    struct addrs addrs = {0};

    if (d->o->ssh) {
        found(d, "logged in to %s with ssh", d->o->ssh);
        return ssh_open(d->o->ssh, e) != NULL;
    }
    if (!at) {
        found(d, "this one");
        return true;
    }
    switch (net_resolve(at + 1, net_now() + STEP_MS, &addrs)) {
    case NET_OK:
        found(d, "%s has %zu address%s", at + 1, addrs.count, PLURAL_ES(addrs.count));
        return true;
    case NET_TIMEOUT:
        err_set(e, ERR_NODE, "no DNS server answers for the host name %s", at + 1);
        break;
    case NET_CLOSED:
    case NET_FAILED:
    case NET_NO_PORT:
    case NET_REFUSED:
    case NET_TLS:
    case NET_UNKNOWN:
    case NET_UNREACHABLE:
        err_set(e, ERR_NODE, "there is no host named %s", at + 1);
        break;
    }
    err_hint(e, "the part after the @ must be an address, or a name that this host can resolve");
    return false;
}

static bool step_epmd(struct doctor *d, struct err *e)
{
    const char *at = d->target.node.name ? strchr(d->target.node.name, '@') : NULL;
    struct epmd_names names = {0};
    struct addrs addrs = {0};
    enum epmd_answer a;
    int64_t deadline = net_now() + STEP_MS;
    struct err ignored; /* the next step reports the error */
    long ospid;
    int back;

    if (d->target.node.port || d->o->ssh) {
        found(d, "skipped (%s)",
              d->o->port  ? "--port"
              : d->o->ssh ? "--ssh looks at the processes first"
                          : "$ERL_DIST_PORT");
        return true;
    }
    vm_below(d->target.node.ospid, &ospid, &ignored);
    if (!netns_enter(ospid, &back, e))
        return false;
    if (!at || net_resolve(at + 1, deadline, &addrs) != NET_OK)
        net_loopback(&addrs);
    a = epmd_list_any(&addrs, deadline, &names);
    netns_leave(back);
    if (back >= 0)
        found(d, "in its own network namespace");
    if (a == EPMD_OK) {
        found(d, "answers on port %d and knows %zu node%s", epmd_port(), names.count, PLURAL(names.count));
        epmd_names_release(&names);
        return true;
    }
    if (d->target.node.ospid) { /* etrace can find the port of an OS process without epmd */
        found(d, "does not answer on port %d, but --pid does not need it", epmd_port());
        return true;
    }
    if (a == EPMD_NO_PORT)
        return net_no_port("epmd", e);
    if (a == EPMD_NO_DAEMON && (!at || net_is_here(&addrs.items[0]))) {
        found(d, "none runs here (port %d), so etrace looks at the processes of this host", epmd_port());
        return true;
    }
    err_set(e, ERR_NODE, a == EPMD_NO_DAEMON ? "no epmd runs there (port %d)" : "epmd does not answer (port %d)",
            epmd_port());
    err_hint(e, a == EPMD_NO_DAEMON ? "no named node runs there, or its epmd uses another port ($ERL_EPMD_PORT); "
                                      "--port connects without epmd"
                                    : "does a firewall block the port?");
    return false;
}

static bool step_node(struct doctor *d, struct err *e)
{
    if (!node_resolve(&d->target.node, d->name, &d->port, &d->ospid, e))
        return false;
    if (d->target.node.ospid && d->ospid != d->target.node.ospid)
        found(d, "process %ld is the node, which process %ld started", d->ospid, d->target.node.ospid);
    if (d->target.node.port && !d->target.node.name)
        found(d, "the one at port %d of %s", d->port, d->o->ssh ? d->o->ssh : "this host");
    else if (d->port)
        found(d,
              d->o->port            ? "%s is expected on port %d (--port)"
              : d->target.node.port ? "%s is expected on port %d ($ERL_DIST_PORT)"
                                    : "%s listens on port %d",
              d->name, d->port);
    else
        found(d, "%s", d->name);
    return true;
}

static bool step_cookie(struct doctor *d, struct err *e)
{
    struct cookies all;
    const struct cookie *c;

    struct ssh *ssh = d->o->ssh ? ssh_open(d->o->ssh, e) : NULL;

    if (d->o->ssh && !ssh)
        return false;
    cookies_begin(&all, d->target.node.cookie_file, ssh, d->ospid);
    while ((c = cookies_next(&all))) {
        found(d, "%s%s", all.count == 1 ? "read from " : "then ", c->from);
        if (c->open) {
            found(d, "other users can access that file (mode %04o): chmod 400 %s", c->open, c->from);
            d->warns = true;
        }
    }
    cookies_end(&all);
    return all.count || cookies_none(&all, e);
}

static void on_knock(void *owner)
{
    *(bool *)owner = true;
}

static bool connect_to(struct doctor *d, struct node_conn *ret, struct err *e)
{
    struct knock *k = knock_start(&d->target.node);
    bool over = false;

    if (!k)
        return err_set(e, ERR_RUN, "cannot start a thread to connect to the node");
    struct loop_fd fd = {.fd = knock_fd(k), .want_read = true, .ready = on_knock, .owner = &over};
    loop_add(&d->ctx->loop, &fd);
    while (!over && !d->ctx->interrupts)
        loop_step(&d->ctx->loop, -1);
    loop_remove(&d->ctx->loop, &fd);
    bool ok = over ? knock_answer(k, ret, e) : err_set(e, ERR_NODE, "interrupted");
    knock_free(k);
    return ok;
}

static bool step_handshake(struct doctor *d, struct err *e)
{
    struct node_conn conn;

    if (!connect_to(d, &conn, e))
        return false;
    found(d, "connected to %s as a hidden node in %.1f ms, the cookie is accepted (from %s)", conn.node, took_ms(d),
          conn.cookie_from);
    memcpy(d->name, conn.node, sizeof d->name);
    rpc_open(&d->rpc, &conn, &d->ctx->loop);
    d->connected = true;
    return true;
}

/* Collects the names of the companions that are on the node, from its loaded modules and registered processes. */
static bool list_companions(struct doctor *d, struct buf *ret, struct err *e)
{
    static const char *const lists[] = {"loaded", "registered"};
    struct buf keep = {0}, nothing = {0};
    struct etf r;
    struct raw name;
    size_t n;
    bool ok = true;

    buf_clear(ret);
    etf_nil(&nothing);
    for (size_t i = 0; ok && i < ARRAY_LEN(lists); i++) {
        ok = rpc_call(&d->rpc, "erlang", lists[i], buf_view(&nothing), STEP_MS, &keep, &r, e);
        if (ok && !etf_get_list(&r, &n))
            ok = err_set(e, ERR_NODE, "its answer to erlang:%s/0 is malformed", lists[i]);
        for (size_t k = 0; ok && k < n && etf_get_atom(&r, &name); k++)
            if (companion_is_name(name)) {
                print_safe(ret, name);
                buf_char(ret, ' ');
            }
    }
    buf_release(&keep);
    buf_release(&nothing);
    return ok;
}

static bool step_rex(struct doctor *d, struct err *e)
{
    if (!list_companions(d, &d->before, e)) {
        err_hint(e, "the node's rex process must answer; it does not answer while kernel is still starting or hangs");
        return false;
    }
    found(d, "answers in %.1f ms", took_ms(d));
    return true;
}

static void cmd_doctor_on_batch(void *data, const void *batch, size_t len)
{
    struct doctor *d = data;
    struct err e;

    if (d->pipeline)
        pipeline_batch(d->pipeline, 0, (struct str){batch, len}, &e);
}

static void cmd_doctor_on_reply(void *data, const struct session_reply *reply)
{
    struct doctor *d = data;
    struct arm_result armed = {0};
    struct err e;

    d->asked = false;
    if (!reply->ok) {
        session_error(reply, &e);
        found(d, "%s", e.text);
        return;
    }
    if (arm_result_read(reply->term, &armed, &e))
        for (size_t i = 0; i < armed.warnings.n; i++) {
            found(d, "%s", armed.warnings.items[i]);
            d->warns = true;
        }
    arm_result_release(&armed);
}

static void cmd_doctor_on_readable(void *owner)
{
    struct doctor *d = owner;

    d->failed = d->failed || !session_on_readable(d->session, &d->err);
}

static bool is_booting(const struct doctor *d)
{
    return session_state(d->session) == SESSION_BOOTING;
}
static bool is_asked(const struct doctor *d)
{
    return d->asked;
}
static bool is_silent(const struct doctor *d)
{
    return !pipeline_totals(d->pipeline)->shown;
}
static bool is_leaving(const struct doctor *d)
{
    return session_state(d->session) == SESSION_STOPPING;
}

/*
 * Runs the loop while waits() returns true. Returns false, with an error, if the session fails, a signal arrives or the
 * time is over.
 */
static bool cmd_doctor_serve(struct doctor *d, bool (*waits)(const struct doctor *d), int timeout_ms, struct err *e)
{
    struct loop_fd fd = {.fd = session_fd(d->session), .want_read = true, .ready = cmd_doctor_on_readable, .owner = d};
    int64_t deadline = loop_now() + timeout_ms, next;

    err_set(e, ERR_NODE, "the node has not answered within %d seconds", timeout_ms / 1000);
    loop_add(&d->ctx->loop, &fd);
    while (waits(d) && !d->failed && loop_now() < deadline && !d->ctx->interrupts) {
        d->failed = !session_tick(d->session, session_now(), &next, &d->err);
        fd.want_write = session_wants_write(d->session);
        if (!d->failed)
            loop_step(&d->ctx->loop, MIN(deadline, next));
    }
    loop_remove(&d->ctx->loop, &fd);
    if (d->failed)
        *e = d->err;
    return !d->failed && !waits(d);
}

static bool step_companion(struct doctor *d, struct err *e)
{
    struct session_options options = {.variant = COMPANION_TRACE,
                                      .fallback = d->o->fallback,
                                      .patience_ms = SESSION_QUICK_MS};
    struct session_handlers handlers = {.data = d, .batch = cmd_doctor_on_batch, .reply = cmd_doctor_on_reply};

    struct node_conn conn;

    if (!connect_to(d, &conn, e))
        return false;
    d->session = session_open(&conn, &options, &handlers, e);
    if (!d->session || !cmd_doctor_serve(d, is_booting, START_MS, e))
        return false;
    const struct session_node *n = session_node(d->session);
    found(d, "started on the node in %.1f ms", (double)n->boot_ns / 1e6);
    return true;
}

static bool step_version(struct doctor *d, struct err *e UNUSED)
{
    const struct session_node *n = session_node(d->session);

    found(d, "OTP %s, erts %s, %s, %d scheduler%s, %llu process%s", n->otp_version, n->erts, n->arch, n->schedulers,
          PLURAL(n->schedulers), (unsigned long long)n->processes, PLURAL_ES(n->processes));
    return true;
}

/*
 * Returns a hint for the reason why the NIF was not loaded; NULL: none. `why` is text from the node: each directory
 * that it tried, with its error.
 */
static const char *nif_hint(const struct doctor *d, const char *why)
{
    if (d->o->fallback)
        return NULL;
    if (strstr(why, "no library for"))
        return "etrace version -v lists the architectures of this etrace; a build for that one loads its NIF";
    if (strstr(why, "read-only") || strstr(why, "noexec") || strstr(why, "not writable") || strstr(why, "no directory"))
        return "give the node a writable directory without noexec: a tmpfs or an emptyDir at /tmp, or RELEASE_TMP";
    return NULL;
}

static bool step_nif(struct doctor *d, struct err *e UNUSED)
{
    const struct session_node *n = session_node(d->session);

    d->warns = n->fallback;
    d->hint = n->fallback ? nif_hint(d, n->fallback_why) : NULL;
    if (n->fallback)
        found(d, "not loaded, so at most 1000 events a second: %s", n->fallback_why);
    else
        found(d, "loaded");
    return true;
}

static bool cmd_doctor_ask(struct doctor *d, struct str request, struct err *e)
{
    uint32_t id;

    d->asked = true;
    return session_request(d->session, request, ANSWER_MS, &id, e) && cmd_doctor_serve(d, is_asked, ANSWER_MS, e);
}

static bool step_arm(struct doctor *d, struct err *e)
{
    struct arm arm;
    struct buf etf = {0}, asked = {0}, request = {0};
    struct arm_pattern module = {.how = ARM_NAME, .text = {probe_module, sizeof probe_module - 1}};
    struct arm_pattern function = {.how = ARM_NAME, .text = {probe_function, sizeof probe_function - 1}};
    size_t before = d->found.len;

    etf_version(&etf);
    etf_atomz(&etf, "true");
    arm_init(&arm);
    arm_probe(&arm, 0, ARM_CALL, ARM_LOCAL);
    arm_select(&arm, module, function, 0, 0);
    arm_spec_any(&arm, buf_view(&etf));
    arm_flag(&arm, "call");
    arm_finish(&arm, &asked);
    arm_release(&arm);
    arm_request(&request, ARM_TRACE, buf_view(&asked));
    bool ok = cmd_doctor_ask(d, buf_view(&request), e);
    buf_release(&etf);
    buf_release(&asked);
    buf_release(&request);
    if (ok && d->found.len > before && !d->warns) {
        err_set(e, ERR_NODE, "the node does not trace: %.*s", (int)MIN(d->found.len, 400), d->found.data);
        return false;
    }
    if (ok)
        found(d, "%s:%s/0 is traced, in a session of its own", probe_module, probe_function);
    return ok;
}

/*
 * Calls the probed function through rex, and waits until its event has passed through the companion, the session and
 * the pipeline.
 */
static bool step_event(struct doctor *d, struct err *e)
{
    struct buf keep = {0}, nothing = {0};
    struct etf r;

    etf_nil(&nothing);
    bool ok = rpc_call(&d->rpc, probe_module, probe_function, buf_view(&nothing), STEP_MS, &keep, &r, e);
    if (ok && !cmd_doctor_serve(d, is_silent, STEP_MS, e))
        ok = d->failed ? false
                       : err_set(e, ERR_NODE, "a call of %s:%s/0 was traced, and no event came within %d seconds",
                                 probe_module, probe_function, STEP_MS / 1000);
    if (ok)
        found(d, "a call came back as an event in %.1f ms", took_ms(d));
    buf_release(&keep);
    buf_release(&nothing);
    return ok;
}

static bool step_leave(struct doctor *d, struct err *e)
{
    if (!session_stop(d->session, e) || !cmd_doctor_serve(d, is_leaving, ANSWER_MS, e))
        return false;
    found(d, "the node confirms that the session is gone, in %.1f ms", took_ms(d));
    return true;
}

static bool step_residue(struct doctor *d, struct err *e)
{
    struct buf after = {0};
    const char *name;
    char *all, *next = NULL;
    bool ok = list_companions(d, &after, e);

    all = ok ? strdup(buf_cstr(&after)) : NULL;
    for (name = all ? strtok_r(all, " ", &next) : NULL; ok && name; name = strtok_r(NULL, " ", &next))
        if (!strstr(buf_cstr(&d->before), name))
            ok = err_set(e, ERR_NODE, "%s is still on the node, or another etrace has just attached", name);
    if (ok)
        found(d, "no module and no process of etrace %s",
              d->before.len ? "that was not there before" : "is on the node");
    free(all);
    buf_release(&after);
    return ok;
}

static const struct step {
    const char *name;
    bool (*run)(struct doctor *d, struct err *e);
    /*
     * The step blocks in the resolver, in epmd or in a network namespace, so it runs on a thread of its own and must
     * not use the loop.
     */
    bool waits;
} steps[] = {
    {"host", step_host, true},
    {"epmd", step_epmd, true},
    {"node", step_node, true},
    {"cookie", step_cookie, true},
    {"handshake", step_handshake, false},
    {"rex", step_rex, false},
    {"companion", step_companion, false},
    {"version", step_version, false},
    {"NIF", step_nif, false},
    {"session", step_arm, false},
    {"event", step_event, false},
    {"leaving", step_leave, false},
    {"residue", step_residue, false},
};

struct step_job {
    const struct step *step;
    struct doctor *d;
    struct err *e;
    bool ok;
};

static void step_work(void *data)
{
    struct step_job *job = data;

    job->ok = job->step->run(job->d, job->e);
}

static bool step_run(struct doctor *d, const struct step *s, struct err *e)
{
    struct step_job job = {.step = s, .d = d, .e = e};

    if (s->waits)
        aside(&d->ctx->loop, step_work, &job);
    else
        step_work(&job);
    return job.ok;
}

/* ---- the report ---- */

static const char *hint_of(const struct doctor *d, bool ok, const struct err *e)
{
    return ok ? d->hint : *e->hint ? e->hint : NULL;
}

static void tell_json(struct doctor *d, const struct step *s, bool ok, const struct err *e)
{
    struct buf b = {0};
    struct raw text = ok ? raw_of(buf_view(&d->found)) : raw_text(e->text);

    json_begin_record(&b, "step");
    json_put_text(&b, "step", s->name);
    json_put_text(&b, "result", !ok ? "failed" : d->warns ? "warning" : "ok");
    json_put_string(&b, "found", text);
    if (hint_of(d, ok, e))
        json_put_text(&b, "hint", hint_of(d, ok, e));
    json_end_record(&b);
    out_take(d->ctx->out, &b);
    buf_release(&b);
}

static void tell_step(struct doctor *d, const struct step *s, bool ok, const struct err *e)
{
    static const char *const words[] = {"ok", "warn", "FAIL"}, *const colors[] = {"\033[32m", "\033[33m", "\033[1;31m"};
    size_t which = !ok ? 2 : d->warns ? 1 : 0;
    struct buf b = {0};

    if (d->json) {
        tell_json(d, s, ok, e);
        return;
    }
    buf_printf(&b, "%s%-5s%s%-10s ", d->color ? colors[which] : "", words[which], d->color ? "\033[m" : "", s->name);
    buf_str(&b, ok ? buf_view(&d->found) : (struct str){e->text, strlen(e->text)});
    buf_char(&b, '\n');
    if (hint_of(d, ok, e))
        buf_printf(&b, "%15s hint: %s\n", "", hint_of(d, ok, e));
    out_take(d->ctx->out, &b);
    buf_release(&b);
}

static bool set_up(struct doctor *d, struct err *e)
{
    struct pipeline_options options = {.nviews = 0};
    const char *name = d->o->nodes.count ? d->o->nodes.items[0] : target_default(d->o);

    if (d->o->nodes.count > 1 || d->o->cluster)
        return err_set(e, ERR_USAGE, "doctor checks one node at a time");
    if (!target_init(&d->target, d->o, name, e))
        return false;
    d->pipeline = pipeline_new(&options, e);
    return d->pipeline != NULL;
}

static int run_steps(struct doctor *d)
{
    struct err e;
    int status = 0;

    if (!set_up(d, &e))
        return ctx_fail(d->ctx, &e);
    for (size_t i = 0; i < ARRAY_LEN(steps) && !status && !d->ctx->interrupts; i++) {
        buf_clear(&d->found);
        d->warns = false;
        d->hint = NULL;
        d->began_ns = now_ns();
        bool ok = step_run(d, &steps[i], &e);
        tell_step(d, &steps[i], ok, &e);
        loop_step(&d->ctx->loop, 0); /* handles signals that have arrived */
        if (!ok)
            status = e.status == ERR_USAGE ? ERR_USAGE : ERR_NODE;
    }
    session_close(d->session);
    if (d->connected)
        rpc_close(&d->rpc);
    target_release(&d->target);
    pipeline_free(d->pipeline);
    buf_release(&d->found);
    buf_release(&d->before);
    return status;
}

static int cmd_doctor_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct node_opts node = NODE_OPTS_INIT;
    struct doctor_opts o = {0};
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&node_group, &node}, {&doctor_group, &o}, {&talk_group, &talk}};
    struct texts words = {0};
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status) &&
        cmd_no_words(ctx, self, &words, "etrace doctor -n NODE", &status)) {
        ctx_let_die(ctx, true); /* the node cleans up by itself, so a signal may end the program */
        struct doctor d = {.ctx = ctx, .o = &node, .json = o.json, .color = tty_colors(STDOUT_FILENO, COLOR_AUTO)};
        status = run_steps(&d);
        int unsaid = ctx_flush(ctx, 0); /* if the output has failed, the exit status must say so */
        status = unsaid ? unsaid : status;
        ctx_let_die(ctx, false);
    }
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const struct opt_group *const groups[] = {&node_group, &doctor_group, &talk_group, NULL};
const struct cmd cmd_doctor = {
    .name = "doctor",
    .usage = "[-n NODE] [OPTIONS]",
    .summary = "Tries each step of attaching and names the one that fails",
    .about = "doctor makes and traces one call of code:objfile_extension/0, and traces nothing\nelse.\n",
    .run = cmd_doctor_run,
    .aside = true,
    .groups = groups,
};
