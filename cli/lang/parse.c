/* SPDX-License-Identifier: Apache-2.0 */
/* Parses probes: selectors, clauses with heads, guards and bodies, messages, events, match specifications. */
#include "parse.h"

#include <string.h>

#include "actions.h"
#include "compile_where.h"

/* ---- clauses ---- */

/* Parses the argument list with its parentheses. */
static bool parse_head(struct parser *p, struct ast_clause *cl)
{
    struct ptrs items = {0};
    const size_t open = tok(p)->from;

    p->at++;
    cl->has_head = true;
    if (!at_punct(p, P_ELLIPSIS) && !parse_items(p, P_RPAREN, true, &items))
        return false;
    if (at_punct(p, P_ELLIPSIS)) {
        if (items.count && p->tokens[p->at - 1].punct != P_COMMA)
            return report_unexpected(p, "a ',' before '...'");
        p->at++;
        cl->prefix = true;
        if (!at_punct(p, P_RPAREN))
            return report_unexpected(p, "')', because '...' is the last argument");
    }
    if (!want_punct(p, P_RPAREN, open))
        return false;
    cl->head = (struct ast **)(void *)items.items;
    cl->nhead = items.count;
    cl->head_from = open;
    cl->head_len = tok_end(&p->tokens[p->at - 1]) - open;
    return true;
}

/*
 * Returns true if the token can be part of a pattern. Tests, calls and the access to a field cannot. In a binary the
 * `size(1)` behind `::` or `-` is not a call.
 */
static bool fits_pattern(struct parser *p, const struct token *t, bool binary)
{
    const bool modifies = binary && t[-1].type == TOK_PUNCT && (t[-1].punct == P_TYPE || t[-1].punct == P_MINUS);
    const bool named = t->type == TOK_IDENT || (t->type == TOK_LIT && t->quoted && t->value->type == TERM_ATOM);
    const bool elixir = p->c->surface == SPEC_ELIXIR;

    if (parse_is_test(p, t) || t->type == TOK_REGEX || (t->type == TOK_PUNCT && t->punct == P_SEMI))
        return false;
    if (named && !modifies && t[1].type == TOK_PUNCT && t[1].punct == P_LPAREN &&
        (!t[1].spaced || (!elixir && t->type == TOK_IDENT)))
        return false;
    if (t->type != TOK_PUNCT || t->punct != P_DOT || t->spaced)
        return true;
    return t[-2].type == TOK_PUNCT && t[-2].punct == P_AMP; /* &Mod.fun/1 */
}

/*
 * Returns the token after the argument list that begins with the '(' at `i`, or NULL if a token of the list cannot be
 * part of a pattern.
 */
static const struct token *behind_patterns(struct parser *p, size_t i)
{
    size_t binaries = 0;
    int depth = 0;

    for (; p->tokens[i].type != TOK_END; i++) {
        const struct token *t = &p->tokens[i];
        const int punct = t->type == TOK_PUNCT ? (int)t->punct : -1, nests = token_nests(t);
        if (!fits_pattern(p, t, binaries > 0))
            return NULL;
        if (punct == P_BIN_OPEN)
            binaries++;
        else if (punct == P_BIN_CLOSE && binaries)
            binaries--;
        depth += nests;
        if (nests < 0 && !depth)
            return t + 1;
    }
    return NULL;
}

/* Returns true if X in `(X)` is a variable of the clause's head. Then `(X)` is a test of X, as in redbug. */
static bool is_bound_test(struct parser *p, const struct ast_clause *guarded, const struct token *open)
{
    const bool one = open[2].type == TOK_PUNCT && open[2].punct == P_RPAREN;

    if (!one || open[1].type != (p->c->surface == SPEC_ELIXIR ? TOK_IDENT : TOK_VAR))
        return false;
    for (size_t i = 0; i < guarded->nhead; i++)
        if (ast_mentions(guarded->head[i], open[1].text))
            return true;
    return false;
}

/*
 * Returns true if a clause begins at `; (`. After a guard, `; (` may instead continue the guard. A clause begins if the
 * tokens in the parentheses can be patterns, and the token behind the parentheses can follow an argument list.
 * `guarded` is the clause before the `;`, or NULL if that clause has a body.
 */
static bool clause_follows(struct parser *p, const struct ast_clause *guarded)
{
    if (!at_punct(p, P_SEMI) || !next_is_punct(p, P_LPAREN))
        return false;
    if (!guarded)
        return true;

    const struct token *next = behind_patterns(p, p->at + 1);
    if (!next)
        return false;
    const bool word = next->type == TOK_IDENT, when = word && str_is(next->text, "when");
    if (!when && is_bound_test(p, guarded, tok(p) + 1))
        return false;
    return when || next->type == TOK_END ||
           (next->type == TOK_PUNCT && (next->punct == P_ARROW || next->punct == P_SEMI)) ||
           (word && (str_is(next->text, "where") || str_is(next->text, LEX_BY) || str_is(next->text, "end")));
}

static bool at_clause_end(struct parser *p)
{
    return tok(p)->type == TOK_END || at_punct(p, P_ARROW) || at_word(p, "where") || at_word(p, LEX_BY) ||
           at_word(p, "end");
}

static bool parse_guards(struct parser *p, struct ast_clause *cl)
{
    struct ptrs guards = {0};

    p->guard = true;
    do {
        struct ast_guard *g = arena_alloc(p->c->arena, sizeof(*g));
        struct ptrs tests = {0};
        g->from = tok(p)->from;
        do {
            struct ast *test = parse_expr(p, PARSE_ANY);
            if (!test)
                return false;
            ptrs_add(&tests, p->c->arena, test);
        } while (take_punct(p, P_COMMA));
        g->tests = (struct ast **)(void *)tests.items;
        g->count = tests.count;
        g->len = tok_end(&p->tokens[p->at - 1]) - g->from;
        ptrs_add(&guards, p->c->arena, g);
        if (at_punct(p, P_SEMI) && !clause_follows(p, cl)) {
            p->at++;
            continue;
        }
        if (at_word(p, "when") && p->c->surface == SPEC_ELIXIR) {
            p->at++;
            continue;
        }
        break;
    } while (true);
    p->guard = false;

    cl->nguards = guards.count;
    cl->guards = arena_alloc(p->c->arena, guards.count * sizeof(*cl->guards));
    for (size_t i = 0; i < guards.count; i++)
        cl->guards[i] = *(struct ast_guard *)guards.items[i];
    return true;
}

static bool parse_body(struct parser *p, struct ast_clause *cl)
{
    struct ptrs acts = {0};

    for (;;) {
        struct ast *act = parse_expr(p, PARSE_ANY);
        if (!act)
            return false;
        ptrs_add(&acts, p->c->arena, act);
        if (clause_follows(p, NULL))
            break;
        if (!take_punct(p, P_COMMA) && !take_punct(p, P_SEMI))
            break;
        if (at_clause_end(p))
            return report_unexpected(p, "another action");
    }
    cl->body = (struct ast **)(void *)acts.items;
    cl->nbody = acts.count;
    return true;
}

/* Returns the length from `from` to the end of the last token, or 0 if no token is there. */
static size_t parsed_length(const struct parser *p, size_t from)
{
    const size_t end = p->at ? tok_end(&p->tokens[p->at - 1]) : from;

    return end > from ? end - from : 0;
}

bool parse_clause_rest(struct parser *p, struct ast_clause *cl)
{
    if (at_word(p, "when")) {
        p->at++;
        if (!parse_guards(p, cl))
            return false;
    }
    /* Rexbug writes :: instead of ->. */
    if ((take_punct(p, P_ARROW) || take_punct(p, P_TYPE)) && !parse_body(p, cl))
        return false;
    cl->len = parsed_length(p, cl->from);
    return true;
}

void parse_add_clause(struct parser *p, struct ptrs *list, const struct ast_clause *cl)
{
    struct ast_clause *copy = arena_alloc(p->c->arena, sizeof(*copy));

    *copy = *cl;
    ptrs_add(list, p->c->arena, copy);
}

void parse_take_clauses(struct parser *p, struct ast_probe *probe, const struct ptrs *list)
{
    probe->nclauses = list->count;
    probe->clauses = arena_alloc(p->c->arena, list->count * sizeof(*probe->clauses));
    for (size_t i = 0; i < list->count; i++)
        probe->clauses[i] = *(struct ast_clause *)list->items[i];
}

/* Returns true if modules may still be excluded: a selector stands for several modules, and nothing is excluded yet. */
static bool names_several(const struct ast_probe *probe)
{
    for (size_t i = 0; i < probe->nselectors; i++)
        if (probe->selectors[i].module.how != SEL_ATOM)
            return !probe->selectors[i].nwithout;
    return false;
}

/* Parses `- mod1, mod2`: excluded modules. */
static bool parse_without(struct parser *p, struct ast_probe *probe)
{
    struct comp *c = p->c;
    struct ptrs names = {0};

    if (!at_punct(p, P_MINUS) || !names_several(probe))
        return true;
    do {
        struct sel_name *name = arena_alloc(c->arena, sizeof(*name));
        p->at++;
        if (!select_module(p, name))
            return false;
        ptrs_add(&names, c->arena, name);
    } while (at_punct(p, P_COMMA) || at_punct(p, P_MINUS));
    struct sel_name *without = arena_alloc(c->arena, names.count * sizeof(*without));
    for (size_t i = 0; i < names.count; i++)
        without[i] = *(struct sel_name *)names.items[i];
    for (size_t i = 0; i < probe->nselectors; i++) {
        probe->selectors[i].without = without;
        probe->selectors[i].nwithout = names.count;
    }
    return true;
}

/* Parses the parts directly after the selectors: the argument list and the excluded modules. */
static bool parse_selected(struct parser *p, struct ast_probe *probe, struct ast_clause *cl)
{
    cl->from = tok(p)->from;
    return (!at_punct(p, P_LPAREN) || parse_head(p, cl)) && parse_without(p, probe);
}

/* Parses the rest of the first clause, and further clauses. */
static bool parse_clauses_from(struct parser *p, struct ast_probe *probe, struct ast_clause cl)
{
    struct ptrs list = {0};

    for (;;) {
        if (!parse_clause_rest(p, &cl))
            return false;
        parse_add_clause(p, &list, &cl);
        if (!at_punct(p, P_SEMI))
            break;
        p->at++;
        if (!at_punct(p, P_LPAREN))
            return report_unexpected(p, "the '(' of another clause");
        cl = (struct ast_clause){.from = tok(p)->from};
        if (!parse_head(p, &cl))
            return false;
    }
    parse_take_clauses(p, probe, &list);
    return true;
}

bool parse_clauses(struct parser *p, struct ast_probe *probe)
{
    struct ast_clause cl = {0};

    return parse_selected(p, probe, &cl) && parse_clauses_from(p, probe, cl);
}

/* ---- probes ---- */

static bool parse_where(struct parser *p, struct ast_probe *probe)
{
    if (!at_word(p, "where"))
        return true;
    p->at++;
    probe->where_from = tok(p)->from;
    p->where = true;
    probe->where = parse_expr(p, PARSE_ANY);
    return probe->where != NULL;
}

/*
 * Returns the index of the ':' between keys and aggregates, or of the last token if there is none. The ':' after
 * `erlang` belongs to a key.
 */
static size_t find_separator(const struct parser *p)
{
    size_t i = p->at;
    int depth = 0;

    for (; p->tokens[i].type != TOK_END; i++) {
        const struct token *t = &p->tokens[i];
        depth = MAX(depth + token_nests(t), 0);
        if (t->type == TOK_PUNCT && t->punct == P_COLON && !depth &&
            !(t[-1].type == TOK_IDENT && str_is(t[-1].text, "erlang")))
            break;
    }
    return i;
}

/* Parses the expressions before the token `end`. */
static bool parse_by_items(struct parser *p, size_t end, const char *wanted, const char *after, struct ptrs *ret)
{
    const enum tok_type type = p->tokens[end].type;
    bool ok = true, begun;

    p->tokens[end].type = TOK_END;
    do {
        begun = p->at < end;
        struct ast *n = begun ? parse_expr(p, PARSE_ANY) : NULL;
        ok = n != NULL;
        if (ok)
            ptrs_add(ret, p->c->arena, n);
    } while (ok && take_punct(p, P_COMMA));
    p->tokens[end].type = type;
    if (!ok)
        return begun ? false : report_unexpected(p, wanted);
    if (p->at == end)
        return true;
    report_unexpected(p, after);
    if (at_word(p, "where") || at_word(p, "when"))
        diag_note(p->c, "'by' goes after 'when' and 'where'");
    return false;
}

static bool parse_by(struct parser *p, struct ast_probe *probe)
{
    struct ptrs keys = {0}, aggregates = {0};

    if (!at_word(p, LEX_BY))
        return true;
    probe->by_from = tok(p)->from;
    p->at++;
    p->where = p->by = true;
    const size_t separator = find_separator(p);
    if (!parse_by_items(p, separator, "a key, as in by caller", "',' or ':' after a key", &keys))
        return false;
    if (tok(p)->type != TOK_END) {
        p->at++;
        if (!parse_by_items(p, p->count - 1, "an aggregate, as in count or sum(size)",
                            "',' or the end of the expression", &aggregates))
            return false;
    }
    probe->keys = (struct ast **)(void *)keys.items;
    probe->nkeys = keys.count;
    probe->aggregates = (struct ast **)(void *)aggregates.items;
    probe->naggregates = aggregates.count;
    probe->by_len = parsed_length(p, probe->by_from);
    return true;
}

bool parse_is_node(struct parser *p, const struct sel_name *module, size_t from)
{
    const struct str text = p->c->text;
    size_t end = from;

    if (module->how != SEL_ATOM || !memchr(module->text.at, '@', module->text.len))
        return false;
    while (end < text.len && !lex_is_blank(text.at[end]) && text.at[end] != '\n')
        end++;
    return !diag_note(p->c, "the name of a node follows -n, as in -n " STR_FMT, (int)(end - from), text.at + from);
}

/* Adds a likely correction to the error about a token after a complete probe. */
static void hint_at_end(struct parser *p, const struct ast_probe *probe)
{
    const struct token *t = tok(p);
    const struct token *before = p->at ? t - 1 : NULL;
    struct guess g;

    guess_init(&g, t->text);
    if (p->where && (at_punct(p, P_COMMA) || at_punct(p, P_SEMI))) {
        diag_note(p->c, "join conditions with 'and' and 'or'");
    } else if (at_punct(p, P_BAR)) {
        diag_note(p->c, "write guards and actions after the last alternative; they apply to all of them");
    } else if (at_punct(p, P_ASSOC)) {
        diag_note(p->c, "write -> before actions");
    } else if (probe->nselectors == 1 && !probe->selectors[0].function.text.len &&
               parse_is_node(p, &probe->selectors[0].module, probe->selectors[0].from)) {
    } else if (at_punct(p, P_MINUS) && probe->nselectors && !t->spaced) {
        diag_note(p->c, "quote a name that has a '-'");
    } else if (at_punct(p, P_MINUS) && probe->nselectors && !next_is_punct(p, P_GT)) {
        diag_note(p->c, "'-' excludes modules from several; FUNCTION -> drop hides a function");
    } else if (t->type == TOK_IDENT && action_find(t->text) != ACTION_NONE && p->where) {
        diag_note(p->c, "actions go before 'where'");
    } else if (t->type == TOK_IDENT && action_find(t->text) != ACTION_NONE && probe->nclauses) {
        if (probe->clauses[probe->nclauses - 1].nbody)
            diag_note(p->c, "separate actions by commas");
        else
            diag_note(p->c, "write -> " STR_FMT, STR_ARG(t->text));
    } else if (at_punct(p, P_COMMA)) {
        diag_note(p->c, "write another probe as an argument of its own, or on a line of its own");
    } else if (p->where && at_word(p, "when")) {
        diag_note(p->c, "'when' goes before 'where'");
    } else if (at_word(p, "if") || at_word(p, "unless")) {
        diag_note(p->c, "write 'when' for a guard, 'where' for a filter");
    } else if (p->where && t->type == TOK_IDENT && before && before->type == TOK_LIT &&
               before->value->type != TERM_ATOM && where_unit(t->text)) {
        struct str number = {p->c->text.at + before->from, before->len};
        diag_note(p->c, "write " STR_FMT STR_FMT ", without a space", STR_ARG(number), STR_ARG(t->text));
    } else if (t->type == TOK_IDENT || t->type == TOK_VAR || t->type == TOK_ALIAS) {
        guess_offer(&g, str_of("when"));
        guess_offer(&g, str_of("where"));
        guess_offer(&g, str_of(LEX_BY));
        guess_offer(&g, str_of(LEX_INSIDE));
        diag_guess(p->c, &g);
    }
}

bool parse_end(struct parser *p, struct ast_probe *probe)
{
    if (!parse_where(p, probe) || !parse_by(p, probe))
        return false;
    if (tok(p)->type != TOK_END) {
        report_unexpected(p, "the end of the expression");
        if (probe->shape == SHAPE_EVENT && (at_word(p, "when") || at_punct(p, P_ARROW))) {
            diag_note(p->c, at_word(p, "when") ? "filter an event with 'where'" : "an event has no actions");
        } else {
            hint_at_end(p, probe);
        }
        return false;
    }
    probe->len = parsed_length(p, probe->from);
    return true;
}

/* Rejects foo(X), where the module is missing. */
static bool check_function(struct parser *p, const struct ast_probe *probe)
{
    const struct selector *s = &probe->selectors[0];
    struct str name = {p->c->text.at + s->from, s->len};

    if (probe->nselectors > 1 || s->module.how != SEL_ATOM || s->function.text.len)
        return true;
    diag(p->c, s->from, s->len, "an argument list needs a function");
    return diag_note(p->c, probe->surface == SPEC_ELIXIR ? "write " STR_FMT ".name" : "write module:" STR_FMT,
                     STR_ARG(name));
}

/* Rejects a probe in Erlang's quotes inside of the shell's quotes, as in "'lists:seq/2'". */
static bool check_quoted(struct parser *p, const struct ast_probe *probe)
{
    const struct selector *s = &probe->selectors[0];
    const struct str name = s->module.text;

    if (s->module.how != SEL_ATOM || s->function.text.len || tok(p)->type != TOK_END || !p->tokens[p->at - 1].quoted ||
        !(memchr(name.at, ':', name.len) || memchr(name.at, '/', name.len)))
        return true;
    diag(p->c, s->from, s->len, "this is quoted twice");
    return diag_note(p->c, "write " STR_FMT, STR_ARG(name));
}

/* ---- alternatives with patterns of their own: m:f(X, _) | m:g(X) when X > 1 ---- */

/* Copies the lexer's error and returns false if the lexer could not split the terms of the probe into tokens. */
static bool parse_tokens_good(struct parser *p)
{
    if (!p->bad)
        return true;
    *p->c->err = *p->bad;
    return false;
}

/* Parses another alternative after the `|`. Each alternative becomes a probe of its own. */
static bool parse_alternative(struct parser *p, struct ast_probe *last, struct ast_clause *cl)
{
    struct ast_probe *next = arena_alloc(p->c->arena, sizeof(*next));

    *next = (struct ast_probe){.from = last->from, .shape = SHAPE_CALL, .scope = last->scope};
    p->at++;
    if (!select_parse(p, next))
        return false;
    if (next->surface != last->surface) {
        static const char *const names[] = {"Erlang", "Elixir"};
        diag(p->c, next->selectors[0].from, next->selectors[0].len, "this alternative is %s, the first one is %s",
             names[next->surface], names[last->surface]);
        return diag_note(p->c, "write two expressions");
    }
    *cl = (struct ast_clause){0};
    if ((at_punct(p, P_LPAREN) && !check_function(p, next)) || !parse_selected(p, next, cl))
        return false;
    last->next = next;
    return true;
}

/*
 * Parses alternatives. The part after the last alternative applies to all of them and is parsed once for each, because
 * later passes modify the tree of each alternative.
 */
static bool parse_alternatives(struct parser *p, struct ast_probe *probe, struct ast_clause cl)
{
    struct ptrs heads = {0};
    struct ast_probe *last = probe;

    for (;;) {
        last->alternatives = probe;
        last->own_from = last->selectors[0].from;
        last->own_to = tok_end(&p->tokens[p->at - 1]);
        parse_add_clause(p, &heads, &cl);
        if (!at_punct(p, P_BAR))
            break;
        if (!parse_alternative(p, last, &cl))
            return false;
        last = last->next;
    }
    const size_t rest = p->at;
    size_t i = 0;
    for (struct ast_probe *x = probe; x; x = x->next) {
        p->at = rest;
        memset(p->operands + rest, 0, (p->count - rest) * sizeof(*p->operands));
        p->where = p->by = false;
        x->rest_from = last->own_to;
        if (!parse_clauses_from(p, x, *(struct ast_clause *)heads.items[i++]) || !parse_end(p, x))
            return false;
    }
    return true;
}

static void parse_scope(struct parser *p, struct ast_probe *probe)
{
    static const struct {
        const char *word;
        enum spec_scope scope;
    } scopes[] = {{"local", SPEC_LOCAL}, {"global", SPEC_GLOBAL}, {"meta", SPEC_META}};

    for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
        if (tok(p)->type == TOK_PREFIX && str_is(tok(p)->text, scopes[i].word)) {
            probe->scope = scopes[i].scope;
            p->at++;
            return;
        }
}

static bool parse_call_probe(struct parser *p, struct ast_probe *probe)
{
    const bool ms = tok(p)->type == TOK_PREFIX;
    struct ast_clause cl = {0};
    bool fun = false;

    p->at += ms;
    if (!select_parse(p, probe) || !parse_tokens_good(p) || !check_quoted(p, probe))
        return false;
    if (ms || (at_punct(p, P_LBRACK) && (next_is_punct(p, P_LBRACE) || next_is_punct(p, P_RBRACK))))
        return parse_raw(p, probe) && parse_end(p, probe);
    if (!parse_fun(p, probe, &fun))
        return false;
    if (fun)
        return parse_end(p, probe);
    if (at_punct(p, P_LPAREN) && !check_function(p, probe))
        return false;
    if (!parse_selected(p, probe, &cl))
        return false;
    if (at_punct(p, P_BAR))
        return parse_alternatives(p, probe, cl);
    return parse_clauses_from(p, probe, cl) && parse_end(p, probe);
}

/* Parses @event(…). */
static bool parse_event(struct parser *p, struct ast_probe *probe)
{
    struct ast_clause cl = {0};
    struct ptrs list = {0};

    probe->shape = SHAPE_EVENT;
    probe->event = tok(p)->text;
    probe->event_from = tok(p)->from;
    p->at++;
    cl.from = tok(p)->from;
    if (!parse_tokens_good(p))
        return false;
    if (at_punct(p, P_LPAREN)) {
        if (!parse_head(p, &cl))
            return false;
        cl.len = cl.head_len;
    }
    parse_add_clause(p, &list, &cl);
    parse_take_clauses(p, probe, &list);
    return parse_end(p, probe);
}

/* Parses send(…) and recv(…). */
static bool parse_message(struct parser *p, struct ast_probe *probe)
{
    bool fun = false;

    probe->shape = str_is(tok(p)->text, "send") ? SHAPE_SEND : SHAPE_RECV;
    p->at++;
    if (!parse_tokens_good(p))
        return false;
    if (at_punct(p, P_LBRACK) && next_is_punct(p, P_LBRACE))
        return parse_raw(p, probe) && parse_end(p, probe);
    return parse_fun(p, probe, &fun) && (fun || parse_clauses(p, probe)) && parse_end(p, probe);
}

/* Parses To ! Msg. Reports a text that is no probe at all. */
static bool parse_arrow(struct parser *p, struct ast_probe *probe)
{
    struct comp *c = p->c;
    struct ast_clause cl = {.from = tok(p)->from, .has_head = true};
    struct ptrs head = {0}, list = {0};
    struct ast *to, *msg;

    probe->shape = SHAPE_SEND;
    if (!parse_tokens_good(p) || !(to = parse_expr(p, PARSE_NO_MATCH)))
        return false;
    if (tok(p)->type == TOK_END) {
        const bool quoted = to->type == A_LIT && c->text.at[to->from] == '"';
        diag(c, to->from, to->len, quoted ? "this is quoted twice" : "this is not a probe");
        if (quoted)
            return diag_note(c, "write it without these quotes");
        return diag_note(c, "mod:fun/1, Mod.fun/1, send(…), recv(…), To ! Msg, @event");
    }
    if (!take_punct(p, P_BANG))
        return report_unexpected(p, "a function, an event, or '!'");
    if (!(msg = parse_expr(p, PARSE_ANY)))
        return false;
    ptrs_add(&head, c->arena, to);
    ptrs_add(&head, c->arena, msg);
    cl.head = (struct ast **)(void *)head.items;
    cl.nhead = 2;
    cl.head_from = to->from;
    cl.head_len = ast_end(msg) - to->from;
    if (!parse_clause_rest(p, &cl))
        return false;
    parse_add_clause(p, &list, &cl);
    parse_take_clauses(p, probe, &list);
    return parse_end(p, probe);
}

static void parse_start(struct comp *c, const struct tokens *t, struct parser *p)
{
    *p = (struct parser){.c = c, .tokens = t->items, .count = t->count, .bad = t->bad};
    p->loose_at = arena_alloc(c->arena, t->count * sizeof(*p->loose_at));
    p->operands = arena_alloc(c->arena, t->count * sizeof(*p->operands));
    c->surface = t->surface;
}

bool parse_probe(struct comp *c, const struct tokens *t, struct ast_probe *ret)
{
    struct parser p;

    parse_start(c, t, &p);
    *ret = (struct ast_probe){.from = t->from, .surface = t->surface, .shape = SHAPE_CALL};
    parse_scope(&p, ret);
    switch (t->form) {
    case LEX_CALL:
        return parse_call_probe(&p, ret);
    case LEX_MESSAGE:
        return parse_message(&p, ret);
    case LEX_EVENT:
        return parse_event(&p, ret);
    case LEX_ARROW:
        return parse_arrow(&p, ret);
    case LEX_TUPLE:
        return parse_tokens_good(&p) && parse_mfa(&p, ret);
    }
    return false;
}

struct ast *parse_alone(struct comp *c, const struct tokens *t, bool where)
{
    struct parser p;
    struct ast *n;

    parse_start(c, t, &p);
    p.where = where;
    if (!(n = parse_expr(&p, PARSE_ANY)) || tok(&p)->type == TOK_END)
        return n;
    return report_unexpected_node(&p, "the end");
}

bool parse_by_alone(struct comp *c, const struct tokens *t, struct ast_probe *ret)
{
    struct parser p;

    parse_start(c, t, &p);
    *ret = (struct ast_probe){.surface = t->surface};
    return parse_by(&p, ret) && (tok(&p)->type == TOK_END || report_unexpected(&p, "the end"));
}
