/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the request that arms a node with the expressions. */
#include "exprs.h"

#include <string.h>

#include "../erlang/etf_write.h"
#include "../lang/fit.h"
#include "../lang/where_steps.h"
#include "who.h"

struct arm_pattern exprs_pattern(const struct sel_name *name)
{
    static const enum arm_how to[] = {
        [SEL_ANY] = ARM_ANY,     [SEL_ATOM] = ARM_NAME, [SEL_GLOB] = ARM_GLOB,
        [SEL_REGEX] = ARM_REGEX, [SEL_APP] = ARM_APP,   [SEL_BEHAVIOUR] = ARM_BEHAVIOUR,
    };

    return (struct arm_pattern){.how = to[name->how], .text = name->text};
}

struct arming {
    struct arm arm;
    struct arena arena;
    struct buf etf;
    int otp;
    bool anonymous;
    bool meets; /* several expressions are about received messages */
    struct str node;
    uint32_t creation;
};

static struct str encode_localized(struct arming *a, term_t t)
{
    buf_clear(&a->etf);
    term_to_etf(&a->etf, lang_localize(t, a->node, a->creation, &a->arena));
    return buf_view(&a->etf);
}

/*
 * Adds the match specification. A head may end in a tail, as in [A | _]: OTP 29 takes it as one pattern, and older
 * releases need a pattern for each arity.
 */
static void arm_match_spec(struct arming *a, const struct spec *s)
{
    if (a->anonymous && s->anonymous) {
        arm_spec_any(&a->arm, encode_localized(a, s->anonymous));
        return;
    }
    if (a->meets && s->kind == SPEC_RECV) {
        arm_spec_any(&a->arm, encode_localized(a, spec_match_spec_plain(s, &a->arena)));
        return;
    }
    if (!s->prefix || a->otp >= 29) {
        arm_spec_any(&a->arm, encode_localized(a, spec_match_spec_for(s, -1, &a->arena)));
        return;
    }
    for (int n = s->head_arity; n <= SPEC_ARITY_MAX; n++)
        arm_spec_arity(&a->arm, n, encode_localized(a, spec_match_spec_for(s, n, &a->arena)));
}

static void arm_spec(struct arming *a, const struct spec *s)
{
    static const enum arm_kind kinds[] = {[SPEC_CALL] = ARM_CALL, [SPEC_SEND] = ARM_SEND, [SPEC_RECV] = ARM_RECV};
    static const enum arm_scope scopes[] =
        {[SPEC_LOCAL] = ARM_LOCAL, [SPEC_GLOBAL] = ARM_GLOBAL, [SPEC_META] = ARM_META};

    arm_probe(&a->arm, (int)s->number, kinds[s->kind], scopes[s->scope]);
    for (size_t i = 0; i < s->nselectors; i++) {
        const struct selector *sel = &s->selectors[i];
        struct arm_pattern module = exprs_pattern(&sel->module);
        struct arm_pattern *without = arena_alloc(&a->arena, sel->nwithout * sizeof(*without) + 1);
        for (size_t k = 0; k < sel->nwithout; k++)
            without[k] = exprs_pattern(&sel->without[k]);
        module.without = without;
        module.nwithout = sel->nwithout;
        arm_select(&a->arm, module, exprs_pattern(&sel->function), sel->arity_lo, sel->arity_hi);
    }
    if (s->root)
        arm_root(&a->arm);
    arm_match_spec(a, s);
    const term_t program = spec_program(s, &a->arena);
    if (program)
        arm_program(&a->arm, encode_localized(a, program));
}

size_t exprs_atoms(const struct exprs *p, struct buf *ret_names)
{
    size_t n = 0;

    for (size_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < p->specs[i]->natoms; k++, n++)
            etf_bin(ret_names, p->specs[i]->atoms[k].at, p->specs[i]->atoms[k].len);
    return n;
}

/* Copies a spec to *ret, adapted to the atoms that this node has. Reports an error if that is impossible. */
static bool fit_to_node(struct fit *f, const struct spec *s, const struct what_opts *what, struct spec *ret,
                        struct err *e)
{
    const enum fit_result result = fit_spec(f, s, ret);
    const int len = (int)MIN(f->name.len, 200);

    if (result == FIT_OK || (result == FIT_DEAD && what->allow_empty))
        return true;
    if (result == FIT_VARIABLES)
        return err_set(e, ERR_USAGE, "more than %d variables in one clause", FIT_VARIABLES_MAX);
    if (result == FIT_DEAD)
        return err_set(e, ERR_EMPTY, "the node does not know the atom %.*s, so nothing can match it", len, f->name.at);
    err_set(e, ERR_EMPTY, "the node does not know the atom %.*s, so the expression cannot use it like this", len,
            f->name.at);
    err_hint(e, "an atom that the node lacks is allowed in a pattern, beside =:=, =/=, == and /=, as a key of a map, "
                "and in msg()");
    return false;
}

/* Parses -P WHO. */
static bool arm_process(struct arming *a, const char *who, struct err *e)
{
    struct who w;

    if (!who_parse(who, &a->arena, &w)) {
        err_set(e, ERR_USAGE, "--proc does not take '%s'", who);
        err_hint(e, "all, existing, new, a pid such as '<0.84.0>', a registered name, {via,Module,Name}, app(NAME) or "
                    "initial(M:F/A)");
        return false;
    }
    if (w.kind == ARM_WHO_VIA)
        arm_who_via(&a->arm, w.module, encode_localized(a, w.name), w.text);
    else if (w.kind == ARM_WHO_INITIAL)
        arm_who_initial(&a->arm, w.module, w.function, w.arity, w.text);
    else
        arm_who(&a->arm, w.kind, w.text);
    return true;
}

/* Parses --port-id WHO: a word, a port, or driver:NAME. */
static bool arm_port(struct arming *a, const char *who, struct err *e)
{
    enum arm_who group;

    if (who_word(who, &group))
        arm_port_who(&a->arm, group, STR(""));
    else if (!strncmp(who, "#Port<", 6))
        arm_port_who(&a->arm, ARM_WHO_PORT, (struct str){who, strlen(who)});
    else if (!strncmp(who, "driver:", 7) && who[7])
        arm_port_who(&a->arm, ARM_WHO_DRIVER, (struct str){who + 7, strlen(who) - 7});
    else {
        err_set(e, ERR_USAGE, "--port-id does not take '%s'", who);
        err_hint(e, "all, existing, new, a port such as '#Port<0.5>', or driver:NAME such as driver:tcp_inet");
        return false;
    }
    return true;
}

/* The trace flags of processes, and the flags that ports need for the same events. */
static const struct {
    enum spec_flag flag;
    const char *process, *port;
} flags[] = {
    {SPEC_F_CALL, "call", NULL},
    {SPEC_F_RETURN_TO, "return_to", NULL},
    {SPEC_F_SEND, "send", "send"},
    {SPEC_F_RECEIVE, "receive", "receive"},
    {SPEC_F_PROCS, "procs", "ports"},
    {SPEC_F_PORTS, NULL, "ports"},
    {SPEC_F_RUNNING, "running", "running_ports"},
    {SPEC_F_EXITING, "exiting", NULL},
    {SPEC_F_GC, "garbage_collection", NULL},
};

/* Returns the kinds of events that a trace flag causes, except calls and results. */
static uint64_t kinds_of(unsigned flag)
{
    static const struct {
        unsigned flag, kind;
    } kinds[] = {
        {SPEC_F_RETURN_TO, ETW_RETURN_TO},
        {SPEC_F_SEND, ETW_SEND},
        {SPEC_F_SEND, ETW_SEND_NOPROC},
        {SPEC_F_RECEIVE, ETW_RECEIVE},
#define PROBED(name, number, id, layout, first, second, flag, doc) {SPEC_F_##flag, ETW_##name},
#include "event_kinds.def"
    };
    uint64_t bits = 0;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        bits |= kinds[i].flag == flag ? UINT64_C(1) << kinds[i].kind : 0;
    return bits;
}

/* Asks the node to set these flags when a process calls a root. */
static void arm_by_roots(struct arm *a, unsigned by_roots)
{
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (by_roots & flags[i].flag)
            arm_inside(a, flags[i].process, kinds_of(flags[i].flag));
}

static const char *const inherits[] = {NULL, "set_on_spawn", "set_on_first_spawn", "set_on_link", "set_on_first_link"};

/*
 * Chooses the processes and ports. Ports are traced if options name ports or if expressions ask for events of ports. If
 * options name only ports, no process is traced.
 */
static bool arm_whom(struct arming *a, const struct what_opts *what, unsigned wanted, struct err *e)
{
    const struct texts *procs = &what->procs, *ports = &what->ports;
    unsigned of_ports = ports->count && !procs->count ? SPEC_F_SEND | SPEC_F_RECEIVE | SPEC_F_RUNNING : 0;

    for (size_t i = 0; i < procs->count; i++)
        if (!arm_process(a, procs->items[i], e))
            return false;
    for (size_t i = 0; i < ports->count; i++)
        if (!arm_port(a, ports->items[i], e))
            return false;
    if (!ports->count && wanted & SPEC_F_PORTS)
        arm_port_who(&a->arm, ARM_WHO_ALL, STR(""));
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if (!(wanted & flags[i].flag))
            continue;
        if (flags[i].process && !(of_ports & flags[i].flag))
            arm_flag(&a->arm, flags[i].process);
        if (flags[i].port && (ports->count || flags[i].flag == SPEC_F_PORTS))
            arm_port_flag(&a->arm, flags[i].port);
    }
    return true;
}

static void arm_event(struct arming *a, const struct spec *s)
{
    for (int ev = 0; s->flags & SPEC_F_SYSTEM && ev < SPEC_EVENTS; ev++)
        if (s->events & SPEC_EVENT_BIT(ev))
            arm_system(&a->arm, spec_event_name((enum spec_event)ev), s->params, s->nparams);
    if (s->flags & SPEC_F_SEQ_TRACE)
        arm_seq_trace(&a->arm);
}

static void put_by_part(struct buf *b, const struct by_node_part *part)
{
    etf_list(b, 2 + part->deep);
    etf_int(b, part->what);
    etf_int(b, part->place);
    for (uint32_t i = 0; i < part->deep; i++)
        etf_int(b, part->path[i]);
    etf_nil(b);
}

static void arm_by_keys(struct arming *a, const struct exprs *p, int64_t most)
{
    struct buf keys = {0}, values = {0};
    struct by_node all;

    if (exprs_by_node(p, &all)) {
        for (size_t i = 0; i < all.nkeys; i++)
            put_by_part(&keys, &all.keys[i]);
        for (size_t i = 0; i < all.nvalues; i++)
            put_by_part(&values, &all.values[i]);
        arm_by(&a->arm, &keys, all.nkeys, &values, all.nvalues, most);
    }
    buf_release(&keys);
    buf_release(&values);
}

bool exprs_whom(const struct texts *procs, const struct session_node *node, struct buf *ret_list, struct err *e)
{
    struct arming a = {.otp = node->otp, .node = {node->name, strlen(node->name)}, .creation = node->creation};
    bool ok = true;

    arm_init(&a.arm);
    arena_init(&a.arena);
    for (size_t i = 0; ok && i < procs->count; i++)
        ok = arm_process(&a, procs->items[i], e);
    if (ok)
        arm_processes(&a.arm, ret_list);
    arm_release(&a.arm);
    arena_release(&a.arena);
    buf_release(&a.etf);
    return ok;
}

bool exprs_arm(const struct exprs *p, const struct what_opts *what, const struct session_node *node,
               struct exprs_how how, struct buf *ret_asked, struct err *e)
{
    struct arming a = {.otp = node->otp,
                       .anonymous = how.plan.anonymous,
                       .node = {node->name, strlen(node->name)},
                       .creation = node->creation};
    const struct plan *plan = &how.plan;
    unsigned wanted = 0, by_roots = 0, no_args = SPEC_F_ARITY;
    uint64_t besides;
    bool decides = false; /* a program tests arguments on the node, so the node needs them even if no view shows them */

    arm_init(&a.arm);
    arena_init(&a.arena);
    for (size_t i = 0, receives = 0; i < p->count; i++)
        a.meets |= p->specs[i]->kind == SPEC_RECV && receives++ > 0;
    struct fit fit = {.unknown = how.unknown, .nunknown = how.nunknown, .compared = how.compared, .a = &a.arena};
    bool ok = true;
    for (size_t i = 0; i < p->count; i++) {
        struct spec here;
        const struct spec *s = &here;
        if (!(ok = fit_to_node(&fit, p->specs[i], what, &here, e)))
            break;
        wanted |= s->flags;
        by_roots |= exprs_flags_by_roots(s);
        if (s->kind == SPEC_CALL && !s->root)
            no_args &= s->flags;
        decides |= spec_program(s, &a.arena) != NULL;
        if (s->kind == SPEC_EVENT)
            arm_event(&a, s);
        else
            arm_spec(&a, s);
    }
    arm_variables(&a.arm, fit.variables);
    ok = ok && arm_whom(&a, what, wanted & ~by_roots, e);
    arm_by_roots(&a.arm, by_roots);
    if (by_roots && what->sample > 1)
        arm_sample(&a.arm, what->sample);
    if ((wanted & SPEC_F_CALL) &&
        (no_args || (plan->route == ARM_TALLY && !decides && !where_steps_measure(plan->filter)))) {
        if (by_roots)
            arm_inside(&a.arm, "arity", 0);
        else
            arm_flag(&a.arm, "arity");
    }
    arm_route(&a.arm, plan->route);
    if (plan->route == ARM_BY)
        arm_by_keys(&a, p, what->keys ? what->keys : ETW_BY_ROWS);
    arm_filter(&a.arm, plan->filter);
    if (what->silent)
        arm_flag(&a.arm, "silent");
    if (what->follow) {
        arm_flag(&a.arm, "set_on_spawn");
        arm_flag(&a.arm, "set_on_link");
    } else if (inherits[what->inherit]) {
        arm_flag(&a.arm, inherits[what->inherit]);
    }
    arm_kinds(&a.arm, exprs_kinds(p, &besides));
    if (what->unsafe)
        arm_unsafe(&a.arm);
    if (what->allow_empty)
        arm_allow_empty(&a.arm);
    if (what->available)
        arm_available(&a.arm);
    arm_requests(&a.arm, what->requests);
    if (how.mark.first)
        arm_mark(&a.arm, how.mark);
    if (what->force)
        arm_force(&a.arm);
    /* -1: the node chooses a default, which depends on the traced functions */
    arm_overhead(&a.arm, what->overhead >= 10000 ? 0 : what->overhead ? what->overhead : what->force ? 0 : -1);
    if (ok && how.selects)
        arm_finish_selection(&a.arm, ret_asked);
    else if (ok)
        arm_finish(&a.arm, ret_asked);
    arm_release(&a.arm);
    arena_release(&a.arena);
    buf_release(&a.etf);
    return ok;
}
