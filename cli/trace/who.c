/* SPDX-License-Identifier: Apache-2.0 */
#include "who.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../lang/lang.h"

bool who_word(const char *text, enum arm_who *ret)
{
    static const struct {
        const char *word;
        enum arm_who who;
    } words[] = {{"all", ARM_WHO_ALL}, {"existing", ARM_WHO_EXISTING}, {"new", ARM_WHO_NEW}};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(text, words[i].word)) {
            *ret = words[i].who;
            return true;
        }
    return false;
}

static bool who_term(struct str text, struct arena *a, term_t *ret)
{
    struct err e;

    /*
     * Erlang comes first. It rejects a name such as Pool, which is a variable there, so Elixir reads the name as an
     * alias.
     */
    return lang_term(text, SPEC_ERLANG, a, ret, &e) || lang_term(text, SPEC_ELIXIR, a, ret, &e);
}

/* Returns the text between WORD( and ). */
static bool who_call(struct str text, struct str word, struct str *ret)
{
    if (text.len < word.len + 2 || memcmp(text.at, word.at, word.len) || text.at[word.len] != '(' ||
        text.at[text.len - 1] != ')')
        return false;
    *ret = (struct str){text.at + word.len + 1, text.len - word.len - 2};
    return true;
}

static bool who_application(struct str text, struct arena *a, struct who *ret)
{
    term_t t;

    if (!who_term(text, a, &t) || t->type != TERM_ATOM)
        return false;
    *ret = (struct who){.kind = ARM_WHO_APP, .text = t->text};
    return true;
}

/* Reads initial(F), where F is written like an expression that selects one function. */
static bool who_initial(struct str text, struct arena *a, struct who *ret)
{
    const struct lang_options opt = {0};
    struct spec_list list = {0};
    struct err e;

    if (!lang_compile(&opt, text, a, &list, &e) || list.count != 1)
        return false;
    const struct spec *s = list.items[0];
    const struct selector *x = s->nselectors == 1 ? &s->selectors[0] : NULL;
    if (s->kind != SPEC_CALL || !term_is_atom(s->match_spec, "true") || !x || x->module.how != SEL_ATOM ||
        x->function.how != SEL_ATOM || x->arity_lo != x->arity_hi)
        return false;
    *ret = (struct who){.kind = ARM_WHO_INITIAL,
                        .text = text,
                        .module = x->module.text,
                        .function = x->function.text,
                        .arity = x->arity_lo};
    return true;
}

/*
 * Reads {via, Module, Name}, or one of the short forms that events print: {global, Name}, and {Registry, Key} for the
 * module Registry of Elixir.
 */
static bool who_registry(term_t t, struct str text, struct who *ret)
{
    *ret = (struct who){.kind = ARM_WHO_VIA, .text = text};
    if (t->type != TERM_TUPLE || t->count < 2 || t->count > 3 || t->items[0]->type != TERM_ATOM ||
        (t->count == 2 && term_is_atom(t->items[0], "via")))
        return false;
    if (t->count == 3) {
        ret->module = t->items[1]->text;
        ret->name = t->items[2];
        return term_is_atom(t->items[0], "via") && t->items[1]->type == TERM_ATOM;
    }
    const bool global = term_is_atom(t->items[0], "global");
    ret->module = global ? STR("global") : STR("Elixir.Registry");
    ret->name = global ? t->items[1] : t;
    ret->printed = true;
    return true;
}

static struct str pid_text(term_t t, struct arena *a)
{
    char *text = arena_alloc(a, 40);
    int len = snprintf(text, 40, "<0.%" PRIu64 ".%" PRIu32 ">", t->id, t->serial);

    return (struct str){text, (size_t)len};
}

bool who_parse(const char *who, struct arena *a, struct who *ret)
{
    struct str text = {who, strlen(who)}, inner;
    enum arm_who kind;
    term_t t;

    if (who_word(who, &kind)) {
        *ret = (struct who){.kind = kind, .text = text};
        return true;
    }
    if (who_call(text, STR("app"), &inner))
        return who_application(inner, a, ret);
    if (who_call(text, STR("initial"), &inner))
        return who_initial(inner, a, ret);
    if (!who_term(text, a, &t))
        return false;
    if (t->type == TERM_ATOM)
        *ret = (struct who){.kind = ARM_WHO_NAME, .text = t->text};
    else if (t->type == TERM_PID)
        *ret = (struct who){.kind = ARM_WHO_PID, .text = pid_text(t, a)};
    else
        return who_registry(t, text, ret);
    return true;
}

bool who_names(const struct texts *texts, const char *option, bool registries, struct arena *a,
               struct process_names *ret, struct err *e)
{
    struct str *items = arena_alloc(a, (texts->count + 1) * sizeof(*items));
    struct who w;

    for (size_t i = 0; i < texts->count; i++) {
        if (!who_parse(texts->items[i], a, &w) || !who_is_one(&w) ||
            (w.kind == ARM_WHO_VIA && !(registries && w.printed))) {
            err_set(e, ERR_USAGE, "%s does not take '%s'", option, texts->items[i]);
            err_hint(e, "a pid such as '<0.84.0>', a name, or a callback module");
            return false;
        }
        items[i] = w.text;
    }
    *ret = (struct process_names){.items = items, .seen = arena_alloc(a, texts->count + 1), .count = texts->count};
    return true;
}

void who_names_warn(struct ctx *ctx, const struct process_names *n, const struct texts *texts, const char *option,
                    const char *what)
{
    for (size_t i = 0; n->used && i < n->count; i++)
        if (!n->seen[i])
            ctx_warn(ctx, "%s%s: no %s it was seen", option, texts->items[i], what);
}

bool who_is_one(const struct who *w)
{
    return w->kind == ARM_WHO_PID || w->kind == ARM_WHO_NAME || w->kind == ARM_WHO_VIA;
}
