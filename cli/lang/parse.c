/*
 * Probes: selectors, clauses with heads, guards and bodies, messages, events, match specifications.
 * A probe without selectors has no shape that names its surface: it is read in the surface that the caller prefers, and
 * when that fails in the other.
 */
#include "parse.h"

#include <string.h>

static char peek(struct str text, size_t pos)
{
    return pos < text.len ? text.at[pos] : 0;
}

/* ---- clauses ---- */

/* The argument list with its brackets. */
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

/*
 * At `; (` behind a guard: another clause, or another alternative of the guard that is in brackets? A clause when what
 * the brackets hold could be an argument list and what follows could follow a head.
 */
static bool clause_follows(struct parser *p, bool in_guard)
{
    if (!at_punct(p, P_SEMI) || !next_is_punct(p, P_LPAREN))
        return false;
    if (!in_guard)
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
        if (at_punct(p, P_SEMI) && !clause_follows(p, true)) {
            p->at++;
            continue;
        }
        if (at_word(p, "when") && p->c->surface == SPEC_ELIXIR) {
            p->at++;
            continue;
        }
        break;
    } while (true);

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
        if (clause_follows(p, false))
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
    /* Rexbug writes :: for -> */
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

bool parse_clauses(struct parser *p, struct ast_probe *probe)
{
    struct ptrs list = {0};

    for (;;) {
        struct ast_clause cl = {.from = tok(p)->from};
        if (at_punct(p, P_LPAREN) && !parse_head(p, &cl))
            return false;
        if (!parse_clause_rest(p, &cl))
            return false;
        parse_add_clause(p, &list, &cl);
        if (!at_punct(p, P_SEMI))
            break;
        p->at++;
        if (!at_punct(p, P_LPAREN))
            return unexpected(p, "the '(' of another clause");
    }
    parse_take_clauses(p, probe, &list);
    return true;
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

bool parse_end(struct parser *p, struct ast_probe *probe)
{
    if (!parse_where(p, probe))
        return false;
    if (tok(p)->type != TOK_END) {
        unexpected(p, "the end of the probe");
        if (probe->shape == SHAPE_EVENT && (at_word(p, "when") || at_punct(p, P_ARROW))) {
            diag_note(p->c, at_word(p, "when") ? "an event is filtered behind 'where'" : "an event has no actions");
        } else if (tok(p)->type == TOK_IDENT) {
            static const char *const words[] = {"when", "where"};
            struct guess g;
            guess_init(&g, tok(p)->text);
            for (size_t i = 0; i < ARRAY_LEN(words); i++)
                guess_offer(&g, str_of(words[i]));
            diag_guess(p->c, &g);
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

/* foo(X): the module was forgotten. */
static bool check_function(struct parser *p, const struct ast_probe *probe)
{
    const struct selector *s = &probe->selectors[0];
    struct str name = {p->c->text.at + s->from, s->len};

    if (probe->nselectors > 1 || s->module.how != SEL_ATOM || s->function.text.len)
        return true;
    diag(p->c, s->from, s->len, "an argument list needs a function");
    return diag_note(p->c, probe->surface == SPEC_ELIXIR ? "write " STR_FMT ".name" : "write module:" STR_FMT, STR_ARG(name));
}

/* Where the selectors end. */
static size_t where_selected(const struct ast_probe *p)
{
    const struct selector *last = &p->selectors[p->nselectors - 1];

    return last->from + last->len;
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
        if (!fun && at_punct(&p, P_LPAREN) && !check_function(&p, probe))
            return false;
        if (!fun && !parse_clauses(&p, probe))
            return false;
    }
    if (!parse_end(&p, probe))
        return false;
    if (p.at == 0)
        probe->len = where_selected(probe) - probe->from;
    return true;
}

/* send(…), recv(…), @event(…): `pos` is behind the word. */
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

/* Reads with the preferred surface, else with the other; the error of the one that came further is the answer. */
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

/* Whether the word at `pos` stands for itself: it is not the module of a selector. */
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

/* A word in front of a selector: blanks and then something that begins one and is no word of ours. */
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
    if (text.at[begin] != '{' || (probe->nclauses && c->failed_at > begin))
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
    struct ast_probe probe = {.from = *pos};

    if (!parse_one(c, pos, &probe))
        return false;
    *ret = probe;
    return true;
}
