/* SPDX-License-Identifier: Apache-2.0 */
#include "lives.h"

#include <stdlib.h>

#include "../events/mfa.h"
#include "../ground/mem.h"

void lives_init(struct lives *s)
{
    *s = (struct lives){.free = LIFE_NONE, .oldest = LIFE_NONE, .newest = LIFE_NONE, .free_link = LIFE_NONE};
    funs_init(&s->funs);
}

void lives_release(struct lives *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->items[i].own);
        free(s->items[i].sent);
    }
    free(s->items);
    free(s->links);
    table_release(&s->by_tracee);
    funs_release(&s->funs);
}

/* ---- links ---- */

static unsigned side_of(const struct life_link *k, uint32_t life)
{
    return k->life[1] == life;
}

static void put_into_list(struct lives *s, uint32_t link, unsigned side)
{
    struct life_link *k = &s->links[link];
    struct life *l = &s->items[k->life[side]];

    k->prev[side] = LIFE_NONE;
    k->next[side] = l->links;
    if (l->links != LIFE_NONE)
        s->links[l->links].prev[side_of(&s->links[l->links], k->life[side])] = link;
    l->links = link;
}

static void take_from_list(struct lives *s, uint32_t link, unsigned side)
{
    struct life_link *k = &s->links[link];
    const uint32_t life = k->life[side], next = k->next[side], prev = k->prev[side];

    if (next != LIFE_NONE)
        s->links[next].prev[side_of(&s->links[next], life)] = prev;
    if (prev != LIFE_NONE)
        s->links[prev].next[side_of(&s->links[prev], life)] = next;
    else
        s->items[life].links = next;
}

static void remove_link(struct lives *s, uint32_t link)
{
    take_from_list(s, link, 0);
    take_from_list(s, link, 1);
    s->links[link].next[0] = s->free_link;
    s->free_link = link;
}

static uint32_t number_of(const struct lives *s, const struct life *l)
{
    return (uint32_t)(l - s->items);
}

static uint32_t next_link(const struct lives *s, uint32_t link, uint32_t life)
{
    return s->links[link].next[side_of(&s->links[link], life)];
}

/*
 * Finds the link between two processes. Walks the lists of both at once, so that the shorter list bounds the time (a
 * supervisor may have many children).
 */
static uint32_t find_link(const struct lives *s, uint32_t a, uint32_t b)
{
    uint32_t x = s->items[a].links, y = s->items[b].links;

    while (x != LIFE_NONE && y != LIFE_NONE) {
        if (s->links[x].life[!side_of(&s->links[x], a)] == b)
            return x;
        if (s->links[y].life[!side_of(&s->links[y], b)] == a)
            return y;
        x = next_link(s, x, a);
        y = next_link(s, y, b);
    }
    return LIFE_NONE;
}

void lives_link(struct lives *s, struct life *a, struct life *b)
{
    const uint32_t from = number_of(s, a), to = number_of(s, b);
    uint32_t link = s->free_link;

    if (from == to || find_link(s, from, to) != LIFE_NONE)
        return;
    if (link != LIFE_NONE) {
        s->free_link = s->links[link].next[0];
    } else if (s->nlinks == LIVES_LINKS) {
        s->unlinked++;
        return;
    } else {
        s->links = mem_grow(s->links, &s->links_cap, s->nlinks + 1, sizeof(*s->links));
        link = (uint32_t)s->nlinks++;
    }
    s->links[link] = (struct life_link){.life = {from, to}};
    put_into_list(s, link, 0);
    put_into_list(s, link, 1);
}

void lives_unlink(struct lives *s, struct life *a, struct life *b)
{
    const uint32_t link = find_link(s, number_of(s, a), number_of(s, b));

    if (link != LIFE_NONE)
        remove_link(s, link);
}

bool lives_linked(struct lives *s, const struct life *l, bool (*each)(void *ctx, const struct life *other), void *ctx)
{
    const uint32_t number = number_of(s, l);

    for (uint32_t k = l->links; k != LIFE_NONE; k = next_link(s, k, number))
        if (each(ctx, &s->items[s->links[k].life[!side_of(&s->links[k], number)]]))
            return true;
    return false;
}

/* ---- the table ---- */

static void take_out(struct lives *s, struct life *l)
{
    if (l->older != LIFE_NONE)
        s->items[l->older].newer = l->newer;
    else
        s->oldest = l->newer;
    if (l->newer != LIFE_NONE)
        s->items[l->newer].older = l->older;
    else
        s->newest = l->older;
}

static void put_newest(struct lives *s, struct life *l)
{
    l->older = s->newest;
    l->newer = LIFE_NONE;
    if (s->newest != LIFE_NONE)
        s->items[s->newest].newer = number_of(s, l);
    else
        s->oldest = number_of(s, l);
    s->newest = number_of(s, l);
}

void lives_forget(struct lives *s, struct life *l)
{
    while (l->links != LIFE_NONE)
        remove_link(s, l->links);
    free(l->own);
    free(l->sent);
    l->own = l->sent = NULL;
    take_out(s, l);
    table_remove(&s->by_tracee, hash_tracee(l->who.id, l->node->index), number_of(s, l));
    l->newer = s->free;
    s->free = number_of(s, l);
}

void lives_forget_node(struct lives *s, const struct event_node *node)
{
    for (uint32_t i = s->oldest, next; i != LIFE_NONE; i = next) {
        next = s->items[i].newer;
        if (s->items[i].node->index == node->index)
            lives_forget(s, &s->items[i]);
    }
}

struct life *lives_find(struct lives *s, const struct event_node *node, uint64_t id)
{
    for (uint32_t step = 0, i; (i = table_next(&s->by_tracee, hash_tracee(id, node->index), &step)) != TABLE_NONE;)
        if (s->items[i].who.id == id && s->items[i].node->index == node->index)
            return &s->items[i];
    return NULL;
}

static struct life *new_life(struct lives *s, const struct event *e, uint64_t id)
{
    const struct event_node *node = e->node;

    if (s->free == LIFE_NONE && s->n == LIVES_MAX) {
        lives_forget(s, &s->items[s->oldest]);
        s->forgotten++;
    }
    uint32_t i = s->free;
    if (i != LIFE_NONE) {
        s->free = s->items[i].newer;
    } else {
        s->items = mem_grow(s->items, &s->cap, s->n + 1, sizeof(*s->items));
        i = (uint32_t)s->n++;
    }
    s->items[i] = (struct life){.who = event_tracee(e, id), .node = node, .links = LIFE_NONE};
    table_add(&s->by_tracee, hash_tracee(id, node->index), i);
    put_newest(s, &s->items[i]);
    return &s->items[i];
}

struct life *lives_get(struct lives *s, const struct event *e, uint64_t id)
{
    const struct tracee *known = e->who && e->who->id == id ? e->who : event_who(e, id);
    struct life *l = lives_find(s, e->node, id);

    if (l) {
        take_out(s, l);
        put_newest(s, l);
    } else {
        l = new_life(s, e, id);
    }
    if (known && known->name_len)
        l->who = *known;
    return l;
}

/* ---- initial functions ---- */

/* Returns the element `index` (from 0) of a list, or NULL. */
static const uint8_t *list_element(const uint8_t *list, unsigned index)
{
    const uint8_t *el = NULL;

    if (*list != ETW_T_LIST || !wire_list(&list))
        return NULL;
    for (unsigned i = 0; i <= index && (el = wire_list_next(&list)); i++)
        continue;
    return el;
}

/* Sets the initial function. Leaves it unknown if the arguments were cut, because the arity is then unknown. */
static void set_initial(struct lives *s, struct life *l, const struct mfa *m)
{
    bool cut;
    const int64_t arity = mfa_arity(m, &cut);

    if (cut || arity < 0 || arity > UINT8_MAX)
        return;
    l->initial = funs_get(&s->funs, m->module, m->function);
    l->arity = (uint8_t)arity;
}

/* Reads the callback module of a supervisor, which is a gen_server with the argument {Name, Module, Args}. */
static bool supervisor_module(const struct event *e, const uint8_t *args, struct raw *ret)
{
    uint32_t arity;
    const uint8_t *first;

    return args && wire_tuple(args, &arity, &first) >= 2 && arity == 3 && wire_atom(&e->env, wire_skip(first), ret);
}

/* Returns true if a name is {local, Name}. */
static bool is_local(const struct event *e, const uint8_t *name)
{
    uint32_t arity;
    const uint8_t *first;

    return wire_tuple(name, &arity, &first) >= 1 && wire_is_atom(&e->env, first, "local");
}

/*
 * Reads the callback module from the arguments of gen:init_it: [Behaviour, Starter, Parent, Module, Args, Options],
 * with {local, Name}, {global, Name} or {via, Registry, Name} before Module if the process registers itself. Only a
 * local name is registered by an event.
 */
static bool callback_module(const struct event *e, const uint8_t *args, struct raw *ret, bool *ret_local)
{
    const uint8_t *module = list_element(args, 3);
    unsigned at = 3;
    struct raw inner;

    *ret_local = false;
    if (module && !wire_is_atom_tag(*module)) {
        *ret_local = is_local(e, module);
        module = list_element(args, at = 4);
    }
    if (!module || !wire_atom(&e->env, module, ret))
        return false;
    if (raw_is(*ret, "supervisor") && supervisor_module(e, list_element(args, at + 1), &inner))
        *ret = inner;
    return true;
}

void lives_initial(struct lives *s, struct life *l, const struct event *e, const uint8_t *at)
{
    struct mfa mfa, inner = {0};
    const uint8_t *module, *function, *args;
    struct raw callback;

    if (!mfa_read(e, at, &mfa, NULL))
        return;
    if (!raw_is(mfa.module, "proc_lib") || !raw_is(mfa.function, "init_p") || !mfa.args) {
        if (!raw_is(mfa.module, "erlang") || !raw_is(mfa.function, "apply"))
            set_initial(s, l, &mfa);
        return;
    }
    module = list_element(mfa.args, 2), function = list_element(mfa.args, 3), args = list_element(mfa.args, 4);
    if (!module || !function || !args || !wire_atom(&e->env, module, &inner.module) ||
        !wire_atom(&e->env, function, &inner.function))
        return;
    inner.args = args;
    if (raw_is(inner.module, "gen") && raw_is(inner.function, "init_it")) {
        if (callback_module(e, args, &callback, &l->gets_name))
            set_initial(s, l, &(struct mfa){.module = callback, .function = raw_text("init"), .arity = 1});
        return;
    }
    set_initial(s, l, &inner);
}

/* ---- calls of exit ---- */

void life_exit_keep(struct life_exit **keep, const struct event *e, const uint8_t *reason, const uint8_t *place)
{
    struct buf bytes = {0};

    if (place && !wire_copy(&bytes, &e->env, (struct wire){place, wire_skip(place)}, LIFE_PLACE - 1))
        buf_clear(&bytes);
    free(*keep);
    struct life_exit *x = *keep = mem_alloc(sizeof(*x) + bytes.len);
    *x = (struct life_exit){.by = *e->who,
                            .mono_ns = e->mono_ns,
                            .reason = exit_reason_of(&e->env, reason),
                            .place_len = (uint8_t)bytes.len};
    memcpy(x->place, bytes.data ? bytes.data : "", bytes.len);
    buf_release(&bytes);
}
