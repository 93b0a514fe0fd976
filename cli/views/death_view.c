/* SPDX-License-Identifier: Apache-2.0 */
#include "death_view.h"

#include "../ground/number.h"
#include "line.h"

const char *const death_causes[] = {
    [DEATH_UNKNOWN] = "unknown", [DEATH_ENDED] = "ended",      [DEATH_EXIT] = "exit", [DEATH_ERROR] = "error",
    [DEATH_LINK] = "link",       [DEATH_SAME] = "same_reason", [DEATH_CALL] = "call", [DEATH_SIGNAL] = "signal",
};

static void on_done(void *ctx, struct death *root)
{
    struct death_view *v = ctx;
    struct death_group *g;

    if (!death_chosen(v->choice, root)) {
        if (death_selected(v->choice, root))
            death_groups_add_quiet(&v->groups, root);
        return;
    }
    const bool fresh = death_groups_add(&v->groups, root, &g);
    if (v->choice && v->choice->most && v->shown >= v->choice->most)
        return;
    v->shown++;
    v->show(v, root, g, fresh);
    v->sink.done = v->choice && v->choice->most && v->shown >= v->choice->most;
}

void death_view_init(struct death_view *v)
{
    deaths_init(&v->deaths);
    v->deaths.ctx = v;
    v->deaths.done = on_done;
    v->paint.on = v->sink.look.colour;
    v->choice = v->sink.look.deaths;
    if (v->choice)
        v->choice->names.used = true;
}

void death_view_event(struct sink *sink, const struct event *e)
{
    deaths_event(&((struct death_view *)sink)->deaths, e);
}

bool death_view_passed(struct sink *sink)
{
    return deaths_passed(&((struct death_view *)sink)->deaths);
}

void death_view_release(struct sink *sink)
{
    struct death_view *v = (struct death_view *)sink;

    deaths_release(&v->deaths);
    death_groups_release(&v->groups);
    buf_release(&v->cell);
    buf_release(&v->line);
}

struct event death_on(const struct event_node *node)
{
    return (struct event){.node = node};
}

struct event death_moment(const struct death *x)
{
    return (struct event){.node = x->node, .mono_ns = x->mono_ns, .wall_ns = x->wall_ns, .shift_ns = x->shift_ns};
}

void death_put_process(struct buf *to, const struct tracee *t)
{
    buf_add(to, t->text, t->text_len);
    if (t->name_len) {
        buf_char(to, '(');
        buf_add(to, t->name, t->name_len);
        buf_char(to, ')');
    }
}

static bool in_elixir(const struct death_view *v, const struct event_node *node, const struct fun *fun)
{
    return v->sink.look.terms == TERMS_ELIXIR ||
           (v->sink.look.terms != TERMS_ERLANG && (node->elixir || fun->is_elixir));
}

static void put_initial(const struct death_view *v, struct buf *to, const struct event_node *node,
                        const struct fun *fun, uint8_t arity)
{
    buf_str(to, in_elixir(v, node, fun) ? fun->elixir : fun->erl);
    buf_char(to, '/');
    print_u64(to, arity);
}

void death_put_initial(const struct death_view *v, struct buf *to, const struct death *x)
{
    if (x->initial)
        put_initial(v, to, x->node, x->initial, x->arity);
}

void death_put_who(const struct death_view *v, struct buf *to, const struct death *x)
{
    death_put_process(to, &x->who);
    if (x->who.name_len || !x->initial)
        return;
    buf_char(to, '(');
    put_initial(v, to, x->node, x->initial, x->arity);
    buf_char(to, ')');
}

void death_put_reason(const struct death_view *v, struct buf *to, const struct event_node *node, const uint8_t *reason)
{
    const struct event at = death_on(node);
    const uint8_t *what = reason, *frames;

    if (!exit_reason_error(&at.env, reason, &what, &frames))
        what = reason;
    line_printer(&at, v->sink.look.terms)->term(to, &at.env, what);
}

/*
 * Returns true for a function of a behaviour such as gen_server. Such a function only runs callbacks, so it does not
 * tell what the process did.
 */
static bool is_of_behaviour(const struct event *at, const uint8_t *place)
{
    static const char *const modules[] = {"gen", "gen_server", "gen_statem", "gen_event", "proc_lib"};
    struct mfa mfa;

    for (size_t i = 0; mfa_read(at, place, &mfa, NULL) && i < ARRAY_LEN(modules); i++)
        if (raw_is(mfa.module, modules[i]))
            return true;
    return false;
}

/*
 * Returns the first frame that has a line and is not a function of a behaviour, or else the first frame. Functions
 * written in C have no line.
 */
static const uint8_t *frame_of(const struct event *at, const uint8_t *frames)
{
    const uint8_t *first = NULL, *each;
    struct buf file = {0};
    struct mfa mfa;

    wire_list(&frames);
    while ((each = wire_list_next(&frames))) {
        first = first ? first : each;
        if (mfa_read(at, each, &mfa, &file) && mfa.file.len && !is_of_behaviour(at, each))
            break;
    }
    buf_release(&file);
    return each ? each : first;
}

bool death_put_place(const struct death_view *v, struct buf *to, const struct death *x)
{
    const struct event at = death_on(x->node);
    const struct printer *p = line_printer(&at, v->sink.look.terms);
    const uint8_t *what, *frames;

    if (exit_reason_error(&at.env, x->reason, &what, &frames)) {
        line_mfa(to, &at, p, frame_of(&at, frames));
        return true;
    }
    if (!x->own || !x->own->place_len || is_of_behaviour(&at, x->own->place))
        return false;
    line_mfa(to, &at, p, x->own->place);
    return true;
}

void death_put_group(const struct death_view *v, struct buf *to, const struct death_group *g)
{
    switch (g->label) {
    case LABEL_NAME:
        buf_add(to, g->who.name, g->who.name_len);
        break;
    case LABEL_FUNCTION:
        put_initial(v, to, g->node, g->initial, g->arity);
        break;
    case LABEL_SPAWNER:
        buf_puts(to, "processes of ");
        death_put_process(to, &g->who);
        break;
    case LABEL_REASON:
        buf_puts(to, "processes without a name");
        break;
    case LABEL_OTHERS:
        buf_puts(to, "other processes");
        break;
    }
}

int64_t death_after(const struct death *x, int64_t mono_ns)
{
    return MAX(mono_ns - x->mono_ns, 0);
}

void death_put_node(struct buf *to, const struct death *x, const struct event_node *node)
{
    if (node == x->node)
        return;
    buf_str(to, safe_view(node->name));
    buf_char(to, ' ');
}

void death_put_away(struct buf *to, const struct death *x)
{
    if (x->away.channel)
        buf_printf(to, "<%u.%u.%u> of another node", x->away.channel, ETW_PID_NUMBER(x->away.id),
                   ETW_PID_SERIAL(x->away.id));
    else
        buf_printf(to, "#Port<0.%llu>", (unsigned long long)(x->away.id & ~ETW_TRACEE_PORT));
}

bool death_has_child(const struct death *x, const struct event_node *node, const struct tracee *who)
{
    for (const struct death *child = x->first; child; child = child->next)
        if (child->node == node && child->who.id == who->id)
            return true;
    return false;
}
