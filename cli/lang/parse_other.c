/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the syntax of other tools: dbg's fun … end and fun2ms, literal match specifications, and recon's {M, F, A}.
 * The result is the same tree as for our own clauses. Later passes check the bodies.
 */
#include "parse.h"

/* ---- fun(…) -> … end, as dbg:fun2ms takes it ---- */

static bool fun_head(struct parser *p, struct ast_clause *cl)
{
    const size_t open = tok(p)->from;
    const bool brackets = at_punct(p, P_LPAREN);
    struct ast *arg;

    if (brackets)
        p->at++;
    if (!(arg = parse_expr(p, PARSE_ANY)))
        return false;
    if (brackets && at_punct(p, P_COMMA)) {
        diag(p->c, arg->from, tok_end(tok(p)) - arg->from, "a fun takes all arguments as one list");
        return diag_note(p->c, "write them in [ ], as in fun([A, B])");
    }
    if (brackets && !want_punct(p, P_RPAREN, open))
        return false;
    if (arg->type == A_MATCH && arg->items[0]->type == A_VAR) {
        cl->whole = arg->items[0];
        arg = arg->items[1];
    } else if (arg->type == A_MATCH && arg->items[1]->type == A_VAR) {
        cl->whole = arg->items[1];
        arg = arg->items[0];
    }
    cl->head_from = arg->from;
    cl->head_len = arg->len;
    if (arg->type == A_VAR && !cl->whole) {
        cl->whole = arg;
    } else if (arg->type == A_LIST) {
        cl->has_head = true;
        cl->head = arg->items;
        cl->nhead = arg->count;
        cl->tail = arg->tail;
    } else if (arg->type != A_ANY) {
        diag(p->c, arg->from, arg->len, "a fun takes all arguments as one list");
        return diag_note(p->c, "write them in [ ]");
    }
    return true;
}

static bool parse_fun_clauses(struct parser *p, struct ast_probe *probe)
{
    const bool elixir = p->c->surface == SPEC_ELIXIR;
    const size_t open = tok(p)->from;
    struct ptrs list = {0};

    p->at++;
    for (;;) {
        struct ast_clause cl = {.from = tok(p)->from};
        if (!at_punct(p, P_LPAREN) && !elixir)
            return report_unexpected(p, "'('");
        if (!fun_head(p, &cl) || !parse_clause_rest(p, &cl))
            return false;
        if (!cl.nbody)
            return report_unexpected(p, "'->'");
        parse_add_clause(p, &list, &cl);
        if (!take_punct(p, P_SEMI))
            break;
    }
    if (!at_word(p, "end")) {
        if (tok(p)->type != TOK_END)
            return report_unexpected(p, "'end'");
        diag(p->c, open, elixir ? 2 : 3, "unterminated fun");
        return diag_note(p->c, "the 'end' is missing");
    }
    p->at++;
    probe->fun = true;
    parse_take_clauses(p, probe, &list);
    return true;
}

/* Parses fun … end or dbg:fun2ms(fun … end). Sets *ret_found to false if the text begins with something else. */
bool parse_fun(struct parser *p, struct ast_probe *probe, bool *ret_found)
{
    const bool elixir = p->c->surface == SPEC_ELIXIR;
    const size_t at = p->at;
    size_t wrapped = 0;

    *ret_found = true;
    if (tok(p)->type == TOK_IDENT || tok(p)->type == TOK_LIT) {
        bool module = elixir ? tok(p)->type == TOK_LIT && term_is_atom(tok(p)->value, "dbg") : at_word(p, "dbg");
        if (module && next_is_punct(p, elixir ? P_DOT : P_COLON)) {
            p->at += 2;
            if (at_word(p, "fun2ms") && next_is_punct(p, P_LPAREN)) {
                wrapped = p->tokens[p->at + 1].from + 1;
                p->at += 2;
            }
        }
    }
    if (at_word(p, elixir ? "fn" : "fun"))
        return parse_fun_clauses(p, probe) && (!wrapped || want_punct(p, P_RPAREN, wrapped - 1));
    p->at = at;
    *ret_found = false;
    return true;
}

/* ---- literal match specifications ---- */

bool parse_raw(struct parser *p, struct ast_probe *probe)
{
    probe->raw = parse_expr(p, PARSE_ANY);
    return probe->raw;
}

/* ---- {M, F, A}, {M, F, fun … end} and {M, F, MatchSpec}, the syntax of recon and others ---- */

static bool tuple_name(struct parser *p, struct sel_name *ret)
{
    struct token *t = tok(p);

    if (t->type == TOK_IDENT && p->c->surface == SPEC_ERLANG)
        *ret = (struct sel_name){SEL_ATOM, t->text};
    else if (t->type == TOK_ALIAS)
        *ret = (struct sel_name){SEL_ATOM, elixir_module(p->c->arena, t->text)};
    else if (t->type == TOK_LIT && t->value->type == TERM_ATOM)
        *ret = (struct sel_name){str_is(t->value->text, "_") ? SEL_ANY : SEL_ATOM, t->value->text};
    else if ((t->type == TOK_VAR || t->type == TOK_IDENT) && str_is(t->text, "_"))
        *ret = (struct sel_name){SEL_ANY, t->text};
    else
        return report_unexpected(p, "a name");
    p->at++;
    return true;
}

/* Parses return_trace, which stands for fun(_) -> return_trace() end. */
static void take_return_trace(struct parser *p, struct ast_probe *probe)
{
    struct ast_clause cl = {.from = tok(p)->from, .len = tok(p)->len};
    struct ast *call = make_node(p, A_CALL, tok(p)->from);
    struct ptrs body = {0}, list = {0};

    call->text = str_of("return_trace");
    call->len = tok(p)->len;
    ptrs_add(&body, p->c->arena, call);
    cl.body = (struct ast **)(void *)body.items;
    cl.nbody = body.count;
    parse_add_clause(p, &list, &cl);
    parse_take_clauses(p, probe, &list);
    probe->fun = true;
    p->at++;
}

static bool tuple_third(struct parser *p, struct ast_probe *probe)
{
    struct selector *s = &probe->selectors[0];
    struct token *t = tok(p);
    bool fun;

    if (t->type == TOK_LIT && t->value->type == TERM_INT && t->value->integer <= SPEC_ARITY_MAX) {
        s->arity_lo = s->arity_hi = (int)t->value->integer;
        probe->arity_given[0] = true;
        p->at++;
        return true;
    }
    if (((t->type == TOK_VAR || t->type == TOK_IDENT) && str_is(t->text, "_")) ||
        (t->type == TOK_LIT && term_is_atom(t->value, "_"))) {
        p->at++;
        return true;
    }
    if (at_punct(p, P_LBRACK))
        return parse_raw(p, probe);
    if (at_word(p, "return_trace") || (t->type == TOK_LIT && term_is_atom(t->value, "return_trace"))) {
        take_return_trace(p, probe);
        return true;
    }
    if (!parse_fun(p, probe, &fun))
        return false;
    return fun || report_unexpected(p, "an arity, a fun or a match specification");
}

/* Parses {M, F, Third}. */
static bool mfa_tuple(struct parser *p, struct ast_probe *probe)
{
    struct arena *a = p->c->arena;
    const size_t open = tok(p)->from;
    struct selector *s = probe->selectors = arena_alloc(a, sizeof(*s));

    probe->arity_given = arena_alloc(a, sizeof(*probe->arity_given));
    probe->nselectors = 1;
    *s = (struct selector){.arity_hi = SPEC_ARITY_MAX, .from = open};
    if (!take_punct(p, P_LBRACE))
        return report_unexpected(p, "{Module, Function, Arity}");
    if (!tuple_name(p, &s->module))
        return false;
    if (!take_punct(p, P_COMMA))
        return report_unexpected(p, "','");
    if (!tuple_name(p, &s->function))
        return false;
    if (!take_punct(p, P_COMMA))
        return report_unexpected(p, "','");
    if (!tuple_third(p, probe) || !want_punct(p, P_RBRACE, open))
        return false;
    s->len = tok_end(&p->tokens[p->at - 1]) - open;
    return true;
}

/* Parses [{M, F, Third}, …] into a list of probes. */
static bool mfa_list(struct parser *p, struct ast_probe *probe)
{
    const size_t open = tok(p)->from;

    p->at++;
    for (;;) {
        struct ptrs whole = {0};
        probe->from = tok(p)->from;
        if (!mfa_tuple(p, probe))
            return false;
        probe->len = probe->selectors[0].len;
        if (!probe->raw && !probe->fun) {
            parse_add_clause(p, &whole, &(struct ast_clause){.from = probe->from, .len = probe->len});
            parse_take_clauses(p, probe, &whole);
        }
        if (!take_punct(p, P_COMMA))
            break;
        struct ast_probe *next = arena_alloc(p->c->arena, sizeof(*next));
        *next = (struct ast_probe){.shape = SHAPE_CALL, .surface = probe->surface, .scope = probe->scope};
        probe = probe->next = next;
    }
    if (!want_punct(p, P_RBRACK, open))
        return false;
    return tok(p)->type == TOK_END || report_unexpected(p, "the end of the list of probes");
}

bool parse_mfa(struct parser *p, struct ast_probe *probe)
{
    if (at_punct(p, P_LBRACK))
        return mfa_list(p, probe);
    if (!mfa_tuple(p, probe))
        return false;
    if (!probe->raw && !probe->fun && !parse_clauses(p, probe))
        return false;
    return parse_end(p, probe);
}
