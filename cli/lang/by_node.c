/* SPDX-License-Identifier: Apache-2.0 */
#include "by_node.h"

#include <string.h>

#include "where_steps.h"

static int node_place(const struct where *w)
{
    static const struct {
        enum property property;
        int place;
    } places[] = {
        {PROPERTY_ret, ETW_BY_RET},  {PROPERTY_class, ETW_BY_CLASS}, {PROPERTY_reason, ETW_BY_REASON},
        {PROPERTY_m, ETW_BY_MODULE}, {PROPERTY_f, ETW_BY_FUNCTION},  {PROPERTY_msg, ETW_BY_MSG},
        {PROPERTY_to, ETW_BY_TO},
    };

    if (w->type != WHERE_NAME)
        return ETW_BY_NO_PLACE;
    if (w->property == PROPERTY_args)
        return w->index;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (places[i].property == w->property)
            return places[i].place;
    return ETW_BY_NO_PLACE;
}

/*
 * Parses an expression that is a place of the event (such as an argument), or nested calls of element/2 on a place.
 * Sets the place and the path of indices. Returns false for any other expression, and if the calls are nested too
 * deeply.
 */
static bool part_of_place(const struct where *w, struct by_node_part *ret)
{
    if ((ret->place = node_place(w)))
        return true;
    if (w->type != WHERE_CALL || w->fn != FN_ELEMENT || w->items[0]->type != WHERE_CONST)
        return false;
    const term_t index = w->items[0]->constant;
    if (index->type != TERM_INT || index->integer < 1 || index->integer > UINT16_MAX ||
        !part_of_place(w->items[1], ret) || ret->deep == ETW_BY_DEEP)
        return false;
    ret->path[ret->deep++] = (int)index->integer;
    return true;
}

/* Returns true if the match specification collects this property and nothing else. */
static bool collects_only(const struct spec *s, enum property property)
{
    if (property == PROPERTY_caller)
        return s->npack == 1 && s->pack[0] == PACK_CALLER && s->nclauses == 1;
    return (property == PROPERTY_from || property == PROPERTY_from_node) && spec_packs_sender_only(s);
}

/* Returns true if the property is the traced process: the sender of a send, the receiver of a receive. */
static bool is_tracee(const struct spec *s, enum property property)
{
    return property == PROPERTY_pid || (property == PROPERTY_from && s->kind == SPEC_SEND) ||
           (property == PROPERTY_to && s->kind == SPEC_RECV);
}

/*
 * Returns how the node finds the value of a property that is a key. ETW_BY_TERM means a term of the event; the caller
 * must then find its place with part_of_place().
 */
static enum etw_by name_on_node(const struct spec *s, enum property property)
{
    const bool calls = s->kind == SPEC_CALL;

    if (is_tracee(s, property))
        return ETW_BY_TRACEE;
    if (collects_only(s, property))
        return ETW_BY_RESULT;
    if (property == PROPERTY_node)
        return ETW_BY_NOTHING;
    if (property == PROPERTY_type && !s->by->any_late)
        return ETW_BY_KIND;
    return property == PROPERTY_a && calls     ? ETW_BY_ARITY
           : property == PROPERTY_mfa && calls ? ETW_BY_MFA
                                               : ETW_BY_TERM;
}

static bool key_of(const struct spec *s, const struct by_key *key, struct by_node_part *ret)
{
    const struct where *w = key->value;

    *ret = (struct by_node_part){.what = ETW_BY_TERM};
    if (key->tag)
        ret->what = ETW_BY_TAG;
    else if (w->type == WHERE_NAME)
        ret->what = name_on_node(s, w->property);
    return (ret->what != ETW_BY_TERM && ret->what != ETW_BY_TAG) || part_of_place(w, ret);
}

static bool same_place(const struct by_node_part *a, const struct by_node_part *b)
{
    return a->place == b->place && a->deep == b->deep && !memcmp(a->path, b->path, sizeof(a->path));
}

static bool add_value(struct by_node *b, const struct by_aggregate *a, size_t *ret)
{
    struct by_node_part part = {.what = a->kind >= BY_HIST ? ETW_BY_BUCKETS : ETW_BY_TERM};

    if (a->value->type == WHERE_NAME && a->value->property == PROPERTY_dur)
        part.place = ETW_BY_DUR;
    else if (!part_of_place(a->value, &part))
        return false;
    for (*ret = 0; *ret < b->nvalues; ++*ret)
        if (same_place(&b->values[*ret], &part)) {
            b->values[*ret].what = MAX(b->values[*ret].what, part.what);
            return true;
        }
    if (b->nvalues == ETW_BY_VALUES)
        return false;
    b->values[b->nvalues++] = part;
    return true;
}

/* The actions that make no difference if events are only counted. */
#define SILENT_ACTIONS (ACT_DROP | ACT_PROJECT)

/* Adds a key. Keeps the keys whose values come with the result behind all other keys. */
static void add_key(struct by_node *b, size_t key, const struct by_node_part *part)
{
    size_t at = b->nkeys++;

    for (; !etw_by_is_late((unsigned)part->place) && at && etw_by_is_late((unsigned)b->keys[at - 1].place); at--) {
        b->keys[at] = b->keys[at - 1];
        b->key_of[at] = b->key_of[at - 1];
    }
    b->keys[at] = *part;
    b->key_of[at] = key;
}

static const char *why_not(const struct where *w, const char *computed, const char *unknown)
{
    return w->type == WHERE_NAME ? unknown : computed;
}

/*
 * Returns true if the node can evaluate the filter. A filter must not test the size of events, which the node does not
 * know: it does not encode events that it only counts.
 */
static bool filters_on_node(const struct spec *s)
{
    struct buf steps = {0};
    const bool can = !s->nwhere || where_steps_of_ends(s->where, s->nwhere, &steps);

    buf_release(&steps);
    return can;
}

static const char *why_not_on_node(const struct spec *s)
{
    if (s->kind == SPEC_EVENT)
        return "only calls and messages are counted on the node";
    if (s->raw || s->inside.len || s->root)
        return s->raw ? "it has a match specification of its own" : "it is traced inside of roots";
    if (!filters_on_node(s))
        return "the node cannot evaluate its filter after where";
    for (size_t i = 0; i < s->nclauses; i++) {
        const unsigned actions = s->clauses[i].actions & ~(unsigned)SILENT_ACTIONS;
        if (actions & ~(unsigned)ACT_RETURN || (actions && !s->by->any_late && !s->nwhere))
            return "it has an action";
    }
    return NULL;
}

bool by_node_of(const struct spec *s, struct by_node *ret, const char **ret_why)
{
    const struct spec_by *by = s->by;

    memset(ret, 0, sizeof(*ret)); /* also clears the padding: plans are compared by their bytes */
    ret->kind = s->kind;
    if ((*ret_why = why_not_on_node(s)))
        return false;
    for (size_t i = 0; i < by->nkeys; i++) {
        struct by_node_part part;
        if (!key_of(s, &by->keys[i], &part)) {
            *ret_why = why_not(by->keys[i].value, "a key is computed", "the node has no such key");
            return false;
        }
        add_key(ret, i, &part);
    }
    for (size_t i = 0; i < by->naggregates; i++)
        if (by->aggregates[i].value && !add_value(ret, &by->aggregates[i], &ret->value_of[i])) {
            *ret_why = ret->nvalues == ETW_BY_VALUES
                           ? "it has too many values"
                           : why_not(by->aggregates[i].value, "a value is computed", "the node has no such value");
            return false;
        }
    return true;
}
