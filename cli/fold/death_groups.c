/* SPDX-License-Identifier: Apache-2.0 */
#include "death_groups.h"

#include <stdlib.h>

#include "../ground/mem.h"

/* An exit is shown in full if the previous exit of its group was at least this long before. */
#define AGAIN_NS INT64_C(10000000000)
#define FIRST_PAUSE_NS                                                                                                 \
    INT64_C(2000000000) /* pause before a group's first line about folded exits; each later pause is twice as long */
#define PAUSE_MOST_NS INT64_C(64000000000)

void death_groups_release(struct death_groups *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t r = 0; r < s->items[i].nreasons; r++)
            free(s->items[i].reasons[r].term);
    free(s->items);
    table_release(&s->by_label);
}

static struct death_group label_of(const struct death *x)
{
    struct death_group g = {.node = x->node};

    if (x->who.name_len) {
        g.label = LABEL_NAME;
        g.who = x->who;
    } else if (x->initial) {
        g.label = LABEL_FUNCTION;
        g.initial = x->initial;
        g.arity = x->arity;
    } else if (x->spawner.text_len) {
        g.label = LABEL_SPAWNER;
        g.who = x->spawner;
    } else {
        g.label = LABEL_REASON;
        g.reason = x->key;
    }
    return g;
}

static struct str label_text(const struct death_group *g)
{
    return g->who.name_len ? (struct str){g->who.name, g->who.name_len} : (struct str){g->who.text, g->who.text_len};
}

static uint32_t hash_of(const struct death_group *g)
{
    uint32_t hash =
        hash_byte(hash_byte(HASH_BEGIN, (unsigned char)g->label), (unsigned char)(g->node ? g->node->index : 0));

    switch (g->label) {
    case LABEL_NAME:
    case LABEL_SPAWNER:
        return hash_text(hash, label_text(g));
    case LABEL_FUNCTION:
        return hash_byte(hash ^ g->initial->hash, g->arity);
    case LABEL_REASON:
        return hash ^ g->reason.hash;
    case LABEL_OTHERS:
        break;
    }
    return hash;
}

static bool same_label(const struct death_group *a, const struct death_group *b)
{
    if (a->label != b->label || a->node != b->node)
        return false;
    switch (a->label) {
    case LABEL_NAME:
    case LABEL_SPAWNER:
        return str_same(label_text(a), label_text(b));
    case LABEL_FUNCTION:
        return a->initial == b->initial && a->arity == b->arity;
    case LABEL_REASON:
        return exit_reason_same(&a->reason, &b->reason);
    case LABEL_OTHERS:
        break;
    }
    return true;
}

static struct death_group *find_or_add_group(struct death_groups *s, struct death_group label)
{
    const uint32_t hash = hash_of(&label);

    for (uint32_t step = 0, i; (i = table_next(&s->by_label, hash, &step)) != TABLE_NONE;)
        if (same_label(&s->items[i], &label))
            return &s->items[i];
    if (s->n >= DEATH_GROUPS && label.label != LABEL_OTHERS)
        return find_or_add_group(s, (struct death_group){.label = LABEL_OTHERS});
    s->items = mem_grow(s->items, &s->cap, s->n + 1, sizeof(*s->items));
    s->items[s->n] = label;
    table_add(&s->by_label, hash, (uint32_t)s->n);
    return &s->items[s->n++];
}

/*
 * Counts the reason of an exit. Returns true if the group stores the reason now for the first time. A reason beyond
 * DEATH_REASONS is only counted.
 */
static bool add_reason(struct death_group *g, const struct death *x)
{
    for (size_t i = 0; i < g->nreasons; i++)
        if (exit_reason_same(&g->reasons[i].key, &x->key)) {
            g->reasons[i].times++;
            return false;
        }
    if (g->nreasons == DEATH_REASONS) {
        g->other_reasons++;
        return false;
    }
    struct death_reason *r = &g->reasons[g->nreasons++];
    *r = (struct death_reason){.key = x->key, .term = mem_alloc(x->reason_len), .times = 1};
    memcpy(r->term, x->reason, x->reason_len);
    return true;
}

bool death_groups_add(struct death_groups *s, const struct death *root, struct death_group **ret)
{
    const int64_t now_ns = root->mono_ns + root->shift_ns;
    struct death_group *g = *ret = find_or_add_group(s, label_of(root));
    const bool known = g->times && root->node == g->node && now_ns - g->last_ns < AGAIN_NS;
    const bool fresh = add_reason(g, root) || root->others > g->most_others;

    if (!g->times)
        g->first_ns = now_ns;
    g->times++;
    g->last_ns = now_ns;
    g->last_wall_ns = root->wall_ns;
    g->others += root->others;
    g->most_others = MAX(g->most_others, root->others);
    g->restarts += root->again.known;
    if (root->again.by_known)
        g->restarter = root->again.by;
    if (!known) {
        g->pause_ns = FIRST_PAUSE_NS;
        g->due_ns = root->wall_ns + FIRST_PAUSE_NS;
    }
    if (!known || fresh)
        return true;
    if (!s->folding++ || g->due_ns < s->due_ns)
        s->due_ns = g->due_ns;
    s->folding -= g->folded > 0;
    g->folded++;
    return false;
}

void death_groups_add_quiet(struct death_groups *s, const struct death *root)
{
    const uint64_t n = 1 + root->others;
    struct death_group label = label_of(root);

    label.reason = (struct exit_reason){0};
    find_or_add_group(s, label)->quiet += n;
    s->quiet += n;
}

static void tell_group(struct death_groups *s, struct death_group *g,
                       void (*tell)(void *ctx, const struct death_group *g), void *ctx)
{
    tell(ctx, g);
    g->folded = 0;
    g->pause_ns = MIN(2 * g->pause_ns, PAUSE_MOST_NS);
    g->due_ns += g->pause_ns;
    s->folding--;
}

void death_groups_tell(struct death_groups *s, int64_t wall_ns, void (*tell)(void *ctx, const struct death_group *g),
                       void *ctx)
{
    if (!s->folding || wall_ns < s->due_ns)
        return;
    s->due_ns = INT64_MAX;
    for (size_t i = 0; i < s->n; i++) {
        struct death_group *g = &s->items[i];
        if (g->folded && g->due_ns <= wall_ns)
            tell_group(s, g, tell, ctx);
        else if (g->folded)
            s->due_ns = MIN(s->due_ns, g->due_ns);
    }
}

void death_groups_passed(struct death_groups *s, void (*tell)(void *ctx, const struct death_group *g), void *ctx)
{
    for (size_t i = 0; i < s->n && s->folding; i++) {
        struct death_group *g = &s->items[i];
        if (g->folded && g->node && g->node->passed && g->due_ns <= g->node->passed_wall_ns)
            tell_group(s, g, tell, ctx);
    }
}

size_t death_reasons_sorted(const struct death_group *g, const struct death_reason *ret[DEATH_REASONS])
{
    for (size_t i = 0; i < g->nreasons; i++) {
        size_t at = i;
        for (; at && ret[at - 1]->times < g->reasons[i].times; at--)
            ret[at] = ret[at - 1];
        ret[at] = &g->reasons[i];
    }
    return g->nreasons;
}

size_t death_groups_quietest(const struct death_groups *s, const struct death_group **ret, size_t most)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct death_group *g = &s->items[i];
        size_t at = n < most ? n : most;
        while (at && ret[at - 1]->quiet < g->quiet)
            at--;
        if (!g->quiet || at == most)
            continue;
        memmove(ret + at + 1, ret + at, (MIN(n, most - 1) - at) * sizeof(*ret));
        ret[at] = g;
        n = MIN(n + 1, most);
    }
    return n;
}
