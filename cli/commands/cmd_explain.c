/* SPDX-License-Identifier: Apache-2.0 */
/* etrace explain: prints the meaning of an expression. Asks no node. */
#include <string.h>

#include "cmd.h"
#include "../trace/assertions.h"
#include "../trace/exprs.h"
#include "../trace/overlap.h"

struct explain_opts {
    int format; /* index of the word in "text|erl|json" */
    const char *dump, *when;
    int64_t otp;
};

#define ROW(...) OPT_ROW(struct explain_opts, __VA_ARGS__)
static const struct opt rows[] = {
    ROW(0, "format", "text|erl|json", OPT_CHOICE, format, "how to print specifications (default text)"),
    ROW(0, "dump", "PASSES", OPT_TEXT, dump,
        "print the output of these compiler passes (A,B,C); list prints their names"),
    ROW(0, "snapshot-when", "EXPR", OPT_TEXT, when, "also say who decides this condition of a flight recorder"),
    ROW(0, "otp", "N", OPT_POSITIVE, otp, "compile for a node of this OTP release"),
};
static const struct opt_group explain_group = {"Output", rows, ARRAY_LEN(rows)};

/* ---- passes ---- */

/* The compiler passes that --dump names, and their output. */
struct passes {
    struct buf bufs[LANG_PASSES];
    struct buf *dumps[LANG_PASSES]; /* NULL: --dump does not name the pass */
    size_t count;
};

static bool passes_add(struct passes *p, const char *word, size_t len)
{
    for (size_t i = 0; i < LANG_PASSES; i++) {
        const char *name = lang_pass(i)->name;
        if (strlen(name) != len || memcmp(name, word, len))
            continue;
        p->count += !p->dumps[i];
        p->dumps[i] = &p->bufs[i];
        return true;
    }
    return false;
}

static bool passes_read(struct passes *p, const char *list, struct err *e)
{
    struct buf names = {0};

    for (bool more = list; more; list += strcspn(list, ","), more = *list == ',', list += more) {
        const size_t len = strcspn(list, ",");
        if (passes_add(p, list, len))
            continue;
        for (size_t i = 0; i < LANG_PASSES; i++)
            buf_printf(&names, "%s%s", i ? ", " : "", lang_pass(i)->name);
        err_set(e, ERR_USAGE, "unknown pass '%.*s' in --dump", (int)MIN(len, 40), list);
        err_hint(e, "%s", buf_cstr(&names));
        buf_release(&names);
        return false;
    }
    return true;
}

static int passes_list(struct ctx *ctx)
{
    struct buf out = {0};

    for (size_t i = 0; i < LANG_PASSES; i++)
        buf_printf(&out, "%-8s  %s\n", lang_pass(i)->name, lang_pass(i)->doc);
    out_take(ctx->out, &out);
    buf_release(&out);
    return 0;
}

static void passes_release(struct passes *p)
{
    for (size_t i = 0; i < LANG_PASSES; i++)
        buf_release(&p->bufs[i]);
}

/* ---- specs ---- */

/*
 * Explains one probe. If there are several, writes its number first, because overlap_explain() refers to the numbers.
 */
static void explain_one(const struct exprs *exprs, size_t i, enum lang_format format, struct buf *b)
{
    if (exprs->count > 1 && format == LANG_TEXT)
        buf_printf(b, "%zu. ", i + 1);
    lang_explain(exprs->specs[i], format, b);
}

/* Explains -P for probes with `inside`: the node rejects calls of the root by processes that -P does not select. */
static void explain_root_procs(const struct texts *procs, struct buf *b)
{
    buf_puts(b, "  processes    ");
    for (size_t i = 0; i < procs->count; i++)
        buf_printf(b, "%s%s", i ? ", " : "", procs->items[i]);
    buf_puts(b, ": the node rejects calls of the root by others before it tests the match spec\n");
}

static void explain_specs(struct exprs *exprs, const struct texts *procs, enum lang_format format, struct buf *out)
{
    for (size_t i = 0; i < exprs->count; i++) {
        explain_one(exprs, i, format, out);
        if (exprs->specs[i]->root && procs->count && format == LANG_TEXT)
            explain_root_procs(procs, out);
    }
    if (format == LANG_TEXT)
        overlap_explain(exprs, out);
}

/*
 * Prints the output of the passes that --dump names. `format` is the format of specs. `exprs` is NULL after an error.
 */
static void passes_print(const struct passes *p, struct exprs *exprs, const struct texts *procs,
                         enum lang_format format, struct buf *out)
{
    for (size_t i = 0; i < LANG_PASSES; i++) {
        if (p->dumps[i] && p->count > 1)
            buf_printf(out, "pass %s\n", lang_pass(i)->name);
        if (i != LANG_PASS_SPEC)
            buf_str(out, buf_view(&p->bufs[i]));
        else if (p->dumps[i] && exprs)
            explain_specs(exprs, procs, format, out);
    }
}

/* ---- snapshots ---- */

/*
 * Explains --snapshot-when. `exprs` has the condition as its only filter, or the probe of system events as one of its
 * specs.
 */
static bool explain_snapshot(const struct exprs *exprs, const char *when, struct buf *out, struct err *e)
{
    const bool system = *when == '@', of_rows = !system && where_is_of_rows(exprs->wheres[0]);
    struct buf filter = {0};
    struct err ignored;

    if (!system && !assertions_fit(exprs, 0, exprs->specs, exprs->count, e))
        return false;
    const bool node = system || (!of_rows && exprs_trigger(exprs, exprs->wheres[0], when, &filter, &ignored));
    buf_release(&filter);
    buf_printf(out, "snapshot when %s\n  decided by %s\n", when,
               system    ? "the system monitor of the node, for each system event of these probes"
               : node    ? "the tracer on the node, at the end of each call whose result is traced"
               : of_rows ? "etrace on this host, which then also counts the keys, whenever a figure changes"
                         : "etrace on this host, for each event that passes the filters");
    buf_puts(out, node ? "  before that no event travels; --where and --grep apply on this host, to the events of the "
                         "snapshot\n"
                       : "  so the nodes send all events to this host, within --rate, and etrace keeps the last ones "
                         "in memory\n");
    return true;
}

static int explain_exprs(struct ctx *ctx, const struct explain_opts *o, struct what_opts *what, struct texts *words)
{
    struct exprs exprs;
    struct passes passes = {0};
    struct buf out = {0};
    struct texts wheres = {0}, texts = {0};
    struct err e;
    int status = 0;
    const bool told = o->when && !o->dump && o->format == LANG_TEXT;

    exprs_init(&exprs);
    exprs.may_count = true;
    exprs.dumps = passes.dumps;
    if (o->when)
        texts_add(*o->when == '@' ? words : &wheres, o->when);
    bool ok = (!o->when || *o->when != '@' || exprs_system_trigger(o->when, &e)) && passes_read(&passes, o->dump, &e) &&
              exprs_pipes(ctx, what, &exprs.arena, &e) && exprs_texts(ctx, what, words, &exprs.arena, &texts, &e) &&
              exprs_compile(&exprs, what, &texts, &wheres, (int)o->otp, &e) && exprs_regexes(&exprs, &e);
    if (ok && !o->dump)
        explain_specs(&exprs, &what->procs, (enum lang_format)o->format, &out);
    ok = ok && (!told || explain_snapshot(&exprs, o->when, &out, &e));
    passes_print(&passes, ok ? &exprs : NULL, &what->procs, (enum lang_format)o->format, &out);
    if (!ok)
        status = ctx_fail(ctx, &e);
    else
        exprs_warn(&exprs, ctx);
    out_take(ctx->out, &out);
    texts_release(&texts);
    texts_release(&wheres);
    texts_release(&what->pipes);
    exprs_release(&exprs);
    passes_release(&passes);
    buf_release(&out);
    return status;
}

static int cmd_explain_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct explain_opts o = {0};
    struct what_opts what = WHAT_OPTS_INIT;
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&explain_group, &o}, {&what_group, &what}, {&talk_group, &talk}};
    struct texts words = {0};
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status)) {
        if (o.dump && !strcmp(o.dump, "list")) {
            status = passes_list(ctx);
        } else if (words.count || what.files.count) {
            status = explain_exprs(ctx, &o, &what, &words);
        } else {
            struct err e;
            err_set(&e, ERR_USAGE, "no expression to explain");
            err_hint(&e, "for example etrace explain 'lists:seq(_, N) when N > 10 -> return'");
            status = ctx_fail(ctx, &e);
        }
    }
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const struct opt_group *const groups[] = {&explain_group, &what_group, &talk_group, NULL};
const struct cmd cmd_explain = {
    .name = "explain",
    .usage = "[OPTIONS] EXPR...",
    .summary = "Prints the match specifications that expressions compile to",
    .run = cmd_explain_run,
    .aside = true,
    .groups = groups,
};
