/*
 * Which of the specs an event belongs to, and what its match specification result holds. The node names the specs where several
 * meet; the event then has a combined one (combo.h). Where the node does not say and the answer lies there (a selector by application
 * or behaviour), a spec that might be the one is taken.
 */
#ifndef ETRACE_PROBES_H
#define ETRACE_PROBES_H

#include "../events/event.h"
#include "../lang/spec.h"
#include "combo.h"

struct probes;

/* All are borrowed; the specs may be NULL with n 0. */
struct probes *probes_new(const struct spec *const *specs, size_t n, struct combos *combos);
void probes_free(struct probes *p);

/* NULL: none known. Takes the node's mark off the event's ms, where one says whose it is. */
const struct spec *probes_find(struct probes *p, struct event *e);

/*
 * The kinds of events that the specs ask for, bit K for kind K; those that no @event names are
 * always in it, and all are where none is asked for, or where an action may switch on others.
 */
uint64_t probes_kinds(const struct spec *const *specs, size_t n);

/* Whether an action of it may switch on flags of the VM, and with them events that no expression names. */
bool probes_switches(const struct spec *s);

/* The VM's flags bring whole families of events; of those that were asked for by name, this one was not. */
bool probes_unasked(const struct probes *p, const struct event *e);

/* Sets caller, stack, dump, user, sender, sender_node of the event, whose ms is good until the next one. Spec may be NULL. */
void probes_unpack(struct probes *p, const struct spec *s, struct event *e);

/* Sets by_arity and args_shown of a call by the clause that matched, before probes_unpack() or after. Spec may be NULL. */
void probes_project(const struct spec *s, struct event *e);

/* Whether a call (or a call of the function of a result) reports its result: 0 no, 1 yes, 2 perhaps. */
int probes_wants_return(struct probes *p, const struct event *e);

/* Whether calls of that spec may report their results at all. */
bool probes_reports(const struct spec *s);

#endif
