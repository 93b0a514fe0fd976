/* SPDX-License-Identifier: Apache-2.0 */
#include "exprs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../erlang/etf_write.h"
#include "../fold/pairing.h"
#include "../ground/command_line.h"
#include "../ground/utf8.h"
#include "../lang/by_node.h"
#include "../lang/fit.h"
#include "../lang/where_steps.h"
#include "../node/arm.h"
#include "../pipeline/probes.h"
#include "../pipeline/regex.h"
#include "who.h"

/*
 * Weights that estimate how much of the heap of the companion's owner a request takes: for each expression, selected
 * function and name. The heap is bounded, and the node kills an owner that exceeds the bound. WEIGHT_MOST leaves a
 * third of the heap free.
 */
enum {
    WEIGHT_EXPRESSION = 32,
    WEIGHT_FUNCTION = 8,
    WEIGHT_NAME = 2,
    WEIGHT_MOST = 4096 * (WEIGHT_EXPRESSION + WEIGHT_FUNCTION)
};

void exprs_init(struct exprs *p)
{
    *p = (struct exprs){0};
    arena_init(&p->arena);
}

enum lang_found exprs_later(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                            struct arena *a, struct lang_lookup *ret)
{
    (void)modules;
    (void)nmodules;
    (void)name;
    (void)a;
    (void)ret;
    *(bool *)data = true;
    return LANG_LATER;
}

void exprs_release(struct exprs *p)
{
    arena_release(&p->arena);
    free(p->specs);
    free(p->wheres);
    *p = (struct exprs){0};
}

/* ---- reading ---- */

static const char *exprs_name_of(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

struct reading {
    int fd, error;
    struct buf *to;
    bool over;
};

static void read_piece(void *owner)
{
    struct reading *r = owner;
    ssize_t n = read(r->fd, buf_room(r->to, 4096), 4096);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    r->error = n < 0 ? errno : 0;
    r->to->len += n > 0 ? (size_t)n : 0;
    r->over = n <= 0 || r->to->len > LANG_MAX_TEXT;
}

/* Reads a pipe or a terminal, which may be slow: serves the loop meanwhile. A signal ends the wait. */
static void read_when_ready(struct ctx *ctx, struct reading *r)
{
    struct loop_fd ready = {.fd = r->fd, .want_read = true, .ready = read_piece, .owner = r};
    int before = ctx->interrupts;

    loop_add(&ctx->loop, &ready);
    while (!r->over && ctx->interrupts == before)
        loop_step(&ctx->loop, -1);
    loop_remove(&ctx->loop, &ready);
    if (!r->over)
        r->error = EINTR;
}

/* Reads a file. Without a ctx the file must be a regular file, because its read cannot wait. */
static bool read_all(struct ctx *ctx, const char *path, struct buf *b, struct err *e)
{
    int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : STDIN_FILENO;
    struct reading r = {.fd = fd, .to = b};
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        r.error = errno;
    else if (!S_ISREG(st.st_mode) && ctx)
        read_when_ready(ctx, &r);
    else if (!S_ISREG(st.st_mode))
        r.error = S_ISDIR(st.st_mode) ? EISDIR : ESPIPE;
    else
        while (!r.over)
            read_piece(&r);
    if (fd > STDIN_FILENO)
        close(fd);
    if (r.error)
        return err_set(e, ERR_USAGE, "cannot read %s: %s", exprs_name_of(path),
                       r.error == EBADF ? "it is closed" : strerror(r.error));
    if (b->len > LANG_MAX_TEXT)
        return err_set(e, ERR_USAGE, "%s is larger than %d kB", exprs_name_of(path), LANG_MAX_TEXT / 1024);
    struct str text = utf8_unmarked(buf_view(b));
    if (text.len < b->len)
        memmove(b->data, text.at, text.len);
    b->len = text.len;
    return true;
}

static bool read_let(struct exprs *p, const char *text, struct lang_let *ret, struct err *e)
{
    const char *equals = strchr(text, '=');

    if (!equals || equals == text)
        return err_set(e, ERR_USAGE, "--let takes NAME=TERM, not '%s'", text);
    ret->name = (struct str){text, (size_t)(equals - text)};
    if (lang_term((struct str){equals + 1, strlen(equals + 1)}, SPEC_ERLANG, &p->arena, &ret->value, e))
        return true;
    struct err named;
    err_set(&named, e->status, "--let %.*s: %s", (int)ret->name.len, ret->name.at, e->text);
    memcpy(e->text, named.text, sizeof(e->text));
    return false;
}

static const char *text_of_pipe(const struct what_opts *what, const char *path)
{
    for (size_t i = 0; i < what->pipes.count; i += 2)
        if (!strcmp(what->pipes.items[i], path))
            return what->pipes.items[i + 1];
    return NULL;
}

bool exprs_pipes(struct ctx *ctx, struct what_opts *what, struct arena *a, struct err *e)
{
    struct stat st;
    struct buf b = {0};
    bool ok = true;

    for (size_t i = 0; ok && i < what->records.count; i++) {
        const char *path = what->records.items[i];
        if (text_of_pipe(what, path) || (strcmp(path, "-") && (stat(path, &st) < 0 || S_ISREG(st.st_mode))))
            continue;
        buf_clear(&b);
        ok = read_all(ctx, path, &b, e);
        if (ok) {
            texts_add(&what->pipes, path);
            texts_add(&what->pipes, arena_strndup(a, b.data, b.len));
        }
    }
    buf_release(&b);
    return ok;
}

static bool exprs_read_header(const struct what_opts *what, const char *path, struct buf *b, struct err *e)
{
    const char *text = text_of_pipe(what, path);

    buf_clear(b);
    if (!text)
        return read_all(NULL, path, b, e);
    buf_puts(b, text);
    return true;
}

static bool read_records(struct exprs *p, const struct what_opts *what, struct lang_options *opt, struct err *e)
{
    const struct texts *files = &what->records;
    struct lang_record *all = NULL;
    size_t count = 0;
    struct buf b = {0};
    bool ok = true;

    p->headers = arena_alloc(&p->arena, (files->count + 1) * sizeof(*p->headers));
    for (size_t i = 0; ok && i < files->count; i++) {
        const struct lang_record *found;
        size_t n;

        ok = exprs_read_header(what, files->items[i], &b, e);
        char *text = arena_strndup(&p->arena, b.data, b.len);
        ok = ok && lang_read_hrl((struct str){text, b.len}, &p->arena, &found, &n, e);
        if (!ok || !n)
            continue;
        p->headers[p->nheaders++] = (struct str){text, b.len};
        struct lang_record *more = arena_alloc(&p->arena, (count + n) * sizeof(*more));
        if (count)
            memcpy(more, all, count * sizeof(*more));
        memcpy(more + count, found, n * sizeof(*more));
        all = more;
        count += n;
    }
    buf_release(&b);
    opt->records = all;
    opt->nrecords = count;
    return ok;
}

/* Adds the file and the line to an error in a file. */
static bool add_location(const char *file, struct err *e)
{
    struct err plain = *e;

    if (!file)
        return false;
    file = exprs_name_of(file);
    if (plain.row)
        err_set(e, plain.status, "%s:%zu: %s", file, plain.row, plain.text);
    else
        err_set(e, plain.status, "%s: %s", file, plain.text);
    memcpy(plain.text, e->text, sizeof(plain.text));
    *e = plain;
    return false;
}

static bool exprs_shows(const struct spec *s, struct err *e)
{
    if (!s->counters)
        return true;
    err_set(e, ERR_USAGE, "count, time and memory are counters, which only etrace top shows");
    struct command_line command = {0};
    char probe[200];
    snprintf(probe, sizeof(probe), "%.*s", (int)MIN(s->text.len, sizeof(probe)), s->text.at);
    command_line_begin(&command, "top", NULL, NULL);
    command_line_word(&command, probe);
    err_hint(e, "%s", command_line_text(&command));
    command_line_release(&command);
    return false;
}

static bool exprs_add(struct exprs *p, const struct lang_options *opt, struct str text, const char *file, struct err *e)
{
    struct spec_list list;

    if (!lang_compile(opt, text, &p->arena, &list, e))
        return add_location(file, e);
    for (size_t i = 0; i < list.count && !p->may_count; i++)
        if (!exprs_shows(list.items[i], e))
            return add_location(file, e);
    p->specs = mem_grow(p->specs, &p->cap, p->count + list.count, sizeof(*p->specs));
    for (size_t i = 0; i < list.count; i++)
        p->specs[p->count++] = list.items[i];
    return true;
}

bool exprs_texts(struct ctx *ctx, const struct what_opts *what, const struct texts *words, struct arena *a,
                 struct texts *ret, struct err *e)
{
    struct buf b = {0};
    bool ok = true;

    for (size_t i = 0; i < words->count; i++)
        texts_add(ret, words->items[i]);
    for (size_t i = 0; ok && i < what->files.count; i++) {
        buf_clear(&b);
        ok = read_all(ctx, what->files.items[i], &b, e);
        if (ok && b.len && memchr(b.data, 0, b.len))
            ok = err_set(e, ERR_USAGE, "%s has a NUL in it", exprs_name_of(what->files.items[i]));
        if (ok)
            texts_add(ret, arena_strndup(a, b.data, b.len));
        ret->nfiles += ok;
    }
    buf_release(&b);
    return ok;
}

/* Rejects a request that would exceed the heap of the tracer on the node. */
static bool not_too_many(const struct exprs *p, const struct what_opts *what, struct err *e)
{
    size_t weight = (what->procs.count + what->ports.count) * WEIGHT_NAME, functions = 0;

    for (size_t i = 0; i < p->count; i++) {
        functions += p->specs[i]->nselectors;
        weight += WEIGHT_EXPRESSION + p->specs[i]->nselectors * WEIGHT_FUNCTION + p->specs[i]->natoms * WEIGHT_NAME;
    }
    if (weight <= WEIGHT_MOST)
        return true;
    err_set(e, ERR_USAGE, "%zu expressions that name %zu functions are too many for one trace", p->count, functions);
    err_hint(e, "up to 4096 that name one each; 'a:f/1 | b:g/2' is one expression that names two, and 'a:_' selects a "
                "whole module");
    return false;
}

static bool read_wheres(struct exprs *p, const struct lang_options *opt, const struct texts *wheres, struct err *e)
{
    p->wheres = mem_zalloc((wheres->count + 1) * sizeof(*p->wheres));
    for (; p->nwheres < wheres->count; p->nwheres++) {
        const char *text = wheres->items[p->nwheres];
        if (!lang_where(opt, (struct str){text, strlen(text)}, &p->arena, &p->wheres[p->nwheres], e))
            return false;
        p->needs |= where_uses(p->wheres[p->nwheres]) & (PROPERTY_NEEDS_RETURN | PROPERTY_NEEDS_CALLER);
    }
    return true;
}

/* Returns the first root whose result decides whether to show what happened inside of it; NULL: no such root. */
static const struct spec *deciding_root(const struct exprs *p)
{
    size_t i = 0;

    while (i < p->count && !p->specs[i]->nkeeps)
        i++;
    return i < p->count ? p->specs[i] : NULL;
}

static bool root_steps(const struct spec *s, struct buf *ret)
{
    return where_steps_of_ends(s->keeps, s->nkeeps, ret);
}

static bool root_decides(const struct spec *s, struct err *e)
{
    struct buf steps = {0};
    const bool ok = root_steps(s, &steps);

    buf_release(&steps);
    if (ok)
        return true;
    err_set(e, ERR_USAGE, "the node cannot evaluate the filter of the root '%.*s'", (int)MIN(s->text.len, 200),
            s->text.at);
    err_hint(e, "it tests dur, class and ret, as in dur > 1s, %s",
             s->surface == SPEC_ELIXIR ? "class == :error or ret = {:error, _}" : "class == error or ret = {error, _}");
    return false;
}

/* Returns the process flags that calls of roots set and clear for this spec: it is a root or traced inside of roots. */
static unsigned flags_by_roots(const struct spec *s)
{
    return s->inside.len || s->root ? s->flags & ~(unsigned)SPEC_F_ARITY : 0;
}

/*
 * Checks the roots. The node has one set of flags for each process. So a flag is set either by calls of roots or on all
 * processes, not both; and with roots, options cannot choose what processes inherit.
 */
static bool insides_fit(const struct exprs *p, const struct what_opts *what, struct err *e)
{
    const struct spec *inside = NULL, *outside = NULL;
    unsigned by_roots = 0, roots = 0;

    for (size_t i = 0; i < p->count; i++) {
        by_roots |= flags_by_roots(p->specs[i]);
        roots += p->specs[i]->root;
    }
    for (size_t i = 0; i < p->count; i++) {
        const struct spec *s = p->specs[i];
        if (s->inside.len && inside && !str_same(s->inside, inside->inside)) {
            err_set(e, ERR_USAGE, "the probes of a trace have the same roots, not '%.*s' and '%.*s'",
                    (int)MIN(inside->inside.len, 200), inside->inside.at, (int)MIN(s->inside.len, 200), s->inside.at);
            err_hint(e, "write the same root in the same way, or trace one of them with another etrace");
            return false;
        }
        if (s->inside.len)
            inside = s;
        else if (!s->root && (s->kind == SPEC_CALL || s->flags & by_roots))
            outside = s;
    }
    if (inside && outside) {
        err_set(e, ERR_USAGE, "'%.*s' is not inside of a root, but '%.*s' is", (int)MIN(outside->text.len, 200),
                outside->text.at, (int)MIN(inside->text.len, 200), inside->text.at);
        err_hint(e, "trace it with another etrace");
        return false;
    }
    if (roots > ETW_MAX_ROOTS) {
        err_set(e, ERR_USAGE, "%u roots are too many for one trace", roots);
        err_hint(e, "up to 64, counted for each expression that is inside of them; a root may have a guard, as in "
                    "shop:take(N) when N < 9");
        return false;
    }
    if (deciding_root(p) && !root_decides(deciding_root(p), e))
        return false;
    if (!inside && what->sample && p->count) {
        err_set(e, ERR_USAGE, "--sample needs a probe with inside");
        err_hint(e, "it shows one of N roots; --rate shows at most N events a second");
        return false;
    }
    if (inside && (what->follow || what->inherit || what->silent)) {
        err_set(e, ERR_USAGE, "processes cannot inherit flags, nor be silent, with inside");
        err_hint(e, "the calls of roots set the flags of processes");
        return false;
    }
    return true;
}

static bool read_by(struct exprs *p, const struct lang_options *opt, struct err *e)
{
    if (!p->by_text)
        return true;
    if (!lang_by(opt, (struct str){p->by_text, strlen(p->by_text)}, &p->arena, &p->by, e))
        return false;
    p->needs |= p->by->uses & (PROPERTY_NEEDS_RETURN | PROPERTY_NEEDS_CALLER);
    return true;
}

/* Checks that all expressions count by keys, or none. */
static bool keys_fit(const struct exprs *p, const struct what_opts *what, struct err *e)
{
    if (what->keys > ETW_BY_ROWS_MOST) {
        err_set(e, ERR_USAGE, "--keys takes a number up to %d", ETW_BY_ROWS_MOST);
        err_hint(e, "for more keys, record with -o and count with etrace replay --by");
        return false;
    }
    if (what->keys && !exprs_counts(p) && p->count) {
        err_set(e, ERR_USAGE, "--keys needs a probe with by");
        err_hint(e, "as in mod:fun(K) by K: count");
        return false;
    }
    return true;
}

static bool counts_fit(const struct exprs *p, struct err *e)
{
    const struct spec *counts = NULL, *shows = NULL;

    for (size_t i = 0; i < p->count; i++) {
        if (p->specs[i]->by)
            counts = p->specs[i];
        else if (!p->specs[i]->root)
            shows = p->specs[i];
    }
    if (!counts || !shows || p->by)
        return true;
    err_set(e, ERR_USAGE, "'%.*s' counts by nothing, but another expression does", (int)MIN(shows->text.len, 200),
            shows->text.at);
    err_hint(e, "add 'by', or trace it with another etrace");
    return false;
}

bool exprs_compile(struct exprs *p, const struct what_opts *what, const struct texts *texts, const struct texts *wheres,
                   int otp, struct err *e)
{
    struct lang_options opt = {.otp = otp,
                               .unsafe = what->unsafe,
                               .dumps = p->dumps,
                               .find_record = p->find_record,
                               .find_data = p->find_data};
    struct lang_let *lets;

    lets = arena_alloc(&p->arena, (what->lets.count + 1) * sizeof(*lets));
    for (size_t i = 0; i < what->lets.count; i++)
        if (!read_let(p, what->lets.items[i], &lets[i], e))
            return false;
    opt.lets = lets;
    opt.nlets = what->lets.count;
    if (!read_records(p, what, &opt, e))
        return false;
    if (!read_wheres(p, &opt, wheres, e) || !read_by(p, &opt, e))
        return false;
    opt.needs = what->needs | p->needs;
    for (size_t i = 0, words = texts->count - texts->nfiles; i < texts->count; i++) {
        const char *text = texts->items[i], *file = i < words ? NULL : what->files.items[i - words];
        size_t before = p->count;
        if (text && !exprs_add(p, &opt, (struct str){text, strlen(text)}, file, e))
            return false;
        opt.number += text ? p->count - before : 1;
    }
    return insides_fit(p, what, e) && counts_fit(p, e) && keys_fit(p, what, e) && not_too_many(p, what, e);
}

static bool require_regex(struct str text, struct err *e)
{
    struct regex *r = regex_new(text, e);

    regex_free(r);
    return r != NULL;
}

static bool require_where(const struct where *w, struct err *e)
{
    bool ok = w->type != WHERE_REGEX || require_regex(w->regex, e);

    for (size_t i = 0; ok && i < w->count; i++)
        ok = require_where(w->items[i], e);
    return ok && (!w->tail || require_where(w->tail, e));
}

bool exprs_regexes(const struct exprs *p, struct err *e)
{
    bool ok = true;

    for (size_t i = 0; ok && i < p->count; i++) {
        const struct spec *s = p->specs[i];
        for (size_t k = 0; ok && k < s->nselectors; k++)
            ok = (s->selectors[k].module.how != SEL_REGEX || require_regex(s->selectors[k].module.text, e)) &&
                 (s->selectors[k].function.how != SEL_REGEX || require_regex(s->selectors[k].function.text, e));
        for (size_t k = 0; ok && k < s->nwhere; k++)
            ok = require_where(s->where[k], e);
    }
    return ok;
}

/* Returns true if an earlier alternative of the same expression has the same warning. */
static bool is_repeated(const struct exprs *p, size_t i, struct str text)
{
    for (; i && p->specs[i]->alternative; i--)
        for (size_t k = 0; k < p->specs[i - 1]->nwarnings; k++)
            if (str_same(p->specs[i - 1]->warnings[k].text, text))
                return true;
    return false;
}

void exprs_warn(const struct exprs *p, struct ctx *ctx)
{
    for (size_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < p->specs[i]->nwarnings; k++)
            if (!is_repeated(p, i, p->specs[i]->warnings[k].text))
                ctx_warn(ctx, "warning: %.*s", (int)p->specs[i]->warnings[k].text.len,
                         p->specs[i]->warnings[k].text.at);
}

/* ---- arming ---- */

struct arm_pattern exprs_pattern(const struct sel_name *name)
{
    static const enum arm_how to[] = {
        [SEL_ANY] = ARM_ANY,     [SEL_ATOM] = ARM_NAME, [SEL_GLOB] = ARM_GLOB,
        [SEL_REGEX] = ARM_REGEX, [SEL_APP] = ARM_APP,   [SEL_BEHAVIOUR] = ARM_BEHAVIOUR,
    };

    return (struct arm_pattern){.how = to[name->how], .text = name->text};
}

struct arming {
    struct arm arm;
    struct arena arena;
    struct buf etf;
    int otp;
    bool anonymous;
    bool meets; /* several expressions are about received messages */
    struct str node;
    uint32_t creation;
};

static struct str encode_localized(struct arming *a, term_t t)
{
    buf_clear(&a->etf);
    term_to_etf(&a->etf, lang_localize(t, a->node, a->creation, &a->arena));
    return buf_view(&a->etf);
}

/*
 * Adds the match specification. OTP 29 takes a head with a tail as one pattern; older releases need one pattern for
 * each arity.
 */
static void arm_match_spec(struct arming *a, const struct spec *s)
{
    if (a->anonymous && s->anonymous) {
        arm_spec_any(&a->arm, encode_localized(a, s->anonymous));
        return;
    }
    if (a->meets && s->kind == SPEC_RECV) {
        arm_spec_any(&a->arm, encode_localized(a, spec_match_spec_plain(s, &a->arena)));
        return;
    }
    if (!s->prefix || a->otp >= 29) {
        arm_spec_any(&a->arm, encode_localized(a, spec_match_spec_for(s, -1, &a->arena)));
        return;
    }
    for (int n = s->head_arity; n <= SPEC_ARITY_MAX; n++)
        arm_spec_arity(&a->arm, n, encode_localized(a, spec_match_spec_for(s, n, &a->arena)));
}

static void arm_spec(struct arming *a, const struct spec *s)
{
    static const enum arm_kind kinds[] = {[SPEC_CALL] = ARM_CALL, [SPEC_SEND] = ARM_SEND, [SPEC_RECV] = ARM_RECV};
    static const enum arm_scope scopes[] =
        {[SPEC_LOCAL] = ARM_LOCAL, [SPEC_GLOBAL] = ARM_GLOBAL, [SPEC_META] = ARM_META};

    arm_probe(&a->arm, (int)s->number, kinds[s->kind], scopes[s->scope]);
    for (size_t i = 0; i < s->nselectors; i++) {
        const struct selector *sel = &s->selectors[i];
        struct arm_pattern module = exprs_pattern(&sel->module);
        struct arm_pattern *without = arena_alloc(&a->arena, sel->nwithout * sizeof(*without) + 1);
        for (size_t k = 0; k < sel->nwithout; k++)
            without[k] = exprs_pattern(&sel->without[k]);
        module.without = without;
        module.nwithout = sel->nwithout;
        arm_select(&a->arm, module, exprs_pattern(&sel->function), sel->arity_lo, sel->arity_hi);
    }
    if (s->root)
        arm_root(&a->arm);
    arm_match_spec(a, s);
    const term_t program = spec_program(s, &a->arena);
    if (program)
        arm_program(&a->arm, encode_localized(a, program));
}

size_t exprs_atoms(const struct exprs *p, struct buf *ret_names)
{
    size_t n = 0;

    for (size_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < p->specs[i]->natoms; k++, n++)
            etf_bin(ret_names, p->specs[i]->atoms[k].at, p->specs[i]->atoms[k].len);
    return n;
}

/* Adapts a spec to the atoms that this node has. */
static bool fit_to_node(struct fit *f, const struct spec *s, const struct what_opts *what, struct spec *ret,
                        struct err *e)
{
    const enum fit_result result = fit_spec(f, s, ret);
    const int len = (int)MIN(f->name.len, 200);

    if (result == FIT_OK || (result == FIT_DEAD && what->allow_empty))
        return true;
    if (result == FIT_VARIABLES)
        return err_set(e, ERR_USAGE, "more than %d variables in one clause", FIT_VARIABLES_MAX);
    if (result == FIT_DEAD)
        return err_set(e, ERR_EMPTY, "the node does not know the atom %.*s, so nothing can match it", len, f->name.at);
    err_set(e, ERR_EMPTY, "the node does not know the atom %.*s, so the expression cannot use it like this", len,
            f->name.at);
    err_hint(e, "an atom that the node lacks is allowed in a pattern, beside =:=, =/=, == and /=, as a key of a map, "
                "and in msg()");
    return false;
}

/* Parses -P WHO. */
static bool arm_process(struct arming *a, const char *who, struct err *e)
{
    struct who w;

    if (!who_parse(who, &a->arena, &w)) {
        err_set(e, ERR_USAGE, "--proc does not take '%s'", who);
        err_hint(e, "all, existing, new, a pid such as '<0.84.0>', a registered name, {via,Module,Name}, app(NAME) or "
                    "initial(M:F/A)");
        return false;
    }
    if (w.kind == ARM_WHO_VIA)
        arm_who_via(&a->arm, w.module, encode_localized(a, w.name), w.text);
    else if (w.kind == ARM_WHO_INITIAL)
        arm_who_initial(&a->arm, w.module, w.function, w.arity, w.text);
    else
        arm_who(&a->arm, w.kind, w.text);
    return true;
}

/* Parses --port-id WHO: a word, a port, or driver:NAME. */
static bool arm_port(struct arming *a, const char *who, struct err *e)
{
    enum arm_who group;

    if (who_word(who, &group))
        arm_port_who(&a->arm, group, STR(""));
    else if (!strncmp(who, "#Port<", 6))
        arm_port_who(&a->arm, ARM_WHO_PORT, (struct str){who, strlen(who)});
    else if (!strncmp(who, "driver:", 7) && who[7])
        arm_port_who(&a->arm, ARM_WHO_DRIVER, (struct str){who + 7, strlen(who) - 7});
    else {
        err_set(e, ERR_USAGE, "--port-id does not take '%s'", who);
        err_hint(e, "all, existing, new, a port such as '#Port<0.5>', or driver:NAME such as driver:tcp_inet");
        return false;
    }
    return true;
}

/* The trace flags of processes, and the flags that ports need for the same events. */
static const struct {
    enum spec_flag flag;
    const char *process, *port;
} flags[] = {
    {SPEC_F_CALL, "call", NULL},
    {SPEC_F_RETURN_TO, "return_to", NULL},
    {SPEC_F_SEND, "send", "send"},
    {SPEC_F_RECEIVE, "receive", "receive"},
    {SPEC_F_PROCS, "procs", "ports"},
    {SPEC_F_PORTS, NULL, "ports"},
    {SPEC_F_RUNNING, "running", "running_ports"},
    {SPEC_F_EXITING, "exiting", NULL},
    {SPEC_F_GC, "garbage_collection", NULL},
};

/* Returns the kinds of events that a flag brings, except calls and results. */
static uint64_t kinds_of(unsigned flag)
{
    static const struct {
        unsigned flag, kind;
    } kinds[] = {
        {SPEC_F_RETURN_TO, ETW_RETURN_TO},
        {SPEC_F_SEND, ETW_SEND},
        {SPEC_F_SEND, ETW_SEND_NOPROC},
        {SPEC_F_RECEIVE, ETW_RECEIVE},
#define PROBED(name, number, id, layout, first, second, flag, doc) {SPEC_F_##flag, ETW_##name},
#include "event_kinds.def"
    };
    uint64_t bits = 0;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        bits |= kinds[i].flag == flag ? UINT64_C(1) << kinds[i].kind : 0;
    return bits;
}

/* Asks the node to set these flags when a process calls a root. */
static void arm_by_roots(struct arm *a, unsigned by_roots)
{
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (by_roots & flags[i].flag)
            arm_inside(a, flags[i].process, kinds_of(flags[i].flag));
}

static const char *const inherits[] = {NULL, "set_on_spawn", "set_on_first_spawn", "set_on_link", "set_on_first_link"};

/*
 * Chooses the processes and ports. Ports are traced if options name ports or if expressions ask for events of ports. If
 * options name only ports, no process is traced.
 */
static bool arm_whom(struct arming *a, const struct what_opts *what, unsigned wanted, struct err *e)
{
    const struct texts *procs = &what->procs, *ports = &what->ports;
    unsigned of_ports = ports->count && !procs->count ? SPEC_F_SEND | SPEC_F_RECEIVE | SPEC_F_RUNNING : 0;

    for (size_t i = 0; i < procs->count; i++)
        if (!arm_process(a, procs->items[i], e))
            return false;
    for (size_t i = 0; i < ports->count; i++)
        if (!arm_port(a, ports->items[i], e))
            return false;
    if (!ports->count && wanted & SPEC_F_PORTS)
        arm_port_who(&a->arm, ARM_WHO_ALL, STR(""));
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if (!(wanted & flags[i].flag))
            continue;
        if (flags[i].process && !(of_ports & flags[i].flag))
            arm_flag(&a->arm, flags[i].process);
        if (flags[i].port && (ports->count || flags[i].flag == SPEC_F_PORTS))
            arm_port_flag(&a->arm, flags[i].port);
    }
    return true;
}

static void arm_event(struct arming *a, const struct spec *s)
{
    for (int ev = 0; s->flags & SPEC_F_SYSTEM && ev < SPEC_EVENTS; ev++)
        if (s->events & SPEC_EVENT_BIT(ev))
            arm_system(&a->arm, spec_event_name((enum spec_event)ev), s->params, s->nparams);
    if (s->flags & SPEC_F_SEQ_TRACE)
        arm_seq_trace(&a->arm);
}

uint64_t exprs_kinds(const struct exprs *p, uint64_t *ret_besides)
{
    uint64_t kinds = probes_kinds(p->specs, p->count), needs = kinds | pairing_begin(kinds);

    *ret_besides = needs & ~kinds;
    return needs;
}

typedef bool steps_fn(const struct where *const *wheres, size_t n, struct buf *ret_steps);

/* Compiles all conditions of an expression, its own and the `extra` ones, with `steps`. */
static bool filter_of(const struct spec *s, const struct where *const *extra, size_t n, steps_fn *steps,
                      struct buf *ret)
{
    const struct where **all = mem_alloc((s->nwhere + n + 1) * sizeof(*all));

    for (size_t i = 0; i < s->nwhere; i++)
        all[i] = s->where[i];
    for (size_t i = 0; i < n; i++)
        all[s->nwhere + i] = extra[i];
    bool ok = s->nwhere + n == 0 || steps(all, s->nwhere + n, ret);
    free(all);
    return ok;
}

static bool same_steps(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

bool exprs_filter(const struct exprs *p, const struct where *const *extra, size_t n, struct buf *ret_filter)
{
    struct buf other = {0};
    bool ok = !deciding_root(p);

    for (size_t i = 0; ok && i < p->count; i++) {
        struct buf *to = i ? &other : ret_filter;
        buf_clear(to);
        ok = filter_of(p->specs[i], extra, n, where_steps, to) && same_steps(to, ret_filter);
    }
    buf_release(&other);
    /*
     * To measure the size of an event, the node encodes it, which defines names in its interning table without sending
     * them. No other kind of frame may then be sent, because it could refer to these names.
     */
    for (size_t i = 0; ok && i < p->count && where_steps_measure(buf_view(ret_filter)); i++)
        ok = !(p->specs[i]->flags & ~(unsigned)(SPEC_F_CALL | SPEC_F_ARITY)) && !probes_switches(p->specs[i]);
    return ok;
}

/* Returns true if each reported call is followed by its result or exception, as long as its process lives. */
static bool always_ends(const struct spec *s)
{
    for (size_t i = 0; i < s->nclauses; i++) {
        unsigned does = s->clauses[i].actions;
        if (!(does & ACT_DROP) && (!(does & ACT_RETURN) || does & (ACT_RETURN_TRACE | ACT_SILENT | ACT_FLAGS)))
            return false;
    }
    return s->nclauses && s->scope != SPEC_META;
}

bool exprs_hold(const struct exprs *p, const struct where *const *extra, size_t n, struct buf *ret_filter)
{
    struct buf other = {0};
    unsigned count = 0;
    bool ok = !deciding_root(p);

    for (size_t i = 0; ok && i < p->count; i++) {
        struct buf *to = count ? &other : ret_filter;
        if (p->specs[i]->kind != SPEC_CALL)
            continue;
        count++;
        buf_clear(to);
        ok = always_ends(p->specs[i]) && filter_of(p->specs[i], extra, n, where_steps_some, to) && to->len &&
             same_steps(to, ret_filter);
    }
    buf_release(&other);
    return ok && count;
}

/*
 * Returns true if a key is what a match specification collects. With several probes the collected value is in a tuple
 * with the probe's number, so it is no key.
 */
static bool counts_collected(const struct by_node *b)
{
    for (size_t i = 0; i < b->nkeys; i++)
        if (b->keys[i].what == ETW_BY_RESULT)
            return true;
    return false;
}

static bool by_node_of_all(const struct exprs *p, struct by_node *ret)
{
    struct by_node other;
    const char *why;

    if (p->by || !p->count || !p->specs[0]->by || !by_node_of(p->specs[0], ret, &why))
        return false;
    if (p->count > 1 && counts_collected(ret))
        return false;
    for (size_t i = 1; i < p->count; i++) {
        const struct spec *s = p->specs[i];
        if (!s->by || !str_same(s->by->text, p->specs[0]->by->text) || !by_node_of(s, &other, &why) ||
            memcmp(&other, ret, sizeof(other)))
            return false;
    }
    return true;
}

bool exprs_by_node(const struct exprs *p)
{
    struct by_node all;

    return by_node_of_all(p, &all);
}

static void put_by_part(struct buf *b, const struct by_node_part *part)
{
    etf_list(b, 2 + part->deep);
    etf_int(b, part->what);
    etf_int(b, part->place);
    for (uint32_t i = 0; i < part->deep; i++)
        etf_int(b, part->path[i]);
    etf_nil(b);
}

static void arm_by_keys(struct arming *a, const struct exprs *p, int64_t most)
{
    struct buf keys = {0}, values = {0};
    struct by_node all;

    if (by_node_of_all(p, &all)) {
        for (size_t i = 0; i < all.nkeys; i++)
            put_by_part(&keys, &all.keys[i]);
        for (size_t i = 0; i < all.nvalues; i++)
            put_by_part(&values, &all.values[i]);
        arm_by(&a->arm, &keys, all.nkeys, &values, all.nvalues, most);
    }
    buf_release(&keys);
    buf_release(&values);
}

bool exprs_counts(const struct exprs *p)
{
    bool counts = p->by;

    for (size_t i = 0; i < p->count; i++)
        counts = counts || p->specs[i]->by;
    return counts;
}

/* Returns true if a key or an aggregate reads a property with one of these bits. */
static bool counts_with(const struct exprs *p, unsigned uses)
{
    bool with = p->by && p->by->uses & uses;

    for (size_t i = 0; i < p->count; i++)
        with = with || (p->specs[i]->by && p->specs[i]->by->uses & uses);
    return with;
}

bool exprs_may_overwrite(const struct exprs *p, struct err *e)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->specs[i]->nkeeps) {
            err_set(e, ERR_USAGE, "a recorder on the node does not go with a root whose result decides");
            err_hint(e, "leave out the root's condition on its result, and filter when you read the events: --where");
            return false;
        }
    return true;
}

static bool where_reads_any_of(const struct where *w, uint64_t kinds)
{
    bool reads = w->type == WHERE_NAME && property_rows[w->property].events & kinds;

    for (size_t i = 0; i < w->count; i++)
        reads = reads || where_reads_any_of(w->items[i], kinds);
    return reads || (w->tail && where_reads_any_of(w->tail, kinds));
}

/* Returns the kinds of events of the probes except calls and their results, if @events are among the probes; else 0. */
static uint64_t kinds_besides_calls(const struct exprs *p)
{
    const uint64_t calls = UINT64_C(1) << ETW_CALL | UINT64_C(1) << ETW_RETURN_FROM | UINT64_C(1) << ETW_EXCEPTION_FROM;
    uint64_t kinds = calls | UINT64_C(1) << ETW_SYSTEM;
    bool any = false;

    for (size_t i = 0; i < p->count; i++) {
        any = any || p->specs[i]->kind == SPEC_EVENT || probes_switches(p->specs[i]);
        if (p->specs[i]->flags & SPEC_F_SYSTEM)
            kinds = calls;
    }
    return any ? probes_kinds(p->specs, p->count) & ~kinds : 0;
}

bool exprs_trigger(const struct exprs *p, const struct where *condition, const char *text, struct buf *ret_filter,
                   struct err *e)
{
    /* The node tests only how calls end. */
    if (!where_reads_any_of(condition, kinds_besides_calls(p)) && where_steps_of_ends(&condition, 1, ret_filter) &&
        ret_filter->len)
        return true;
    err_set(e, ERR_USAGE, "the node cannot decide the condition of --snapshot-when '%.200s'", text);
    err_hint(e, "it can test how a call ended: class == error, dur > 1s, ret == error; combine them with and, or, not");
    return false;
}

bool exprs_system_trigger(const char *probe, struct err *e)
{
    static const char *const names[] = {"long_gc",   "large_heap",    "long_schedule", "long_message_queue",
                                        "busy_port", "busy_dist_port"};
    size_t len = strcspn(probe + 1, "( ");

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == len && !strncmp(names[i], probe + 1, len))
            return true;
    err_set(e, ERR_USAGE, "--snapshot-when does not take '%.200s'", probe);
    err_hint(e, "a condition such as class == error, or a system event: @long_gc, @large_heap, @long_schedule, "
                "@long_message_queue, @busy_port, @busy_dist_port");
    return false;
}

static bool reads_sender(const struct where *const *wheres, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (where_uses(wheres[i]) & PROPERTY_NEEDS_SENDER)
            return true;
    return false;
}

bool exprs_reads_sender(const struct exprs *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (reads_sender(p->specs[i]->where, p->specs[i]->nwhere))
            return true;
    return reads_sender(p->wheres, p->nwheres) || counts_with(p, PROPERTY_NEEDS_SENDER);
}

bool exprs_counts_around(const struct exprs *p)
{
    return counts_with(p, PROPERTY_AROUND);
}

bool exprs_whom(const struct texts *procs, const struct session_node *node, struct buf *ret_list, struct err *e)
{
    struct arming a = {.otp = node->otp, .node = {node->name, strlen(node->name)}, .creation = node->creation};
    bool ok = true;

    arm_init(&a.arm);
    arena_init(&a.arena);
    for (size_t i = 0; ok && i < procs->count; i++)
        ok = arm_process(&a, procs->items[i], e);
    if (ok)
        arm_processes(&a.arm, ret_list);
    arm_release(&a.arm);
    arena_release(&a.arena);
    buf_release(&a.etf);
    return ok;
}

static void arm_trees_of(struct arming *a, const struct spec *root)
{
    struct buf steps = {0};

    root_steps(root, &steps); /* cannot fail: insides_fit() has checked it */
    arm_route(&a->arm, ARM_TREES);
    arm_filter(&a->arm, buf_view(&steps));
    buf_release(&steps);
}

bool exprs_arm(const struct exprs *p, const struct what_opts *what, const struct session_node *node,
               struct exprs_how how, struct buf *ret_asked, struct err *e)
{
    struct arming a = {.otp = node->otp,
                       .anonymous = how.plan.anonymous,
                       .node = {node->name, strlen(node->name)},
                       .creation = node->creation};
    const struct exprs_plan *plan = &how.plan;
    unsigned wanted = 0, by_roots = 0, no_args = SPEC_F_ARITY;
    uint64_t besides;
    bool decides = false; /* a program tests arguments on the node, so the node needs them even if no view shows them */

    arm_init(&a.arm);
    arena_init(&a.arena);
    for (size_t i = 0, receives = 0; i < p->count; i++)
        a.meets |= p->specs[i]->kind == SPEC_RECV && receives++ > 0;
    struct fit fit = {.unknown = how.unknown, .nunknown = how.nunknown, .compared = how.compared, .a = &a.arena};
    bool ok = true;
    for (size_t i = 0; i < p->count; i++) {
        struct spec here;
        const struct spec *s = &here;
        if (!(ok = fit_to_node(&fit, p->specs[i], what, &here, e)))
            break;
        wanted |= s->flags;
        by_roots |= flags_by_roots(s);
        if (s->kind == SPEC_CALL && !s->root)
            no_args &= s->flags;
        decides |= spec_program(s, &a.arena) != NULL;
        if (s->kind == SPEC_EVENT)
            arm_event(&a, s);
        else
            arm_spec(&a, s);
    }
    arm_variables(&a.arm, fit.variables);
    ok = ok && arm_whom(&a, what, wanted & ~by_roots, e);
    arm_by_roots(&a.arm, by_roots);
    if (by_roots && what->sample > 1)
        arm_sample(&a.arm, what->sample);
    if ((wanted & SPEC_F_CALL) &&
        (no_args || (plan->route == ARM_TALLY && !decides && !where_steps_measure(plan->filter)))) {
        if (by_roots)
            arm_inside(&a.arm, "arity", 0);
        else
            arm_flag(&a.arm, "arity");
    }
    arm_route(&a.arm, plan->route);
    if (plan->route == ARM_BY)
        arm_by_keys(&a, p, what->keys ? what->keys : ETW_BY_ROWS);
    arm_filter(&a.arm, plan->filter);
    if (deciding_root(p))
        arm_trees_of(&a, deciding_root(p));
    if (what->silent)
        arm_flag(&a.arm, "silent");
    if (what->follow) {
        arm_flag(&a.arm, "set_on_spawn");
        arm_flag(&a.arm, "set_on_link");
    } else if (inherits[what->inherit]) {
        arm_flag(&a.arm, inherits[what->inherit]);
    }
    arm_kinds(&a.arm, exprs_kinds(p, &besides));
    if (what->unsafe)
        arm_unsafe(&a.arm);
    if (what->allow_empty)
        arm_allow_empty(&a.arm);
    if (what->available)
        arm_available(&a.arm);
    arm_requests(&a.arm, what->requests);
    if (how.mark.first)
        arm_mark(&a.arm, how.mark);
    if (what->force)
        arm_force(&a.arm);
    /* -1: the node chooses a default, which depends on the traced functions */
    arm_overhead(&a.arm, what->overhead >= 10000 ? 0 : what->overhead ? what->overhead : what->force ? 0 : -1);
    if (ok)
        arm_finish(&a.arm, ret_asked);
    arm_release(&a.arm);
    arena_release(&a.arena);
    buf_release(&a.etf);
    return ok;
}
