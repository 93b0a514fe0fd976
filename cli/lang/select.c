/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses selectors, which name the functions to trace. It reads the text itself: globs and regular expressions are not
 * terms, and the shape of a selector decides the surface. mod:fun is Erlang, Mod.fun and :mod.fun are Elixir.
 */
#include <string.h>

#include "parse.h"

static char peek(struct str text, size_t pos)
{
    return pos < text.len ? text.at[pos] : 0;
}

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

size_t select_blanks(struct str text, size_t pos)
{
    while (peek(text, pos) == ' ' || peek(text, pos) == '\t' || peek(text, pos) == '\r')
        pos++;
    return pos;
}

static bool is_upper(struct str text, size_t pos)
{
    return peek(text, pos) >= 'A' && peek(text, pos) <= 'Z';
}

bool select_begins(struct str text, size_t pos)
{
    char ch = peek(text, pos), next = peek(text, pos + 1);

    if (ch == ':')
        return next == '"' || next == '*' || lex_word(text, pos + 1, true);
    return ch == '\'' || ch == '*' || (ch == '~' && next == '/') || lex_word(text, pos, true);
}

/* Returns the atom of an alias: 'Elixir.MyApp.Repo' for MyApp.Repo and for Elixir.MyApp.Repo. */
struct str elixir_module(struct arena *a, struct str alias)
{
    static const char prefix[] = "Elixir.";
    const size_t len = sizeof(prefix) - 1;

    if (alias.len > len && !memcmp(alias.at, prefix, len))
        return alias;
    return str_of(arena_printf(a, "%s" STR_FMT, prefix, STR_ARG(alias)));
}

/* Reads a name. With * or ? in it, it is a glob; a ? or ! at the end is part of the name of an Elixir function. */
static size_t glob_word(struct str text, size_t pos, bool elixir, bool function, bool *ret_glob)
{
    size_t at = pos;

    *ret_glob = false;
    for (;;) {
        size_t len = lex_word(text, at, elixir);
        char ch = peek(text, at);
        if (len && elixir && !function && (text.at[at + len - 1] == '!' || text.at[at + len - 1] == '?'))
            len--;
        if (len && at > pos && is_digit(text.at[at]))
            len = 1;
        if (!len && is_digit(ch) && at > pos)
            len = 1;
        if (!len && (ch == '*' || (ch == '?' && !elixir))) {
            *ret_glob = true;
            len = 1;
        }
        if (!len)
            return at - pos;
        at += len;
    }
}

static bool too_long(struct comp *c, size_t from, size_t len)
{
    return len > 255 * 4 && !diag(c, from, len, "a name has at most 255 characters");
}

static bool regex(struct comp *c, size_t *pos, struct sel_name *ret)
{
    const size_t begin = *pos;
    size_t at = begin + 2, n = 0;
    char *out = arena_alloc(c->arena, c->text.len - at + 1);

    while (peek(c->text, at) != '/' && at < c->text.len && c->text.at[at] != '\n') {
        if (c->text.at[at] == '\\' && peek(c->text, at + 1) == '/')
            at++;
        else if (c->text.at[at] == '\\' && at + 1 < c->text.len)
            out[n++] = c->text.at[at++];
        out[n++] = c->text.at[at++];
    }
    if (peek(c->text, at) != '/') {
        diag(c, begin, 2, "a regular expression that does not end");
        return diag_note(c, "no / closes it");
    }
    if (!n)
        return diag(c, begin, 3, "an empty regular expression");
    *ret = (struct sel_name){SEL_REGEX, {out, n}};
    *pos = at + 1;
    return true;
}

static bool quoted(struct comp *c, size_t *pos, struct sel_name *ret)
{
    enum spec_surface surface = c->surface;
    term_t atom;

    c->surface = peek(c->text, *pos) == '"' ? SPEC_ELIXIR : SPEC_ERLANG;
    bool ok = lex_quoted_atom(c, pos, &atom);
    c->surface = surface;
    if (!ok)
        return false;
    ret->how = str_is(atom->text, "_") ? SEL_ANY : SEL_ATOM;
    ret->text = atom->text;
    return true;
}

/* Reads an operator as a function name: Kernel.+/2. In Erlang it needs quotes: erlang:'+'/2. */
static size_t operator_name(struct str text, size_t pos)
{
    size_t n = 0;

    while (peek(text, pos + n) && strchr("+-*/<>=!&|^~@", peek(text, pos + n)))
        n++;
    if (n > 1 && text.at[pos + n - 1] == '/' && is_digit(peek(text, pos + n)))
        n--;
    return n;
}

/* Reads an atom, a glob or `_`. In Erlang also a variable, which selects everything, as in redbug. */
static bool function_name(struct comp *c, size_t *pos, bool elixir, struct sel_name *ret)
{
    const size_t begin = *pos;
    struct str text = c->text;
    bool glob;

    if (peek(text, begin) == (elixir ? '"' : '\'') || peek(text, begin) == '\'')
        return quoted(c, pos, ret);
    if (peek(text, begin) == '~' && peek(text, begin + 1) == '/')
        return regex(c, pos, ret);
    size_t len = glob_word(text, begin, elixir, true, &glob);
    if (!len && elixir)
        len = operator_name(text, begin);
    if (!len) {
        diag(c, MIN(begin, text.len), 1, "the name of a function is missing");
        return diag_note(c, elixir ? "name, \"name\", na*e, ~/regex/ or _" : "name, 'name', na*e, ~/regex/ or _");
    }
    if (too_long(c, begin, len))
        return false;
    *pos = begin + len;
    ret->text = (struct str){text.at + begin, len};
    ret->how = glob ? SEL_GLOB : SEL_ATOM;
    if (str_is(ret->text, "_") || str_is(ret->text, "*"))
        ret->how = SEL_ANY;
    if (!elixir && !glob && (is_upper(text, begin) || (text.at[begin] == '_' && len > 1))) {
        ret->how = SEL_ANY;
        warn(c, begin, len, false, "a variable selects every function, exported or not; global selects the exported ones");
    }
    if (elixir && !glob && is_upper(text, begin)) {
        diag(c, begin, len, "'" STR_FMT "' is not the name of a function", STR_ARG(ret->text));
        return diag_note(c, "names of functions begin in lower case");
    }
    return true;
}

/* Reads app(name) and behaviour(name). The name may be an atom of either surface. */
static bool group(struct comp *c, size_t *pos, struct sel_name *ret, bool *ret_elixir)
{
    static const struct {
        const char *word;
        enum sel_how how;
    } groups[] = {{"app", SEL_APP}, {"behaviour", SEL_BEHAVIOUR}, {"behavior", SEL_BEHAVIOUR}};
    struct str text = c->text;
    size_t len = lex_word(text, *pos, false), at;

    *ret_elixir = false;
    if (peek(text, *pos + len) != '(')
        return false;
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        struct str word = {text.at + *pos, len};
        if (!str_is(word, groups[i].word))
            continue;
        ret->how = groups[i].how;
        at = select_blanks(text, *pos + len + 1);
        if (peek(text, at) == ':') {
            *ret_elixir = true;
            at++;
        }
        size_t n = lex_word(text, at, true);
        if (peek(text, at) == '\'' || peek(text, at) == '"') {
            struct sel_name name;
            if (!quoted(c, &at, &name))
                return true;
            ret->text = name.text;
        } else if (is_upper(text, at)) {
            size_t from = at;
            while (is_upper(text, at)) {
                at += lex_word(text, at, true);
                if (peek(text, at) == '.' && is_upper(text, at + 1))
                    at++;
            }
            ret->text = elixir_module(c->arena, (struct str){text.at + from, at - from});
            *ret_elixir = true;
        } else if (n) {
            ret->text = (struct str){text.at + at, n};
            at += n;
        } else {
            diag(c, *pos, len + 1, "%s() takes a name", groups[i].word);
            return true;
        }
        at = select_blanks(text, at);
        if (peek(text, at) != ')') {
            diag(c, *pos + len, 1, "'(' is not closed");
            return true;
        }
        *pos = at + 1;
        return true;
    }
    return false;
}

/* Reads a module name without quotes, possibly with wildcards. */
static bool plain_module(struct comp *c, size_t *at, bool elixir, struct sel_name *ret)
{
    bool glob = false;
    size_t len = glob_word(c->text, *at, elixir, false, &glob);

    if (too_long(c, *at, len))
        return false;
    *ret = (struct sel_name){glob ? SEL_GLOB : SEL_ATOM, {c->text.at + *at, len}};
    if (str_is(ret->text, "_") || str_is(ret->text, "*"))
        ret->how = SEL_ANY;
    *at += len;
    return true;
}

/*
 * Whether a part of an alias begins here: Repo, *Controller, or a * between other parts. Functions begin in lower case.
 */
static bool alias_part(struct str text, size_t at)
{
    while (peek(text, at) == '*' && peek(text, at + 1) == '.')
        at += 2;
    return is_upper(text, at) || (peek(text, at) == '*' && is_upper(text, at + 1));
}

/* MyApp.Repo, MyApp.*, MyAppWeb.*Controller */
static bool alias(struct comp *c, size_t *pos, struct sel_name *ret)
{
    struct str text = c->text;
    size_t at = *pos;
    bool glob = false, any_glob = false;

    for (;;) {
        at += glob_word(text, at, true, false, &glob);
        any_glob |= glob;
        if (peek(text, at) != '.' || !alias_part(text, at + 1))
            break;
        at++;
    }
    char behind = peek(text, at + 2);
    if (peek(text, at) == '.' && peek(text, at + 1) == '*' && behind != '/' && behind != '(' &&
        !lex_word(text, at + 2, true) && behind != '*') {
        any_glob = true;
        at += 2;
    }
    if (too_long(c, *pos, at - *pos))
        return false;
    ret->how = any_glob ? SEL_GLOB : SEL_ATOM;
    ret->text = elixir_module(c->arena, (struct str){text.at + *pos, at - *pos});
    *pos = at;
    return true;
}

/* Reads a module in Elixir's syntax: an alias, or :lists. */
static bool elixir_name(struct comp *c, size_t *pos, struct sel_name *ret)
{
    if (peek(c->text, *pos) != ':')
        return alias(c, pos, ret);
    ++*pos;
    return peek(c->text, *pos) == '"' ? quoted(c, pos, ret) : plain_module(c, pos, true, ret);
}

/* Reads one or several modules in Erlang's syntax: mod, 'mod', ~/re/, app(a). */
static bool erlang_name(struct comp *c, size_t *pos, struct sel_name *ret, bool *ret_elixir)
{
    const char first = peek(c->text, *pos);

    c->err->status = ERR_NONE;
    if (group(c, pos, ret, ret_elixir))
        return c->err->status == ERR_NONE;
    return first == '~' ? regex(c, pos, ret) : first == '\'' ? quoted(c, pos, ret) : plain_module(c, pos, false, ret);
}

static bool is_elixir(struct str text, size_t pos)
{
    return peek(text, pos) == ':' || is_upper(text, pos);
}

bool select_module(struct comp *c, size_t *pos, struct sel_name *ret)
{
    bool elixir;

    if (!select_begins(c->text, *pos)) {
        diag(c, MIN(*pos, c->text.len), 1, "a module is wanted here");
        return diag_note(c, "as in app(shop) - shop_log");
    }
    return is_elixir(c->text, *pos) ? elixir_name(c, pos, ret) : erlang_name(c, pos, ret, &elixir);
}

/* MyApp.Repo, MyApp.*, MyApp.Repo.get, :lists.seq */
static bool elixir_selector(struct comp *c, size_t *pos, struct selector *s)
{
    struct str text = c->text;
    size_t at = *pos;

    if (!elixir_name(c, &at, &s->module))
        return false;
    s->function.how = SEL_ANY;
    char next = peek(text, at + 1);
    if (peek(text, at) == ':') {
        diag(c, at, 1, "unexpected ':'");
        return diag_note(c, "Mod.fun is Elixir, mod:fun is Erlang");
    }
    if (peek(text, at) == '.' && next && next != ' ' && next != '\t' && next != '\n' && next != '\r') {
        at++;
        if (!function_name(c, &at, true, &s->function))
            return false;
    }
    *pos = at;
    return true;
}

/* mod, mod:fun, app(a), ~/re/:fun */
static bool erlang_selector(struct comp *c, size_t *pos, struct selector *s, bool *ret_elixir)
{
    struct str text = c->text;
    size_t at = *pos;

    *ret_elixir = false;
    if (!erlang_name(c, &at, &s->module, ret_elixir))
        return false;
    s->function.how = SEL_ANY;
    char next = peek(text, at + 1);
    bool dot = peek(text, at) == '.' && *ret_elixir && lex_word(text, at + 1, true);
    if (peek(text, at) == ':' || dot) {
        at = select_blanks(text, at + 1);
        if (!function_name(c, &at, dot, &s->function))
            return false;
    } else if (peek(text, at) == '.' && (lex_word(text, at + 1, true) || next == '\'')) {
        diag(c, at, 1, "unexpected '.'");
        return diag_note(c, "mod:fun is Erlang, :mod.fun is Elixir");
    }
    *pos = at;
    return true;
}

static bool number(struct comp *c, size_t *pos, int *ret)
{
    const size_t begin = *pos;
    int n = 0;

    while (is_digit(peek(c->text, *pos)) && *pos - begin < 6)
        n = n * 10 + (c->text.at[(*pos)++] - '0');
    if (*pos == begin) {
        diag(c, begin, 1, "an arity is missing");
        return diag_note(c, "a number, _ or a range such as 1..3");
    }
    if (n > SPEC_ARITY_MAX) {
        diag(c, begin, *pos - begin, "no function has that many arguments");
        return diag_note(c, "%d at most", SPEC_ARITY_MAX);
    }
    *ret = n;
    return true;
}

/* Reads /2, /_ and /1..3. In Elixir also /any, or any other word, as Rexbug does. */
static bool arity(struct comp *c, size_t *pos, bool elixir, struct selector *s)
{
    const size_t begin = ++*pos;
    const size_t word = elixir ? lex_word(c->text, begin, true) : 0;

    if (peek(c->text, begin) == '_' || word) {
        *pos += word ? word : 1;
        return true;
    }
    if (!number(c, pos, &s->arity_lo))
        return false;
    s->arity_hi = s->arity_lo;
    if (peek(c->text, *pos) == '.' && peek(c->text, *pos + 1) == '.') {
        *pos += 2;
        if (peek(c->text, *pos) == '_') {
            ++*pos;
            s->arity_hi = SPEC_ARITY_MAX;
            return true;
        }
        if (!number(c, pos, &s->arity_hi))
            return false;
        if (s->arity_hi < s->arity_lo)
            return diag(c, begin, *pos - begin, "a range of arities that holds none");
    }
    return true;
}

bool select_parse(struct comp *c, size_t *pos, struct ast_probe *p)
{
    struct str text = c->text;
    size_t cap = 0;

    for (;;) {
        if (p->nselectors == cap) {
            size_t more = cap ? cap * 2 : 4;
            struct selector *s = arena_alloc(c->arena, more * sizeof(*s));
            bool *given = arena_alloc(c->arena, more * sizeof(*given));
            if (cap) {
                memcpy(s, p->selectors, cap * sizeof(*s));
                memcpy(given, p->arity_given, cap * sizeof(*given));
            }
            p->selectors = s;
            p->arity_given = given;
            cap = more;
        }
        struct selector *s = &p->selectors[p->nselectors];
        const size_t begin = *pos;
        bool elixir = is_elixir(text, begin);
        *s = (struct selector){.arity_hi = SPEC_ARITY_MAX, .from = begin};
        if (!select_begins(text, begin)) {
            diag(c, MIN(begin, text.len), 1,
                 p->nselectors ? "another function has to follow '|'" : "a function is wanted here");
            return diag_note(c, "as in lists:seq/2 or MyApp.Repo.get/2");
        }
        if (elixir ? !elixir_selector(c, pos, s) : !erlang_selector(c, pos, s, &elixir))
            return false;
        if (!p->nselectors)
            p->surface = elixir ? SPEC_ELIXIR : SPEC_ERLANG;
        if (peek(text, *pos) == '/') {
            if (!s->function.text.len) {
                diag(c, begin, *pos - begin, "an arity needs a function");
                return diag_note(c, elixir ? "write " STR_FMT "._" : "write " STR_FMT ":_", (int)(*pos - begin),
                                 text.at + begin);
            }
            if (!arity(c, pos, elixir, s))
                return false;
            p->arity_given[p->nselectors] = true;
        }
        s->len = *pos - begin;
        p->nselectors++;
        size_t next = select_blanks(text, *pos);
        if (peek(text, next) == '\n') {
            size_t line = lex_skip(text, next);
            if (peek(text, line) == '|' && peek(text, line + 1) != '|')
                next = line;
        }
        if (peek(text, next) != '|' || peek(text, next + 1) == '|')
            return true;
        *pos = lex_skip(text, next + 1);
    }
}
