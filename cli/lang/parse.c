/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses probes: selectors, clauses with heads, guards and bodies, messages, events, match specifications. A probe
 * without selectors does not show its surface. The parser tries the surface that the caller prefers, then the other.
 */
#include "parse.h"

#include <string.h>

#include "compile_where.h"

static char peek(struct str text, size_t pos)
{
    return pos < text.len ? text.at[pos] : 0;
}

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
            return unexpected(p, "a ',' in front of '...'");
        p->at++;
        cl->prefix = true;
        if (!at_punct(p, P_RPAREN))
            return unexpected(p, "nothing may follow '...': a ')'");
    }
    if (!want_punct(p, P_RPAREN, open))
        return false;
    cl->head = (struct ast **)(void *)items.items;
    cl->nhead = items.count;
    cl->head_from = open;
    cl->head_len = tok_end(&p->tokens[p->at - 1]) - open;
    return true;
}

static bool is_pattern(const struct ast *n)
{
    if (n->type == A_CALL || n->type == A_DOT || n->type == A_INDEX || n->type == A_RECFIELD)
        return false;
    if (n->type == A_OP && n->op < FN_COUNT && fn_row((enum fn)n->op)->result == RES_BOOL)
        return false;
    if (n->type == A_OP && (n->op == OP_IN || n->op == OP_NOT_IN || n->op == OP_LIKE || n->op == OP_UNLIKE))
        return false;
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i] && !is_pattern(n->items[i]))
            return false;
    return !n->tail || is_pattern(n->tail);
}

/* Whether `(X)` has a variable of the clause's head: it is then a test of X, as in redbug. */
static bool is_bound_test(const struct ast_clause *guarded, const struct ast_clause *next)
{
    if (next->nhead != 1 || next->prefix || next->head[0]->type != A_VAR)
        return false;
    for (size_t i = 0; i < guarded->nhead; i++)
        if (ast_mentions(guarded->head[i], next->head[0]->text))
            return true;
    return false;
}

/*
 * Whether a clause begins at `; (`. After a guard it may be another alternative of the guard. It is a clause if the
 * parentheses can hold an argument list and the next token can follow one. `guarded` is NULL after a body.
 */
static bool clause_follows(struct parser *p, const struct ast_clause *guarded)
{
    if (!at_punct(p, P_SEMI) || !next_is_punct(p, P_LPAREN))
        return false;
    if (!guarded)
        return true;

    const size_t at = p->at;
    struct err *err = p->c->err, ignored;
    const size_t failed_at = p->c->failed_at;
    struct ast_clause cl = {0};
    p->c->err = &ignored;
    p->at++;
    bool ok = parse_head(p, &cl);
    for (size_t i = 0; ok && i < cl.nhead; i++)
        ok = is_pattern(cl.head[i]);
    if (ok)
        ok = tok(p)->type == TOK_END || at_punct(p, P_ARROW) || at_punct(p, P_SEMI) || at_word(p, "when") ||
             at_word(p, "where") || at_word(p, "end");
    if (ok && !at_word(p, "when"))
        ok = !is_bound_test(guarded, &cl);
    p->c->err = err;
    p->c->failed_at = failed_at;
    p->at = at;
    return ok;
}

static bool at_clause_end(struct parser *p)
{
    return tok(p)->type == TOK_END || at_punct(p, P_ARROW) || at_word(p, "where") || at_word(p, "end");
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
            return unexpected(p, "another action");
    }
    cl->body = (struct ast **)(void *)acts.items;
    cl->nbody = acts.count;
    return true;
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
    cl->len = p->at ? tok_end(&p->tokens[p->at - 1]) - cl->from : 0;
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

/* Whether a selector may select several modules and excludes none yet. */
static bool names_several(const struct ast_probe *probe)
{
    for (size_t i = 0; i < probe->nselectors; i++)
        if (probe->selectors[i].module.how != SEL_ATOM)
            return !probe->selectors[i].nwithout;
    return false;
}

/* Parses `- mod1, mod2`: excluded modules. Their names are read from the text because globs are not tokens. */
static bool parse_without(struct parser *p, struct ast_probe *probe)
{
    struct comp *c = p->c;
    struct ptrs names = {0};

    if (!at_punct(p, P_MINUS) || !names_several(probe))
        return true;
    do {
        struct sel_name *name = arena_alloc(c->arena, sizeof(*name));
        size_t pos = tok(p)[1].from;
        if (!select_module(c, &pos, name))
            return false;
        ptrs_add(&names, c->arena, name);
        while (tok(p)->type != TOK_END && tok(p)->from < pos)
            p->at++;
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
            return unexpected(p, "the '(' of another clause");
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

/* Adds a note to the error about a token after a complete probe: a likely correction. */
static void hint_at_end(struct parser *p)
{
    const struct token *t = tok(p);
    const struct token *before = p->at ? t - 1 : NULL;
    struct guess g;

    guess_init(&g, t->text);
    if (p->where && (at_punct(p, P_COMMA) || at_punct(p, P_SEMI))) {
        diag_note(p->c, "conditions are joined by 'and' and 'or'");
    } else if (at_punct(p, P_BAR)) {
        diag_note(p->c, "guards and actions stand behind the last alternative, and are for all of them");
    } else if (at_punct(p, P_COMMA)) {
        diag_note(p->c, "write another probe as an argument of its own, or on a line of its own");
    } else if (p->where && at_word(p, "when")) {
        diag_note(p->c, "'when' goes before 'where'");
    } else if (at_word(p, "if") || at_word(p, "unless")) {
        diag_note(p->c, "write 'when' for a guard, 'where' for a filter");
    } else if (p->where && t->type == TOK_IDENT && before && before->type == TOK_LIT &&
               before->value->type != TERM_ATOM && where_unit(t->text)) {
        struct str number = {p->c->text.at + before->from, before->len};
        diag_note(p->c, "write " STR_FMT STR_FMT ", without a blank", STR_ARG(number), STR_ARG(t->text));
    } else if (t->type == TOK_IDENT || t->type == TOK_VAR || t->type == TOK_ALIAS) {
        guess_offer(&g, str_of("when"));
        guess_offer(&g, str_of("where"));
        diag_guess(p->c, &g);
    }
}

bool parse_end(struct parser *p, struct ast_probe *probe)
{
    if (!parse_where(p, probe))
        return false;
    if (tok(p)->type != TOK_END) {
        unexpected(p, "the end of the probe");
        if (probe->shape == SHAPE_EVENT && (at_word(p, "when") || at_punct(p, P_ARROW))) {
            diag_note(p->c, at_word(p, "when") ? "an event is filtered behind 'where'" : "an event has no actions");
        } else {
            hint_at_end(p);
        }
        return false;
    }
    probe->len = p->at ? tok_end(&p->tokens[p->at - 1]) - probe->from : 0;
    return true;
}

bool parse_start(struct comp *c, size_t *pos, struct parser *p)
{
    struct tokens t = {0};

    *p = (struct parser){.c = c};
    if (!lex_probe(c, pos, &t))
        return false;
    if (c->opt->dump_tokens)
        tokens_dump(&t, c->opt->dump_tokens);
    p->tokens = t.items;
    p->loose_at = arena_alloc(c->arena, t.count * sizeof(*p->loose_at));
    return true;
}

/* Reports foo(X), where the module is missing. */
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

/* Returns the end of the selectors. */
static size_t where_selected(const struct ast_probe *p)
{
    const struct selector *last = &p->selectors[p->nselectors - 1];

    return last->from + last->len;
}

/* ---- alternatives with patterns of their own: m:f(X, _) | m:g(X) when X > 1 ---- */

/*
 * Parses another alternative at the `|`. Each alternative becomes a probe of its own. The part after the last one is
 * parsed again for each alternative, because later passes modify the tree.
 */
static bool parse_alternative(struct comp *c, struct parser *p, size_t *pos, struct ast_probe *last, struct ast_clause *cl)
{
    struct ast_probe *next = arena_alloc(c->arena, sizeof(*next));

    *next = (struct ast_probe){.from = last->from, .shape = SHAPE_CALL, .scope = last->scope};
    *pos = lex_skip(c->text, tok_end(tok(p)));
    if (!select_parse(c, pos, next))
        return false;
    if (next->surface != last->surface) {
        static const char *const names[] = {"Erlang", "Elixir"};
        diag(c, next->selectors[0].from, next->selectors[0].len, "this alternative is %s, the first one is %s",
             names[next->surface], names[last->surface]);
        return diag_note(c, "write two expressions");
    }
    *cl = (struct ast_clause){0};
    if (!parse_start(c, pos, p) || (at_punct(p, P_LPAREN) && !check_function(p, next)) || !parse_selected(p, next, cl))
        return false;
    last->next = next;
    return true;
}

/* Returns the end of an alternative: after its last token or its selectors. */
static size_t alternative_end(const struct parser *p, const struct ast_probe *probe)
{
    return p->at ? tok_end(&p->tokens[p->at - 1]) : where_selected(probe);
}

static bool parse_alternatives(struct comp *c, struct parser *p, size_t *pos, struct ast_probe *probe, struct ast_clause cl)
{
    struct ptrs heads = {0};
    struct ast_probe *last = probe;

    for (;;) {
        last->alternatives = probe;
        last->own_from = last->selectors[0].from;
        last->own_to = alternative_end(p, last);
        parse_add_clause(p, &heads, &cl);
        if (!at_punct(p, P_BAR))
            break;
        if (!parse_alternative(c, p, pos, last, &cl))
            return false;
        last = last->next;
    }
    size_t i = 0;
    for (struct ast_probe *x = probe; x; x = x->next) {
        x->rest_from = *pos = last->own_to;
        if (!parse_start(c, pos, p) || !parse_clauses_from(p, x, *(struct ast_clause *)heads.items[i++]) ||
            !parse_end(p, x))
            return false;
        x->len = (p->at ? tok_end(&p->tokens[p->at - 1]) : last->own_to) - x->from;
    }
    return true;
}

static bool parse_call_probe(struct comp *c, size_t *pos, bool ms, struct ast_probe *probe)
{
    struct parser p;
    bool fun = false;

    if (!select_parse(c, pos, probe))
        return false;
    c->surface = probe->surface;
    if (!parse_start(c, pos, &p))
        return false;
    if (ms || (at_punct(&p, P_LBRACK) && (next_is_punct(&p, P_LBRACE) || next_is_punct(&p, P_RBRACK)))) {
        if (!parse_raw(&p, probe))
            return false;
    } else {
        if (!parse_fun(&p, probe, &fun))
            return false;
        struct ast_clause cl = {0};
        if (!fun && at_punct(&p, P_LPAREN) && !check_function(&p, probe))
            return false;
        if (!fun && !parse_selected(&p, probe, &cl))
            return false;
        if (!fun && at_punct(&p, P_BAR))
            return parse_alternatives(c, &p, pos, probe, cl);
        if (!fun && !parse_clauses_from(&p, probe, cl))
            return false;
    }
    if (!parse_end(&p, probe))
        return false;
    if (p.at == 0)
        probe->len = where_selected(probe) - probe->from;
    return true;
}

/* Parses send(…), recv(…), @event(…); *pos is behind the word. */
static bool parse_worded(struct comp *c, size_t *pos, struct ast_probe *probe)
{
    struct parser p;
    bool fun = false;
    const size_t begin = *pos;

    if (!parse_start(c, pos, &p))
        return false;
    if (probe->shape == SHAPE_EVENT) {
        struct ast_clause cl = {.from = tok(&p)->from};
        struct ptrs list = {0};
        if (at_punct(&p, P_LPAREN)) {
            if (!parse_head(&p, &cl))
                return false;
            cl.len = cl.head_len;
        }
        parse_add_clause(&p, &list, &cl);
        parse_take_clauses(&p, probe, &list);
    } else {
        if (at_punct(&p, P_LBRACK) && next_is_punct(&p, P_LBRACE)) {
            if (!parse_raw(&p, probe))
                return false;
        } else {
            if (!parse_fun(&p, probe, &fun))
                return false;
            if (!fun && !parse_clauses(&p, probe))
                return false;
        }
    }
    if (!parse_end(&p, probe))
        return false;
    if (p.at == 0)
        probe->len = begin - probe->from;
    return true;
}

/* To ! Msg */
static bool parse_arrow(struct comp *c, size_t *pos, struct ast_probe *probe)
{
    struct parser p;
    struct ast_clause cl = {.from = *pos, .has_head = true};
    struct ptrs head = {0}, list = {0};
    struct ast *to, *msg;

    if (!parse_start(c, pos, &p) || !(to = parse_expr(&p, PARSE_NO_MATCH)))
        return false;
    if (tok(&p)->type == TOK_END) {
        diag(c, to->from, to->len, "this is not a probe");
        return diag_note(c, "mod:fun/1, Mod.fun/1, send(…), recv(…), To ! Msg, @event");
    }
    if (!take_punct(&p, P_BANG))
        return unexpected(&p, "a function, an event, or '!'");
    if (!(msg = parse_expr(&p, PARSE_ANY)))
        return false;
    ptrs_add(&head, c->arena, to);
    ptrs_add(&head, c->arena, msg);
    cl.head = (struct ast **)(void *)head.items;
    cl.nhead = 2;
    cl.head_from = to->from;
    cl.head_len = ast_end(msg) - to->from;
    if (!parse_clause_rest(&p, &cl))
        return false;
    parse_add_clause(&p, &list, &cl);
    parse_take_clauses(&p, probe, &list);
    return parse_end(&p, probe);
}

/*
 * Parses in the preferred surface, then in the other. If both fail, the error that is further to the right is reported.
 */
static bool in_either_surface(struct comp *c, size_t *pos, struct ast_probe *probe,
                              bool (*parse)(struct comp *, size_t *, struct ast_probe *))
{
    const struct ast_probe before = *probe;
    const size_t begin = *pos;
    const size_t dumped = c->opt->dump_tokens ? c->opt->dump_tokens->len : 0;
    const enum spec_surface first = c->opt->surface;

    c->surface = probe->surface = first;
    if (parse(c, pos, probe))
        return true;
    const struct err failed = *c->err;
    const size_t failed_at = c->failed_at;
    if (c->opt->dump_tokens)
        c->opt->dump_tokens->len = dumped;
    *pos = begin;
    *probe = before;
    c->surface = probe->surface = first == SPEC_ERLANG ? SPEC_ELIXIR : SPEC_ERLANG;
    if (parse(c, pos, probe))
        return true;
    if (c->failed_at <= failed_at) {
        *c->err = failed;
        c->failed_at = failed_at;
    }
    return false;
}

/* Whether the word at `pos` is a keyword and not the module of a selector. */
static bool is_keyword(struct str text, size_t pos, size_t len)
{
    char ch = peek(text, pos + len);
    char next = peek(text, pos + len + 1);

    if (ch == ':' || ch == '/' || ch == '*' || ch == '?')
        return false;
    return ch != '.' || next == ' ' || next == '\n' || !next;
}

static bool word_is(struct str text, size_t pos, const char *word)
{
    size_t len = strlen(word);

    return lex_word(text, pos, false) == len && !memcmp(text.at + pos, word, len) && is_keyword(text, pos, len);
}

/* Whether `word` is a keyword before a selector. Blanks and a selector must follow it, and not `when` or `where`. */
static bool prefixes(struct str text, size_t pos, const char *word, size_t *ret_next)
{
    if (!word_is(text, pos, word))
        return false;
    size_t next = select_blanks(text, pos + strlen(word));
    if (next == pos + strlen(word) || !select_begins(text, next))
        return false;
    *ret_next = next;
    return !word_is(text, next, "when") && !word_is(text, next, "where");
}

static bool is_arrow(struct str text, size_t pos)
{
    char ch = peek(text, pos), next = peek(text, pos + 1);

    return ch == '!' && next != '=' && next != '~';
}

static bool parse_one(struct comp *c, size_t *pos, struct ast_probe *probe)
{
    static const struct {
        const char *word;
        enum spec_scope scope;
    } scopes[] = {{"local", SPEC_LOCAL}, {"global", SPEC_GLOBAL}, {"meta", SPEC_META}};
    static const struct {
        const char *word;
        enum ast_shape shape;
    } messages[] = {{"send", SHAPE_SEND}, {"recv", SHAPE_RECV}, {"receive", SHAPE_RECV}};
    struct str text = c->text;
    size_t next;

    if (peek(text, *pos) == '@') {
        size_t len = lex_word(text, *pos + 1, false);
        if (!len)
            return diag(c, *pos, 1, "the name of an event has to follow '@'");
        probe->shape = SHAPE_EVENT;
        probe->event = (struct str){text.at + *pos + 1, len};
        probe->event_from = *pos;
        *pos += 1 + len;
        return in_either_surface(c, pos, probe, parse_worded);
    }
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        size_t len = strlen(messages[i].word);
        if (word_is(text, *pos, messages[i].word) && !is_arrow(text, select_blanks(text, *pos + len))) {
            probe->shape = messages[i].shape;
            *pos += len;
            return in_either_surface(c, pos, probe, parse_worded);
        }
    }
    probe->shape = SHAPE_CALL;
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
        if (prefixes(text, *pos, scopes[i].word, &next)) {
            probe->scope = scopes[i].scope;
            *pos = next;
            break;
        }
    }
    if (prefixes(text, *pos, "ms", &next)) {
        *pos = next;
        return parse_call_probe(c, pos, true, probe);
    }
    if (select_begins(text, *pos)) {
        struct ast_probe trial = *probe;
        struct err *err = c->err, ignored;
        const struct ptrs warnings = c->warnings;
        size_t at = *pos;
        c->err = &ignored;
        bool arrow = select_parse(c, &at, &trial) && is_arrow(text, select_blanks(text, at));
        c->err = err;
        c->warnings = warnings;
        if (!arrow)
            return parse_call_probe(c, pos, false, probe);
    }
    probe->shape = SHAPE_SEND;
    const size_t begin = *pos;
    const struct ast_probe before = *probe;
    if (in_either_surface(c, pos, probe, parse_arrow))
        return true;
    if ((text.at[begin] != '{' && text.at[begin] != '[') || (probe->nclauses && c->failed_at > begin))
        return false;
    const struct err failed = *c->err;
    const size_t failed_at = c->failed_at;
    *pos = begin;
    *probe = before;
    probe->shape = SHAPE_CALL;
    if (in_either_surface(c, pos, probe, parse_mfa))
        return true;
    if (c->failed_at <= failed_at) {
        *c->err = failed;
        c->failed_at = failed_at;
    }
    return false;
}

bool parse_probe(struct comp *c, size_t *pos, struct ast_probe *ret)
{
    *ret = (struct ast_probe){.from = *pos};
    return parse_one(c, pos, ret);
}
