/* SPDX-License-Identifier: Apache-2.0 */
#include "deaths.h"

#include <stdlib.h>

#include "../events/process_name.h"
#include "../ground/mem.h"

#define NEAR 256 /* a search for a name, a reason or a survivor looks at this many of the newest exits */

void deaths_init(struct deaths *d)
{
    *d = (struct deaths){.open = 0};
    for (size_t i = 0; i < EVENT_NODES; i++)
        d->now[i] = INT64_MIN;
    lives_init(&d->lives);
}

int64_t death_time(const struct death *x, const struct event_node *node, int64_t mono_ns, int64_t wall_ns)
{
    return node == x->node ? mono_ns : x->mono_ns + (wall_ns - x->wall_ns);
}

/* ---- the list of open exits ---- */

static void free_death(struct death *x)
{
    free(x->reason);
    free(x->own);
    free(x->heirs);
    free(x);
}

static void take_out(struct deaths *d, struct death *x)
{
    if (x->older)
        x->older->newer = x->newer;
    else
        d->oldest = x->newer;
    if (x->newer)
        x->newer->older = x->older;
    else
        d->newest = x->older;
    d->open--;
}

static void put_newest(struct deaths *d, struct death *x)
{
    x->older = d->newest;
    if (d->newest)
        d->newest->newer = x;
    else
        d->oldest = x;
    d->newest = x;
    d->open++;
}

/* Frees the exits of a tree, and forgets their processes, which have no further events. */
static void forget_tree(struct deaths *d, struct death *x)
{
    struct life *l = lives_find(&d->lives, x->node, x->who.id);

    for (struct death *child = x->first, *next; child; child = next) {
        next = child->next;
        forget_tree(d, child);
    }
    if (l && l->death == x)
        lives_forget(&d->lives, l);
    take_out(d, x);
    free_death(x);
}

/*
 * Returns the root of the tree. Shortens the way to the root for later calls, because a chain of links can have
 * thousands of exits.
 */
static struct death *root_of(struct death *x)
{
    while (x->above) {
        if (x->above->above)
            x->above = x->above->above;
        x = x->above;
    }
    return x;
}

/* Sets x->others of each exit of the tree. */
static void count_others(struct death *x)
{
    x->others = 0;
    for (struct death *child = x->first; child; child = child->next) {
        count_others(child);
        x->others += 1 + child->others;
    }
}

static void finish_tree(struct deaths *d, struct death *root)
{
    count_others(root);
    d->done(d->ctx, root);
    forget_tree(d, root);
}

static int64_t *now_of(struct deaths *d, const struct event_node *node)
{
    return &d->now[node->index];
}

/* Finishes the trees that are settled, in the order of their first exits. A settled tree waits for older trees. */
static void settle_trees(struct deaths *d)
{
    while (d->oldest) {
        struct death *root = root_of(d->oldest);
        if (root->settled > *now_of(d, root->node))
            break;
        finish_tree(d, root);
    }
}

static void advance_now(struct deaths *d, const struct event_node *node, int64_t mono_ns)
{
    int64_t *now = now_of(d, node);

    *now = MAX(*now, mono_ns);
}

/* Keeps the tree open for DEATH_SETTLE_NS more, because it has changed. */
static void postpone_settling(struct death *x, int64_t mono_ns)
{
    struct death *root = root_of(x);

    root->settled = MIN(MAX(root->settled, mono_ns + DEATH_SETTLE_NS), root->mono_ns + DEATH_LONGEST_NS);
}

static void attach_death(struct death *parent, struct death *x)
{
    x->parent = x->above = parent;
    x->by_ns = x->cause == DEATH_SIGNAL ? x->by_ns : parent->mono_ns;
    if (x->cause != DEATH_SIGNAL)
        x->by = parent->who;
    if (parent->last)
        parent->last->next = x;
    else
        parent->first = x;
    parent->last = x;
    struct death *root = root_of(parent);
    postpone_settling(parent, death_time(root, x->node, x->mono_ns, x->wall_ns));
}

/* ---- causes ---- */

struct search {
    const struct death *dying;
    struct death *found;
};

/* Returns true if the process `id` is known to have survived the exit `x`, because it traps exit signals. */
static bool has_survived(const struct death *x, const struct event_node *node, uint64_t id)
{
    for (size_t i = 0; i < x->nheirs; i++)
        if (x->heirs[i].who.id == id && x->heirs[i].node == node && !x->heirs[i].monitor)
            return true;
    return false;
}

static bool find_ended_this(void *ctx, const struct life *other)
{
    struct search *s = ctx;
    struct death *x = other->death;

    if (!x || !exit_reason_same(&x->key, &s->dying->key) || has_survived(x, s->dying->node, s->dying->who.id))
        return false;
    s->found = x;
    return true;
}

/* Returns the exit of a linked process with the same reason as `x`. A normal exit ends no other process. */
static struct death *linked_exit(struct deaths *d, const struct life *l, const struct death *x)
{
    struct search s = {.dying = x};

    if (x->key.normal_atom)
        return NULL;
    lives_linked(&d->lives, l, find_ended_this, &s);
    return s.found;
}

/* Reads a pid of another node, which an event has as the text <Channel.Number.Serial>. */
static bool remote_pid(const uint8_t *at, struct life_away *ret)
{
    char text[40] = "", *end;
    const size_t len = *at == ETW_T_TEXT && at[1] == ETW_TEXT_PID ? wire_u16(at + 2) : 0;

    if (len < 7 || len >= sizeof(text))
        return false;
    memcpy(text, at + 4, len);
    const unsigned long channel = strtoul(text + 1, &end, 10);
    const unsigned long number = *end == '.' ? strtoul(end + 1, &end, 10) : 0;
    const unsigned long serial = *end == '.' ? strtoul(end + 1, &end, 10) : 0;
    *ret = (struct life_away){number | serial << 28, (uint32_t)channel};
    return text[0] == '<' && *end == '>' && channel && number;
}

/*
 * Returns the newest exit of process `id` with this reason, on a node other than `node`. Looks at the last NEAR exits.
 */
static struct death *remote_exit(struct deaths *d, const struct event_node *node, uint64_t id,
                                 const struct exit_reason *reason)
{
    struct death *x = d->newest;

    for (unsigned i = 0; x && i < NEAR; i++, x = x->older)
        if (x->node != node && x->who.id == id && exit_reason_same(&x->key, reason))
            return x;
    return NULL;
}

/* Returns the exit that ended `x` by a link between nodes. */
static struct death *remote_link(struct deaths *d, const struct life *l, const struct death *x)
{
    return l->away.channel && !x->key.normal_atom ? remote_exit(d, x->node, l->away.id, &x->key) : NULL;
}

/*
 * Attaches to `x` the exits of processes on other nodes that `x` ended by a link. Their events may come before the
 * event of `x`, because the clocks of nodes differ.
 */
static void attach_remote(struct deaths *d, struct death *x)
{
    struct death *other = d->newest;

    for (unsigned i = 0; other && i < NEAR; i++, other = other->older)
        if (other->node != x->node && other != root_of(x) && !other->parent && other->cause == DEATH_UNKNOWN &&
            other->away.channel && other->away.id == x->who.id && exit_reason_same(&other->key, &x->key)) {
            other->cause = DEATH_LINK;
            attach_death(x, other);
        }
}

/*
 * Returns the exit of the process that the dead process was calling. The dead process has received the 'DOWN' of that
 * process, and the dead process's reason contains that process's reason.
 */
static struct death *called_exit(struct deaths *d, const struct life *l, const struct event *e)
{
    const struct life *other = l->down ? lives_find(&d->lives, l->down_node, l->down) : NULL;
    const uint8_t *what;

    if (!other || !other->death || !exit_reason_call(&e->env, e->terms.at, &what))
        return NULL;
    const struct exit_reason inner = exit_reason_of(&e->env, what);
    return exit_reason_same(&inner, &other->death->key) ? other->death : NULL;
}

/*
 * Returns the newest exit on the node with the same reason as `x`. If the root of that exit's tree has this reason,
 * too, returns the root. Used for processes whose links are older than the trace.
 */
static struct death *same_exit(struct deaths *d, const struct death *x)
{
    struct death *other = d->newest;

    for (unsigned i = 0; other && i < NEAR; i++, other = other->older) {
        struct death *root = root_of(other);
        if (other->node == x->node && exit_reason_same(&other->key, &x->key))
            return exit_reason_same(&root->key, &x->key) ? root : other;
    }
    return NULL;
}

/*
 * Returns the newest abnormal exit that the process survived. A supervisor that then exits, or stops other children,
 * does so because of that exit.
 */
static struct death *survived_exit(struct deaths *d, const struct event_node *node, uint64_t id)
{
    struct death *x = d->newest;

    for (unsigned i = 0; x && i < NEAR; i++, x = x->older)
        if (x->node == node && !x->normal && has_survived(x, node, id))
            return x;
    return NULL;
}

static void take_call(struct death *x, struct life_exit **call)
{
    free(x->own);
    x->own = *call;
    *call = NULL;
}

static struct death *set_signal_cause(struct deaths *d, struct life *l, struct death *x)
{
    const struct tracee by = l->sent->by;

    x->by = by;
    x->by_ns = l->sent->mono_ns;
    x->by_node = x->node;
    x->away = (struct life_away){0};
    x->cause = by.id == x->who.id ? DEATH_EXIT : DEATH_SIGNAL;
    take_call(x, &l->sent);
    return x->cause == DEATH_SIGNAL ? survived_exit(d, x->node, by.id) : NULL;
}

/*
 * Returns true if this call of exit/2 ended `x`. Its target is a port that was linked to `x`, or the call came from
 * another node and its target is `x`.
 */
static bool has_ordered(const struct death_order *o, const struct death *x)
{
    const bool here = o->node == x->node;

    return o->call && exit_reason_by_signal(&o->call->reason, &x->key) &&
           (o->to.channel ? !here && o->to.id == x->who.id : here && !x->away.channel && o->to.id == x->away.id);
}

/* Returns the call of exit/2 that ended `x`. NULL: no such call was seen. */
static struct death_order *find_order(struct deaths *d, const struct death *x)
{
    for (unsigned i = d->norders; i && d->norders - i < DEATH_ORDERS; i--) {
        struct death_order *o = &d->orders[(i - 1) % DEATH_ORDERS];
        if (has_ordered(o, x))
            return o;
    }
    return NULL;
}

static void set_order_cause(struct death *x, struct death_order *o)
{
    x->cause = DEATH_SIGNAL;
    x->by = o->call->by;
    x->by_node = o->node;
    x->by_ns = o->node == x->node ? o->call->mono_ns : x->mono_ns;
    if (o->to.channel)
        x->away = (struct life_away){0};
    take_call(x, &o->call);
}

/*
 * Sets the cause of an exit whose event came before the event of the call that ended it: clocks of nodes differ by up
 * to a round trip.
 */
static void set_late_cause(struct deaths *d, struct death_order *o)
{
    struct death *x = d->newest;

    for (unsigned i = 0; x && i < NEAR; i++, x = x->older)
        if (x->cause == DEATH_UNKNOWN && has_ordered(o, x)) {
            set_order_cause(x, o);
            return;
        }
}

/* Sets x->cause. Returns the exit that caused `x`; NULL: none is known. */
static struct death *find_cause(struct deaths *d, struct life *l, struct death *x, const struct event *e)
{
    const bool own = l->own && exit_reason_same(&l->own->reason, &x->key);
    struct death_order *order;
    struct death *parent;

    if (l->sent && exit_reason_by_signal(&l->sent->reason, &x->key))
        return set_signal_cause(d, l, x);
    if (own)
        take_call(x, &l->own);
    if ((parent = linked_exit(d, l, x)) || (!own && !x->error && (parent = remote_link(d, l, x)))) {
        x->cause = DEATH_LINK;
    } else if ((parent = called_exit(d, l, e))) {
        x->cause = DEATH_CALL;
    } else if (own) {
        x->cause = DEATH_EXIT;
        parent = l->bereaved ? survived_exit(d, x->node, x->who.id) : NULL;
    } else if (x->key.normal_atom) {
        x->cause = DEATH_ENDED;
    } else if (!l->parent && !x->key.elsewhere && (parent = same_exit(d, x))) {
        x->cause = DEATH_SAME; /* only if the spawn of the process was not seen; otherwise its links are known */
    } else if (x->error) {
        x->cause = DEATH_ERROR;
    } else if ((order = find_order(d, x))) {
        set_order_cause(x, order);
    }
    return parent;
}

/* ---- events ---- */

static void name_spawner(struct deaths *d, const struct event *e, const struct life *l, struct death *x)
{
    const struct life *parent = l->parent ? lives_find(&d->lives, l->node, l->parent) : NULL;

    if (!l->parent)
        return;
    x->spawner = event_tracee(e, l->parent);
    if (!x->spawner.name_len && parent)
        x->spawner = parent->who;
}

static struct death *new_death(struct deaths *d, struct life *l, const struct event *e)
{
    struct death *x = mem_zalloc(sizeof(*x));
    struct buf term = {0};
    const uint8_t *what, *frames;

    wire_copy(&term, &e->env, e->terms, SIZE_MAX);
    x->reason = (uint8_t *)term.data;
    x->reason_len = (uint32_t)term.len;
    x->cut = e->flags & ETW_F_CUT;
    x->key = exit_reason_of(&e->env, e->terms.at);
    x->normal = exit_reason_is_normal(&e->env, e->terms.at);
    x->error = exit_reason_error(&e->env, e->terms.at, &what, &frames);
    x->node = e->node;
    x->away = l->away;
    x->who = l->who;
    x->initial = l->initial;
    x->arity = l->arity;
    x->mono_ns = e->mono_ns;
    x->wall_ns = e->wall_ns;
    x->shift_ns = e->shift_ns;
    x->settled = e->mono_ns + DEATH_SETTLE_NS;
    name_spawner(d, e, l, x);
    return x;
}

/* Returns true if the process had this name on the node. `node` NULL: on the node with the name `there`. */
static bool has_name(const struct death *x, const struct event_node *node, struct raw there, struct str name)
{
    return (node ? x->node == node : str_same(safe_view(x->node->name), raw_view(there))) && x->who.name_len &&
           str_same(process_name_plain(safe_view(tracee_safe_name(&x->who))), name);
}

static struct death *named_exit(struct deaths *d, const struct event_node *node, struct raw there, struct str name)
{
    struct death *x = d->newest;

    for (unsigned i = 0; x && i < NEAR; i++, x = x->older)
        if (has_name(x, node, there, name))
            return x;
    return NULL;
}

/* Adds a survivor. Its time and `wall_ns` are those of its own node. */
static void add_heir(struct death *x, const struct death_heir *heir, int64_t wall_ns)
{
    for (size_t i = 0; i < x->nheirs; i++)
        if (x->heirs[i].who.id == heir->who.id && x->heirs[i].node == heir->node &&
            x->heirs[i].monitor == heir->monitor)
            return;
    if (x->nheirs == DEATH_HEIRS) {
        x->more_heirs++;
        return;
    }
    x->heirs = mem_grow(x->heirs, &x->heirs_cap, x->nheirs + 1, sizeof(*x->heirs));
    x->heirs[x->nheirs] = *heir;
    x->heirs[x->nheirs++].mono_ns = death_time(x, heir->node, heir->mono_ns, wall_ns);
    postpone_settling(x, death_time(root_of(x), heir->node, heir->mono_ns, wall_ns));
}

static struct death_heir heir_of(bool monitor, const struct life *l, const struct event *e)
{
    return (struct death_heir){monitor, l->node, l->who, e->mono_ns};
}

/*
 * Keeps a survivor whose event comes before the event of the exit, because the clocks of nodes differ. The process that
 * exits is `id`, or the process `name` on the node `there`. `reason` NULL: unknown.
 */
static void keep_early(struct deaths *d, const struct death_heir *heir, const struct event *e, uint64_t id,
                       struct str name, struct str there, const struct exit_reason *reason)
{
    struct death_early *early = &d->early[d->nearly++ % DEATH_EARLY];

    *early = (struct death_early){.id = id, .heir = *heir, .wall_ns = e->wall_ns};
    memcpy(early->name, name.at, MIN(name.len, sizeof(early->name) - 1));
    memcpy(early->there, there.at, MIN(there.len, sizeof(early->there) - 1));
    if (reason)
        early->reason = *reason;
}

static bool early_is_of(const struct death_early *early, const struct death *x)
{
    if (early->heir.node == x->node || x->wall_ns - early->wall_ns > DEATH_SETTLE_NS ||
        (early->heir.monitor && !exit_reason_same(&early->reason, &x->key)))
        return false;
    return early->id ? early->id == x->who.id
                     : early->name[0] &&
                           has_name(x, NULL, raw_text(early->there), (struct str){early->name, strlen(early->name)});
}

/* Adds the survivors of `x` whose events came before the event of `x`. */
static void add_early(struct deaths *d, struct death *x)
{
    const unsigned n = MIN(d->nearly, DEATH_EARLY);

    for (unsigned i = d->nearly - n; i < d->nearly; i++) {
        struct death_early *early = &d->early[i % DEATH_EARLY];
        if (!early_is_of(early, x))
            continue;
        add_heir(x, &early->heir, early->wall_ns);
        early->id = 0;
        early->name[0] = 0;
    }
}

static void on_exited(struct deaths *d, const struct event *e)
{
    struct life *l = lives_get(&d->lives, e, e->who->id);

    if (l->death)
        return;
    while (d->open >= DEATHS_OPEN) {
        struct death *root = root_of(d->oldest);
        d->hurried += !root->normal;
        finish_tree(d, root);
    }
    l = lives_get(&d->lives, e, e->who->id);
    struct death *x = new_death(d, l, e);
    struct death *parent = find_cause(d, l, x, e);
    put_newest(d, x);
    l->death = x;
    if (parent)
        attach_death(parent, x);
    attach_remote(d, x);
    add_early(d, x);
}

/* Handles the end of a link to a port or to a process of another node. */
static void on_away_unlinked(struct deaths *d, const struct event *e, struct life *l, struct life_away away)
{
    const struct death_heir heir = heir_of(false, l, e);
    struct death *x = d->newest;

    if (l->away.id == away.id && l->away.channel == away.channel)
        l->away = (struct life_away){0};
    if (e->kind != ETW_GETTING_UNLINKED)
        return;
    l->bereaved = true;
    if (!away.channel)
        return;
    for (unsigned i = 0; x && i < NEAR; i++, x = x->older)
        if (x->node != e->node && x->who.id == away.id) {
            add_heir(x, &heir, e->wall_ns);
            return;
        }
    keep_early(d, &heir, e, away.id, (struct str){"", 0}, (struct str){"", 0}, NULL);
}

/*
 * Handles the end of a link: one of the two processes has removed the link, or the process of the event has survived
 * the exit of the other process.
 */
static void on_unlinked(struct deaths *d, const struct event *e)
{
    struct life *l = lives_get(&d->lives, e, e->who->id), *other;
    struct life_away away = {0};
    uint64_t id;

    if (remote_pid(e->terms.at, &away) || (wire_pid(e->terms.at, &id) && id & ETW_TRACEE_PORT && (away.id = id) != 0)) {
        on_away_unlinked(d, e, l, away);
        return;
    }
    if (!wire_pid(e->terms.at, &id) || !(other = lives_find(&d->lives, e->node, id)))
        return;
    if (!other->death) {
        lives_unlink(&d->lives, l, other);
    } else if (e->kind == ETW_GETTING_UNLINKED) {
        const struct death_heir heir = heir_of(false, l, e);
        l->bereaved = true;
        add_heir(other->death, &heir, e->wall_ns);
    }
}

static void on_linked(struct deaths *d, const struct event *e)
{
    struct life_away away = {0};
    uint64_t id;

    if (remote_pid(e->terms.at, &away) || (wire_pid(e->terms.at, &id) && id & ETW_TRACEE_PORT && (away.id = id) != 0)) {
        lives_get(&d->lives, e, e->who->id)->away = away;
        return;
    }
    if (!wire_pid(e->terms.at, &id))
        return;
    lives_get(&d->lives, e, id);
    struct life *l = lives_get(&d->lives, e, e->who->id), *other = lives_find(&d->lives, e->node, id);
    if (other)
        lives_link(&d->lives, l, other);
}

/*
 * Returns the exit that a 'DOWN' reports. `object` is a pid or {Name, Node}. If the process is on another node and the
 * event of its exit has not come yet, keeps the survivor and returns NULL.
 */
static struct death *monitored_exit(struct deaths *d, const struct event *e, const uint8_t *object)
{
    struct life_away away;
    uint64_t id;
    uint32_t arity;
    const uint8_t *first;
    struct raw name, node;
    const struct life *l;

    if (wire_pid(object, &id))
        return (l = lives_find(&d->lives, e->node, id)) ? l->death : NULL;
    const struct exit_reason reason = exit_reason_of(&e->env, wire_skip(object));
    struct str plain = {"", 0};
    struct death *x;
    if (remote_pid(object, &away)) {
        node = raw_text("");
        x = remote_exit(d, e->node, away.id, &reason);
    } else if (wire_tuple(object, &arity, &first) == 2 && wire_atom(&e->env, first, &name) &&
               wire_atom(&e->env, wire_skip(first), &node)) {
        away.id = 0;
        plain = process_name_plain(raw_view(name));
        x = named_exit(d, NULL, node, plain);
        x = x && exit_reason_same(&x->key, &reason) ? x : NULL;
    } else {
        return NULL;
    }
    if (!x) {
        const struct death_heir heir = heir_of(true, lives_get(&d->lives, e, e->who->id), e);
        keep_early(d, &heir, e, away.id, plain, raw_view(node), &reason);
    }
    return x;
}

/* Handles {'DOWN', Reference, process, Object, Reason}. A process can choose another first element than 'DOWN'. */
static void on_monitored(struct deaths *d, const struct event *e)
{
    uint32_t arity;
    const uint8_t *at;
    struct death *x;

    if (wire_tuple(e->terms.at, &arity, &at) < 4 || arity != 5)
        return;
    at = wire_skip(wire_skip(at));
    if (!wire_is_atom(&e->env, at, "process") || !(x = monitored_exit(d, e, wire_skip(at))))
        return;
    struct life *l = lives_get(&d->lives, e, e->who->id);
    const struct death_heir heir = heir_of(true, l, e);
    l->down = x->who.id;
    l->down_node = x->node;
    add_heir(x, &heir, e->wall_ns);
}

/* ---- new processes ---- */

static void set_again(struct deaths *d, struct death *x, const struct event *e, const struct life *as, bool named)
{
    const struct life *by = as->parent ? lives_find(&d->lives, as->node, as->parent) : NULL;

    x->again = (struct death_again){.known = true, .named = named, .as = as->who, .mono_ns = e->mono_ns};
    if (by) {
        x->again.by = by->who;
        x->again.by_known = true;
    }
    postpone_settling(x, e->mono_ns);
}

/*
 * Returns the exit that the new process `child` of `by` replaces: the dead process had the same initial function, `by`
 * survived or caused its exit, and its replacement is not known yet. If several exits qualify, returns the oldest one.
 */
static struct death *replaced_exit(struct deaths *d, const struct life *by, const struct life *child)
{
    struct death *x = d->newest, *found = NULL;

    for (unsigned i = 0; x && i < NEAR; i++, x = x->older) {
        const bool touched = (x->cause == DEATH_SIGNAL && x->by_node == by->node && x->by.id == by->who.id) ||
                             has_survived(x, by->node, by->who.id);
        if (touched && x->node == by->node && !x->normal && !x->again.known && x->initial &&
            x->initial == child->initial && x->arity == child->arity)
            found = x;
    }
    return found;
}

static void on_spawn(struct deaths *d, const struct event *e)
{
    const bool here = e->kind == ETW_SPAWN;
    uint64_t other;
    struct death *x;

    if (!wire_pid(e->terms.at, &other))
        return;
    const uint64_t parent = here ? e->who->id : other, child = here ? other : e->who->id;
    lives_get(&d->lives, e, parent);
    struct life *l = lives_get(&d->lives, e, child);
    const bool known = l->parent;
    l->parent = parent;
    lives_initial(&d->lives, l, e, wire_skip(e->terms.at));
    const struct life *by = lives_find(&d->lives, e->node, parent);
    if (!known && !l->gets_name && by && by->bereaved && (x = replaced_exit(d, by, l)))
        set_again(d, x, e, l, false);
}

static void on_register(struct deaths *d, const struct event *e)
{
    struct life *l = lives_get(&d->lives, e, e->who->id);
    struct death *x;
    struct raw name;

    if (!wire_atom(&e->env, e->terms.at, &name))
        return;
    if (!l->who.name_len)
        l->who.name_len = tracee_registered(l->who.name, name);
    x = named_exit(d, e->node, (struct raw){0}, process_name_plain(raw_view(name)));
    if (x && x->who.id != l->who.id && !x->again.named)
        set_again(d, x, e, l, true);
}

/* Adds the name to the exit of a process, if missing. A process loses its name after the event of its exit. */
static void on_unregister(struct deaths *d, const struct event *e)
{
    struct life *l = lives_find(&d->lives, e->node, e->who->id);
    struct raw name;

    if (l && l->death && !l->death->who.name_len && wire_atom(&e->env, e->terms.at, &name))
        l->death->who.name_len = tracee_registered(l->death->who.name, name);
}

/* ---- calls ---- */

/*
 * Keeps a call of exit or raise. The process may end by this call, or catch the exception and go on. If several calls
 * have the same reason, keeps the first one, because its place is where the exception began.
 */
static void on_own_exit(struct deaths *d, const struct event *e, const uint8_t *reason, const uint8_t *place)
{
    struct life *l = lives_get(&d->lives, e, e->who->id);
    const struct exit_reason key = exit_reason_of(&e->env, reason);

    if (!l->own || !exit_reason_same(&l->own->reason, &key))
        life_exit_keep(&l->own, e, reason, place);
}

static void on_sent_exit(struct deaths *d, const struct event *e)
{
    struct life_away away = {0};
    uint64_t id = 0;

    if (remote_pid(e->terms.at, &away) || (wire_pid(e->terms.at, &id) && id & ETW_TRACEE_PORT && (away.id = id) != 0)) {
        struct death_order *o = &d->orders[d->norders++ % DEATH_ORDERS];
        o->to = away;
        o->node = e->node;
        life_exit_keep(&o->call, e, wire_skip(e->terms.at), e->caller);
        set_late_cause(d, o);
        return;
    }
    if (!id)
        return;
    lives_get(&d->lives, e, e->who->id)->bereaved = true;
    struct life *l = lives_get(&d->lives, e, id);
    if (!l->death)
        life_exit_keep(&l->sent, e, wire_skip(e->terms.at), e->caller);
}

/* Returns the first frame of a stack, which is also an argument of raise/3; NULL: none. */
static const uint8_t *first_frame(const uint8_t *stack)
{
    return *stack == ETW_T_LIST && wire_list(&stack) ? wire_list_next(&stack) : NULL;
}

static void on_call(struct deaths *d, const struct event *e)
{
    if (!e->fun || !raw_is(e->fun->module, "erlang") || e->nterms != e->arity || e->flags & ETW_F_ARITY)
        return;
    if (raw_is(e->fun->name, "exit") && e->arity == 1)
        on_own_exit(d, e, e->terms.at, e->stack ? first_frame(e->stack) : e->caller);
    else if ((raw_is(e->fun->name, "exit") || raw_is(e->fun->name, "exit_signal")) && e->arity >= 2)
        on_sent_exit(d, e);
    else if (raw_is(e->fun->name, "raise") && e->arity == 3 && wire_is_atom(&e->env, e->terms.at, "exit"))
        on_own_exit(d, e, wire_skip(e->terms.at), first_frame(wire_skip(wire_skip(e->terms.at))));
}

/*
 * Finishes all trees of a node that was lost or has restarted, and forgets its processes. No later event is about these
 * processes.
 */
static void on_node(struct deaths *d, const struct event *e)
{
    for (struct death *x = d->oldest; x; x = x->newer)
        if (x->node->index == e->node->index)
            root_of(x)->settled = INT64_MIN;
    settle_trees(d);
    *now_of(d, e->node) = INT64_MIN;
    lives_forget_node(&d->lives, e->node);
}

void deaths_event(struct deaths *d, const struct event *e)
{
    if (e->kind == ETW_DOWN || e->kind == ETW_UP) {
        on_node(d, e);
        return;
    }
    if (e->shift_ns != d->shift[e->node->index]) { /* the node has begun a further run */
        on_node(d, e);
        d->shift[e->node->index] = e->shift_ns;
    }
    if (!event_is_traced(e))
        return;
    advance_now(d, e->node, e->mono_ns);
    settle_trees(d);
    if (!e->who || e->who->id & ETW_TRACEE_PORT)
        return;
    switch (e->kind) {
    case ETW_EXIT:
        on_exited(d, e);
        break;
    case ETW_LINK:
    case ETW_GETTING_LINKED:
        on_linked(d, e);
        break;
    case ETW_UNLINK:
    case ETW_GETTING_UNLINKED:
        on_unlinked(d, e);
        break;
    case ETW_SPAWN:
    case ETW_SPAWNED:
        on_spawn(d, e);
        break;
    case ETW_REGISTER:
        on_register(d, e);
        break;
    case ETW_UNREGISTER:
        on_unregister(d, e);
        break;
    case ETW_RECEIVE:
        on_monitored(d, e);
        break;
    case ETW_CALL:
        on_call(d, e);
        break;
    default:
        break;
    }
}

static void node_passed(struct deaths *d, const struct event_node *node)
{
    if (node->passed)
        advance_now(d, node, node->passed_mono_ns);
}

bool deaths_passed(struct deaths *d)
{
    for (struct death *x = d->oldest; x; x = x->newer) {
        node_passed(d, x->node);
        if (root_of(x)->settled > *now_of(d, x->node))
            break;
    }
    settle_trees(d);
    return d->oldest;
}

void deaths_end(struct deaths *d)
{
    while (d->oldest)
        finish_tree(d, root_of(d->oldest));
}

void deaths_release(struct deaths *d)
{
    while (d->oldest)
        forget_tree(d, root_of(d->oldest));
    for (unsigned i = 0; i < DEATH_ORDERS; i++)
        free(d->orders[i].call);
    lives_release(&d->lives);
}
