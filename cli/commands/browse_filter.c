/* SPDX-License-Identifier: Apache-2.0 */
#include "browse_filter.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "../ground/mem.h"
#include "../lang/properties.h"

/* Returns true if the text begins with exactly this word, not with a longer word that starts the same. */
static bool filter_begins(const char *text, const char *word)
{
    const size_t len = strlen(word);

    return !strncmp(text, word, len) && !isalnum((unsigned char)text[len]) && text[len] != '_';
}

static bool begins_operator(const char *text)
{
    static const char *const words[] = {"in", "and", "or", "andalso", "orelse", "rem", "div", "band"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (filter_begins(text, words[i]))
            return true;
    return *text && strchr("<>=!/~[+-*", *text);
}

/* Returns true if the text begins with a property and an operator, as a condition does. */
static bool is_condition(const char *text)
{
    while (*text == ' ' || *text == '(' || filter_begins(text, "not"))
        text += *text == 'n' ? 3 : 1;
    for (size_t i = 0; i < PROPERTIES; i++) {
        const char *name = property_rows[i].name;
        if (property_rows[i].uses & PROPERTY_WHERE && filter_begins(text, name)) {
            const char *after = text + strlen(name);
            return begins_operator(after + strspn(after, " "));
        }
    }
    return false;
}

static void set_greps(struct browse_filter *f, const char *regex, struct pipeline_options *options)
{
    const struct texts *given = &f->view->greps;
    size_t n = 0;

    f->greps = mem_zalloc((given->count + 1) * sizeof(*f->greps));
    for (; n < given->count; n++)
        f->greps[n] = (struct grep){given->items[n], f->view->invert};
    if (regex)
        f->greps[n++] = (struct grep){regex, false};
    options->greps = f->greps;
    options->ngreps = n;
}

/* Checks the conditions and their regular expressions, by opening a pipeline that uses them. */
static bool check_conditions(const struct pipeline_options *options, struct err *e)
{
    struct pipeline *p = pipeline_new(options, e);

    pipeline_free(p);
    return p;
}

bool browse_filter_set(struct browse_filter *f, const char *text, struct pipeline_options *options,
                       struct browse_filter *ret_before, struct err *e)
{
    struct browse_filter new = {.view = f->view, .part = f->part, .request = f->request};
    struct pipeline_options changed = *options;
    const struct what_opts what = {.lets = f->part->lets, .records = f->part->records};
    const struct texts none = {0};
    struct texts wheres = {0};

    exprs_init(&new.exprs);
    new.exprs.find_record = recordings_find_record;
    new.exprs.find_data = &new.request;
    new.text = text &&*text ? mem_strndup(text, strlen(text)) : NULL;
    const bool condition = new.text &&is_condition(new.text);
    for (size_t i = 0; i < f->view->wheres.count; i++)
        texts_add(&wheres, f->view->wheres.items[i]);
    if (condition)
        texts_add(&wheres, new.text);
    bool ok = exprs_compile(&new.exprs, &what, &none, &wheres, 0, e);
    texts_release(&wheres);
    set_greps(&new, condition ? NULL : new.text, &changed);
    changed.wheres = new.exprs.wheres;
    changed.nwheres = new.exprs.nwheres;
    if (!ok || !check_conditions(&changed, e)) {
        browse_filter_release(&new);
        return false;
    }
    *options = changed;
    *ret_before = *f;
    *f = new;
    f->exprs.find_data = NULL;
    return true;
}

void browse_filter_release(struct browse_filter *f)
{
    exprs_release(&f->exprs);
    free(f->greps);
    free(f->text);
}
