/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses selectors, which name the functions to trace. The shape of a selector decides its surface: mod:fun is Erlang,
 * Mod.fun and :mod.fun are Elixir.
 */
#include <string.h>

#include "parse.h"

/* Returns the atom of an alias: 'Elixir.MyApp.Repo' for MyApp.Repo and for Elixir.MyApp.Repo. */
struct str elixir_module(struct arena *a, struct str alias)
{
    static const char prefix[] = "Elixir.";
    const size_t len = sizeof(prefix) - 1;

    if (alias.len > len && !memcmp(alias.at, prefix, len))
        return alias;
    return str_of(arena_printf(a, "%s" STR_FMT, prefix, STR_ARG(alias)));
}

static bool select_is_name(const struct token *t)
{
    return t->type == TOK_IDENT || t->type == TOK_VAR || t->type == TOK_ALIAS || t->type == TOK_REGEX ||
           (t->type == TOK_LIT && t->value->type == TERM_ATOM && t->quoted);
}

/* Returns the end of the last token. An error about a missing token points there. */
static size_t select_end(struct parser *p)
{
    return p->at ? tok_end(&p->tokens[p->at - 1]) : tok(p)->from;
}

/* Reads a token as a name. An alias becomes the atom of its module. */
static void select_name(struct parser *p, struct sel_name *ret)
{
    const struct token *t = tok(p);

    p->at++;
    if (t->type == TOK_REGEX) {
        *ret = (struct sel_name){SEL_REGEX, t->text};
    } else if (t->type == TOK_LIT) {
        *ret = (struct sel_name){str_is(t->value->text, "_") ? SEL_ANY : SEL_ATOM, t->value->text};
    } else {
        *ret = (struct sel_name){t->glob ? SEL_GLOB : SEL_ATOM, t->text};
        if (str_is(ret->text, "_") || str_is(ret->text, "*"))
            ret->how = SEL_ANY;
        if (t->type == TOK_ALIAS)
            ret->text = elixir_module(p->c->arena, t->text);
    }
}

/* Parses an atom, a glob, a regular expression or `_`. A variable of Erlang selects everything, too, as in redbug. */
static bool select_function(struct parser *p, bool elixir, struct sel_name *ret)
{
    const struct token *t = tok(p);

    if (!select_is_name(t) || (elixir && t->spaced)) {
        diag(p->c, t->from, 1, "the name of a function is missing");
        return diag_note(p->c, elixir ? "name, \"name\", na*e, ~/regex/ or _" : "name, 'name', na*e, ~/regex/ or _");
    }
    if (elixir && t->type == TOK_ALIAS) {
        diag(p->c, t->from, t->len, "'" STR_FMT "' is not the name of a function", STR_ARG(t->text));
        return diag_note(p->c, "names of functions begin in lower case");
    }
    select_name(p, ret);
    if (t->type == TOK_VAR && !str_is(t->text, "_")) {
        ret->how = SEL_ANY;
        warn(p->c, t->from, t->len, false,
             "a variable selects every function, exported or not; global selects the exported ones");
    }
    return true;
}

/* ---- modules ---- */

/* Returns true at app(…) or behaviour(…). */
static bool select_group_how(struct parser *p, enum sel_how *ret)
{
    static const struct {
        const char *word;
        enum sel_how how;
    } groups[] = {{"app", SEL_APP}, {"behaviour", SEL_BEHAVIOUR}, {"behavior", SEL_BEHAVIOUR}};

    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        if (at_word(p, groups[i].word) && next_is_punct(p, P_LPAREN) && !tok(p)[1].spaced) {
            *ret = groups[i].how;
            return true;
        }
    return false;
}

/* Parses app(name) and behaviour(name). The name may be an atom of either surface. */
static bool select_group(struct parser *p, struct sel_name *ret, bool *ret_elixir)
{
    const struct token *word = tok(p), *open = word + 1;
    struct sel_name name;

    p->at += 2;
    *ret_elixir = take_punct(p, P_COLON);
    if (!select_is_name(tok(p)) || tok(p)->type == TOK_REGEX)
        return diag(p->c, word->from, tok_end(open) - word->from, STR_FMT "() takes a name", STR_ARG(word->text));
    *ret_elixir |= tok(p)->type == TOK_ALIAS;
    select_name(p, &name);
    ret->text = name.text;
    return take_punct(p, P_RPAREN) || diag(p->c, open->from, 1, "'(' is not closed");
}

static bool select_begins(struct parser *p)
{
    return select_is_name(tok(p)) || (at_punct(p, P_COLON) && select_is_name(tok(p) + 1) && !tok(p)[1].spaced);
}

/* Parses one module, or a pattern for several. *ret_elixir: the module is written in Elixir. */
static bool select_one_module(struct parser *p, struct sel_name *ret, bool *ret_elixir)
{
    if (select_group_how(p, &ret->how))
        return select_group(p, ret, ret_elixir);
    *ret_elixir = take_punct(p, P_COLON) || tok(p)->type == TOK_ALIAS;
    select_name(p, ret);
    return true;
}

bool select_module(struct parser *p, struct sel_name *ret)
{
    bool elixir;

    if (select_begins(p))
        return select_one_module(p, ret, &elixir);
    diag(p->c, tok(p)->from, 1, "expected a module");
    return diag_note(p->c, "as in app(shop) - shop_log");
}

/* ---- arities ---- */

static bool select_number(struct parser *p, int *ret)
{
    const struct token *t = tok(p);

    if (t->type != TOK_LIT || t->value->type != TERM_INT || t->spaced) {
        diag(p->c, select_end(p), 1, "an arity is missing");
        return diag_note(p->c, "a number, _ or a range such as 1..3");
    }
    if (t->value->integer > SPEC_ARITY_MAX) {
        diag(p->c, t->from, t->len, "no function has that many arguments");
        return diag_note(p->c, "the limit is %d", SPEC_ARITY_MAX);
    }
    *ret = (int)t->value->integer;
    p->at++;
    return true;
}

static bool select_takes_any(struct parser *p, bool elixir)
{
    if (tok(p)->type != TOK_IDENT || tok(p)->spaced || !(elixir || str_is(tok(p)->text, "_")))
        return false;
    p->at++;
    return true;
}

/* Parses /2, /_ and /1..3. In Elixir also /any, or any other word, as Rexbug does. */
static bool select_arity(struct parser *p, bool elixir, struct selector *s)
{
    const size_t begin = select_end(p);

    if (select_takes_any(p, elixir))
        return true;
    if (!select_number(p, &s->arity_lo))
        return false;
    s->arity_hi = s->arity_lo;
    if (tok(p)->spaced || !take_punct(p, P_RANGE))
        return true;
    if (select_takes_any(p, false)) {
        s->arity_hi = SPEC_ARITY_MAX;
        return true;
    }
    if (!select_number(p, &s->arity_hi))
        return false;
    return s->arity_hi >= s->arity_lo || diag(p->c, begin, select_end(p) - begin, "the range of arities is empty");
}

/* ---- selectors ---- */

/* Parses the function after a module. */
static bool select_behind(struct parser *p, bool alias, bool elixir, struct selector *s)
{
    s->function.how = SEL_ANY;
    if (tok(p)->spaced || !(at_punct(p, P_COLON) || at_punct(p, P_DOT)))
        return true;
    const bool dot = at_punct(p, P_DOT);
    if (dot != elixir && (dot || alias)) {
        diag(p->c, tok(p)->from, 1, dot ? "unexpected '.'" : "unexpected ':'");
        if (parse_is_node(p, &s->module, p->tokens[p->at - 1].from))
            return false;
        return diag_note(p->c, dot ? "mod:fun is Erlang, :mod.fun is Elixir" : "Mod.fun is Elixir, mod:fun is Erlang");
    }
    p->at++;
    return select_function(p, dot, &s->function);
}

static bool select_one(struct parser *p, struct selector *s, bool *ret_elixir, bool *ret_arity)
{
    const size_t begin = tok(p)->from;
    const bool alias = at_punct(p, P_COLON) || tok(p)->type == TOK_ALIAS;

    *s = (struct selector){.arity_hi = SPEC_ARITY_MAX, .from = begin};
    if (!select_one_module(p, &s->module, ret_elixir) || !select_behind(p, alias, *ret_elixir, s))
        return false;
    *ret_arity = !tok(p)->spaced && at_punct(p, P_SLASH);
    if (*ret_arity) {
        const size_t len = select_end(p) - begin;
        if (!s->function.text.len) {
            diag(p->c, begin, len, "an arity needs a function");
            return diag_note(p->c, *ret_elixir ? "write " STR_FMT "._" : "write " STR_FMT ":_", (int)len,
                             p->c->text.at + begin);
        }
        p->at++;
        if (!select_arity(p, *ret_elixir, s))
            return false;
    }
    s->len = select_end(p) - begin;
    return true;
}

bool select_parse(struct parser *p, struct ast_probe *probe)
{
    struct ptrs all = {0}, given = {0};
    bool elixir, arity;

    do {
        struct selector *s = arena_alloc(p->c->arena, sizeof(*s));
        if (!select_begins(p)) {
            diag(p->c, tok(p)->from, 1, all.count ? "expected another function after '|'" : "expected a function");
            return diag_note(p->c, "as in lists:seq/2 or MyApp.Repo.get/2");
        }
        if (!select_one(p, s, &elixir, &arity))
            return false;
        if (!all.count)
            probe->surface = elixir ? SPEC_ELIXIR : SPEC_ERLANG;
        ptrs_add(&all, p->c->arena, s);
        ptrs_add(&given, p->c->arena, arity ? s : NULL);
    } while (take_punct(p, P_BAR));
    probe->nselectors = all.count;
    probe->selectors = arena_alloc(p->c->arena, all.count * sizeof(*probe->selectors));
    probe->arity_given = arena_alloc(p->c->arena, all.count * sizeof(*probe->arity_given));
    for (size_t i = 0; i < all.count; i++) {
        probe->selectors[i] = *(struct selector *)all.items[i];
        probe->arity_given[i] = given.items[i] != NULL;
    }
    return true;
}
