/*
 * The request that arms a session, piece by piece, and its answer.
 *
 *   arm_init, then for each probe arm_probe, arm_select…, arm_spec_any or arm_spec_arity…; arm_who and arm_flag
 *   for the whole; arm_finish writes what is asked for, arm_request a request for it; arm_release.
 *
 * Texts and specifications are copied. Calling in another order is a mistake of the program (assert); nothing else fails.
 */
#ifndef ETRACE_ARM_H
#define ETRACE_ARM_H

#include "../erlang/etf.h"
#include "../ground/buf.h"
#include "../ground/err.h"

enum arm_kind { ARM_CALL, ARM_SEND, ARM_RECV };
enum arm_scope { ARM_LOCAL, ARM_GLOBAL, ARM_META };
enum arm_how { ARM_ANY, ARM_NAME, ARM_GLOB, ARM_REGEX, ARM_APP, ARM_BEHAVIOUR };

enum arm_who {
    ARM_WHO_ALL,
    ARM_WHO_EXISTING,
    ARM_WHO_NEW,
    ARM_WHO_PID,  /* text: "<0.84.0>" */
    ARM_WHO_NAME, /* text: a registered name */
    ARM_WHO_APP,  /* text: an application: its processes */
    ARM_WHO_INITIAL, /* text: "m:f/a": processes that began there */
    ARM_WHO_PORT,   /* text: "#Port<0.5>" */
    ARM_WHO_DRIVER, /* text: what ports were opened with, as erlang:port_info/2 names it */
};

struct arm_pattern {
    enum arm_how how;
    struct str text;
    const struct arm_pattern *without; /* of a module: those that are not meant */
    size_t nwithout;
};

/*
 * For who arms again and again: the notices `armed` in the stream of events. `first` comes in front of the first event that
 * answers the request; `last`, where it is another number, behind the last event that does not. 0: neither.
 */
struct arm_mark {
    uint64_t first, last;
};

struct arm {
    struct buf probes, select, specs, program, procs, ports, flags, port_flags, system, filter;
    size_t nprobes, nselect, nspecs, nprocs, nports, nflags, nport_flags, nsystem;
    uint64_t kinds;
    int variables;
    bool open, per_arity;
    int id;
    enum arm_kind kind;
    enum arm_scope scope;
    bool allow_empty, available, seq_trace, unsafe, tally, hold, force;
    struct arm_mark mark;
};

void arm_init(struct arm *a);
void arm_release(struct arm *a);

void arm_probe(struct arm *a, int id, enum arm_kind kind, enum arm_scope scope);
void arm_select(struct arm *a, struct arm_pattern module, struct arm_pattern function, int arity_lo, int arity_hi);
void arm_spec_any(struct arm *a, struct str etf);              /* a match specification or `true`, with its 131 */
void arm_spec_arity(struct arm *a, int arity, struct str etf); /* for functions of that arity; other arities are not traced */
void arm_program(struct arm *a, struct str etf); /* what decides as the specification does (enum etw_step), with its 131 */

void arm_who(struct arm *a, enum arm_who who, struct str text);      /* processes; none: all */
void arm_port_who(struct arm *a, enum arm_who who, struct str text); /* ports; none: none */
/* A process that a registry names: Module:whereis_name(Name), Name with its 131; text: as it was written. */
void arm_who_via(struct arm *a, struct str module, struct str name_etf, struct str text);
void arm_flag(struct arm *a, const char *flag); /* as trace:process/4 spells it: "call", "set_on_spawn", … */
void arm_tally(struct arm *a);                  /* nothing but figures is wanted of calls (struct etw_tally) */
void arm_hold(struct arm *a);                   /* calls wait on the node for the result that decides about them */
void arm_filter(struct arm *a, struct str steps); /* of calls for which this holds (struct etw_filter_step); none said: of all */
void arm_port_flag(struct arm *a, const char *flag); /* as trace:port/4 does */
void arm_system(struct arm *a, const char *event, const int64_t *limits, size_t n); /* none: `true`; two: the lower first */
void arm_kinds(struct arm *a, uint64_t mask);   /* bit K: events of kind K are wanted; none said: all */
void arm_variables(struct arm *a, int most);    /* the specifications have '$1' to this one: the node makes the atoms it lacks */
void arm_seq_trace(struct arm *a);              /* be the system tracer of seq_trace */
void arm_unsafe(struct arm *a);                 /* also what can harm the node */
void arm_allow_empty(struct arm *a);            /* a probe that matches nothing is no error */
void arm_available(struct arm *a);              /* wildcards mean modules that can be loaded, too, which loads them */
void arm_mark(struct arm *a, struct arm_mark mark); /* and every event says which probe it answers, by its id */

void arm_force(struct arm *a);                  /* wildcards take what the tracing itself goes through, too */

void arm_finish(struct arm *a, struct buf *ret_asked); /* appends what arm_request() takes */

/*
 * What shall be done about it: ARM_SELECT says what it would trace, ARM_COUNT counts for a second the calls of the functions
 * that a wildcard takes where a node is busy, ARM_TRACE traces. Each appends the term for session_request().
 */
enum arm_verb { ARM_SELECT, ARM_COUNT, ARM_TRACE };
void arm_request(struct buf *ret_request, enum arm_verb verb, struct str asked);
void arm_disarm(struct buf *ret_request);                /* takes every pattern and flag away; the session stays */

/* Asks which of these names, binaries, are no atoms of the node; the answer is a list of binaries. */
void arm_atoms(struct buf *ret_request, struct buf *names, size_t n);

/* Asks for the definition of a record in the modules that the patterns select. */
void arm_record(struct buf *ret_request, const struct arm_pattern *modules, size_t nmodules, struct str name);

struct arm_result_probe {
    int id;
    uint64_t functions, modules;
    struct err missing; /* why there is no function, as far as the node says; status 0: it does not */
};

struct arm_result {
    struct arm_result_probe *probes;
    size_t nprobes;
    uint64_t functions; /* in all; one that several probes select counts once */
    uint64_t processes, ports;
    uint64_t busy;   /* of ARM_SELECT: the functions that ARM_COUNT would count */
    char **warnings; /* what this node's version cannot do rightly, one sentence each */
    size_t nwarnings;
};

bool arm_result_read(struct etf term, struct arm_result *ret, struct err *e); /* of a reply that is ok */
void arm_result_release(struct arm_result *r);

/* The answer to ARM_COUNT: calls a second of all, and of those functions that are called most. */
#define ARM_MOST 3
struct arm_rates {
    uint64_t all, most[ARM_MOST];
    char names[ARM_MOST][128];
    size_t count;
};

bool arm_rates_read(struct etf term, struct arm_rates *ret, struct err *e);

#endif
