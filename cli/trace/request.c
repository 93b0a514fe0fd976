/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <string.h>

#include "../erlang/etf_write.h"

#define ANSWER_MS 30000

bool request_open(struct request *a, struct ctx *ctx, const struct node_opts *o, struct err *e)
{
    struct peers_handlers handlers = {0};
    const struct session_options options = SESSION_QUESTIONS;

    *a = (struct request){0};
    peers_begin(&a->peers, ctx, &handlers);
    return peers_open(&a->peers, o, &options, e);
}

void request_close(struct request *a)
{
    peers_leave(&a->peers);
    peers_close(&a->peers);
    buf_release(&a->answer);
}

bool request_node(struct request *a, struct peer *p, struct str request, struct etf *ret_answer, struct err *e)
{
    buf_clear(&a->answer);
    if (!peer_ask(p, request, ANSWER_MS, &a->answer, e))
        return false;
    etf_open(ret_answer, a->answer.data, a->answer.len);
    return true;
}

void request_begin(struct buf *b, const char *what, size_t extra)
{
    etf_version(b);
    etf_tuple(b, 2);
    etf_atomz(b, "ask");
    if (extra)
        etf_tuple(b, extra + 1);
    etf_atomz(b, what);
}

/* ---- selectors ---- */

static bool selectors_only(const struct exprs *exprs, struct err *e)
{
    for (size_t i = 0; i < exprs->count; i++) {
        const struct spec *s = exprs->specs[i];
        if (s->kind == SPEC_CALL && term_is_atom(s->match_spec, "true") && !s->nwhere && !s->npack &&
            s->scope != SPEC_META)
            continue;
        err_set(e, ERR_USAGE, "expected functions without patterns, guards or actions, not '%.*s'", (int)s->text.len,
                s->text.at);
        err_hint(e, "module:function/arity, with * and _ for any; see etrace-expr(7)");
        return false;
    }
    return true;
}

bool request_selection(struct buf *b, struct exprs *exprs, const struct what_opts *what, const struct texts *texts,
                       const struct session_node *node, bool counts, struct err *e)
{
    struct texts none = {0};
    struct buf map = {0};

    exprs->may_count = true;
    bool ok = exprs_compile(exprs, what, texts, &none, node->otp, e) && selectors_only(exprs, e) &&
              exprs_arm(exprs, what, node, (struct exprs_how){.selects = !counts}, &map, e);
    if (ok) {
        etf_tuple(b, 2);
        etf_atomz(b, "arm");
        buf_str(b, buf_view(&map));
    }
    buf_release(&map);
    return ok;
}

bool request_check(struct ctx *ctx, const struct what_opts *what, const struct texts *words, struct arena *a,
                   struct texts *ret_texts, struct err *e)
{
    struct texts none = {0};
    struct exprs exprs;

    exprs_init(&exprs);
    exprs.may_count = true;
    bool ok = exprs_texts(ctx, what, words, a, ret_texts, e) && exprs_compile(&exprs, what, ret_texts, &none, 0, e) &&
              selectors_only(&exprs, e);
    exprs_release(&exprs);
    return ok;
}

void request_empty(const struct texts *words, const char *node, struct err *e)
{
    if (e->status == ERR_EMPTY && !strncmp(e->text, "expression ", 11))
        err_set(e, ERR_EMPTY, "nothing on %s matches %s%s", node, words->count ? words->items[0] : "the file",
                words->count > 1 ? " and the others" : "");
}
