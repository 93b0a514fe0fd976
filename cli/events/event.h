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

/* The module and name of a function, formatted once. Functions are interned: equal names have equal pointers while the
 * program runs. */
struct fun {
    uint32_t hash, serial;   /* serial: 0, 1, 2, ... in the order of appearance */
    struct raw module, name; /* unescaped, converted to valid UTF-8 */
    struct str erl;          /* mod:fun in Erlang syntax; long enough for buf_short(), like the next two */
    struct str elixir;       /* Mod.fun in Elixir syntax */
    struct str json;         /* "m":"…","f":"…" */
    bool is_elixir;          /* the module is an Elixir module */
};

/* A traced process or port, and its name. */
struct tracee {
    uint64_t id;
    uint8_t text_len, name_len;
    char text[38]; /* <0.84.0> */
    char name[80]; /* escaped; empty: no name; truncated to fit */
};

static inline struct safe tracee_safe_name(const struct tracee *t)
{
    return (struct safe){t->name, t->name_len};
}

static inline struct safe tracee_safe_text(const struct tracee *t)
{
    return (struct safe){t->text, t->text_len};
}

/* A node that sends events. */
struct event_node {
    unsigned index;
    struct safe name;   /* empty: unknown */
    struct safe otp;    /* release and erts version; empty: unknown */
    bool latin1, otp27; /* printing options, see struct term_env */
    bool attached;      /* its hello arrived */
    bool fallback;      /* it traces without the NIF */
    bool aligned;       /* wall_ns is on the clock of the tracing host, so times of different nodes are comparable */
    struct safe why;    /* the reason for ETW_DOWN; may be empty */
    struct wire hello;  /* the map in its hello, self-contained; empty before */
};

struct event_call; /* pipeline/pairing.h */
struct spec;       /* lang/spec.h */
struct tracees;    /* names.h */

struct event {
    uint8_t kind;   /* enum etw_kind */
    uint8_t flags;  /* ETW_F_MS ETW_F_CUT ETW_F_ARITY */
    uint8_t arity;  /* arity of fun */
    uint8_t nterms; /* number of terms */
    uint32_t ring;
    uint32_t bytes; /* size of the frame */
    int64_t mono_ns, wall_ns;
    uint64_t began; /* tick of a call that the node held back until its result; otherwise 0 */
    int64_t waited_ns; /* how long the node held the event back; until pipeline.c subtracts it, the times are late by this */
    const struct event_node *node;
    const struct tracee *who;
    const struct fun *fun;         /* NULL: this kind has no function, or return_to undefined */
    struct term_env env;           /* needed to read any term of the event */
    struct wire terms;             /* arguments, value, message, ..., one after another (nif/event_kinds.def) */
    struct wire ms;                /* result of the match specification; empty without ETW_F_MS */
    const struct tracees *tracees; /* the node's table, for event_who() */

    const uint8_t *tally; /* ETW_TALLY: a struct etw_tally and its buckets; bounds are checked, alignment is not */
    const uint64_t *lost; /* ETW_LOST: new losses since the last such event, by enum etw_loss */
    bool doubtful;        /* a result may have been lost before this event; the loss itself is reported later */

    /*
     * Values that the probe collected, located in ms by the layout of its spec; NULL: not collected. Without a known
     * layout, `user` is all of ms. If sender is set and sender_node is not, the sender is on this node.
     */
    const uint8_t *caller, *stack, *dump, *user, *sender, *sender_node;

    const struct spec *spec; /* the spec that this event answers, if known; the pipeline sets it */

    /* Calls only: the arguments that the spec wants shown. All arguments are in `terms`, because filters may need
     * them. */
    bool by_arity;              /* show none */
    const uint64_t *args_shown; /* 256 bits, bit n-1 for argument n; NULL: show all */

    /* Filled by call pairing (pipeline/pairing.h). */
    const struct event_call *call; /* on a result: its call; NULL: unknown */
    int64_t dur_ns;                /* of a return, exception, end of a collection, or schedule out; -1: unknown */
    uint32_t depth;                /* enclosing open calls of this process */
    bool expects_return;           /* the call was asked to report its result */
};

enum event_term_type { EVENT_NO_TERM, EVENT_TERM, EVENT_PROCESS, EVENT_MFA, EVENT_INFO };

/* A row of nif/event_kinds.def. */
struct event_kind {
    const char *tag;  /* in OTP's spelling */
    const char *json; /* the "type" in JSON output */
    enum etw_layout layout;
    struct event_term {
        const char *name;
        uint8_t len;
        enum event_term_type type;
    } terms[2];
};

extern const struct event_kind event_kinds[ETW_KINDS]; /* tag NULL: unassigned */
extern const char *const event_losses[ETW_LOSSES];     /* names of the loss reasons: ring, rate, guard, ... */

/* The VM produced this event, so it counts in `seen`. The other kinds are etrace's own. */
static inline bool event_is_traced(const struct event *e)
{
    return e->kind < ETW_LOST;
}

static inline bool event_is_result(const struct event *e)
{
    return e->kind == ETW_RETURN_FROM || e->kind == ETW_EXCEPTION_FROM;
}

/* True for a notice that only confirms a request: the limit was reached, or tracing is armed. Views show nothing for
 * it. */
static inline bool event_is_expected(const struct event *e)
{
    return e->kind == ETW_NOTICE &&
           (wire_is_atom(&e->env, e->terms.at, "limit") || wire_is_atom(&e->env, e->terms.at, "armed"));
}

static inline bool event_shows_args(const struct event *e)
{
    return !(e->flags & ETW_F_ARITY) && !e->by_arity;
}

/* `index` counts from 0. */
static inline bool event_shows_arg(const struct event *e, unsigned index)
{
    return !e->args_shown || e->args_shown[index / 64] >> index % 64 & 1;
}

/*
 * Returns a copy that needs neither the batch nor the name tables (funs and nodes live as long as the pipeline). The
 * caller frees the copy with free(). Returns NULL if the terms are larger than `max` bytes. *ret_bytes is the size of
 * the copy. `spare` is NULL or an old copy whose memory is reused or freed.
 */
struct event *event_keep(const struct event *e, size_t max, struct event *spare, size_t *ret_bytes);

/* Looks up another process or port on the event's node. NULL: unknown. */
const struct tracee *event_who(const struct event *e, uint64_t tracee);

#endif
