/* SPDX-License-Identifier: Apache-2.0 */
#include "request_rows.h"

#include <stdlib.h>

#include "../ground/mem.h"

static void row_release(struct request_row *r)
{
    free(r->waited.buckets);
    free(r->worked.buckets);
    free(r->reply.buckets);
}

void request_rows_release(struct request_rows *s)
{
    for (size_t i = 0; i < s->n; i++)
        row_release(&s->items[i]);
    free(s->items);
    table_release(&s->by_key);
}

uint32_t request_label(struct request_pairs *p, const struct request *r)
{
    const struct request_server *s = r->server == REQUEST_NONE ? NULL : &p->servers[r->server];

    if (!s || s->label)
        return s ? s->label : 0;
    return s->who.name_len ? request_key_name(&p->keys, tracee_safe_name(&s->who))
                           : request_key_pid(&p->keys, tracee_safe_text(&s->who));
}

bool request_is_shown(const struct request_rows *s, const struct request *r)
{
    if (!r->at_server || !s->servers || r->server == REQUEST_NONE)
        return r->at_server && !s->servers;
    const struct request_server *server = &s->pairs->servers[r->server];
    const struct str module = server->label ? request_key_bytes(&s->pairs->keys, server->label) : (struct str){0};
    return process_names_have(s->servers, &server->who, module);
}

static uint32_t row_hash(const struct request_row *r)
{
    return hash_u64((uint64_t)r->label << 32 | r->shape) + (r->node ? r->node->index * 101u : 0);
}

static struct request_row *row_get(struct request_rows *s, struct request_row key)
{
    uint32_t hash = row_hash(&key);

    for (uint32_t step = 0, i; (i = table_next(&s->by_key, hash, &step)) != TABLE_NONE;) {
        struct request_row *r = &s->items[i];
        if (r->label == key.label && r->shape == key.shape && r->node == key.node)
            return r;
    }
    if (s->n >= REQUEST_ROWS && key.label)
        return row_get(s, (struct request_row){0}); /* the row that all further keys share */
    s->items = mem_grow(s->items, &s->cap, s->n + 1, sizeof(*s->items));
    s->items[s->n] = key;
    s->items[s->n].oldest_ns = -1;
    table_add(&s->by_key, hash, (uint32_t)s->n);
    return &s->items[s->n++];
}

static struct request_row *row_of(struct request_rows *s, const struct request *r)
{
    struct request_row key = {.node = s->by_node ? r->node : NULL, .elixir = r->elixir};

    key.label = request_label(s->pairs, r);
    key.shape = request_key_now(&s->pairs->keys, r->shape);
    return row_get(s, key);
}

static void add_reply(struct request_row *row, const struct request *r)
{
    int64_t ns = request_between(&r->sent, &r->got);

    if (ns >= 0)
        stat_add(&row->reply, (uint64_t)ns);
}

static void add_wait(struct request_row *row, const struct request *r)
{
    if (r->waited_ns < 0)
        return;
    stat_add(&row->waited, (uint64_t)r->waited_ns);
    if (r->waited_ns > row->longest.ns)
        row->longest = (struct request_wait){
            .ns = r->waited_ns,
            .behind = r->behind,
            .behind_all_ns = r->behind_all_ns,
            .postponed = r->postponed,
            .blind = r->blind,
            .unseen = r->unseen,
        };
}

bool request_rows_of_several(const struct request_rows *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i].label != s->items[0].label)
            return true;
    return false;
}

const struct request_wait *request_row_longest(const struct request_row *r)
{
    return r->waits_still.ns > r->longest.ns ? &r->waits_still : &r->longest;
}

void request_rows_begun(struct request_rows *s, struct request *r)
{
    if (request_is_shown(s, r))
        add_wait(row_of(s, r), r);
}

void request_rows_settled(struct request_rows *s, struct request *r)
{
    if (!r->at_server) {
        s->elsewhere++;
        return;
    }
    if (!request_is_shown(s, r))
        return;
    struct request_row *row = row_of(s, r);
    row->calls++;
    row->elixir |= r->elixir;
    row->callers += request_caller_seen(r);
    row->timed_out += r->gave_up.known && !r->got.known;
    row->late += r->late;
    row->down += r->down;
    if (r->worked_ns >= 0)
        stat_add(&row->worked, (uint64_t)r->worked_ns);
    add_reply(row, r);
    if (!r->told_begun)
        add_wait(row, r);
}

void request_rows_got(struct request_rows *s, const struct request *r)
{
    if (!request_is_shown(s, r))
        return;
    struct request_row *row = row_of(s, r);
    row->callers += !r->asked.known && !r->gave_up.known;
    row->timed_out -= r->gave_up.known && row->timed_out;
    row->late -= r->late && row->late;
    add_reply(row, r);
}

void request_rows_gave_up(struct request_rows *s, const struct request *r)
{
    if (!request_is_shown(s, r))
        return;
    struct request_row *row = row_of(s, r);
    row->callers += !r->asked.known;
    row->timed_out++;
}

/*
 * Returns true for a row without requests. A row may become empty: an open request counts in the row of its server's
 * pid until the callback module of the server is known.
 */
static bool row_is_empty(const struct request_row *r)
{
    return !r->calls && !r->timed_out && !r->waited.timed;
}

/* Adds the figures of `from` to another row and empties `from`, because a coarse shape has replaced its shape. */
static void row_merge(struct request_row *to, struct request_row *from)
{
    to->elixir |= from->elixir;
    to->calls += from->calls;
    to->callers += from->callers;
    to->timed_out += from->timed_out;
    to->late += from->late;
    to->down += from->down;
    stat_merge(&to->waited, &from->waited);
    stat_merge(&to->worked, &from->worked);
    stat_merge(&to->reply, &from->reply);
    if (from->longest.ns > to->longest.ns)
        to->longest = from->longest;
    row_release(from);
    *from = (struct request_row){0};
}

static void merge_variants(struct request_rows *s)
{
    size_t kept = 0;

    for (size_t i = 0, n = s->n; i < n; i++) {
        struct request_row key = {.node = s->items[i].node, .label = s->items[i].label};
        key.shape = request_key_now(&s->pairs->keys, s->items[i].shape);
        if (key.shape == s->items[i].shape)
            continue;
        struct request_row from = s->items[i];
        s->items[i] = (struct request_row){0};
        row_merge(row_get(s, key), &from);
    }
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i].label || s->items[i].calls || s->items[i].shape)
            s->items[kept++] = s->items[i];
    s->n = kept;
}

static uint64_t row_cost(const struct request_row *r)
{
    return r->waited.total_ns + r->worked.total_ns + r->open_ns;
}

static int row_order(const void *a, const void *b)
{
    const struct request_row *x = a, *y = b;

    if (row_cost(x) != row_cost(y))
        return row_cost(x) < row_cost(y) ? 1 : -1;
    if (x->calls != y->calls)
        return x->calls < y->calls ? 1 : -1;
    return x->label != y->label ? (x->label < y->label ? -1 : 1) : (x->shape > y->shape) - (x->shape < y->shape);
}

/* Removes the open requests that the last request_rows_open() has added to the row. */
static void forget_open(struct request_row *row)
{
    row->calls -= row->open + row->uncertain;
    row->timed_out -= row->open_timed;
    row->open = row->open_timed = row->uncertain = row->open_ns = 0;
    row->oldest_ns = -1;
    row->waits_still = (struct request_wait){0};
}

/* Adds an open request. Returns its age; -1: unknown. */
static int64_t add_open(struct request_rows *s, struct request_row *row, const struct request *r)
{
    row->calls++;
    row->timed_out += r->gave_up.known;
    row->open_timed += r->gave_up.known;
    if (request_may_have_ended(s->pairs, r)) {
        row->uncertain++;
        return -1;
    }
    row->open++;
    const int64_t age = request_age(s->pairs, r);
    if (age < 0)
        return age;
    row->open_ns += (uint64_t)(age - (r->told_begun ? MIN(age, r->waited_ns) : 0));
    row->oldest_ns = MAX(row->oldest_ns, age);
    if (request_stage(s->pairs, r) == REQUEST_WAITS && age > row->waits_still.ns)
        row->waits_still = request_wait_until_now(s->pairs, r);
    return age;
}

void request_rows_open(struct request_rows *s)
{
    int64_t oldest = -1;

    for (size_t i = 0; i < s->n; i++)
        forget_open(&s->items[i]);
    merge_variants(s);
    table_clear(&s->by_key);
    for (size_t i = 0; i < s->n; i++)
        table_add(&s->by_key, row_hash(&s->items[i]), (uint32_t)i);
    s->elsewhere_open = 0;
    s->oldest = NULL;
    for (struct request *r = request_first(s->pairs); r; r = request_next(s->pairs, r)) {
        s->elsewhere_open += !r->settled && !r->at_server && (r->gave_up.known || r->got.known);
        if (r->settled || !request_is_shown(s, r))
            continue;
        const int64_t age = add_open(s, row_of(s, r), r);
        if (age > oldest && r->server != REQUEST_NONE) { /* there is no server if too many servers are followed */
            oldest = age;
            s->oldest = r;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (row_is_empty(&s->items[i]))
            row_release(&s->items[i]);
        else
            s->items[kept++] = s->items[i];
    }
    s->n = kept;
    if (s->n)
        qsort(s->items, s->n, sizeof(*s->items), row_order);
    table_clear(&s->by_key);
    for (size_t i = 0; i < s->n; i++)
        table_add(&s->by_key, row_hash(&s->items[i]), (uint32_t)i);
}
