/* SPDX-License-Identifier: Apache-2.0 */
/* Warns about selected functions that compiled code does not call by name (inlined.def). */
#include "warn_inlined.h"

static const struct {
    const char *module, *function;
    unsigned arities;
    const char *instead;
} inlined[] = {
#define INLINED(module, function, arities, instead) {module, function, arities, instead},
#include "inlined.def"
};

static bool warn_inlined_named(const struct sel_name *name, const char *text)
{
    return name->how == SEL_ATOM && str_is(name->text, text);
}

/* Returns m:f/1 as a selector of that surface. */
static const char *spell_selector(struct comp *c, enum spec_surface surface, const char *mfa)
{
    const char *colon = strchr(mfa, ':');

    return surface == SPEC_ELIXIR ? arena_printf(c->arena, ":%.*s.%s", (int)(colon - mfa), mfa, colon + 1) : mfa;
}

static void warn_inlined(struct comp *c, const struct spec *s, const struct selector *sel)
{
    for (size_t i = 0; i < ARRAY_LEN(inlined); i++) {
        if (!warn_inlined_named(&sel->module, inlined[i].module) ||
            !warn_inlined_named(&sel->function, inlined[i].function))
            continue;
        for (int arity = sel->arity_lo; arity <= MIN(sel->arity_hi, 15); arity++) {
            if (!(inlined[i].arities >> arity & 1))
                continue;
            if (inlined[i].instead)
                warn(c, sel->from, sel->len, false, "compiled code calls %s instead of %s/%d: trace that",
                     spell_selector(c, s->surface, inlined[i].instead), inlined[i].function, arity);
            else
                warn(c, sel->from, sel->len, false,
                     "compiled code has an instruction for %s/%d: only calls by apply or through funs are traced",
                     inlined[i].function, arity);
        }
    }
}

void warn_calls(struct comp *c, const struct spec *s)
{
    for (size_t i = 0; i < s->nselectors; i++)
        warn_inlined(c, s, &s->selectors[i]);
}
