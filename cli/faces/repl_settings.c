/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes settings. The group of the option decides how a change takes effect: by a new request for the probes, by new
 * sessions with the nodes, or by opening the view again.
 */
#include "repl_settings.h"

#include <string.h>

/*
 * Returns true if the option is a part of each session, so that a change needs new sessions. The three options in
 * `ours` only concern this process.
 */
static bool of_session(const struct opt *o)
{
    static const char *const ours[] = {"limit", "for", "on-loss"};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (!strcmp(o->name, ours[i]))
            return false;
    return true;
}

/*
 * Returns true if the option selects events. The view then begins again with the oldest captured event, to show them
 * with the new value.
 */
static bool selects_events(const struct opt *o)
{
    static const char *const names[] = {"grep", "where", "invert", "json", "summary"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(o->name, names[i]))
            return true;
    return false;
}

/*
 * Returns false, with an error, if the options make every expression invalid, for example because a file of --hrl
 * cannot be read.
 */
static bool require_readable(const struct repl_parts *r, struct err *e)
{
    struct texts none = {0};
    struct exprs exprs;

    exprs_init(&exprs);
    bool ok = exprs_compile(&exprs, &r->base->options.what, &none, &none, 0, e);
    exprs_release(&exprs);
    return ok;
}

/*
 * Applies the new value. `with` is true if the user has typed a value. Returns false if this fails; e->text is then the
 * error, or empty if the error was printed already.
 */
static bool take_effect(const struct repl_parts *r, const struct repl_option *which, bool with, struct err *e)
{
    const struct opt *o = which->row;

    e->text[0] = 0;
    if (which->group == &what_group)
        return exprs_pipes(r->base->ctx, &r->base->options.what, &r->base->options.arena, e) &&
               (repl_probes_armed(r->probes) ? repl_probes_arm_all(r->probes, -1, e) : require_readable(r, e));
    if (which->group == &node_group) {
        repl_nodes_reattach(r->nodes);
        return true;
    }
    if (which->group == &recorder_group)
        return repl_recorder_set(r->recorder, e);
    if (which->group == &limit_group) {
        if (!strcmp(o->name, "for")) {
            repl_probes_begin_time(r->probes);
            return true;
        }
        if (!of_session(o))
            return repl_recorder_allows(r->recorder, e) && repl_views_open(r->views, true);
        if (!session_set_takes(&r->base->options.node, &r->base->options.limit, e))
            return false;
        repl_nodes_reopen(r->nodes);
        return true;
    }
    if (!strcmp(o->name, "output")) {
        bool ok = repl_recorder_allows(r->recorder, e) && repl_files_open(r->files, e);
        if (!ok && repl_files_are_open(r->files) && !*e->hint)
            err_hint(e, ":output without a file closes the open one");
        return ok;
    }
    return repl_views_open(r->views, !(selects_events(o) && with));
}

/*
 * Removes quotes around the whole text of an expression: a user may type them as in a shell. In the language, they
 * would make the expression an atom, which is never a valid condition.
 */
static char *strip_quotes(const struct opt *o, char *text)
{
    size_t n = strlen(text);

    if (!o->arg || strcmp(o->arg, "EXPR") != 0 || n < 2 || strchr(text + 1, '\'') != text + n - 1 || *text != '\'')
        return text;
    text[n - 1] = 0;
    return text + 1;
}

/* Changes the value, and restores the old one if the change cannot take effect. */
static int do_setting(const struct repl_parts *r, const struct repl_option *which, char *rest)
{
    const char *when = r->base->options.recorder.when;
    struct repl_old_value old;
    bool with = *rest;
    struct err e;

    if (which->group == &recorder_group && !strcmp(rest, "off")) {
        *rest = 0;
        /* Also removes the condition, because nodes record if there is a condition, even without :ring. */
        if (!strcmp(which->row->name, "ring"))
            r->base->options.recorder.when = NULL;
    }
    if (repl_option_change(&r->base->options, which, rest, &old, &e) && take_effect(r, which, with, &e)) {
        repl_option_keep(&old);
        return 0;
    }
    int status = e.text[0] ? repl_fail(r->base, &e) : ERR_USAGE;
    r->base->options.recorder.when = when;
    repl_option_undo(&r->base->options, which, &old);
    if (which->group == &what_group && repl_probes_armed(r->probes))
        repl_probes_arm(r->probes);
    return status;
}

bool repl_setting(const struct repl_parts *r, const char *name, char *rest, int *ret_status)
{
    struct repl_option found;

    if (!repl_option_find(name, &found))
        return false;
    *ret_status = do_setting(r, &found, strip_quotes(found.row, rest));
    return true;
}
