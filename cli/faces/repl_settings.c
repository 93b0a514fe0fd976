/*
 * Changes settings. The group of an option decides what a change touches: the probes are armed again, the sessions are
 * created again, or the view is opened again.
 */
#include <string.h>

#include "repl.h"

/* What is told of the session when it is made; --limit, --for and --on-loss are ours. */
static bool of_session(const struct opt *o)
{
    static const char *const ours[] = {"limit", "for", "on-loss"};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (!strcmp(o->name, ours[i]))
            return false;
    return true;
}

/* Whether what was captured is shown once more: by what selects, not by how it looks. */
static bool selects(const struct opt *o)
{
    static const char *const names[] = {"grep", "where", "invert", "json", "summary"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(o->name, names[i]))
            return true;
    return false;
}

/* What an expression would be read by. */
static bool can_be_read(const struct repl *r, struct err *e)
{
    struct texts none = {0};
    struct asked asked;

    asked_init(&asked);
    bool ok = asked_compile(&asked, &r->base.options.what, &none, &none, 0, e);
    asked_release(&asked);
    return ok;
}

/* Has it done what the new value says. False: it cannot be, e says why where it has not been said. */
static bool take_effect(struct repl *r, const struct repl_option *which, bool with, struct err *e)
{
    const struct opt *o = which->row;

    e->text[0] = 0;
    if (which->group == &what_group)
        return asked_pipes(r->base.ctx, &r->base.options.what, &r->base.options.arena, e) &&
               (r->armed ? repl_arm_all(r, -1, e) : can_be_read(r, e));
    if (which->group == &limit_group) {
        if (!of_session(o))
            return repl_show_live(r, true);
        if (!run_takes(&r->base.options.node, &r->base.options.limit, e))
            return false;
        repl_reopen(r);
        return true;
    }
    if (!strcmp(o->name, "output")) {
        bool ok = repl_files_open(r, e);
        if (!ok && r->files && !*e->hint)
            err_hint(e, ":output without a file ends the one that is open");
        return ok;
    }
    return repl_show_live(r, !(selects(o) && with));
}

/* A change that cannot take effect leaves everything as it was. */
static int do_setting(struct repl *r, const struct repl_option *which, char *rest)
{
    struct repl_old_value old;
    bool with = *rest;
    struct err e;

    if (repl_option_change(&r->base.options, which, rest, &old, &e) && take_effect(r, which, with, &e)) {
        repl_option_keep(&old);
        return 0;
    }
    int status = e.text[0] ? repl_fail(&r->base, &e) : ERR_USAGE;
    repl_option_undo(&r->base.options, which, &old);
    if (which->group == &what_group && r->armed)
        repl_arm(r);
    return status;
}

bool repl_setting(struct repl *r, const char *name, char *rest, int *ret_status)
{
    struct repl_option found;

    if (!repl_option_find(name, &found))
        return false;
    *ret_status = do_setting(r, &found, rest);
    return true;
}
