/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines the result of compiling an expression, for all floors above. A spec does not keep the tree.
 *
 * Everything that a spec points to, including the source text, lives in the arena that lang_compile() gets and is
 * immutable. No function on a spec can fail, because lang_compile() has rejected every invalid expression.
 */
#ifndef ETRACE_SPEC_H
#define ETRACE_SPEC_H

#include "../erlang/term.h"
#include "functions.h"
#include "properties.h"

enum spec_kind {
    SPEC_CALL,  /* set with trace:function/4; uses selectors, match_spec, scope and counters */
    SPEC_SEND,  /* set with trace:send/3; match_spec matches [To, Msg] */
    SPEC_RECV,  /* set with trace:recv/3; match_spec matches [Node, Sender, Msg] */
    SPEC_EVENT, /* set with flags of processes and ports, or trace:system/3; uses events and params, not match_spec */
};

enum spec_scope { SPEC_LOCAL, SPEC_GLOBAL, SPEC_META };

enum spec_surface { SPEC_ERLANG, SPEC_ELIXIR };

/* ---- selectors: a call spec has at least one, and traces what any of them selects ---- */

enum sel_how {
    SEL_ANY,       /* `_` */
    SEL_ATOM,      /* text is the atom's name, without quotes ('Elixir.MyApp.Repo' for MyApp.Repo) */
    SEL_GLOB,      /* text with * and ?, matched against the atom's whole name (an Elixir module begins with Elixir.) */
    SEL_REGEX,     /* text is PCRE2, searched for in the atom's name */
    SEL_APP,       /* modules of the application `text` (module position only) */
    SEL_BEHAVIOUR, /* modules with that behaviour (module position only) */
};

struct sel_name {
    enum sel_how how;
    struct str text;
};

#define SPEC_ARITY_MAX 255

struct selector {
    struct sel_name module, function;
    const struct sel_name *without; /* modules to exclude, even if `module` matches them */
    size_t nwithout;
    int arity_lo, arity_hi; /* the lowest and the highest arity; 0 and SPEC_ARITY_MAX select every arity */
    size_t from, len;       /* the place in spec.text, for messages such as "nothing matches" */
};

bool selector_any_arity(const struct selector *s);

/* ---- data collected with an event ---- */

/*
 * The match specification collects all data of an event in one {message, {{E1, …, En}}}; `pack` names the elements. The
 * tuple has the same elements for every clause of a spec. An element that a clause does not collect is [], and its bit
 * is not set in clauses[i].has. PACK_CLAUSE is the index in `clauses`, from 0. It is in the pack if there are several
 * clauses and one of them collects data or changes which arguments are shown. If npack is 0, the spec has no pack, and
 * a match_spec_result comes from the user's own message().
 *
 * A pack of {PACK_NODE, PACK_SENDER} has a short form, a single term instead of the tuple. If the term is a pid, it is
 * the sender, and the node is the traced node. Any other term is the VM's value for the node, and the sender is
 * unknown.
 */
enum pack_item {
    PACK_CLAUSE, /* integer */
    PACK_NODE,   /* recv: the node of the sender, an atom */
    PACK_SENDER, /* recv: the sender: a pid, a port, or `undefined` */
    PACK_CALLER, /* {M,F,A,{File,Line}} | {M,F,A} | undefined */
    PACK_STACK,  /* [{M,F,A,[{file,F},{line,L}]}, …] */
    PACK_DUMP,   /* binary: the text of process_dump */
    PACK_USER,   /* the term of msg(T); for several msg() a list in the order written */
    PACK_ITEMS,
};

enum spec_action {
    ACT_RETURN = 1 << 0,       /* {exception_trace}: results and exceptions arrive as events */
    ACT_RETURN_TRACE = 1 << 1, /* the user wrote {return_trace}: results arrive as events, but no exceptions */
    ACT_DROP = 1 << 2,         /* calls that match the clause make no event */
    ACT_ARITY = 1 << 3,        /* show the arity instead of the arguments */
    ACT_PROJECT = 1 << 4,      /* show only the arguments in `args` */
    ACT_SILENT = 1 << 5,       /* silent/1 is used: the user may mute calls on purpose */
    ACT_FLAGS = 1 << 6,        /* trace/enable_trace/disable_trace are used: process flags change inside the VM */
    ACT_TOKEN = 1 << 7,        /* set_seq_token is used */
    ACT_UNSAFE = 1 << 8,       /* display or set_tcw is used */
    ACT_RETURN_TO = 1 << 9,    /* the process flag return_to is needed */
};

struct spec_clause {
    unsigned has;     /* bits 1 << PACK_x that this clause fills */
    unsigned actions; /* bits ACT_x */
    uint64_t args[4]; /* ACT_PROJECT: bit n-1 of the 256 is set if argument n is shown */
    size_t from, len; /* the place of the clause in spec.text */
};

/* In a message, {etrace_atom, Name} replaces an atom that the node does not have. Name is a binary. */
#define SPEC_ATOM_MARK "etrace_atom"

/* ---- events ---- */

enum spec_event {
#define EVENT(id, name, flag, nargs, doc) SPEC_EV_##id,
#include "events.def"
    SPEC_EVENTS,
};
_Static_assert(SPEC_EVENTS <= 64, "event masks are 64 bits");

#define SPEC_EVENT_BIT(ev) (UINT64_C(1) << (ev))
const char *spec_event_name(enum spec_event ev); /* returns the VM's trace tag, or the name of a system event */

/* Process and port flags of trace:process/4 that the spec needs. */
enum spec_flag {
    SPEC_F_CALL = 1 << 0,
    SPEC_F_ARITY = 1 << 1, /* every clause has the action `arity`; ignore the flag if another spec needs arguments */
    SPEC_F_RETURN_TO = 1 << 2,
    SPEC_F_SEND = 1 << 3,
    SPEC_F_RECEIVE = 1 << 4,
    SPEC_F_PROCS = 1 << 5,
    SPEC_F_PORTS = 1 << 6,
    SPEC_F_RUNNING = 1 << 7, /* in, out */
    SPEC_F_EXITING = 1 << 8,
    SPEC_F_GC = 1 << 9,
    SPEC_F_SYSTEM = 1 << 10,    /* not a process flag: trace:system/3, OTP 28 and newer */
    SPEC_F_SEQ_TRACE = 1 << 11, /* not a process flag: seq_trace's system tracer */
};

enum spec_counter {
    SPEC_COUNT = 1 << 0,  /* call_count */
    SPEC_TIME = 1 << 1,   /* call_time */
    SPEC_MEMORY = 1 << 2, /* call_memory */
};

/* ---- where: the filter that the client evaluates ---- */

#define WHERE_VARIABLES 100 /* WHERE_MATCH: the variables of a pattern are '$0' to '$99' */

enum where_type {
    WHERE_CONST,     /* `constant` is the value */
    WHERE_NAME,      /* `property` is the property of the event to read; `index` is the N of args[N] */
    WHERE_CALL,      /* `fn` is a function or an operator of functions.def, and `items` are its arguments */
    WHERE_TUPLE,     /* `items` are the elements */
    WHERE_LIST,      /* `items` are the elements; `tail` is NULL for a proper list */
    WHERE_MAP,       /* `items` are a key, its value, the next key, and so on */
    WHERE_REGEX,     /* items[0] =~ regex, or items[0] !~ regex if `negated` is set */
    WHERE_AGGREGATE, /* `name` is an aggregate of a row of a table; only assertions have it */
    WHERE_MATCH,     /* items[0] matches `constant`, a head of a match specification ('_', '$N', maps as subsets) */
};

struct where {
    enum where_type type;
    enum where_kind kind; /* the kind of the result */
    union {
        enum property property; /* WHERE_NAME */
        enum fn fn;             /* WHERE_CALL */
    };
    int index; /* WHERE_NAME: the N of args[N], from 1; 0 for `args`, the list of all arguments */
    bool negated;
    bool early;       /* the expression reads only properties that the node knows (PROPERTY_NODE) */
    bool unknown;     /* a condition of a conjunction: it has a record that is not defined yet (LANG_LATER) */
    term_t constant;  /* WHERE_CONST: the value; WHERE_MATCH: the pattern */
    struct str regex; /* WHERE_REGEX: the pattern */
    struct str name;  /* WHERE_AGGREGATE: count, max(dur), or p99(dur) of quantiles and histograms */
    const struct where **items;
    size_t count;
    const struct where *tail;
    size_t from, len; /* the place of the expression in the text */
    struct str text;  /* a condition of a conjunction: the condition as written */
};

/* Returns the PROPERTY_NEEDS_ bits and PROPERTY_AROUND of the properties that the filter reads. */
unsigned where_uses(const struct where *w);

/* Returns the union of the bits that `of` returns for the parts of the expression. */
unsigned where_collect(const struct where *w, unsigned (*of)(const struct where *));

/* Returns true if the condition is about the rows of a table, and not about events. */
bool where_is_of_rows(const struct where *w);

/* ---- by: the keys and aggregates by which the client counts events ---- */

#define SPEC_KEYS_MAX 8
#define SPEC_AGGREGATES_MAX 16

enum by_kind { BY_COUNT, BY_SUM, BY_MIN, BY_MAX, BY_AVG, BY_HIST, BY_QUANTILES, BY_KINDS };
extern const char *const by_kind_names[BY_KINDS];
bool by_kind_find(struct str name, enum by_kind *ret);

struct by_key {
    const struct where *value;
    bool tag;        /* tag(...): the key is only the shape of the value */
    struct str text; /* the key as written */
};

struct by_aggregate {
    enum by_kind kind;
    const struct where *value; /* the expression in the parentheses; NULL for `count` */
    bool late;                 /* for a call, the value is known only when its result arrives */
    struct str text;           /* the aggregate as written, such as sum(size) */
};

struct spec_by {
    const struct by_key *keys;
    size_t nkeys;
    const struct by_aggregate *aggregates; /* at least one */
    size_t naggregates;
    bool late;       /* for a call, some key is known only when the result arrives */
    bool any_late;   /* for a call, some key or some aggregate is known only when the result arrives */
    unsigned uses;   /* PROPERTY_ bits of all properties that the keys and aggregates read */
    struct str text; /* the clause; clauses with the same text share a table */
    uint32_t most;   /* limit for the keys that a node counts */
    enum spec_surface surface;
};

/* ---- the spec ---- */

struct spec_warning {
    struct str text;
    bool never;       /* the warning is about a probe or a clause that can never match */
    size_t from, len; /* the place in spec.text */
};

struct spec {
    enum spec_kind kind;
    enum spec_scope scope; /* only of SPEC_CALL */
    enum spec_surface surface;
    struct str text;   /* the probe as written, without the comments around it */
    struct safe label; /* the label that views print with the events of the spec; may be empty */
    size_t number;     /* number among all specs of a request; events of the node carry it */
    int line;          /* line number in the text given to lang_compile(), from 1 */
    struct str inside; /* the roots as written; if there are any, the spec is traced only inside of them */
    struct str own;    /* the text without the roots */
    bool root; /* the spec is a root: a SPEC_CALL with SPEC_META, traced because a probe names it after `inside` */
    bool alternative; /* the spec is an alternative to the previous spec; both share the text after the selectors */

    const struct selector *selectors; /* only of SPEC_CALL */
    size_t nselectors;
    unsigned counters; /* bits of enum spec_counter */
    bool raw;          /* the user wrote the match specification (after `ms`, or pasted) */

    /*
     * `true`, or a list of {Head, Guards, Body} if `true` would not do the same; NULL for SPEC_EVENT. With `prefix` the
     * heads are improper lists (['$1' | '_']), which OTP 29 accepts for the function {M,F,'_'}. Older releases need the
     * result of spec_match_spec_for().
     */
    term_t match_spec;
    term_t anonymous; /* match_spec without collecting the sender; NULL unless the pack is {PACK_NODE, PACK_SENDER} */
    bool prefix;
    int head_arity; /* number of patterns in the heads (before `...`); -1 if no clause has a head */

    /* The clauses as written. A guard with `;` may need several clauses of the match specification. */
    const struct spec_clause *clauses;
    size_t nclauses;
    enum pack_item pack[PACK_ITEMS];
    size_t npack;

    unsigned flags;    /* bits of enum spec_flag; 0 with SPEC_META */
    uint64_t events;   /* SPEC_EVENT: bits of enum spec_event */
    int64_t params[2]; /* arguments of a system event, in order: @long_gc(Ms), @long_message_queue(Off, On) */
    size_t nparams;

    const struct where *const *where; /* the conditions on an event; all must hold */
    size_t nwhere;

    const struct spec_by *by; /* how to count the events; NULL if the events are shown instead */

    /*
     * The conditions on the result of a root. If one of them fails, the events inside the root are not shown. The node
     * tests these conditions; `where` of a root is empty.
     */
    const struct where *const *keeps;
    size_t nkeeps;

    const struct str *atoms; /* atoms of the match specification that the node must have, without duplicates */
    size_t natoms;

    /* The specs that a combined spec stands for (pipeline/combo.h). lang_compile() leaves this empty. */
    const struct spec *const *parts;
    size_t nparts;

    int needs_otp; /* the oldest OTP release that supports the whole spec; 0 if every release does */

    const struct spec_warning *warnings;
    size_t nwarnings;
};

struct spec_list {
    const struct spec *const *items;
    size_t count;
};

/* Returns the N of '$N', or -1 if the VM does not read the term as a variable. */
int spec_variable(term_t t);

/* Returns true if the term of a guard or a body calls the function, with any number of arguments. */
bool spec_is_call(term_t t, const char *name);

static inline bool spec_packs_sender_only(const struct spec *s)
{
    return s->npack == 2 && s->pack[0] == PACK_NODE && s->pack[1] == PACK_SENDER;
}

/* Returns true if the head matches every argument list of its length: '_', or a list of '_' and different variables. */
bool spec_head_takes_all(term_t head);

/*
 * Returns the match specification for functions of one arity, with '_' for the further arguments in heads with `...`.
 * For arity -1 it returns match_spec unchanged, which needs OTP 29 if `prefix` is set.
 */
term_t spec_match_spec_for(const struct spec *s, int arity, struct arena *a);

/*
 * Returns the match specification without the clauses of the short form for the sender. When probes are combined, each
 * message is in a tuple with the probe's number, so the short form saves nothing and only multiplies the clauses.
 */
term_t spec_match_spec_plain(const struct spec *s, struct arena *a);

/*
 * Returns the program that the tracer may run instead of the match specification, for functions of the arities that the
 * program states (match_program.h). Returns NULL if there is no program.
 */
term_t spec_program(const struct spec *s, struct arena *a);

#endif
