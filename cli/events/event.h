/*
 * An event: one frame, decoded.
 *
 * An event and everything it points to is borrowed until the sink that was given it returns: the bytes stand in the
 * batch, the names in tables that later frames change. What must live longer is copied (wire_copy() for terms).
 */
#ifndef ETRACE_EVENT_H
#define ETRACE_EVENT_H

#include "../erlang/term_wire.h"

/* A function's two names, printed once when the node defines them. Equal names are equal pointers while the program runs. */
struct fun {
    struct fun *next; /* of its bucket in the table of names */
    uint32_t hash, serial; /* serial: 0, 1, 2, … in the order of appearance */
    struct raw module, name; /* the characters, made valid UTF-8 */
    struct str erl;          /* mod:fun as Erlang writes it; for buf_short(), as the next two */
    struct str elixir;       /* Mod.fun as Elixir writes it */
    struct str json;         /* "m":"…","f":"…" */
    bool is_elixir;          /* the module is one of Elixir's */
};

/* A traced process or port and what it is called. */
struct tracee {
    uint64_t id;
    uint8_t text_len, name_len;
    char text[38];  /* <0.84.0> */
    char name[80];  /* safe to print; empty when it has none; cut where it is longer */
};

static inline struct safe tracee_safe_name(const struct tracee *t)
{
    return (struct safe){t->name, t->name_len};
}

/* A node that events come from. */
struct event_node {
    unsigned index;
    struct safe name;   /* empty when the node did not say */
    struct safe otp;    /* release and erts version, empty when not said */
    bool latin1, otp27; /* how it prints: struct term_env */
    bool attached;      /* it said hello */
    bool fallback;      /* it traces without the NIF */
    bool aligned;       /* wall_ns is in the time of the host that traced, and so can be compared between nodes */
    struct safe why;    /* why the node went down; may be empty */
    struct wire hello;  /* the map it sent, spelled out; empty before */
};

struct event_call; /* views/calls.h */
struct spec;       /* lang/spec.h */
struct tracees;    /* names.h */

struct event {
    uint8_t kind;   /* enum etw_kind */
    uint8_t flags;  /* ETW_F_MS ETW_F_CUT ETW_F_ARITY */
    uint8_t arity;  /* of fun */
    uint8_t nterms; /* in terms */
    uint32_t ring;
    uint32_t bytes; /* of the frame */
    int64_t mono_ns, wall_ns;
    uint64_t began;      /* of a call that waited for its result on the node: its tick, 0 for all others; */
    int64_t waited_ns;   /* and how long it did: then the times are those of its place in the stream */
    const struct event_node *node;
    const struct tracee *who;
    const struct fun *fun; /* NULL when the kind has none, and for return_to undefined */
    struct term_env env;   /* for every term of the event */
    struct wire terms;     /* arguments, value, message, … after another (event_kinds.def) */
    struct wire ms;        /* the match specification's result; empty without ETW_F_MS */
    const struct tracees *tracees; /* of the node, for event_who() */

    const uint8_t *tally; /* ETW_TALLY: a struct etw_tally and its buckets, whole but unaligned */
    const uint64_t *lost; /* ETW_LOST: how many that were not told before, by enum etw_loss */
    bool doubtful;        /* a result was perhaps lost before it, which is told later */

    /*
     * Collected beside the event, found in ms by the layout of its spec; NULL: not there. When no spec says what ms is,
     * `user` is all of it. A sender without sender_node is of this node.
     */
    const uint8_t *caller, *stack, *dump, *user, *sender, *sender_node;

    const struct spec *spec; /* what it answers, as far as that is known; set by the pipeline */

    /* Of a call: what its spec wants to be shown. The arguments are there all the same, for filters. */
    bool by_arity;             /* none */
    const uint64_t *args_shown; /* bit n-1 of 256: argument n; NULL: all */

    /* Filled by the pairing of calls */
    const struct event_call *call; /* what is known of the call, on its return; NULL: nothing */
    int64_t dur_ns;                /* of a return, exception, collection end, schedule out; -1 when not known */
    uint32_t depth;                /* open calls of this process around this one */
    bool expects_return;           /* a call that was asked to report its result */
};

/* A row of event_kinds.def. */
struct event_kind {
    const char *tag;    /* as OTP spells it */
    const char *json;   /* "type" */
    const char *layout;
    const char *terms;  /* names of the terms, space between */
};

extern const struct event_kind event_kinds[ETW_KINDS]; /* tag NULL: no such kind */
extern const char *const event_losses[ETW_LOSSES];     /* what a loss is called: ring, rate, guard, … */

/* Offered by the VM and counted in `seen`; the others are etrace's own. */
static inline bool event_is_traced(const struct event *e)
{
    return e->kind < ETW_LOST;
}

static inline bool event_is_result(const struct event *e)
{
    return e->kind == ETW_RETURN_FROM || e->kind == ETW_EXCEPTION_FROM;
}

/* A notice of what was asked for: the owner has stopped at the limit, or traces what it was told to. Nothing to show. */
static inline bool event_is_expected(const struct event *e)
{
    return e->kind == ETW_NOTICE &&
           (wire_is_atom(&e->env, e->terms.at, "limit") || wire_is_atom(&e->env, e->terms.at, "armed"));
}

static inline bool event_shows_args(const struct event *e)
{
    return !(e->flags & ETW_F_ARITY) && !e->by_arity;
}

/* The argument at this index, from 0. */
static inline bool event_shows_arg(const struct event *e, unsigned index)
{
    return !e->args_shown || e->args_shown[index / 64] >> index % 64 & 1;
}

/*
 * A copy that needs nothing of the batch and the tables it came from (funs and nodes live as long as the pipeline); the
 * caller frees it with free(). NULL when its terms are larger than `max` bytes. *ret_bytes is its size. `spare` is NULL or a
 * copy that nobody needs any more: its memory is used again, or freed.
 */
struct event *event_keep(const struct event *e, size_t max, struct event *spare, size_t *ret_bytes);

/* What is known of another process or port of the event's node; NULL when nothing. */
const struct tracee *event_who(const struct event *e, uint64_t tracee);

#endif
