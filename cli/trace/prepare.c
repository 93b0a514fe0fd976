/* SPDX-License-Identifier: Apache-2.0 */
#include "prepare.h"

#include <stdlib.h>
#include <string.h>

#include "../ground/macros.h"
#include "../ground/mem.h"

#define ANSWER_MS 10000
/* ms. Arming may set thousands of patterns, and each pattern waits for every scheduler of a busy node. */
#define ARM_MS 120000

struct prepare {
    struct ctx *ctx;
    struct session *session;
    const struct what_opts *what;
    struct exprs_how how;
    enum prepare_step step;
    uint32_t id;        /* id of the request that has no answer yet; 0: none */
    struct arena arena; /* holds the texts */
    struct texts texts;
    struct record_lookup records;
    struct exprs exprs;
    struct buf arm; /* the argument of arm_request() */
    struct arm_result chosen, armed;
    struct err why;
};

static void refuse_request(struct prepare *p)
{
    p->step = PREPARE_REFUSED;
    p->id = 0;
}

/*
 * Sends the request of a step. If that fails, the handlers of the session have reported the failure, and no answer will
 * come.
 */
static void prepare_ask(struct prepare *p, enum prepare_step step, struct str request, int timeout_ms)
{
    struct err ignored;

    p->step = step;
    if (!session_request(p->session, request, timeout_ms, &p->id, &ignored))
        p->id = 0;
}

/* ---- SELECT, TRACE ---- */

static void prepare_arm(struct prepare *p, enum arm_verb verb, enum prepare_step step)
{
    struct buf request = {0};

    arm_request(&request, verb, buf_view(&p->arm));
    prepare_ask(p, step, buf_view(&request), verb == ARM_TRACE ? ARM_MS : ANSWER_MS);
    buf_release(&request);
}

static void start_trace(struct prepare *p)
{
    if (p->what->dry_run)
        p->step = PREPARE_DONE;
    else
        prepare_arm(p, ARM_TRACE, PREPARE_TRACE);
}

static bool take_chosen(struct prepare *p, struct etf answer)
{
    if (!arm_result_read(answer, &p->chosen, &p->why))
        return false;
    start_trace(p);
    return true;
}

static bool take_armed(struct prepare *p, struct etf answer)
{
    p->step = PREPARE_DONE;
    return arm_result_read(answer, &p->armed, &p->why);
}

/* ---- ATOMS ---- */

static void warn_unknown(const struct prepare *p)
{
    const struct exprs_how *how = &p->how;

    for (size_t i = 0; i < how->nunknown; i++)
        if (how->compared[i])
            ctx_warn(p->ctx, "warning: %s does not know the atom %.*s: nothing there equals it",
                     session_node(p->session)->name, (int)MIN(how->unknown[i].len, 200), how->unknown[i].at);
}

static bool select_functions(struct prepare *p)
{
    p->how.compared = arena_alloc(&p->exprs.arena, p->how.nunknown + 1);
    memset(p->how.compared, 0, p->how.nunknown + 1);
    plan_follow_roots(&p->how.plan, &p->exprs, &p->exprs.arena);
    if (!exprs_arm(&p->exprs, p->what, session_node(p->session), p->how, &p->arm, &p->why))
        return false;
    warn_unknown(p);
    prepare_arm(p, ARM_SELECT, PREPARE_SELECT);
    return true;
}

static bool find_unknown(struct prepare *p)
{
    struct buf names = {0}, request = {0};
    const size_t n = exprs_atoms(&p->exprs, &names);

    arm_atoms(&request, &names, n);
    if (n)
        prepare_ask(p, PREPARE_ATOMS, buf_view(&request), ANSWER_MS);
    buf_release(&request);
    buf_release(&names);
    return n || select_functions(p);
}

/* Returns the text in `exprs` of a name that the node sent, because the text from the node is not kept. */
static const struct str *asked_name(const struct exprs *exprs, struct raw name)
{
    for (size_t i = 0; i < exprs->count; i++)
        for (size_t k = 0; k < exprs->specs[i]->natoms; k++)
            if (raw_same(raw_of(exprs->specs[i]->atoms[k]), name))
                return &exprs->specs[i]->atoms[k];
    return NULL;
}

static bool take_atoms(struct prepare *p, struct etf answer)
{
    struct buf names = {0};
    const size_t most = exprs_atoms(&p->exprs, &names);
    struct str *items = arena_alloc(&p->exprs.arena, most * sizeof(*items) + 1);
    struct raw name;
    size_t n;
    bool ok = etf_get_list(&answer, &n) && n <= most;

    buf_release(&names);
    for (size_t i = 0; ok && i < n; i++) {
        const struct str *own = etf_get_bin(&answer, &name) ? asked_name(&p->exprs, name) : NULL;
        if ((ok = own))
            items[i] = *own;
    }
    if (!ok)
        return err_set(&p->why, ERR_RUN, "the node's answer about atoms is malformed");
    p->how.unknown = items;
    p->how.nunknown = n;
    return select_functions(p);
}

/* ---- RECORDS ---- */

static bool compile_exprs(struct prepare *p)
{
    const struct texts none = {0};
    struct str wanted;

    bool ok = record_lookup_compile(&p->records, &p->exprs, p->what, &p->texts, &none, session_node(p->session)->otp,
                                    &wanted, &p->why);
    if (wanted.len) {
        prepare_ask(p, PREPARE_RECORDS, wanted, ANSWER_MS);
        return true;
    }
    return ok && find_unknown(p);
}

static bool take_record(struct prepare *p, struct etf answer)
{
    return record_lookup_read(&p->records, answer, &p->why) && compile_exprs(p);
}

/* ---- the interface ---- */

static bool (*const take[])(struct prepare *p, struct etf answer) = {
    [PREPARE_RECORDS] = take_record,
    [PREPARE_ATOMS] = take_atoms,
    [PREPARE_SELECT] = take_chosen,
    [PREPARE_TRACE] = take_armed,
};

struct prepare *prepare_new(struct ctx *ctx, struct session *s, const struct what_opts *what, const struct texts *texts,
                            struct exprs_how how)
{
    struct prepare *p = mem_zalloc(sizeof *p);

    p->ctx = ctx;
    p->session = s;
    p->what = what;
    p->how = how;
    arena_init(&p->arena);
    for (size_t i = 0; i < texts->count; i++)
        texts_add(&p->texts,
                  texts->items[i] ? arena_strndup(&p->arena, texts->items[i], strlen(texts->items[i])) : NULL);
    p->texts.nfiles = texts->nfiles;
    record_lookup_init(&p->records);
    exprs_init(&p->exprs);
    return p;
}

void prepare_begin(struct prepare *p)
{
    if (!compile_exprs(p))
        refuse_request(p);
}

void prepare_free(struct prepare *p)
{
    if (!p)
        return;
    exprs_release(&p->exprs);
    record_lookup_release(&p->records);
    texts_release(&p->texts);
    arena_release(&p->arena);
    arm_result_release(&p->chosen);
    arm_result_release(&p->armed);
    buf_release(&p->arm);
    free(p);
}

bool prepare_awaits(const struct prepare *p, uint32_t reply_id)
{
    return p && p->id && (!reply_id || p->id == reply_id);
}

void prepare_reply(struct prepare *p, const struct session_reply *reply)
{
    p->id = 0;
    if (reply->ok ? !take[p->step](p, reply->term) : !session_error(reply, &p->why))
        refuse_request(p);
}

enum prepare_step prepare_step(const struct prepare *p)
{
    return p->step;
}

const struct arm_result *prepare_chosen(const struct prepare *p)
{
    return p->step == PREPARE_TRACE || p->step == PREPARE_DONE ? &p->chosen : NULL;
}

const struct arm_result *prepare_armed(const struct prepare *p)
{
    return p->step == PREPARE_DONE && !p->what->dry_run ? &p->armed : NULL;
}

const struct err *prepare_why(const struct prepare *p)
{
    return &p->why;
}
