/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoded event.
 *
 * An event and all its pointers are borrowed until the sink that received it returns: the bytes are in the batch, and
 * later frames change the name tables. Copy what must live longer (event_keep(), or wire_copy() for terms).
 */
#ifndef ETRACE_EVENT_H
#define ETRACE_EVENT_H

#include "../erlang/term_wire.h"

/*
 * The module and name of a function, formatted once. Functions are interned: in one table (struct funs), equal names
 * have equal pointers until the table is released.
 */
struct fun {
    uint32_t hash, serial;   /* serial: 0, 1, 2, ... in the order of appearance */
    struct raw module, name; /* unescaped, converted to valid UTF-8 */
    struct str erl;          /* mod:fun in Erlang syntax; buf_short() may read erl, elixir and json */
    struct str elixir;       /* Mod.fun in Elixir syntax */
    struct str json;         /* "m":"…","f":"…" */
    bool is_elixir;          /* prints in Elixir: its module is written in Elixir, or all functions of its table do */
};

/* Returns the name of the function in Elixir if `is_elixir` is set, otherwise in Erlang. */
static inline struct str fun_text(const struct fun *f)
{
    return f->is_elixir ? f->elixir : f->erl;
}

#define TRACEE_NAME 80

/* A traced process or port, and its name. */
struct tracee {
    uint64_t id;
    uint8_t text_len, name_len;
    char text[38];          /* <0.84.0> */
    char name[TRACEE_NAME]; /* escaped; empty: no name; truncated to fit */
};

static inline struct safe tracee_safe_name(const struct tracee *t)
{
    return (struct safe){t->name, t->name_len};
}

static inline struct safe tracee_safe_text(const struct tracee *t)
{
    return (struct safe){t->text, t->text_len};
}

#define EVENT_NODES 256 /* limit for the nodes of a trace; arrays with an entry for each node have this length */

/* A node that sends events. */
struct event_node {
    unsigned index;    /* below EVENT_NODES: order_expect() and scroll_batch() refuse other numbers */
    struct safe name;  /* empty: unknown */
    struct safe otp;   /* release and erts version; empty: unknown */
    bool otp27;        /* the node runs OTP 27 or older, which prints some terms differently (struct term_env) */
    bool attached;     /* the node's hello arrived */
    bool fallback;     /* the node traces without the NIF */
    bool elixir;       /* the node runs Elixir */
    bool aligned;      /* wall_ns is on the clock of the tracing host, so times of different nodes are comparable */
    int64_t shift_ns;  /* event.shift_ns of the events that follow */
    struct safe why;   /* the reason for ETW_DOWN; may be empty */
    struct wire hello; /* the map of the node's hello, self-contained; empty before the hello */
    /*
     * The time until which every event of this node has come out. The time also advances while the node sends no
     * events. It is valid only if `passed` is true.
     */
    bool passed;
    int64_t passed_mono_ns, passed_wall_ns;
};

struct event_call; /* fold/pairing.h */
struct spec;       /* lang/spec.h */
struct tracees;    /* names.h */

struct event {
    uint8_t kind;   /* enum etw_kind */
    uint8_t flags;  /* ETW_F_MS ETW_F_CUT ETW_F_ARITY */
    uint8_t arity;  /* arity of fun */
    uint8_t nterms; /* number of terms in `terms` */
    uint32_t ring;
    uint32_t bytes; /* bytes of the frame */
    int64_t mono_ns, wall_ns;
    /*
     * Added to mono_ns, it gives a time that goes on when the stream of the node begins anew (event_steady()), perhaps
     * with the monotonic clock of a restarted VM. It is 0 in the first run.
     */
    int64_t shift_ns;
    /*
     * The number (1, 2, ...) of the event among the events of the VM that the pipeline has received. An event of
     * etrace's own has the number of the last such event before it. The pipeline sets the number.
     */
    uint64_t number;
    uint64_t began; /* tick at which the event happened, if the node sent it later; otherwise 0 */
    /* How long the node held the event back. The times above are late by waited_ns until pipeline.c subtracts it. */
    int64_t waited_ns;
    const struct event_node *node;
    const struct tracee *who;
    const struct fun *fun;         /* NULL: events of this kind have no function, or it is `undefined` (return_to) */
    struct term_env env;           /* needed to read any term of the event */
    struct wire terms;             /* arguments, value, message, ..., one after another (nif/event_kinds.def) */
    struct wire ms;                /* result of the match specification; empty without ETW_F_MS */
    const struct tracees *tracees; /* the node's table, for event_who() */

    const struct etw_tally *tally; /* ETW_TALLY */
    const uint8_t *tally_buckets;  /* buckets of `tally`; bounds are checked, alignment is not */
    const uint64_t *lost;          /* ETW_LOST: losses since the previous such event, by enum etw_loss */
    bool gap;                      /* ETW_LOST: a flight recorder has overwritten these events; a snapshot follows */
    bool doubtful;                 /* a result may have been lost before this event; a later event reports the loss */

    /*
     * Values that the probe collected, located in `ms` by the layout of its spec; NULL: not collected. If the layout is
     * unknown, `user` is all of `ms`. If `sender` is set and `sender_node` is not, the sender is on this node.
     */
    const uint8_t *caller, *stack, *dump, *user, *sender, *sender_node;

    uint64_t weight; /* number of samples of a process that found `stack`; 0: the event is no sample */

    const struct spec *spec; /* the spec that this event answers, if known; the pipeline sets it */

    /* Calls only: the arguments that the spec shows. `terms` has all arguments, because filters may need them. */
    bool by_arity;              /* show the arity instead of arguments */
    const uint64_t *args_shown; /* 256 bits, bit n-1 for argument n; NULL: show all */

    /* Filled by call pairing (fold/pairing.h). */
    const struct event_call *call; /* the call of a result; NULL: unknown */
    int64_t dur_ns;      /* duration of the call, garbage collection or time slice that this event ends; -1: unknown */
    uint32_t depth;      /* number of open calls of this process around the event */
    bool expects_return; /* the call was asked to report its result */
};

enum event_term_type { EVENT_NO_TERM, EVENT_TERM, EVENT_PROCESS, EVENT_MFA, EVENT_INFO };

/* A row of nif/event_kinds.def. */
struct event_kind {
    const char *tag;  /* the trace tag, as OTP spells it */
    const char *json; /* the "type" in JSON output */
    enum etw_layout layout;
    struct event_term {
        const char *name;
        uint8_t len;
        enum event_term_type type;
    } terms[2];
};

extern const struct event_kind event_kinds[ETW_KINDS]; /* by enum etw_kind; `tag` is NULL for an unused number */
extern const char *const event_losses[ETW_LOSSES];     /* names of the loss reasons: ring, rate, guard, ... */

/* Returns true if losses for this reason may separate a call from its result: only one of the two may be lost. */
static inline bool event_loss_tears(enum etw_loss reason)
{
    return reason != ETW_LOST_RATE && reason != ETW_LOST_REQUEST;
}

/* Returns true if the VM produced this event, so that `seen` counts it. The other kinds are etrace's own. */
/* Returns the monotonic time on a scale that all runs of the node share. */
static inline int64_t event_steady(const struct event *e)
{
    return (int64_t)((uint64_t)e->mono_ns + (uint64_t)e->shift_ns);
}

static inline bool event_is_traced(const struct event *e)
{
    return e->kind < ETW_LOST;
}

static inline bool event_is_result(const struct event *e)
{
    return e->kind == ETW_RETURN_FROM || e->kind == ETW_EXCEPTION_FROM;
}

/* Returns true for a notice that the node traces calls again after a pause (--overhead). */
static inline bool event_is_resumed(const struct event *e)
{
    return e->kind == ETW_NOTICE && wire_is_atom(&e->env, e->terms.at, "resumed");
}

/*
 * Returns true for the notice that comes before the events of a snapshot. The snapshot has every event since the tick
 * *ret_from, which was *ret_us microseconds ago. *ret_from is 0 if the node has overwritten no events.
 */
bool event_begins_snapshot(const struct event *e, int64_t *ret_from, int64_t *ret_us);

/* Returns true for a notice that the node has sent all events of a snapshot. */
static inline bool event_ends_snapshot(const struct event *e)
{
    return e->kind == ETW_NOTICE && wire_is_atom(&e->env, e->terms.at, "snapshot_end");
}

/*
 * Returns true for a notice that no view shows. It confirms that the limit was reached or that tracing is armed, or it
 * is only for the pairing of calls, the order of events or the summary.
 */
static inline bool event_is_expected(const struct event *e)
{
    return e->kind == ETW_NOTICE &&
           (wire_is_atom(&e->env, e->terms.at, "limit") || wire_is_atom(&e->env, e->terms.at, "armed") ||
            wire_is_atom(&e->env, e->terms.at, "asked") || wire_is_atom(&e->env, e->terms.at, "waits") ||
            wire_is_atom(&e->env, e->terms.at, "times") || event_is_resumed(e) ||
            wire_is_atom(&e->env, e->terms.at, "snapshot_none") || event_ends_snapshot(e));
}

static inline bool event_shows_args(const struct event *e)
{
    return !(e->flags & ETW_F_ARITY) && !e->by_arity;
}

/* Returns the wall clock at which the event really happened. If the node held it back, wall_ns is late by waited_ns. */
static inline int64_t event_began(const struct event *e)
{
    return (int64_t)((uint64_t)e->wall_ns - (uint64_t)MAX(e->waited_ns, 0));
}

/* Returns true if the event shows the argument with this index, which begins at 0. */
static inline bool event_shows_arg(const struct event *e, unsigned index)
{
    return !e->args_shown || e->args_shown[index / 64] >> index % 64 & 1;
}

/*
 * Returns a copy of the event, which the caller frees with free(). The copy needs neither the batch nor the name tables
 * (funs and nodes live as long as the pipeline). Returns NULL if the terms are larger than `max` bytes. *ret_bytes is
 * the size of the copy. `spare` is NULL, or an old copy, whose memory event_keep() reuses or frees.
 */
struct event *event_keep(const struct event *e, size_t max, struct event *spare, size_t *ret_bytes);

/* Finds another process or port of the event's node. Returns NULL if it is unknown. */
const struct tracee *event_who(const struct event *e, uint64_t tracee);
/* Returns a process or port of the event's node. The name is empty if the node has not reported it. */
struct tracee event_tracee(const struct event *e, uint64_t tracee);
/*
 * Reads a process or port from a term. A process of another node gets the id 0. Returns false for other terms, and
 * leaves *ret unchanged.
 */
bool event_process(const struct event *e, const uint8_t *at, struct tracee *ret);

#endif
