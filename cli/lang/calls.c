/* Warnings about the functions that a probe selects: calls that nobody makes, and results that never come. */
#include "calls.h"

static const struct {
    const char *module, *function;
    unsigned arities;
    const char *instead;
} inlined[] = {
#define INLINED(module, function, arities, instead) {module, function, arities, instead},
#include "inlined.def"
};

static bool named(const struct sel_name *name, const char *text)
{
    return name->how == SEL_ATOM && str_is(name->text, text);
}

/* What a selector of that surface calls m:f/1. */
static const char *spelled(struct comp *c, enum spec_surface surface, const char *mfa)
{
    const char *colon = strchr(mfa, ':');

    return surface == SPEC_ELIXIR ? arena_printf(c->arena, ":%.*s.%s", (int)(colon - mfa), mfa, colon + 1) : mfa;
}

static void warn_inlined(struct comp *c, const struct spec *s, const struct selector *sel)
{
    for (size_t i = 0; i < ARRAY_LEN(inlined); i++) {
        if (!named(&sel->module, inlined[i].module) || !named(&sel->function, inlined[i].function))
            continue;
        for (int arity = sel->arity_lo; arity <= MIN(sel->arity_hi, 15); arity++) {
            if (!(inlined[i].arities >> arity & 1))
                continue;
            if (inlined[i].instead)
                warn(c, sel->from, sel->len, false, "compiled code calls %s instead of %s/%d: trace that",
                     spelled(c, s->surface, inlined[i].instead), inlined[i].function, arity);
            else
                warn(c, sel->from, sel->len, false,
                     "compiled code has an instruction for %s/%d: calls are seen only of apply and of funs", inlined[i].function, arity);
        }
    }
}

/* Functions that call their server's loop as their last act: with a trace of their result they return to it. */
static const struct {
    const char *module, *function;
} endless[] = {
    {"gen_server", "enter_loop"}, {"gen_server", "decode_msg"}, {"gen_server", "handle_msg"}, {"gen_server", "handle_common_reply"},
    {"gen_event", "fetch_msg"}, {"gen_event", "handle_msg"}, {"gen_statem", "enter_loop"}, {"gen_statem", "loop_hibernate"},
    {"gen_statem", "loop_receive"}, {"gen_statem", "loop_receive_result"}, {"gen_statem", "loop_event"},
    {"gen_statem", "loop_state_callback"}, {"gen_statem", "loop_state_transition"}, {"gen_statem", "loop_next_events"},
    {"gen_statem", "loop_done"}, {"proc_lib", "init_p"}, {"proc_lib", "init_p_do_apply"}, {"proc_lib", "wake_up"},
};

static bool is_endless(const struct selector *sel)
{
    static const char tail[] = "_loop";
    const struct str f = sel->function.text;

    for (size_t i = 0; i < ARRAY_LEN(endless); i++)
        if (named(&sel->module, endless[i].module) &&
            (sel->function.how == SEL_ANY || named(&sel->function, endless[i].function)))
            return true;
    return sel->function.how == SEL_ATOM &&
           (str_is(f, "loop") || (f.len > sizeof(tail) - 1 && !memcmp(f.at + f.len - sizeof(tail) + 1, tail, sizeof(tail) - 1)));
}

void warn_calls(struct comp *c, const struct spec *s)
{
    bool returns = false;

    for (size_t i = 0; i < s->nclauses; i++)
        returns |= (s->clauses[i].actions & (ACT_RETURN | ACT_RETURN_TRACE)) != 0;
    for (size_t i = 0; i < s->nselectors; i++) {
        const struct selector *sel = &s->selectors[i];
        warn_inlined(c, s, sel);
        if (returns && is_endless(sel))
            warn(c, sel->from, sel->len, false, "tracing the result of an endless loop lets its stack grow for ever");
    }
}
