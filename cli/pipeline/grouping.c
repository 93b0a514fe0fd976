/* SPDX-License-Identifier: Apache-2.0 */
#include "grouping.h"

#include <stdlib.h>

#include "../erlang/wire_order.h"
#include "../fold/pairing.h"
#include "../fold/row_figures.h"
#include "../ground/mem.h"
#include "../lang/by_node.h"
#include "probes.h"

/* A clause `by` and its table. Clauses with the same text share a table. */
struct clause {
    const struct spec_by *by;
    struct groups *table;
};

struct grouping {
    const struct spec_by *all;
    struct by_node node;            /* which keys and values the rows of the nodes have */
    const struct spec *counted;     /* one of the specs that the nodes count */
    const struct clause *node_rows; /* the clause that the nodes count by; NULL: the nodes do not count */
    struct clause *clauses;
    struct grouping_row *changed; /* the rows that the last event has changed; room for one row of each clause */
    size_t n, cap, nchanged, changed_cap;
    struct groups **tables;
    size_t ntables, tables_cap;
    struct wheres *wheres;
    struct buf key;
    bool pairs;
};

static struct groups *grouping_table(struct grouping *g, const struct spec_by *by)
{
    for (size_t i = 0; i < g->ntables; i++)
        if (str_same(g->tables[i]->by->text, by->text))
            return g->tables[i];
    g->tables = mem_grow(g->tables, &g->tables_cap, g->ntables + 1, sizeof(struct groups *));
    return g->tables[g->ntables++] = groups_new(by);
}

static const struct clause *clause_of(const struct grouping *g, const struct spec_by *by)
{
    size_t i = 0;

    while (i < g->n && g->clauses[i].by != by)
        i++;
    return i < g->n ? &g->clauses[i] : NULL;
}

static bool add_clause(struct grouping *g, const struct spec_by *by, struct err *e)
{
    if (clause_of(g, by))
        return true;
    for (size_t i = 0; i < by->nkeys; i++)
        if (!wheres_prepare(g->wheres, by->keys[i].value, e))
            return false;
    for (size_t i = 0; i < by->naggregates; i++)
        if (by->aggregates[i].value && !wheres_prepare(g->wheres, by->aggregates[i].value, e))
            return false;
    g->clauses = mem_grow(g->clauses, &g->cap, g->n + 1, sizeof(*g->clauses));
    g->changed = mem_grow(g->changed, &g->changed_cap, g->n + 1, sizeof(*g->changed));
    g->clauses[g->n++] = (struct clause){by, grouping_table(g, by)};
    g->pairs = g->pairs || by->any_late;
    return true;
}

struct grouping *grouping_new(const struct spec_by *all)
{
    struct grouping *g = mem_zalloc(sizeof(*g));

    g->all = all;
    g->wheres = wheres_new(TERMS_AUTO);
    return g;
}

void grouping_free(struct grouping *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->ntables; i++)
        groups_free(g->tables[i]);
    free(g->tables);
    free(g->clauses);
    free(g->changed);
    wheres_free(g->wheres);
    buf_release(&g->key);
    free(g);
}

bool grouping_specs(struct grouping *g, const struct spec *const *specs, size_t n, struct err *e)
{
    const char *why;

    g->node_rows = NULL; /* it is a clause of earlier specs, and mem_grow() may move the clauses */
    if (g->all && !add_clause(g, g->all, e))
        return false;
    for (size_t i = 0; i < n; i++)
        if (specs[i]->by && !add_clause(g, specs[i]->by, e))
            return false;
    if (n && specs[0]->by && by_node_of(specs[0], &g->node, &why)) {
        g->node_rows = clause_of(g, specs[0]->by);
        g->counted = specs[0];
    }
    return true;
}

void grouping_clear(struct grouping *g)
{
    for (size_t i = 0; i < g->ntables; i++)
        groups_clear(g->tables[i]);
}

bool grouping_is_empty(const struct grouping *g)
{
    return !g->n;
}

bool grouping_pairs(const struct grouping *g)
{
    return g->pairs;
}

struct groups *const *grouping_tables(const struct grouping *g, size_t *ret_n)
{
    *ret_n = g->ntables;
    return g->tables;
}

/* ---- the shape of a term ---- */

/* Returns the first element of a tuple, or NULL if the tuple is empty or its first element was cut. */
static const uint8_t *first_of(const uint8_t *at, uint32_t *ret_arity)
{
    const uint8_t *first;

    return wire_tuple(at, ret_arity, &first) > 0 ? first : NULL;
}

/* Returns the request in a message to a gen_server; NULL for another term. */
static const uint8_t *request_in(const struct term_env *env, const uint8_t *at)
{
    uint32_t arity;
    const uint8_t *first = first_of(at, &arity), *last = first;

    if (!first || !wire_is_atom(env, first, arity == 3 ? "$gen_call" : "$gen_cast") || arity < 2 || arity > 3)
        return NULL;
    for (uint32_t i = 1; i < arity; i++) {
        last = wire_skip(last);
        if (*last == ETW_T_CUT)
            return NULL;
    }
    return last;
}

/* Returns the module of an Elixir struct; NULL for another term. */
static const uint8_t *struct_of(const struct term_env *env, const uint8_t *at)
{
    uint32_t pairs;
    const uint8_t *key;
    const int64_t known = wire_map(at, &pairs, &key);

    for (int64_t i = 0; i < known; i++) {
        const uint8_t *value = wire_skip(key);
        if (wire_is_atom(env, key, "__struct__") && wire_is_atom_tag(*value))
            return value;
        key = wire_skip(value);
    }
    return NULL;
}

/*
 * Returns the type of a large binary or bit string; NULL for another term. The node captures such a term only as a text
 * with its first bytes.
 */
static const char *type_of_begun(const uint8_t *at)
{
    static const char end[] = ETW_TEXT_BITS_END;
    const size_t len = *at == ETW_T_TEXT && at[1] == ETW_TEXT_OTHER ? wire_u16(at + 2) : 0;

    if (len < sizeof end || memcmp(at + 4, "<<", 2))
        return NULL;
    return memcmp(at + 4 + len - (sizeof end - 1), end, sizeof end - 1) ? "binary()" : "bitstring()";
}

static const char *type_name(const uint8_t *at)
{
    static const char *const names[] = {
        [WIRE_NUMBER] = "integer()", [WIRE_ATOM] = "atom()", [WIRE_REF] = "reference()", [WIRE_FUN] = "function()",
        [WIRE_PORT] = "port()",      [WIRE_PID] = "pid()",   [WIRE_TUPLE] = "tuple()",   [WIRE_RECORD] = "record()",
        [WIRE_MAP] = "map()",        [WIRE_NIL] = "list()",  [WIRE_LIST] = "list()",     [WIRE_BITS] = "binary()",
        [WIRE_NOTHING] = NULL,
    };

    if (wire_class(at) == WIRE_NOTHING)
        return type_of_begun(at);
    return *at == ETW_T_FLOAT ? "float()" : *at == ETW_T_BITS ? "bitstring()" : names[wire_class(at)];
}

/* Makes a text term of a type's name, because no atom equals a text term, and printers print a text term unchanged. */
static const uint8_t *type_term(struct buf *to, const char *name)
{
    const uint16_t len = (uint16_t)strlen(name);

    buf_clear(to);
    buf_char(to, (char)ETW_T_TEXT);
    buf_char(to, (char)ETW_TEXT_OTHER);
    buf_add(to, &len, sizeof(len));
    buf_puts(to, name);
    return (const uint8_t *)to->data;
}

static void add_tag(struct group_key *key, struct buf *to, const struct event *e, struct value v)
{
    struct buf text = {0};
    uint32_t arity;
    const uint8_t *inner = request_in(v.env, v.at), *at = inner ? inner : v.at, *first = first_of(at, &arity);
    const uint8_t *tag = wire_is_atom_tag(*at) ? at : first && wire_is_atom_tag(*first) ? first : struct_of(v.env, at);
    const char *type = tag ? NULL : type_name(at);

    if (type && wire_class(at) == WIRE_TUPLE && arity && !first)
        type = NULL; /* the first element was cut, so the tag is unknown */
    if (type)
        tag = type_term(&text, type);
    group_key_add(key, to, e, tag ? GROUP_TERM : GROUP_UNKNOWN, v.env, tag);
    buf_release(&text);
}

/* ---- events ---- */

static void add_part(struct grouping *g, const struct by_key *part, struct group_key *key, const struct event *e)
{
    const struct value v = where_value_of(g->wheres, part->value, e);

    if (v.state == VALUE_TERM && part->tag)
        add_tag(key, &g->key, e, v);
    else if (v.state == VALUE_TERM)
        group_key_add(key, &g->key, e, GROUP_TERM, v.env, v.at);
    else
        group_key_add(key, &g->key, e, v.state == VALUE_UNKNOWN ? GROUP_UNKNOWN : GROUP_ABSENT, NULL, NULL);
}

static struct group_value grouping_number(struct value v)
{
    struct group_value n = {.is = GROUP_NUMBER};

    if (v.state == VALUE_TERM && wire_int(v.at, &n.number.i))
        return n;
    n.number.real = true;
    if (v.state != VALUE_TERM || !wire_real(v.at, &n.number.d))
        n.is = GROUP_SKIPPED;
    return n;
}

static bool knows_its_call(const struct event *e)
{
    return e->call && e->call->complete && e->call->event;
}

/* Returns true if the result has a call that was counted: it was shown, or was held and has a copy (pipeline.c). */
static bool knows_counted_call(const struct event *e)
{
    return e->call && (e->call->fate == CALL_SHOWN || e->call->event);
}

static void grouping_count(struct grouping *g, const struct clause *c, const struct event *e)
{
    const struct spec_by *by = c->by;
    const bool call = e->kind == ETW_CALL, result = event_is_result(e), both = !call && !result;
    struct group_value values[SPEC_AGGREGATES_MAX] = {0};

    if (e->spec && e->spec->kind == SPEC_CALL && both)
        return; /* a return_to of a traced call does not count */
    if ((call && by->late) || (result && !by->any_late)) {
        c->table->open += call;
        return;
    }
    c->table->open -= result && by->late && knows_counted_call(e);
    if (result && !by->late && !knows_its_call(e)) {
        c->table->unpaired++;
        return;
    }
    struct group_key key = group_key_begin(&g->key, e);
    for (size_t i = 0; i < by->nkeys; i++)
        add_part(g, &by->keys[i], &key, e);
    for (size_t i = 0; i < by->naggregates; i++) {
        const struct by_aggregate *a = &by->aggregates[i];
        if (a->value && (both || (result && by->late) || result == a->late))
            values[i] = grouping_number(where_value_of(g->wheres, a->value, e));
    }
    const struct group *row = groups_event(c->table, &key, !result || by->late, values);
    g->changed[g->nchanged++] = (struct grouping_row){c->table, row};
}

/* Returns the number of parts of a spec. A spec that is not combined is its own only part. */
static size_t count_parts(const struct spec *s)
{
    return !s ? 0 : s->nparts ? s->nparts : 1;
}

/* Returns the clause of one part of a spec; NULL: the part counts nothing. */
static const struct clause *part_clause(const struct grouping *g, const struct spec *s, size_t part)
{
    const struct spec *one = s->nparts ? s->parts[part] : s;

    return one->by ? clause_of(g, one->by) : NULL;
}

/* Returns true if one of the first n parts of the spec counts in the table. */
static bool counts_in(const struct grouping *g, const struct spec *s, size_t n, const struct groups *table)
{
    for (size_t i = 0; i < n; i++) {
        const struct clause *c = part_clause(g, s, i);
        if (c && c->table == table)
            return true;
    }
    return false;
}

size_t grouping_event(struct grouping *g, const struct event *e, const struct spec *before,
                      const struct grouping_row **ret_rows)
{
    const size_t n = count_parts(e->spec), nbefore = count_parts(before);

    g->nchanged = 0;
    *ret_rows = g->changed;
    if (g->all && !before)
        grouping_count(g, clause_of(g, g->all), e);
    for (size_t i = 0; i < n; i++) {
        const struct clause *c = part_clause(g, e->spec, i);
        if (c && !counts_in(g, e->spec, i, c->table) && !counts_in(g, before, nbefore, c->table))
            grouping_count(g, c, e);
    }
    return g->nchanged;
}

/* ---- rows of the node ---- */

/*
 * Sets *s to the sums of one aggregate in a row of a node. `value` is the index of the aggregate's value in the row,
 * and `buckets` are the buckets of this value.
 */
static void sums_of_row(struct group_sums *s, const struct by_aggregate *a, size_t value, const struct etw_row *row,
                        const uint8_t *buckets)
{
    const struct etw_row_sum *v = &row->values[value];
    struct etw_bucket b;

    *s = (struct group_sums){.n = v->count, .skipped = (uint64_t)row->counts[1 + value], .whole = v->sum};
    s->min.i = v->least;
    s->max.i = v->most;
    if (a->kind < BY_HIST)
        return;
    for (uint32_t i = 0; i < row->buckets[value]; i++) {
        memcpy(&b, buckets + i * sizeof(b), sizeof(b));
        group_sums_bucket(s, b.bucket, b.count);
    }
}

/*
 * Completes the event that stands for the events of a row; its process is set already. `term` is a term of the row's
 * key; NULL: none. `what` says whether the term is the kind of the events or was collected by a match specification.
 */
static void complete_row_event(struct grouping *g, uint32_t what, const uint8_t *term, struct event *e)
{
    int64_t kind;

    /* Only the kinds of sends differ between the events of a probe. */
    if (what == ETW_BY_KIND && e->kind == ETW_SEND && term && wire_int(term, &kind) && kind == ETW_SEND_NOPROC)
        e->kind = ETW_SEND_NOPROC;
    if (what != ETW_BY_RESULT)
        return;
    e->caller = e->sender = e->sender_node = NULL;
    if (term)
        probes_collected(g->counted, e, term);
}

/* Adds part `i` of the node's key to the key. `call` is an event that stands for the events of the row. */
static bool add_row_part(struct grouping *g, size_t i, const uint8_t *at, struct group_key *key, struct event *call)
{
    const struct by_key *part = &g->node_rows->by->keys[g->node.key_of[i]];
    const uint8_t *term;
    uint32_t arity;
    const int64_t known = wire_tuple(at, &arity, &term);

    if (known < 0 || known > 1 || known != (int64_t)arity)
        return false;
    const uint32_t what = g->node.keys[i].what;
    if (what >= ETW_BY_RESULT) {
        complete_row_event(g, what, known ? term : NULL, call);
        add_part(g, part, key, call);
    } else if (!known) {
        group_key_add(key, &g->key, call, GROUP_ABSENT, NULL, NULL);
    } else if (*term == ETW_T_CUT || *term == ETW_T_ELIDED || *term == ETW_T_REDACTED) {
        group_key_add(key, &g->key, call, GROUP_UNKNOWN, NULL, NULL);
    } else if (part->tag) {
        add_tag(key, &g->key, call, (struct value){.at = term, .env = &call->env});
    } else {
        group_key_add(key, &g->key, call, GROUP_TERM, &call->env, term);
    }
    return true;
}

/*
 * Adds the parts of a key in the order in which the user wrote them. `at` is the first term of the node's key. The
 * terms have the order of the request to the node (by_node.h).
 */
static bool add_row_parts(struct grouping *g, const uint8_t *at, struct group_key *key, struct event *call)
{
    const uint8_t *parts[SPEC_KEYS_MAX] = {0};
    size_t number[SPEC_KEYS_MAX];

    for (size_t i = 0; i < g->node.nkeys; i++, at = wire_skip(at)) {
        parts[g->node.key_of[i]] = at;
        number[g->node.key_of[i]] = i;
    }
    for (size_t i = 0; i < g->node.nkeys; i++)
        if (!add_row_part(g, number[i], parts[i], key, call))
            return false;
    return true;
}

/* Adds the figures of a node's row. Returns the changed row; NULL if the figures are malformed or count no event. */
static const struct group *add_figures(struct grouping *g, const struct group_key *key, const uint8_t *figures)
{
    const struct clause *c = g->node_rows;
    struct group_sums sums[SPEC_AGGREGATES_MAX] = {0};
    struct etw_row row;
    const uint8_t *buckets = row_figures(figures, &row), *of[ETW_ROW_VALUES];

    if (!buckets)
        return NULL;
    for (size_t i = 0; i < ETW_ROW_VALUES; i++) {
        of[i] = buckets;
        buckets += row.buckets[i] * sizeof(struct etw_bucket);
    }
    for (size_t i = 0; i < c->by->naggregates; i++)
        if (c->by->aggregates[i].value)
            sums_of_row(&sums[i], &c->by->aggregates[i], g->node.value_of[i], &row, of[g->node.value_of[i]]);
    const struct group *changed = groups_row(c->table, key, (uint64_t)row.counts[0], sums);
    for (size_t i = 0; i < c->by->naggregates; i++)
        group_sums_release(&sums[i]);
    c->table->open += row.counts[ETW_BY_OPEN];
    return key || c->table->other.count ? changed : NULL;
}

/* Adds {Calls, Value, …}, a single result that the node could not add to one of its rows. */
static const struct group *add_one(struct grouping *g, const struct group_key *key, const struct event *e,
                                   const uint8_t *at)
{
    const struct clause *c = g->node_rows;
    struct group_value values[SPEC_AGGREGATES_MAX] = {0};
    const uint8_t *calls, *of[ETW_BY_VALUES];
    uint32_t arity, known;

    if (wire_tuple(at, &arity, &calls) != (int64_t)arity || arity != 1 + g->node.nvalues || *calls > 1)
        return NULL;
    at = calls;
    for (size_t i = 0; i < g->node.nvalues; i++) {
        at = wire_skip(at);
        if (wire_tuple(at, &known, &of[i]) != (int64_t)known || known > 1)
            return NULL;
        of[i] = known ? of[i] : NULL;
    }
    for (size_t i = 0; i < c->by->naggregates; i++)
        if (c->by->aggregates[i].value && of[g->node.value_of[i]])
            values[i] =
                grouping_number((struct value){.state = VALUE_TERM, .at = of[g->node.value_of[i]], .env = &e->env});
    return groups_event(c->table, key, *calls, values);
}

size_t grouping_add_row(struct grouping *g, const struct event *e, const struct grouping_row **ret_rows)
{
    const struct clause *c = g->node_rows;
    const struct group *changed;
    struct event call = *e;
    const uint8_t *at;
    uint32_t arity;

    g->nchanged = 0;
    *ret_rows = g->changed;
    if (!c || wire_tuple(e->terms.at, &arity, &at) != (int64_t)arity || !arity ||
        (*at != ETW_ROW_BY && *at != ETW_ROW_BY_ONE) || (arity > 1 && arity != 1 + g->node.nkeys))
        return 0;
    call.kind = g->node.kind == SPEC_SEND ? ETW_SEND : g->node.kind == SPEC_RECV ? ETW_RECEIVE : ETW_CALL;
    call.terms.end = call.terms.at;
    call.nterms = 0;
    struct group_key key = group_key_begin(&g->key, &call);
    if (arity > 1 && !add_row_parts(g, wire_skip(at), &key, &call))
        return 0;
    const uint8_t *figures = wire_skip(e->terms.at);
    const struct group_key *of = arity > 1 ? &key : NULL;
    if (!(changed = *at == ETW_ROW_BY ? add_figures(g, of, figures) : add_one(g, of, e, figures)))
        return 0;
    g->changed[g->nchanged++] = (struct grouping_row){c->table, changed};
    return g->nchanged;
}
