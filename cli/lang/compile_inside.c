/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles `inside`: decides which probes may be roots, and which may be traced only inside of them. */
#include <string.h>

#include "actions.h"
#include "compile.h"

static bool require_root(struct comp *c, const struct ast_probe *p)
{
    if (p->shape == SHAPE_CALL && !p->raw && !p->fun && p->scope == SPEC_LOCAL)
        return true;
    diag(c, p->from, p->len, "only a function can be a root");
    return diag_note(c, "write it as in shop:take/4 or shop:take(_, Id) when Id > 7");
}

static bool require_no_keys(struct comp *c, const struct ast_probe *p)
{
    if (!p->nkeys)
        return true;
    diag(c, p->by_from, 2, "a root is not counted");
    return diag_note(c, "'by' goes before inside");
}

/* Rejects actions behind a root without parentheses, where they look like actions of the probe. */
static bool require_clear_actions(struct comp *c, const struct ast_probe *p)
{
    if (c->opt->root || c->paren || !p->clauses[p->nclauses - 1].nbody)
        return true;
    const struct ast *act = p->clauses[p->nclauses - 1].body[0];
    diag(c, act->from, act->len, "actions go before inside");
    return diag_note(c, "write PROBE -> ACTIONS inside ROOT; those of the root: inside (ROOT -> ACTIONS)");
}

bool compile_require_roots(struct comp *c, const struct ast_probe *p)
{
    for (; p; p = p->next)
        if (!require_root(c, p) || !require_no_keys(c, p) || !require_clear_actions(c, p))
            return false;
    return true;
}

/* The flags of events that a process causes itself. Such an event happens inside the function that the process runs. */
#define INSIDE_FLAGS                                                                                                   \
    (SPEC_F_CALL | SPEC_F_ARITY | SPEC_F_RETURN_TO | SPEC_F_SEND | SPEC_F_RECEIVE | SPEC_F_PROCS | SPEC_F_RUNNING |    \
     SPEC_F_GC)
#define OF_OTHERS                                                                                                      \
    (SPEC_EVENT_BIT(SPEC_EV_spawned) | SPEC_EVENT_BIT(SPEC_EV_register) | SPEC_EVENT_BIT(SPEC_EV_unregister))

/* Removes the events that other processes cause from the spec. Reports an error if none remains. */
static bool keep_own_events(struct comp *c, const struct ast_probe *p, struct spec *s)
{
    if (s->scope == SPEC_META) {
        diag(c, p->from, p->len, "'meta' traces the calls of all processes, also outside of the root");
        return diag_note(c, "write it without 'meta'");
    }
    s->events &= ~OF_OTHERS;
    if (s->flags & ~(unsigned)INSIDE_FLAGS || (s->kind == SPEC_EVENT && !s->events)) {
        diag(c, p->from, p->len, "this event is not inside of a function, because its process does not cause it");
        return diag_note(c, "it needs a probe of its own, without inside");
    }
    return true;
}

bool unit_inside(struct unit *u)
{
    struct comp *c = u->c;
    const struct ast_probe *p = u->probe;

    if (u->spec->root)
        u->needs |= PROPERTY_NEEDS_RETURN;
    if (!u->tokens.inside)
        return true;
    if (compile_has_action(p, HOW_COUNT, FN_NONE))
        return diag(c, p->from, p->len, "the VM's counters count every call, also outside");
    if (u->spec->root)
        return diag(c, u->tokens.inside, strlen(LEX_INSIDE), "a root is not inside of another one");
    return keep_own_events(c, p, u->spec);
}

void compile_inside_of(struct comp *c, struct spec *s, struct str root)
{
    s->text.at = arena_printf(c->arena, STR_FMT " " LEX_INSIDE " " STR_FMT, STR_ARG(s->text), STR_ARG(root));
    s->text.len = strlen(s->text.at);
    s->inside = root;
}
