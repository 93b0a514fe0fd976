/* SPDX-License-Identifier: Apache-2.0 */
#include "arm.h"

#include <assert.h>
#include <stdlib.h>

#include "../erlang/etf_write.h"
#include "../erlang/term_print.h"
#include "../ground/mem.h"
#include "session.h"

void arm_init(struct arm *a)
{
    *a = (struct arm){.kinds = ~UINT64_C(0)};
}

void arm_release(struct arm *a)
{
    buf_release(&a->probes);
    buf_release(&a->select);
    buf_release(&a->specs);
    buf_release(&a->program);
    buf_release(&a->procs);
    buf_release(&a->ports);
    buf_release(&a->flags);
    buf_release(&a->inside);
    buf_release(&a->port_flags);
    buf_release(&a->system);
    buf_release(&a->filter);
    buf_release(&a->by);
    arm_init(a);
}

/* ---- probes ---- */

static void arm_put_list(struct buf *to, const char *key, struct buf *items, size_t n)
{
    etf_atomz(to, key);
    etf_list(to, n);
    buf_str(to, buf_view(items));
    etf_nil(to);
}

static void close_probe(struct arm *a)
{
    static const char *const kinds[] = {"call", "send", "recv"}, *const scopes[] = {"local", "global", "meta"};

    if (!a->open)
        return;
    assert(a->nspecs > 0);
    etf_map(&a->probes, 5u + (a->program.len != 0) + a->root);
    etf_atomz(&a->probes, "id");
    etf_int(&a->probes, a->id);
    etf_atomz(&a->probes, "type");
    etf_atomz(&a->probes, kinds[a->kind]);
    etf_atomz(&a->probes, "scope");
    etf_atomz(&a->probes, scopes[a->scope]);
    arm_put_list(&a->probes, "select", &a->select, a->nselect);
    etf_atomz(&a->probes, "match_spec");
    etf_tuple(&a->probes, 2);
    etf_atomz(&a->probes, a->per_arity ? "arity" : "any");
    if (a->per_arity)
        etf_map(&a->probes, a->nspecs);
    buf_str(&a->probes, buf_view(&a->specs));
    if (a->program.len) {
        etf_atomz(&a->probes, "program");
        etf_bin(&a->probes, a->program.data, a->program.len);
    }
    if (a->root) {
        etf_atomz(&a->probes, "root");
        etf_atomz(&a->probes, "true");
    }
    buf_clear(&a->select);
    buf_clear(&a->specs);
    buf_clear(&a->program);
    a->nselect = a->nspecs = 0;
    a->open = a->per_arity = a->root = false;
    a->nprobes++;
}

void arm_probe(struct arm *a, int id, enum arm_kind kind, enum arm_scope scope)
{
    close_probe(a);
    a->open = true;
    a->id = id;
    a->kind = kind;
    a->scope = scope;
}

static void put_pattern(struct buf *b, struct arm_pattern p)
{
    static const char *const names[] = {"any", "name", "glob", "re", "application", "behaviour"};

    if (p.nwithout) {
        const struct arm_pattern of = {.how = p.how, .text = p.text};
        etf_tuple(b, 3);
        etf_atomz(b, "except");
        put_pattern(b, of);
        etf_list(b, p.nwithout);
        for (size_t i = 0; i < p.nwithout; i++)
            put_pattern(b, p.without[i]);
        etf_nil(b);
        return;
    }
    if (p.how == ARM_ANY) {
        etf_atomz(b, "any");
        return;
    }
    etf_tuple(b, 2);
    etf_atomz(b, names[p.how]);
    etf_bin(b, p.text.at, p.text.len);
}

void arm_select(struct arm *a, struct arm_pattern module, struct arm_pattern function, int arity_lo, int arity_hi)
{
    assert(a->open && function.how != ARM_APP && function.how != ARM_BEHAVIOUR);
    etf_tuple(&a->select, 4);
    put_pattern(&a->select, module);
    put_pattern(&a->select, function);
    etf_int(&a->select, arity_lo);
    etf_int(&a->select, arity_hi);
    a->nselect++;
}

void arm_spec_any(struct arm *a, struct str etf)
{
    assert(a->open && !a->nspecs);
    etf_bin(&a->specs, etf.at, etf.len);
    a->nspecs = 1;
}

void arm_spec_arity(struct arm *a, int arity, struct str etf)
{
    assert(a->open && (!a->nspecs || a->per_arity));
    a->per_arity = true;
    etf_int(&a->specs, arity);
    etf_bin(&a->specs, etf.at, etf.len);
    a->nspecs++;
}

void arm_program(struct arm *a, struct str etf)
{
    assert(a->open && !a->program.len);
    buf_str(&a->program, etf);
}

void arm_root(struct arm *a)
{
    assert(a->open && a->scope == ARM_META);
    a->root = true;
}

/* ---- the whole request ---- */

static void arm_put_who(struct buf *b, enum arm_who who, struct str text)
{
    static const char *const names[] = {"all",         "existing", "new",  "pid",   "name",
                                        "application", "initial",  "port", "driver"};

    if (who <= ARM_WHO_NEW) {
        etf_atomz(b, names[who]);
        return;
    }
    etf_tuple(b, 2);
    etf_atomz(b, names[who]);
    etf_bin(b, text.at, text.len);
}

void arm_who(struct arm *a, enum arm_who who, struct str text)
{
    arm_put_who(&a->procs, who, text);
    a->nprocs++;
}

void arm_processes(const struct arm *a, struct buf *ret_list)
{
    etf_list(ret_list, a->nprocs);
    buf_str(ret_list, buf_view(&a->procs));
    etf_nil(ret_list);
}

void arm_port_who(struct arm *a, enum arm_who who, struct str text)
{
    arm_put_who(&a->ports, who, text);
    a->nports++;
}

void arm_who_via(struct arm *a, struct str module, struct str name_etf, struct str text)
{
    etf_tuple(&a->procs, 4);
    etf_atomz(&a->procs, "via");
    etf_bin(&a->procs, module.at, module.len);
    etf_bin(&a->procs, name_etf.at, name_etf.len);
    etf_bin(&a->procs, text.at, text.len);
    a->nprocs++;
}

void arm_who_initial(struct arm *a, struct str module, struct str function, int arity, struct str text)
{
    etf_tuple(&a->procs, 3);
    etf_atomz(&a->procs, "initial");
    etf_tuple(&a->procs, 3);
    etf_bin(&a->procs, module.at, module.len);
    etf_bin(&a->procs, function.at, function.len);
    etf_int(&a->procs, arity);
    etf_bin(&a->procs, text.at, text.len);
    a->nprocs++;
}

void arm_flag(struct arm *a, const char *flag)
{
    etf_atomz(&a->flags, flag);
    a->nflags++;
}

void arm_sample(struct arm *a, int64_t roots)
{
    a->sample = roots;
}

void arm_inside(struct arm *a, const char *flag, uint64_t kinds)
{
    etf_atomz(&a->inside, flag);
    a->ninside++;
    a->kinds_inside |= kinds;
}

void arm_variables(struct arm *a, int most)
{
    a->variables = most;
}

void arm_by(struct arm *a, struct buf *keys, size_t nkeys, struct buf *values, size_t nvalues, int64_t most)
{
    etf_tuple(&a->by, 4);
    etf_atomz(&a->by, "by");
    etf_list(&a->by, nkeys);
    buf_str(&a->by, buf_view(keys));
    etf_nil(&a->by);
    if (nvalues)
        etf_list(&a->by, nvalues);
    buf_str(&a->by, buf_view(values));
    etf_nil(&a->by);
    etf_int(&a->by, most);
}

void arm_route(struct arm *a, enum arm_route route)
{
    a->route = route;
}

void arm_filter(struct arm *a, struct str filter)
{
    buf_clear(&a->filter);
    buf_str(&a->filter, filter);
}

void arm_port_flag(struct arm *a, const char *flag)
{
    etf_atomz(&a->port_flags, flag);
    a->nport_flags++;
}

void arm_system(struct arm *a, const char *event, const int64_t *limits, size_t n)
{
    etf_tuple(&a->system, 2);
    etf_atomz(&a->system, event);
    if (n > 1)
        etf_tuple(&a->system, n);
    if (!n)
        etf_atomz(&a->system, "true");
    for (size_t i = 0; i < n; i++)
        etf_int(&a->system, limits[i]);
    a->nsystem++;
}

void arm_kinds(struct arm *a, uint64_t mask)
{
    a->kinds = mask;
}

void arm_seq_trace(struct arm *a)
{
    a->seq_trace = true;
}

void arm_unsafe(struct arm *a)
{
    a->unsafe = true;
}

void arm_allow_empty(struct arm *a)
{
    a->allow_empty = true;
}

void arm_available(struct arm *a)
{
    a->available = true;
}

void arm_force(struct arm *a)
{
    a->force = true;
}

void arm_overhead(struct arm *a, int64_t hundredths)
{
    a->overhead = hundredths;
}

void arm_requests(struct arm *a, unsigned flags)
{
    a->requests = flags;
}

void arm_mark(struct arm *a, struct arm_mark mark)
{
    a->mark = mark;
}

static void put_bool(struct buf *to, const char *key, bool value)
{
    etf_atomz(to, key);
    etf_atomz(to, value ? "true" : "false");
}

/* Returns true if the bytes from `from` on are exactly one term. The node would ignore bytes after the term. */
UNUSED static bool is_one_term(const struct buf *b, size_t from)
{
    struct etf r;

    etf_open(&r, b->data + from, b->len - from);
    return etf_skip(&r) ? etf_done(&r) : r.terms >= ETF_MAX_TERMS;
}

static void put_route(const struct arm *a, struct buf *b)
{
    static const char *const names[] = {"send", "tally", "by", "hold", "trees"};

    etf_atomz(b, "route");
    if (a->route == ARM_BY)
        buf_str(b, buf_view(&a->by));
    else
        etf_atomz(b, names[a->route]);
}

void arm_finish_selection(struct arm *a, struct buf *b)
{
    close_probe(a);
    etf_map(b, 2);
    arm_put_list(b, "probes", &a->probes, a->nprobes);
    put_bool(b, "allow_empty", a->allow_empty);
}

void arm_finish(struct arm *a, struct buf *b)
{
    const size_t from = b->len;

    close_probe(a);
    if (!a->nprocs)
        arm_who(a, ARM_WHO_ALL, STR(""));
    etf_map(b, 17u + (a->mark.first != 0) + 2u * (a->ninside != 0) + (a->sample != 0));
    arm_put_list(b, "probes", &a->probes, a->nprobes);
    arm_put_list(b, "procs", &a->procs, a->nprocs);
    arm_put_list(b, "ports", &a->ports, a->nports);
    arm_put_list(b, "flags", &a->flags, a->nflags);
    if (a->ninside) {
        arm_put_list(b, "inside", &a->inside, a->ninside);
        etf_atomz(b, "kinds_inside");
        etf_int(b, (int64_t)a->kinds_inside);
    }
    arm_put_list(b, "port_flags", &a->port_flags, a->nport_flags);
    arm_put_list(b, "system", &a->system, a->nsystem);
    etf_atomz(b, "kinds");
    etf_int(b, (int64_t)a->kinds); /* ~0 becomes -1, which has every bit set on the node */
    etf_atomz(b, "variables");
    etf_int(b, a->variables);
    put_bool(b, "seq_trace", a->seq_trace);
    put_bool(b, "unsafe", a->unsafe);
    put_bool(b, "allow_empty", a->allow_empty);
    put_bool(b, "available", a->available);
    put_bool(b, "force", a->force);
    put_route(a, b);
    if (a->sample) {
        etf_atomz(b, "sample");
        etf_int(b, a->sample);
    }
    etf_atomz(b, "overhead");
    etf_int(b, a->overhead);
    etf_atomz(b, "requests");
    etf_int(b, a->requests);
    etf_atomz(b, "filter");
    etf_bin(b, a->filter.data, a->filter.len);
    if (a->mark.first) {
        etf_atomz(b, "mark");
        etf_tuple(b, 2);
        etf_int(b, (int64_t)a->mark.first);
        etf_int(b, (int64_t)a->mark.last);
    }
    assert(is_one_term(b, from)); /* the map has as many pairs as its head says */
    (void)from;
}

void arm_request(struct buf *b, enum arm_verb verb, struct str asked)
{
    static const char *const verbs[] = {"select", "arm"};

    etf_version(b);
    etf_tuple(b, 2);
    etf_atomz(b, verbs[verb]);
    buf_str(b, asked);
}

void arm_atoms(struct buf *b, struct buf *names, size_t n)
{
    etf_version(b);
    etf_tuple(b, 2);
    arm_put_list(b, "atoms", names, n);
}

void arm_disarm(struct buf *b)
{
    etf_version(b);
    etf_atomz(b, "disarm");
}

void arm_record(struct buf *b, const struct arm_pattern *modules, size_t nmodules, struct str name)
{
    etf_version(b);
    etf_tuple(b, 3);
    etf_atomz(b, "record");
    etf_list(b, nmodules);
    for (size_t i = 0; i < nmodules; i++)
        put_pattern(b, modules[i]);
    etf_nil(b);
    etf_bin(b, name.at, name.len);
}

/* ---- the answer ---- */

#define LIST_MAX 100000

static bool take_count(struct etf *r, uint64_t *ret)
{
    int64_t n;

    if (!etf_get_int(r, &n) || n < 0)
        return false;
    *ret = (uint64_t)n;
    return true;
}

static bool take_probe(struct etf *r, struct arm_result_probe *p)
{
    size_t pairs;
    struct raw key;
    uint64_t n;

    if (!etf_get_map(r, &pairs))
        return false;
    while (pairs--) {
        if (!etf_get_atom(r, &key))
            return false;
        if (raw_is(key, "missing")) {
            struct session_reply why = {0};
            if (!etf_take(r, &why.term))
                return false;
            session_error(&why, &p->missing);
            continue;
        }
        if (!take_count(r, &n))
            return false;
        if (raw_is(key, "id"))
            p->id = (int)n;
        else if (raw_is(key, "functions"))
            p->functions = n;
        else if (raw_is(key, "modules"))
            p->modules = n;
    }
    return true;
}

static bool take_probes(struct etf *r, struct arm_result *x)
{
    size_t n;

    if (!etf_get_list(r, &n) || n > LIST_MAX)
        return false;
    x->probes = mem_zalloc((n + 1) * sizeof *x->probes);
    while (x->nprobes < n)
        if (!take_probe(r, &x->probes[x->nprobes++]))
            return false;
    return !n || etf_get_nil(r);
}

static bool take_texts(struct etf *r, struct arm_result_texts *ret)
{
    struct raw text;
    size_t n;

    if (ret->items || !etf_get_list(r, &n) || n > LIST_MAX)
        return false;
    ret->items = mem_zalloc((n + 1) * sizeof *ret->items);
    while (ret->n < n) {
        if (!etf_get_bin(r, &text))
            return false;
        ret->items[ret->n++] = safe_strdup(text);
    }
    return !n || etf_get_nil(r);
}

static void release_texts(struct arm_result_texts *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->items[i]);
    free(t->items);
}

static bool take_pair(struct etf *r, struct arm_result *x)
{
    struct raw key;

    if (!etf_get_atom(r, &key))
        return false;
    if (raw_is(key, "probes"))
        return !x->probes && take_probes(r, x);
    if (raw_is(key, "warning"))
        return take_texts(r, &x->warnings);
    if (raw_is(key, "loaded"))
        return take_texts(r, &x->loaded);
    if (raw_is(key, "functions"))
        return take_count(r, &x->functions);
    if (raw_is(key, "processes"))
        return take_count(r, &x->processes);
    if (raw_is(key, "ports"))
        return take_count(r, &x->ports);
    return etf_skip(r);
}

bool arm_result_read(struct etf r, struct arm_result *ret, struct err *e)
{
    struct arm_result x = {0};
    size_t pairs = 0;
    bool ok = etf_get_map(&r, &pairs);

    while (ok && pairs--)
        ok = take_pair(&r, &x);
    if (ok) {
        *ret = x;
        return true;
    }
    arm_result_release(&x);
    return err_set(e, ERR_RUN, "the node's answer to arming is malformed");
}

void arm_result_release(struct arm_result *r)
{
    release_texts(&r->warnings);
    release_texts(&r->loaded);
    free(r->probes);
    *r = (struct arm_result){0};
}
