/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the request that arms a session, that is, tells the node what to trace. Reads the answer, too. Sends nothing:
 * session_request() does.
 *
 * Order of calls:
 *
 *   arm_init()
 *   for each probe: arm_probe(), arm_select() once or more, then arm_spec_any() once or arm_spec_arity() once or more
 *   at any time: the functions for the whole request, such as arm_who() and arm_flag()
 *   arm_finish(), which writes the description, and arm_request(), which wraps the description in a request
 *   arm_release()
 *
 * struct arm copies all texts and specifications. A wrong order of calls is a bug of the caller and fails an assertion.
 * Building cannot fail otherwise.
 */
#ifndef ETRACE_ARM_H
#define ETRACE_ARM_H

#include "../erlang/etf.h"
#include "../ground/buf.h"
#include "../ground/err.h"

enum arm_kind { ARM_CALL, ARM_SEND, ARM_RECV };
enum arm_scope { ARM_LOCAL, ARM_GLOBAL, ARM_META };
/* A route says what the node does with the events; nif/README.md has a table of the routes. */
enum arm_route { ARM_SENDS, ARM_TALLY, ARM_BY, ARM_HOLD, ARM_TREES };

enum arm_how { ARM_ANY, ARM_NAME, ARM_GLOB, ARM_REGEX, ARM_APP, ARM_BEHAVIOUR };

enum arm_who {
    ARM_WHO_ALL,
    ARM_WHO_EXISTING,
    ARM_WHO_NEW,
    ARM_WHO_PID,     /* `text` is "<0.84.0>" */
    ARM_WHO_NAME,    /* `text` is a registered name */
    ARM_WHO_APP,     /* `text` is an application: selects its processes */
    ARM_WHO_INITIAL, /* use arm_who_initial(): selects the processes with an initial call */
    ARM_WHO_PORT,    /* `text` is "#Port<0.5>" */
    ARM_WHO_DRIVER,  /* `text` is the port's name in erlang:port_info/2 */
    ARM_WHO_VIA,     /* use arm_who_via(): selects the process that has a name in a registry */
};

struct arm_pattern {
    enum arm_how how;
    struct str text;
    const struct arm_pattern *without; /* modules to exclude; only in a pattern of modules */
    size_t nwithout;
};

/*
 * A client can arm a session several times. Each request then puts one or two numbered `armed` notices into the event
 * stream. All events before the notice `first` belong to earlier requests, and all events after the notice `last`
 * belong to the new request. `first` and `last` are equal if one notice is enough. first == 0: the node sends no
 * notice.
 */
struct arm_mark {
    uint64_t first, last;
};

struct arm {
    struct buf probes, select, specs, program, procs, ports, flags, inside, port_flags, system, filter, by;
    size_t nprobes, nselect, nspecs, nprocs, nports, nflags, ninside, nport_flags, nsystem;
    uint64_t kinds, kinds_inside;
    int variables;
    bool open, per_arity, root;
    int id;
    enum arm_kind kind;
    enum arm_scope scope;
    enum arm_route route;
    bool allow_empty, available, seq_trace, unsafe, force;
    int64_t overhead, sample;
    unsigned requests;
    struct arm_mark mark;
};

void arm_init(struct arm *a);
void arm_release(struct arm *a);

void arm_probe(struct arm *a, int id, enum arm_kind kind, enum arm_scope scope);
void arm_select(struct arm *a, struct arm_pattern module, struct arm_pattern function, int arity_lo, int arity_hi);
/*
 * These two set specifications. A specification is a match specification or `true`, in the external term format with
 * the version byte 131.
 */
void arm_spec_any(struct arm *a, struct str etf); /* sets the specification for functions of every arity */
/* Sets the specification for functions of one arity. Functions of an arity without a specification are not traced. */
void arm_spec_arity(struct arm *a, int arity, struct str etf);
/* Adds a program with which the NIF decides like the specification (enum etw_step), with the version byte 131. */
void arm_program(struct arm *a, struct str etf);

void arm_root(struct arm *a); /* calls of this probe are the roots of `inside`; its scope must be ARM_META */

/* Adds processes; without any, all processes are traced. */
void arm_who(struct arm *a, enum arm_who who, struct str text);
void arm_processes(const struct arm *a, struct buf *ret_list); /* appends the processes that were added, as a list */
void arm_port_who(struct arm *a, enum arm_who who, struct str text); /* adds ports; without any, no port is traced */
/*
 * Adds the process that Module:whereis_name(Name) returns. name_etf begins with the version byte 131; text is the name
 * as the user typed it.
 */
void arm_who_via(struct arm *a, struct str module, struct str name_etf, struct str text);
void arm_who_initial(struct arm *a, struct str module, struct str function, int arity, struct str text);
void arm_flag(struct arm *a, const char *flag);
void arm_sample(struct arm *a, int64_t roots); /* needs arm_inside(): shows only one of every `roots` calls of roots */
/*
 * Adds a trace flag that each call of a root sets for its process, and the kinds of events that are shown only inside
 * of roots (bit K: kind K).
 */
void arm_inside(struct arm *a, const char *flag, uint64_t kinds);
/*
 * Sets what the node does with the events. Without a call the route is ARM_SENDS. ARM_BY needs arm_by(). With
 * ARM_TREES, the filter of arm_filter() applies to the results of roots.
 */
void arm_route(struct arm *a, enum arm_route route);
/*
 * Sets the keys and values of ARM_BY. The buffers contain nkeys and nvalues encoded lists. `most` limits how many keys
 * the node counts.
 */
void arm_by(struct arm *a, struct buf *keys, size_t nkeys, struct buf *values, size_t nvalues, int64_t most);
void arm_filter(struct arm *a, struct str filter);   /* sets the node's filter of calls (where_steps()) */
void arm_port_flag(struct arm *a, const char *flag); /* adds a flag of trace:port/4 for the ports */
/* Adds a system event with its limits. n == 0: the event has no limit; n == 2: the lower limit comes first. */
void arm_system(struct arm *a, const char *event, const int64_t *limits, size_t n);
/* Sets which kinds of events the node sends (bit K: kind K); default: all kinds. */
void arm_kinds(struct arm *a, uint64_t mask);
/* Sets the highest N of '$N' in the specifications: the node creates these atoms. */
void arm_variables(struct arm *a, int most);
void arm_seq_trace(struct arm *a);   /* makes the session the system tracer of seq_trace */
void arm_unsafe(struct arm *a);      /* allows requests that can harm the node */
void arm_allow_empty(struct arm *a); /* lets a probe match no function without an error */
void arm_available(struct arm *a);   /* lets wildcards also select modules of the code path, and load them */
/* Sets how the node encodes the events for the views of requests (enum etw_requests). */
void arm_requests(struct arm *a, unsigned flags);
/* Sets the numbers of the notices, and gives every event the id of its probe. */
void arm_mark(struct arm *a, struct arm_mark mark);

/*
 * Sets the budget for tracing calls, in hundredths of a percent of the schedulers' time. 0: no budget; -1: the default
 * for the selected functions.
 */
void arm_overhead(struct arm *a, int64_t hundredths);
void arm_force(struct arm *a); /* lets wildcards also select functions that the tracing itself uses */

void arm_finish(struct arm *a, struct buf *ret_asked); /* appends the description, which arm_request() takes */
/*
 * Appends only the part of the description that selects functions. The node rejects a request with an unknown atom, and
 * COMPANION_QUESTIONS lacks the atoms of the other parts.
 */
void arm_finish_selection(struct arm *a, struct buf *ret_asked);

/* ARM_SELECT only reports what would be traced. ARM_TRACE traces. */
enum arm_verb { ARM_SELECT, ARM_TRACE };
/* Each of these four functions appends one term for session_request(). */
void arm_request(struct buf *ret_request, enum arm_verb verb, struct str asked);
void arm_disarm(struct buf *ret_request); /* a request that clears all patterns and flags but keeps the session */

/* Asks which of the names are not atoms on the node. `names` contains n encoded binaries. */
void arm_atoms(struct buf *ret_request, struct buf *names, size_t n);

/* Asks for the definition of the record `name` in the modules that match the patterns. */
void arm_record(struct buf *ret_request, const struct arm_pattern *modules, size_t nmodules, struct str name);

struct arm_result_probe {
    int id;
    uint64_t functions, modules;
    struct err missing; /* why the probe selects no function; status 0: the node gave no reason */
};

struct arm_result_texts {
    char **items;
    size_t n;
};

struct arm_result {
    struct arm_result_probe *probes;
    size_t nprobes;
    uint64_t functions; /* of all probes; counts a function of several probes once */
    uint64_t processes, ports;
    struct arm_result_texts warnings; /* a sentence for each limitation of the node's OTP version */
    struct arm_result_texts loaded;   /* some of the modules that the node loaded for this request */
};

/* Reads the term of a reply to arm_request() whose `ok` is true. Returns false if the term is malformed. */
bool arm_result_read(struct etf term, struct arm_result *ret, struct err *e);
void arm_result_release(struct arm_result *r);

#endif
